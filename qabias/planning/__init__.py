"""What a run will take, before it is started: tokens, operations, memory, time and cost.

`subject` finds out about a model without its weights. `silent` and `count` let the scorers themselves arrange their
batches without running them. `plan` turns tokens into the rest, and `printing` shows it. `server` counts what a server
would be asked.
"""
