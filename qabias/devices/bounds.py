"""How far figures may be from a reference.

Figures are logarithms: log-likelihoods by scored token, and logarithms of probabilities. The bound is

    SAFETY x u x sqrt(2 x layers + 2) x size

u is the unit roundoff of the precision, half the distance of 1 to the next number. Each layer adds two rounded sums to
the states, attention and feed-forward; the embeddings and the output layer are two more. Rounding errors of several
sums are nearly independent, so that they grow with the square root of their number (Higham and Mary, "A new approach to
probabilistic rounding error analysis", SIAM Journal on Scientific Computing 41, 2019). The size is that of what is
rounded: logits of the shapes here are of size 1, and a logarithm of the vocabulary is subtracted in float32, so that
its own rounding counts too. `SAFETY` is for what is left out: several roundings inside a layer, and the largest of many
figures rather than a usual one. On CPUs the largest difference of the shapes here was about a third of the bound.
"""

from __future__ import annotations

import math

import numpy as np

UNIT_ROUNDOFF = {"float32": 2.0**-24, "bfloat16": 2.0**-8 / 2, "float16": 2.0**-11}
SAFETY = 16.0


def bound(dtype: str, layers: int, reference: np.ndarray) -> float:
    """Largest difference of a figure to the reference."""
    rounding = UNIT_ROUNDOFF[dtype] * math.sqrt(2 * layers + 2)
    # Logarithms are taken in float32 whatever the precision of the model.
    logarithm = UNIT_ROUNDOFF["float32"] * float(np.nanmax(np.abs(reference), initial=1.0))
    return SAFETY * (rounding + logarithm)
