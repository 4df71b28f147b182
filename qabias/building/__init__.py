"""Building dataset folders: the published files, templates, cards."""
