"""A score with what limits it, and the judge that compares it with a condition."""
