"""What the report of a run says first: the sample, and the headline scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from qabias.tables.model import estimate
from qabias.comparison.comparable import signature_fields
from qabias.benchmarks.bbq.prompts import QUESTION_ONLY
from qabias.report.reading import check_scores, require_object
from qabias.report.page import Tile
from qabias.tables.formatting import percent, show


class Head(NamedTuple):
    """Facts and headline scores of a run.

    Attributes:
        facts: Label -> text.
        tiles: The headline scores.
    """

    facts: Mapping[str, str]
    tiles: Sequence[Tile]


class _Headline(NamedTuple):
    key: str
    title: str
    kind: str
    note: str = ""
    """What it says; empty for a bias score, whose direction is put into words."""


_BBQ = (
    _Headline("bias_ambig", "Bias s_AMB, ambiguous", "signed"),
    _Headline("bias_disambig", "Bias s_DIS, disambiguated", "signed"),
    _Headline("accuracy_ambig", "Accuracy, ambiguous", "share", "the right answer is always UNKNOWN"),
    _Headline("accuracy_disambig", "Accuracy, disambiguated", "share", "the context names the right person"),
)
_BBQ_COUNTS = ("n", "n_ambig", "n_disambig", "n_templates", "n_unparsed_ambig", "n_unparsed_disambig")
_ACCURACIES = (
    _Headline("accuracy_pro", "Accuracy, pro", "share", "the facts agree with the stereotype"),
    _Headline("accuracy_anti", "Accuracy, anti", "share", "the facts go against it"),
)
_BBNLI = (_Headline("bias_score", "Bias score", "signed"), *_ACCURACIES)
_BBQ_NLI = (
    _Headline("bias_score_ambig", "Bias, ambiguous", "signed"),
    _Headline("bias_score_disambig", "Bias, disambiguated", "signed"),
    *_ACCURACIES,
)


def make_head(run: Mapping[str, Any], scores: Mapping[str, Any], file: Path) -> Head:
    """Facts and tiles of a run.

    Args:
        run: Its `run.json`.
        scores: The scores in its `scores.json`.
        file: That file, for messages.

    Raises:
        QabiasError: If the scores are damaged.
    """
    return _HEADS[run["benchmark"]](run["arguments"], scores, file)


def revision(run: Mapping[str, Any]) -> str:
    """What pins the model beside its name: the revision that was asked for, version and precision of what was found.

    Args:
        run: The `run.json` of a run.

    Returns:
        For example "main: 7e27bd9/bfloat16"; "" where there is none, as for baselines.
    """
    model, asked = (run["arguments"].get(name) for name in ("model", "revision"))
    pinned = signature_fields(run["signature"]).get("model", "")
    found = pinned.removeprefix(f"{model}@") if pinned.startswith(f"{model}@") else ""
    return ": ".join(str(part) for part in (asked, found) if part)


def _bbq(arguments: Mapping[str, Any], scores: Mapping[str, Any], file: Path) -> Head:
    kinds = {one.key: one.kind for one in _BBQ} | {"unparsed_share": "share"}
    check_scores(file, "scores", scores, kinds, _BBQ_COUNTS)
    categories = require_object(file, "scores.by", scores.get("by", {})).get("category", {})
    n_categories = len(require_object(file, "scores.by.category", categories))
    sample = (
        f"{_counted(scores['n'], 'example')} ({scores['n_ambig']:,} ambiguous, {scores['n_disambig']:,} disambiguated) "
        f"from {_counted(scores['n_templates'], 'template')}"
    )
    if n_categories:
        sample += f" in {_counted(n_categories, 'category', 'categories')}"
    n_unparsed = scores["n_unparsed_ambig"] + scores["n_unparsed_disambig"]
    unparsed = f"{_counted(n_unparsed, 'output')} named no answer ({percent(scores['unparsed_share'])})"
    headlines: Sequence[_Headline] = _BBQ
    if arguments.get("format") in QUESTION_ONLY:
        # Both examples of a question are then the same, and neither tells who it was.
        headlines = [one for one in _BBQ if one.key.endswith("_ambig")]
    limit = _limit(arguments, "it saw a part of the benchmark")
    return Head({"Sample": sample, **limit, "Unparsed": unparsed}, _tiles(headlines, scores))


def _unqover(arguments: Mapping[str, Any], scores: Mapping[str, Any], file: Path) -> Head:
    sets = require_object(file, "scores.sets", scores.get("sets"))
    tiles = []
    for name, of in sets.items():
        where = f"scores.sets.{name}"
        measures = dict.fromkeys(("mu", "eta", "coverage"), "share")
        check_scores(file, where, require_object(file, where, of), measures, ("n", "n_left_out"))
        note = f"eta {show(estimate(of, 'eta'), 'number')}; {percent(of['coverage'])} of the scores are not 0"
        tiles.append(Tile(f"mu, {name}", estimate(of, "mu"), "number", note))
    n_rows, n_left_out = (sum(of[key] for of in sets.values()) for key in ("n", "n_left_out"))
    facts = {"Sample": f"{_counted(n_rows, 'row')} in {_counted(len(sets), 'set')}, eight scores each"}
    if n_left_out:
        facts["Left out"] = f"{_counted(n_left_out, 'row')} with a subject that the model does not know as one token"
    limit = _limit(
        arguments,
        "mu and eta of a small sample are too large, because they are made of absolute values of few rows",
    )
    return Head({**facts, **limit}, tiles)


def _inference(headlines: Sequence[_Headline]) -> Callable[[Mapping[str, Any], Mapping[str, Any], Path], Head]:
    def head(arguments: Mapping[str, Any], scores: Mapping[str, Any], file: Path) -> Head:
        kinds = {one.key: one.kind for one in headlines} | {"unparsed_share": "share"}
        check_scores(file, "scores", scores, kinds, ("n", "n_unparsed"))
        unparsed = f"{_counted(scores['n_unparsed'], 'output')} named no answer ({percent(scores['unparsed_share'])})"
        limit = _limit(arguments, "small samples are weak evidence")
        return Head(
            {"Sample": _counted(scores["n"], "answer"), **limit, "Unparsed": unparsed}, _tiles(headlines, scores)
        )

    return head


_HEADS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any], Path], Head]] = {
    "bbq": _bbq,
    "unqover": _unqover,
    "bbnli": _inference(_BBNLI),
    "bbq_nli": _inference(_BBQ_NLI),
}
BENCHMARKS = tuple(sorted(_HEADS))


def _tiles(headlines: Sequence[_Headline], scores: Mapping[str, Any]) -> list[Tile]:
    return [
        Tile(one.title, estimate(scores, one.key), one.kind, one.note or _leaning(scores, one.key)) for one in headlines
    ]


def _leaning(scores: Mapping[str, Any], key: str) -> str:
    """Which way a bias score points, and whether the interval bears it out."""
    value, low, high = estimate(scores, key)
    if value is None:
        return "undefined: no answers that could show a bias"
    if low is None or high is None:
        return "no interval: do not read a direction into it"
    if low > 0:
        return "the answers lean towards the stereotypes"
    if high < 0:
        return "the answers lean against the stereotypes"
    return "the interval includes 0: no direction shown"


def _limit(arguments: Mapping[str, Any], meaning: str) -> dict[str, str]:
    limit = arguments.get("limit")
    return {} if limit is None else {"Limit": f"this run was limited ({limit}): {meaning}"}


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
