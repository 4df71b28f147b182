"""Tables and figures as values, for reports, comparisons, terminal and exports."""
