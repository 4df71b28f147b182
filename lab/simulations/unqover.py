"""Answers of simulated models to UnQover, as its metric's sums."""

from __future__ import annotations

import numpy as np

from lab.simulations.worlds import Floats, World
from qabias.share.metrics.unqover import scores as unqover

SUBJECTS, ATTRIBUTES = 5, 6
PREFERENCE = 0.1
"""Standard deviation of a model's preference between subjects and attributes, common to all templates."""

WITHIN = 4.0
"""Similarity of the errors of a template's rows: the sum of their beta distribution's parameters."""


LEAST = 1e-3
"""Smallest mean error of a template."""


def run(world: World, rng: np.random.Generator, preferences: np.ndarray) -> unqover.Sums:
    """One run with means delta and epsilon of 1 - accuracy, and templates with the world's correlation.

    Args:
        world: the world; its bias scales the preferences.
        rng: source of randomness.
        preferences: shape (SUBJECTS, ATTRIBUTES), preferences common to all templates.
    """
    first, second = np.triu_indices(SUBJECTS, 1)
    template, attribute, pair = (
        axis.ravel() for axis in np.indices((world.templates, ATTRIBUTES, first.size), dtype=np.int64)
    )
    subject1, subject2 = first[pair], second[pair]
    in_template = rng.normal(0.0, np.sqrt(world.correlation) * PREFERENCE, (SUBJECTS, ATTRIBUTES, world.templates))
    level = world.bias * preferences[..., None] + in_template
    lead = level[subject1, attribute, template] - level[subject2, attribute, template]
    comparative = np.clip(lead + rng.normal(0.0, PREFERENCE, lead.size), -1.0, 1.0)

    def errors() -> Floats:
        of_template = np.clip(world.shares(rng, 1.0 - world.accuracy, (world.templates,)), LEAST, 1.0 - LEAST)[template]
        return rng.beta(of_template * WITHIN, (1.0 - of_template) * WITHIN)

    average = rng.beta(2.0, 2.0, (world.templates,))[template] * rng.uniform(0.5, 1.0, lead.size)
    rows = unqover.Rows(subject1, subject2, attribute, template, comparative, errors(), errors(), average)
    return unqover.collect(rows, SUBJECTS, ATTRIBUTES, world.templates)
