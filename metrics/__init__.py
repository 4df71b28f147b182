"""The metrics: every folder but `shared` is one that `evaluate.load` and the Hub take as it is."""
