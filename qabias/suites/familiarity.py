"""Measuring how familiar a causal language model is with published texts: both forms scored as plain texts.

Distinct texts are scored once, after the model's start token and without a prompt, by the scorer that also scores
options: a text is the one option of a request without a prefix. The words of the texts are scored alone in the same
way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn, cast

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.facts import ParallelForms
from qabias.comparison.familiarity import (
    FAMILIARITY_FILE,
    Familiarity,
    FamiliarStereotype,
    FormOfStereotype,
    read_familiarity,
    write_familiarity,
)
from qabias.comparison.forms import shared_stereotypes
from qabias.errors import QabiasError
from qabias.runs.arguments import HERE, Machine, RunArguments
from qabias.runs.question import load_examples
from qabias.runs.signature import joined
from qabias.scorers.base import OptionScorer, Request
from qabias.scorers.registry import FALLBACK, load_scorer, scorer_of
from qabias.suites.forms import arguments_of_forms, forms_folder, with_forms
from qabias.support.outputs import Own, check_file, check_folder
from qabias.support.version import __version__

N_TEXTS = 20
"""Distinct texts of a stereotype and form that are scored; more differ in the filled-in words only."""

VERSION = "1"
"""Version of the rules by which familiarity is measured; a change that moves a number raises it."""

_TEXTS_AT_ONCE = 256
_WORD = re.compile(r"[\w'’-]+")


class _Texts(NamedTuple):
    """The chosen texts of every stereotype in one form, and the groups of the stereotypes."""

    of_stereotype: list[list[str]]
    groups: list[str]


class _Scored(NamedTuple):
    """Log-likelihoods of texts in nats, and their numbers of tokens."""

    loglikelihoods: dict[str, float]
    n_tokens: dict[str, int]


class _Model(NamedTuple):
    """A model's name in signatures, and what it found of texts by their kind."""

    name: str
    scored: dict[str, _Scored]


def measure_familiarity(
    arguments: RunArguments,
    reference: str | None = None,
    n_texts: int = N_TEXTS,
    output: Path | None = None,
    machine: Machine = HERE,
    *,
    overwrite: bool = False,
) -> tuple[Familiarity, Path]:
    """Measure how familiar a model is with published texts, and write `familiarity.json`."""
    if n_texts < 1:
        raise QabiasError(f"the number of texts is {n_texts}; it must be at least 1")
    if load_benchmark(arguments.benchmark).facts.forms is None:
        having = with_forms()
        raise QabiasError(
            f"{arguments.benchmark} has no parallel form to be familiar with; of the benchmarks {' and '.join(having)} "
            f"{'has' if len(having) == 1 else 'have'}"
        )
    both = arguments_of_forms(arguments)
    folder = forms_folder(arguments, output)
    check_folder(folder)
    check_file(folder / FAMILIARITY_FILE, _is_of(arguments, both), overwrite=overwrite)
    for model in filter(None, (arguments.model, reference)):
        _check_causal(model, arguments.revision if model == arguments.model else None)
    examples = [load_examples(of, machine.upstream_dir) for of in both]
    facts = examples[0].benchmark.facts.forms
    assert facts is not None  # the others are refused above
    tables = [of.table for of in examples]
    shared = shared_stereotypes(facts, tables[0], tables[1])
    texts = [
        _choose_texts(facts, table, clusters, len(shared.stereotypes), n_texts)
        for table, clusters in zip(tables, shared.clusters, strict=True)
    ]
    distinct = list(dict.fromkeys(text for form in texts for of in form.of_stereotype for text in of))
    words = [f" {word}" for word in sorted({word for text in distinct for word in _WORD.findall(text)})]
    asked = {"texts": distinct, "words": words}
    ours = _load_and_score(arguments.model, arguments.revision, asked, arguments, machine)
    theirs = _load_and_score(reference, None, asked, arguments, machine) if reference else None
    alone = (theirs or ours).scored["words"].loglikelihoods
    their_texts = theirs.scored["texts"] if theirs else None
    stereotypes = tuple(
        FamiliarStereotype(
            stereotype.name,
            stereotype.groups,
            topic,
            texts[0].groups[number],
            *(_means(form.of_stereotype[number], ours.scored["texts"], alone, their_texts) for form in texts),
        )
        for number, (stereotype, topic) in enumerate(zip(shared.stereotypes, shared.topics, strict=True))
        if all(form.of_stereotype[number] for form in texts)
    )
    sources = (examples[0].origin.version, examples[1].origin.version)
    reference_name = theirs.name if theirs else ""
    found = Familiarity(
        arguments.benchmark,
        _signature(arguments, ",".join(sources), ours.name, reference_name, n_texts),
        sources,
        arguments.config,
        ours.name,
        reference_name,
        stereotypes,
    )
    return found, write_familiarity(found, folder)


def _is_of(arguments: RunArguments, both: tuple[RunArguments, RunArguments]) -> Own:
    """A file is own where it is of the same benchmark, configuration, sources and model."""

    def is_own(path: Path) -> bool:
        try:
            found = read_familiarity(path)
        except QabiasError:
            return False
        sources = [name.partition("@")[0] for name in found.sources]
        return (
            (found.benchmark, found.config) == (arguments.benchmark, arguments.config)
            and sources == [of.source for of in both]
            and found.model.partition("@")[0] == arguments.model.partition("@")[0]
        )

    return is_own


def _signature(arguments: RunArguments, sources: str, model: str, reference: str, n_texts: int) -> str:
    """What was measured, in one line."""
    fields = {
        "source": sources,
        "config": arguments.config,
        "model": model,
        "reference": reference,
        "familiarity": VERSION,
        "texts": n_texts,
        "limit": arguments.limit or "none",
        "seed": arguments.seed,
        "qabias": __version__,
    }
    return joined(arguments.benchmark, {name: value for name, value in fields.items() if value != ""})


def _check_causal(model: str, revision: str | None) -> None:
    found = scorer_of(None, model, revision)
    if found != FALLBACK:
        raise QabiasError(
            f"familiarity is the likelihood of whole texts, which causal language models have; {model} is asked by the "
            f"scorer {found}"
        )


def _choose_texts(facts: ParallelForms, table: pa.Table, clusters: np.ndarray, n_stereotypes: int, most: int) -> _Texts:
    """At most so many distinct texts of every stereotype, evenly spaced in the order of the examples."""
    found: list[dict[str, None]] = [{} for _ in range(n_stereotypes)]
    groups = [""] * n_stereotypes
    for text, group, number in zip(facts.texts(table), facts.groups(table), clusters.tolist(), strict=True):
        if text and number >= 0:
            found[number][text] = None
            groups[number] = groups[number] or group
    return _Texts([_spread(list(texts), most) for texts in found], groups)


def _spread(texts: Sequence[str], most: int) -> list[str]:
    if len(texts) <= most:
        return list(texts)
    return [texts[place * len(texts) // most] for place in range(most)]


def _load_and_score(
    model: str, revision: str | None, kinds: Mapping[str, Sequence[str]], arguments: RunArguments, machine: Machine
) -> _Model:
    """Score texts of several kinds by one model, which is let go afterwards."""
    scorer = load_scorer(
        FALLBACK,
        model,
        seed=arguments.seed,
        revision=revision,
        dtype=arguments.dtype,
        device=machine.device,
        token_budget=machine.token_budget,
    )
    with tqdm(total=sum(map(len, kinds.values())), unit="text", desc=f"familiarity {Path(model).name}") as bar:
        scored = {kind: _score(cast(OptionScorer, scorer), texts, bar) for kind, texts in kinds.items()}
    return _Model("@".join(filter(None, (model, scorer.model_signature))), scored)


def _score(scorer: OptionScorer, texts: Sequence[str], bar: tqdm[NoReturn]) -> _Scored:
    """Score distinct texts; neighbours in their order begin alike, and shared beginnings are run once."""
    found = _Scored({}, {})
    ordered = sorted(texts)
    for start in range(0, len(ordered), _TEXTS_AT_ONCE):
        batch = ordered[start : start + _TEXTS_AT_ONCE]
        for text, of in zip(batch, scorer.score([Request("", (text,), key=text) for text in batch]), strict=True):
            found.loglikelihoods[text] = float(of.loglikelihoods[0])
            found.n_tokens[text] = int(of.n_tokens[0])
        bar.update(len(batch))
    return found


def _means(
    texts: Sequence[str], scored: _Scored, alone: Mapping[str, float], reference: _Scored | None
) -> FormOfStereotype:
    tokens = np.array([scored.n_tokens[text] for text in texts], dtype=np.float64)
    likelihoods = np.array([scored.loglikelihoods[text] for text in texts])
    words = [float(np.mean([alone[f" {word}"] for word in _WORD.findall(text)])) for text in texts]
    theirs = None
    if reference is not None:
        theirs = float(np.mean(np.array([reference.loglikelihoods[text] for text in texts]) / tokens))
    return FormOfStereotype(
        len(texts),
        float(np.mean(likelihoods / tokens)),
        float(np.mean(np.log(tokens))),
        float(np.mean(words)),
        theirs,
    )
