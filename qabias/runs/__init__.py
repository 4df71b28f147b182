"""A run: its arguments, its folder, its signature, and how it is sampled and shared out."""
