"""What a run will take, told before it is started: tokens, operations, memory, time and cost.

`subject` finds out about a model without its weights, `count` lets the very scorers arrange their batches without
running them, `cost` turns tokens into the rest.
"""
