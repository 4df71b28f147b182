"""Datasets, metrics and results on the Hugging Face Hub: contents, comparison and push."""
