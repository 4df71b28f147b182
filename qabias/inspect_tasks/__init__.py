"""The benchmarks as tasks of inspect_ai: our prompts and our scores where others keep models, keys and caches.

`_registry` is what inspect finds by its entry point, and the only module here that needs inspect_ai with `tasks`.
"""
