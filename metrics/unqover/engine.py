"""All of this metric that the qabias engine uses; it can be imported without `evaluate`, which takes seconds.

The engine compares two models row by row and draws tables of single rows, which no result of the metric holds. It takes
the names below and no others, so that everything else here may change.
"""

from .computing import Computing
from .scores import (
    SCORE_COLUMNS,
    VERSION,
    Rows,
    collect,
    comparative_scores,
    headline,
    measure,
    ranks,
)

__all__ = [
    "SCORE_COLUMNS",
    "VERSION",
    "Computing",
    "Rows",
    "collect",
    "comparative_scores",
    "headline",
    "measure",
    "ranks",
]
