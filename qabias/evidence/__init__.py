"""Evidence for others: drafts of their documents from a run, and verification of every number."""
