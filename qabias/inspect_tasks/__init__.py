"""The benchmarks as tasks of inspect_ai: the prompts and scores of qabias with inspect's models, keys and caches."""
