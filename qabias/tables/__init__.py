"""Tables and figures as values: what a report, a comparison, the terminal and an export show."""
