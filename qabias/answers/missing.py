"""The number in place of an answer that is not there."""

NO_ANSWER = -1
"""In place of an answer's number where there is none: the best options tie, or a text names no answer or several."""
