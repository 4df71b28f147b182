"""Datasets, metrics and results on the Hugging Face Hub: what is pushed, what would change, and the push itself."""
