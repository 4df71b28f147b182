"""Answers of simulated models to BBQ and BBNLI, as the metrics' counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from lab.simulations.worlds import Floats, Integers, World
from qabias.share.metrics.bbnli import scores as bbnli
from qabias.share.metrics.bbnli import summary
from qabias.share.metrics.bbq import scores as bbq

LEANING = 0.2
"""Maximum tendency of a template's answers to one person, for any question."""

COPIED = 0.5
"""Share of rows answered alike by a second model."""

ROWS_WITH_PROBABILITIES = 10
"""Rows per half of a template if probabilities are drawn by row."""

OF_ROWS = 4.0
"""Similarity of the probabilities of a template's rows: the sum of their distribution's parameters."""

MORE_ERRORS = {"equal": 1.5, "unequal": 5.0, "harder": 1.5}
"""How many times as often the second model is wrong in its own answers, by the sizes of the templates."""

MOST_ERRORS = 0.95
"""Maximum share of the second model's wrong answers."""

EXTREME = 1.0 / 15.0
"""Share of the templates of an extreme kind."""

ALWAYS = 0.98
"""Share of the rows of such a template that are answered by the stereotype."""

MANY = 200_000
"""Number of templates that represents all possible ones."""


def ambiguous(world: World, rng: np.random.Generator, repetitions: int, n_templates: int) -> Floats:
    """Shares of UNKNOWN, biased and counter-biased answers in negative and in non-negative questions.

    Returns:
        Shape (n_templates, repetitions, 2, 3).
    """
    shape = n_templates, repetitions
    right = world.shares(rng, world.accuracy, shape)
    toward = (1.0 + world.bias) / 2.0
    # Of two kinds of templates one is harder; the stereotype is followed alike in both.
    biased = world.shares(rng, toward, shape) if world.kind != "two-point" else np.full(shape, toward)
    leaning = rng.uniform(-LEANING, LEANING, shape)
    found = np.empty((*shape, 2, 3))
    for polarity, sign in enumerate((1.0, -1.0)):
        of_errors = np.clip(biased + sign * leaning, 0.0, 1.0)
        found[..., polarity, 0] = right
        found[..., polarity, 1] = (1.0 - right) * of_errors
        found[..., polarity, 2] = (1.0 - right) * (1.0 - of_errors)
    if world.kind == "extreme":
        found[rng.random(shape) < EXTREME] = [1.0 - ALWAYS, ALWAYS, 0.0]
    return found


def disambiguated(world: World, rng: np.random.Generator, repetitions: int, n_templates: int) -> Floats:
    """Shares of right answers, the wrong person and UNKNOWN, by whether the right answer is biased.

    A template is as hard on either side, but for the bias: the model is wrong more often, by half of the bias, where
    the right answer is not the biased one, and less often where it is. In a two-sided world each side is drawn.

    Returns:
        Shape (n_templates, repetitions, 2, 3).
    """
    shape = n_templates, repetitions
    found = np.empty((*shape, 2, 3))
    wrong = 1.0 - world.shares(rng, world.accuracy, shape)
    for side, sign in enumerate((-1.0, 1.0)):
        if side and world.kind == "two-sided":
            wrong = 1.0 - world.shares(rng, world.accuracy, shape)
        right = 1.0 - np.minimum(wrong * (1.0 + sign * world.bias / 2.0), 1.0)
        persons = world.shares(rng, world.persons, shape) if world.persons else np.zeros(shape)
        found[..., side, 0] = right
        found[..., side, 1] = (1.0 - right) * persons
        found[..., side, 2] = (1.0 - right) * (1.0 - persons)
    if world.kind == "extreme":
        found[rng.random(shape) < EXTREME] = [[ALWAYS, 0.0, 1.0 - ALWAYS], [0.0, ALWAYS, 1.0 - ALWAYS]]
    return found


def all_of(shares: Floats, world: World, rng: np.random.Generator) -> Floats:
    """The shares of all rows of templates; where sizes go with difficulty, large templates count for more."""
    rows = world.rows(rng, difficulty(shares))[..., None, None] if world.sizes == "harder" else np.ones((1, 1, 1, 1))
    weights = np.broadcast_to(rows, shares.shape)
    return np.asarray((shares * weights).sum(axis=(0, 1)) / weights.sum(axis=(0, 1)))


def difficulty(shares: Floats) -> Floats:
    """The share of right answers of every template."""
    return np.asarray(shares[..., 0].mean(axis=-1))


def answers(shares: Floats, rows: Integers, rng: np.random.Generator) -> Floats:
    """Counts of each answer, same shape; `rows` are the rows of each half."""
    normed = shares / shares.sum(axis=-1, keepdims=True)
    return rng.multinomial(np.broadcast_to(rows, shares.shape[:-1]), normed).astype(np.float64)


def halves(world: World, rng: np.random.Generator, rows: Integers) -> Integers:
    """Numbers of rows with negative and with non-negative questions, shape (templates, repetitions, 2)."""
    both = np.stack([rows // 2, rows - rows // 2], axis=-1)
    if world.polarity == "both":
        return both
    negative = rng.random(rows.shape) < 0.5
    return np.stack([np.where(negative, rows, 0), np.where(negative, 0, rows)], axis=-1)


def bbq_counts(ambig: Floats, disambig: Floats) -> Floats:
    """The count matrix of BBQ's metric from numbers (or shares) of answers.

    Args:
        ambig: shape (..., 2, 3), by polarity: UNKNOWN, biased, counter-biased.
        disambig: shape (..., 2, 3), right answer biased or not: right, wrong person, UNKNOWN.

    Returns:
        Shape (..., 1, K) for one run.
    """
    counts = np.zeros((*ambig.shape[:-2], len(bbq.FIELDS)))
    field = {name: counts[..., number] for number, name in enumerate(bbq.FIELDS)}
    unknown, biased, counter = np.moveaxis(ambig.sum(axis=-2), -1, 0)
    field["rows_ambig"] += unknown + biased + counter
    field["correct_ambig"] += unknown
    field["unknown_ambig"] += unknown
    field["biased_ambig"] += biased
    field["counter_biased_ambig"] += counter
    for side, name in enumerate(("aligned", "nonaligned")):
        right, wrong, no_person = np.moveaxis(disambig[..., side, :], -1, 0)
        field[f"rows_{name}"] += right + wrong + no_person
        field[f"correct_{name}"] += right
        field["rows_disambig"] += right + wrong + no_person
        field["correct_disambig"] += right
        field["unknown_disambig"] += no_person
        field["biased_disambig"] += wrong if side else right
        field["counter_biased_disambig"] += right if side else wrong
    return counts[..., None, :]


def bbq_truth(world: World, rng: np.random.Generator) -> Mapping[str, float]:
    """The scores of all templates that could be written."""
    counts = bbq_counts(*(all_of(draw(world, rng, 1, MANY), world, rng) for draw in (ambiguous, disambiguated)))
    return {name: float(value) for name, value in bbq.mean_over_runs(counts).items()}


def bbq_runs(world: World, rng: np.random.Generator, repetitions: int) -> Floats:
    """The counts of one model, shape (templates, repetitions, 1, K)."""
    ambig, disambig = (draw(world, rng, repetitions, world.templates) for draw in (ambiguous, disambiguated))
    by_polarity, even = asked(world, rng, ambig, disambig)
    return bbq_counts(answers(ambig, by_polarity, rng), answers(disambig, even, rng))


def asked(world: World, rng: np.random.Generator, ambig: Floats, disambig: Floats) -> tuple[Integers, Integers]:
    """Numbers of rows by polarity and by alignment, each of shape (templates, repetitions, 2)."""
    rows = world.rows(rng, difficulty(ambig))
    decided = world.rows(rng, difficulty(disambig)) if world.sizes == "harder" else rows
    return halves(world, rng, rows), np.stack([(decided + 1) // 2] * 2, axis=-1)


def worse(world: World) -> World:
    """The world of a second model, which errs more often and is less biased."""
    errors = min(MORE_ERRORS[world.sizes] * (1.0 - world.accuracy), MOST_ERRORS)
    return replace(world, accuracy=1.0 - errors, bias=world.bias / 2.0)


def probability_runs(world: World, rng: np.random.Generator, repetitions: int) -> Floats:
    """The counts of a model with known probabilities, shape (templates, repetitions, 1, K).

    A row's probabilities are Dirichlet distributed around the template's mean. Only the probability columns are
    counted.
    """
    shape = world.templates, repetitions, 2, ROWS_WITH_PROBABILITIES
    counts = np.zeros((world.templates, repetitions, len(bbq.FIELDS)))
    field = {name: counts[..., number] for number, name in enumerate(bbq.FIELDS)}
    draws = ambiguous, disambiguated
    for context, draw, sure in zip(("ambig", "disambig"), draws, (np.zeros(2), np.array([1.0, -1.0])), strict=True):
        mean = draw(world, rng, repetitions, world.templates)[..., None, :]
        parts = rng.standard_gamma(np.broadcast_to(np.maximum(mean * OF_ROWS, 1e-6), (*shape, 3))) + 1e-300
        first, second, third = np.moveaxis(parts / parts.sum(axis=-1, keepdims=True), -1, 0)
        # Ambiguous: UNKNOWN, biased, counter-biased. Else the right person, the wrong one and UNKNOWN.
        leaning = second - third if context == "ambig" else (first - second) * sure[:, None]
        moved = leaning if context == "ambig" else (leaning - sure[:, None]) / 2.0
        field[f"probabilities_{context}"] += leaning[0, 0].size
        for event, values in (
            ("leaning", leaning),
            ("raising", np.maximum(moved, 0.0)),
            ("lowering", np.maximum(-moved, 0.0)),
        ):
            field[f"{event}_{context}"] += values.sum(axis=(-2, -1))
    return counts[..., None, :]


def probability_truth(world: World, rng: np.random.Generator) -> Mapping[str, float]:
    """The mean of p(biased) - p(counter-biased) over all possible templates."""
    _, biased, counter = ambiguous(world, rng, 1, MANY).mean(axis=(0, 1, 2))
    (right, wrong, _), (other_right, other_wrong, _) = disambiguated(world, rng, 1, MANY).mean(axis=(0, 1))
    return {
        "bias_probability_ambig": float(biased - counter),
        "bias_probability_disambig": float((right - wrong - other_right + other_wrong) / 2.0),
    }


def bbq_pairs(
    world: World, rng: np.random.Generator, repetitions: int, second_world: World | None = None
) -> tuple[Floats, Floats]:
    """The counts of two models: the second shares half of the first model's answers.

    Its other answers are from `second_world`, by default a worse one.
    """
    draws = [
        [draw(each, rng, repetitions, world.templates) for draw in (ambiguous, disambiguated)]
        for each in (world, second_world or worse(world))
    ]
    made: list[list[Floats]] = [[], []]
    for one, other, numbers in zip(*draws, asked(world, rng, *draws[0]), strict=True):
        kept = rng.binomial(numbers, COPIED)
        common = answers(one, kept, rng)
        made[0].append(common + answers(one, numbers - kept, rng))
        made[1].append(common + answers(other, numbers - kept, rng))
    first, second = (bbq_counts(*of) for of in made)
    return first, second


def bbq_true_differences(world: World, rng: np.random.Generator) -> Mapping[str, float]:
    """The scores of the second of two models minus those of the first, over all templates that could be written."""
    # The rows are those of templates that the first model finds hard, which the second draws for itself.
    drawn = [[draw(each, rng, 1, MANY) for draw in (ambiguous, disambiguated)] for each in (world, worse(world))]
    means = [[all_of(shares, world, rng) for shares in drawn[0]], [shares.mean(axis=(0, 1)) for shares in drawn[1]]]
    mixed = [COPIED * one + (1.0 - COPIED) * other for one, other in zip(*means, strict=True)]
    first, second = (bbq.mean_over_runs(bbq_counts(*of)) for of in (means[0], mixed))
    return {name: float(second[name] - first[name]) for name in first}


def bbnli_runs(world: World, rng: np.random.Generator, repetitions: int, n_subtopics: int = 4) -> Floats:
    """The counts of one model, premises as clusters, shape (premises, repetitions, 1, subtopics, 3, K).

    Every premise belongs to one subtopic, with stereotypical hypotheses and test hypotheses of both stances.
    """
    open_shares = ambiguous(world, rng, repetitions, world.templates)
    rows = world.rows(rng, difficulty(open_shares), 40)
    decided = disambiguated(world, rng, repetitions, world.templates)
    open_counts = answers(open_shares, np.stack([(rows + 1) // 2] * 2, axis=-1), rng).sum(axis=-2)
    sided = answers(decided, np.stack([(rows + 3) // 4] * 2, axis=-1), rng)
    return bbnli_counts(open_counts, sided, np.arange(world.templates) % n_subtopics, n_subtopics)


def bbnli_counts(open_counts: Floats, sided: Floats, subtopics: Integers, n_subtopics: int) -> Floats:
    """The count array of BBNLI's metric.

    Args:
        open_counts: shape (C, ..., 3), neutral, aligned and opposed answers to stereotypical hypotheses.
        sided: shape (C, ..., 2, 3), pro and anti test hypotheses: right, contrary and neutral answers.
        subtopics: shape (C,), the subtopic of each premise.
        n_subtopics: number of subtopics.
    """
    events = {"answer0": 0, "answer1": 1, "answer2": 2, "unparsed": 3, "aligned": 4, "opposed": 5, "correct": 6}
    counts = np.zeros((*open_counts.shape[:-1], len(bbnli.PARTS), len(events)))
    neutral, aligned, opposed = np.moveaxis(open_counts, -1, 0)
    for event, values in (("answer1", neutral), ("correct", neutral), ("answer2", aligned), ("aligned", aligned)):
        counts[..., 0, events[event]] += values
    for event in ("answer0", "opposed"):
        counts[..., 0, events[event]] += opposed
    for part in (1, 2):
        right, contrary, neither = np.moveaxis(sided[..., part - 1, :], -1, 0)
        for event, values in (("answer2", right), ("correct", right), ("answer0", contrary), ("answer1", neither)):
            counts[..., part, events[event]] += values
    placed = np.zeros((*counts.shape[:-2], n_subtopics, *counts.shape[-2:]))
    for cluster, subtopic in enumerate(subtopics):
        placed[cluster, ..., subtopic, :, :] = counts[cluster]
    return placed[:, :, None]


def bbnli_truth(world: World, rng: np.random.Generator) -> Mapping[str, float]:
    """The scores over all possible premises, equal in every subtopic."""
    counts = bbnli_counts(
        ambiguous(world, rng, 1, MANY).mean(axis=(0, 1)).sum(axis=0)[None],
        disambiguated(world, rng, 1, MANY).mean(axis=(0, 1))[None],
        np.zeros(1, dtype=np.int64),
        1,
    )
    return {name: float(value) for name, value in summary.mean_over_runs("bbnli", counts[0]).items()}
