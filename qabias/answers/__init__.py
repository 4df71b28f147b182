"""From what a model gave to what it answered: likelihoods of options, and texts that are parsed."""
