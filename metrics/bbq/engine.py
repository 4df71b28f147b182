"""All of this metric that the qabias engine uses; it can be imported without `evaluate`, which takes seconds.

The engine compares two models row by row and draws tables of single rows, which no result of the metric holds. It takes
the names below and no others, so that everything else here may change.
"""

from .computing import Computing
from .names import NAMES
from .rows import paper_category
from .scores import VERSION, count, scores_from_counts

__all__ = ["NAMES", "VERSION", "Computing", "count", "paper_category", "scores_from_counts"]
