"""Exact match and F1 of answers, as SQuAD 1.1 defines them (Rajpurkar et al. 2016, Section 6.1)."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(answer: str) -> str:
    """Leave out case, punctuation, articles and repeated spaces."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, reference: str) -> float:
    """1.0 if both are the same once normalised, else 0.0."""
    return float(normalise(prediction) == normalise(reference))


def f1(prediction: str, reference: str) -> float:
    """Harmonic mean of the precision and the recall of words, in [0, 1]; 0.0 if no word is shared."""
    predicted, right = normalise(prediction).split(), normalise(reference).split()
    n_shared = (Counter(predicted) & Counter(right)).total()
    return 2 * n_shared / (len(predicted) + len(right)) if n_shared else 0.0


def average(
    score: Callable[[str, str], float], predictions: Sequence[str], references: Sequence[Sequence[str]]
) -> float:
    """Mean over questions of the score against the reference that fits best, in [0, 1]."""
    best = [
        max(score(prediction, reference) for reference in right)
        for prediction, right in zip(predictions, references, strict=True)
    ]
    return sum(best) / len(best)
