"""What a run will take, before it is started: tokens, and time and cost at a speed that is measured or given.

`subject` finds out about a model without its weights. `silent` and `count` let the scorers themselves arrange their
batches without running them. `plan` counts the runs that are meant, and `printing` shows them. `server` counts what a
server would be asked.
"""
