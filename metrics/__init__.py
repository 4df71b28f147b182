"""The metrics: every folder except `shared` works in `evaluate.load` and on the Hub."""
