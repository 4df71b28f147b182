"""Dataset and metric folders, placed here when the package is installed from a wheel."""
