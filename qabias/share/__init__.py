"""Links to the dataset and metric folders at the top of a checkout; a wheel carries the folders themselves here."""
