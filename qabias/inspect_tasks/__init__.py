"""The benchmarks as tasks of inspect_ai: our prompts and our scores where others keep models, keys and caches."""
