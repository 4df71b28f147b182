"""From what a model gave to what it answered: likelihoods of options, and texts that are parsed."""

NO_ANSWER = -1
"""In place of an answer's number where there is none: the best options tie, or a text names no answer or several."""
