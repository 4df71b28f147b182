"""Several runs of one model with one result: an audit, and a test for contamination."""
