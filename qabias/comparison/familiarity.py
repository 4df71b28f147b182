"""How familiar a causal language model is with published texts: their likelihood beside that of parallel ones.

A model that was trained on a text finds it likelier than a text of the same kind that it has not met. What is measured
is in `familiarity.json`, one line of means for every stereotype and form; the tables are made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qabias.benchmarks import ALL, load_benchmark
from qabias.benchmarks.pairs import Floats
from qabias.comparison.adjusted import adjusted_means, groups_of
from qabias.comparison.paired_tests import holm
from qabias.errors import QabiasError
from qabias.support.files import read_json, write_json
from qabias.tables.model import Column, Estimate, Figure, Table, Value

FAMILIARITY_FILE = "familiarity.json"
FAMILIAR_STEREOTYPES_TABLE = "familiarity_by_stereotype"
SECTION = "Familiarity with the published texts"

_READ_TESTS = (
    "The 95 % intervals are over stereotypes, Student's with a variance that is robust to unequal spread. The p-values "
    "are of a test that exchanges the two forms of a stereotype; the adjusted ones (Holm) are for the rows except All."
)
_READ_DIFFERENCE = (
    "Mean log-likelihood per token, in nats, of the distinct published texts and of the parallel ones, each the mean "
    "over stereotypes. A difference above 0: the model finds the published texts likelier. Every token counts, the "
    "first one after the model's start token. The forms also differ in length and in how rare their words are; the "
    "next table allows for that."
)
_READ_EQUAL = (
    "The same difference where both forms of a stereotype have the same length and equally common words: the intercept "
    "of least squares over stereotypes on the differences of the mean logarithm of the number of tokens, and of the "
    "mean log-likelihood of a word that stands alone, under the reference model if one was given. The two columns "
    "before it show how the forms differ in these. Training on the texts makes their words likelier too, which takes a "
    "part of the difference away where there is no reference."
)
_READ_ALONE = (
    "Without a reference model a small p-value is no finding: habits of the writers run through a whole form, and of "
    "twelve networks with random weights three had p < 0.05 in the table above and two in this one."
)
_READ_REFERENCE = (
    "The difference of this model less that of {reference}, both by the tokens of this model. What makes one text "
    "harder than another for any model falls away; what is left is known to this model and not to the reference."
)
_READ_STEREOTYPES = (
    "Published minus parallel for every stereotype, the most familiar first. One stereotype is one text with a few "
    "fillings in each form: it has no interval and no test, and the first of many are large by chance."
)


@dataclass(frozen=True)
class FormOfStereotype:
    """The texts of a stereotype in one form, as means over its distinct texts."""

    n_texts: int
    per_token: float
    log_tokens: float
    per_word: float
    reference: float | None = None


@dataclass(frozen=True)
class FamiliarStereotype:
    """A stereotype in both forms."""

    name: str
    about: str
    topic: str
    group: str
    published: FormOfStereotype
    parallel: FormOfStereotype


@dataclass(frozen=True)
class Familiarity:
    """How familiar a model is with published texts."""

    benchmark: str
    signature: str
    sources: tuple[str, str]
    config: str
    model: str
    reference: str
    stereotypes: tuple[FamiliarStereotype, ...]


def write_familiarity(found: Familiarity, folder: Path) -> Path:
    """Write `familiarity.json`, whole or not at all; returns its path."""
    path = folder / FAMILIARITY_FILE
    write_json(path, asdict(found))
    return path


def read_familiarity(path: Path) -> Familiarity:
    """Read what `write_familiarity` wrote."""
    try:
        content = read_json(path)
        stereotypes = tuple(map(_stereotype, content["stereotypes"]))
        published, parallel = content["sources"]
        return Familiarity(**{**content, "sources": (published, parallel), "stereotypes": stereotypes})
    except OSError as error:
        raise QabiasError(f"cannot read {path}: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise QabiasError(f"{path} is damaged: {error!r}; measure it again with `qabias familiarity`") from error


def _stereotype(content: dict[str, Any]) -> FamiliarStereotype:
    forms = {form: FormOfStereotype(**content[form]) for form in ("published", "parallel")}
    return FamiliarStereotype(**{**content, **forms})


def familiarity_tables(found: Familiarity) -> list[Table]:
    """The differences by group: as they are, at equal length and words, minus a reference; and by stereotype."""
    per_token, tokens, words = (_of_forms(found, name) for name in ("per_token", "log_tokens", "per_word"))
    difference = _gap(per_token)
    none = np.empty((len(difference), 0))
    equal = np.stack([_gap(tokens), _gap(words)], axis=1)
    tables = [
        _by_group(
            found,
            "familiarity",
            f"Familiarity of {found.model}",
            _READ_DIFFERENCE,
            {"published": ("Published", per_token[:, 0]), "parallel": ("Parallel", per_token[:, 1])},
            ("Published − parallel", difference, none),
        ),
        _by_group(
            found,
            "familiarity_equal",
            "Familiarity at equal length and words",
            _READ_EQUAL if found.reference else f"{_READ_EQUAL} {_READ_ALONE}",
            {"log_tokens": ("Log of length", _gap(tokens)), "per_word": ("Words alone", _gap(words))},
            ("Published − parallel, at equal length and words", difference, equal),
        ),
    ]
    if found.reference:
        theirs = _gap(_of_forms(found, "reference"))
        tables.append(
            _by_group(
                found,
                "familiarity_reference",
                "Familiarity minus that of the reference",
                _READ_REFERENCE.format(reference=found.reference),
                {"model": ("This model", difference), "reference": ("Reference", theirs)},
                ("This model − reference", difference - theirs, none),
            )
        )
    return [*tables, _by_stereotype(found)]


def _of_forms(found: Familiarity, name: str) -> Floats:
    """A mean of every stereotype in both forms, published first; float64 of shape (S, 2)."""
    pairs = [[getattr(of.published, name), getattr(of.parallel, name)] for of in found.stereotypes]
    return np.array(pairs, dtype=np.float64)


def _gap(both: Floats) -> Floats:
    """Published minus parallel, float64 of shape (S,)."""
    gap: Floats = both[:, 0] - both[:, 1]
    return gap


def _by_group(
    found: Familiarity,
    name: str,
    title: str,
    note: str,
    means: Mapping[str, tuple[str, Floats]],
    tested: tuple[str, Floats, Floats],
) -> Table:
    """A difference by group and over all stereotypes, with its intervals and tests."""
    heading, values, covariates = tested
    codes, names = groups_of([of.group for of in found.stereotypes])
    differences = [
        *adjusted_means(values, covariates, codes, len(names)),
        *adjusted_means(values, covariates, np.zeros_like(codes), 1),
    ]
    adjusted = [*holm([of.p for of in differences[:-1]]), None]
    n_texts = np.array([of.published.n_texts + of.parallel.n_texts for of in found.stereotypes])
    rows: list[tuple[Value, ...]] = []
    for number, (group, difference, p) in enumerate(zip([*names, ALL], differences, adjusted, strict=True)):
        chosen = codes == number if group != ALL else np.ones_like(codes, dtype=bool)
        before = (float(of[chosen].mean()) for _, of in means.values())
        counts = int(chosen.sum()), int(n_texts[chosen].sum())
        rows.append((group, *before, Estimate(*difference[:3]), difference.p, p, *counts))
    return Table(
        name,
        title,
        "",
        f"{note} {_READ_TESTS}",
        (
            Column("group", load_benchmark(found.benchmark).facts.group, "text"),
            *(Column(key, of, "number") for key, (of, _) in means.items()),
            Column("difference", heading, "number"),
            Column("p", "p", "p"),
            Column("p_adjusted", "adjusted p", "p"),
            Column("n_stereotypes", "Stereotypes", "count"),
            Column("n_texts", "Texts", "count"),
        ),
        tuple(rows),
        Figure("intervals", "group", ("difference",)),
        SECTION,
    )


def _by_stereotype(found: Familiarity) -> Table:
    per_token = _gap(_of_forms(found, "per_token"))
    less = per_token - _gap(_of_forms(found, "reference")) if found.reference else per_token
    columns = [
        Column("stereotype", "Stereotype", "text"),
        Column("groups", "Groups", "text"),
        Column("topic", "Topic", "text"),
        Column("difference", "Published − parallel", "number"),
        *([Column("reference", "minus reference", "number")] if found.reference else []),
        Column("n_texts", "Texts", "count"),
    ]
    rows: list[tuple[Value, ...]] = []
    for number in np.argsort(-less, kind="stable"):
        of = found.stereotypes[number]
        minus = (float(less[number]),) if found.reference else ()
        n_texts = of.published.n_texts + of.parallel.n_texts
        rows.append((of.name, of.about, of.topic, float(per_token[number]), *minus, n_texts))
    return Table(
        FAMILIAR_STEREOTYPES_TABLE,
        "Familiarity by stereotype",
        "",
        _READ_STEREOTYPES,
        tuple(columns),
        tuple(rows),
        None,
        SECTION,
    )
