"""Do samples and early verdicts hold for the stored answers of a real model?

    python -m lab.simulations.replay --quick
    python -m lab.simulations.replay FOLDER

FOLDER, by default QABIAS_ANSWERS, has the answers of a model to whole categories of BBQ, as the Open-BBQ authors store
them: files CATEGORY_ambiguous_multiple_choice_MODEL.jsonl.gz and CATEGORY_disambiguated_....

1. Verdicts by category in several orders, about these questions and about questions like these.
2. Coverage of the interval for these questions, in samples.
3. Wrong verdicts if the templates are drawn again. The true score is the threshold, or 1.1 times as large.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lab.options import make_parser
from qabias.benchmarks import load_benchmark
from qabias.runs.arguments import RunArguments
from qabias.runs.conditions import read_until
from qabias.runs.estimands import estimands
from qabias.runs.looks import Outcome, StoppingRule, order_by_look
from qabias.runs.opened import Run
from qabias.runs.question import Examples, Question
from qabias.runs.sampling import sample
from qabias.scores.judge import QUESTIONS, SUBJECTS
from qabias.scores.score import estimate
from qabias.support.arrow import column_codes

ORDERS, SAMPLES, WORLDS = 100, 400, 400
QUICK = 16
THRESHOLDS = (0.05, 0.1, 0.2, 0.3)
CLEAR = 2.0
"""A bias of a category is clear if it is so many times the threshold, or as small a part of it."""

LEAST_DECIDED = 0.95
"""Minimum share of the clear categories that are decided about these questions."""

SIZES = (800, 2000)
TIMES = (1.0, 1.1)
"""True score, in units of the threshold."""

LEAST_COVERAGE, MOST_WRONG = 0.90, 0.05
_NAME = "bias_ambig"
_SIGMAS = 3.0  # binomial standard errors by which a simulated rate may miss its bound
_BBQ = load_benchmark("bbq")


class Answered(NamedTuple):
    """Rows as the metric reads them, and parallel answers."""

    table: pa.Table
    answers: pa.Table

    def take(self, places: np.ndarray | pa.Array) -> Answered:
        """Some of the rows, in this order."""
        return Answered(self.table.take(pa.array(places)), self.answers.take(pa.array(places)))


def read(folder: Path) -> Answered:
    """The answers to all categories of a folder, with the templates that the published sets have."""
    rows: list[dict[str, Any]] = []
    said: list[int] = []
    for path in sorted(folder.glob("*_ambiguous_multiple_choice_*.jsonl.gz")):
        category = path.name.partition("_ambiguous")[0].capitalize()
        template_of = _templates(category)
        both = [_lines(one) for one in (path, path.with_name(path.name.replace("_ambiguous_", "_disambiguated_")))]
        for number, pair in enumerate(zip(*both, strict=True)):
            for context, line in zip(("ambig", "disambig"), pair, strict=True):
                tags = [tag for _, tag in line["answers"]]
                unknown, biased = tags.index("unknown"), line["biased"]
                target = biased if line["polarity"] == "neg" else 3 - biased - unknown
                rows.append(
                    {
                        **{"category": category, "example_id": len(rows), "template_id": template_of[number // 2]},
                        **{"set_id": f"{category}-{number // 2}", "question_polarity": line["polarity"]},
                        **{"context_condition": context, "label": line["label"], "target_loc": target},
                        **{"biased_loc": biased, "unknown_loc": unknown, "label_type": "label"},
                    }
                )
                said.append(_place(line))
    return Answered(pa.Table.from_pylist(rows), pa.table({"prediction": pa.array(said, pa.int64())}))


def _place(line: dict[str, Any]) -> int:
    """The place whose number a short output is, or whose text alone it contains; else -1."""
    output = line["output"].strip().lower()
    named = [place for place, (text, _) in enumerate(line["answers"]) if text.lower() in output]
    return int(output) if output in ("0", "1", "2") else named[0] if len(named) == 1 else -1


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def _templates(category: str) -> list[str]:
    """The template of every set of a category, in the published order."""
    table = _BBQ.load(category, _BBQ.origin("official", 0, False))
    first = np.unique(column_codes(table["set_id"]), return_index=True)[1]
    return [str(name) for name in table["template_id"].take(pa.array(np.sort(first))).to_pylist()]


class Replayed(NamedTuple):
    """Verdicts by category in some orders: questions asked, and numbers of verdicts and of runs."""

    asked: float
    n_clear: int
    n_clear_decided: int
    n_undecided: int
    n_runs_wrong: int


def replay(whole: Answered, threshold: float, subject: str, orders: int) -> Replayed:
    """Decide every category in several orders, and compare with all answers."""
    truth = {name: abs(one[_NAME]) for name, one in _BBQ.score(whole.table, whole.answers)["by"]["category"].items()}
    asked, clear, decided, undecided, wrong = [], 0, 0, 0, 0
    for seed in range(orders):
        outcome, n_planned = _follow(whole, f"{_NAME}<{threshold!r} by category about {subject}", seed)
        asked.append(outcome.share * n_planned)
        is_wrong = False
        for verdict in outcome.verdicts:
            bias, is_open = truth[verdict.score.group], verdict.state == "undecided"
            is_clear = bias >= CLEAR * threshold or bias <= threshold / CLEAR
            clear, decided, undecided = clear + is_clear, decided + (is_clear and not is_open), undecided + is_open
            is_wrong |= not is_open and verdict.state != ("pass" if bias < threshold else "fail")
        wrong += is_wrong
    return Replayed(float(np.mean(asked)), clear, decided, undecided, wrong)


def verdict(whole: Answered, threshold: float, seed: int) -> tuple[str, float]:
    """The verdict of a run about questions like these with one condition, and its share of the questions."""
    outcome, _ = _follow(whole, f"{_NAME}<{threshold!r} about templates", seed)
    (verdict,) = outcome.verdicts
    return verdict.state, verdict.share


def _follow(whole: Answered, until: str, seed: int) -> tuple[Outcome, int]:
    """The outcome of a run, and the number of its planned questions."""
    numbered = whole.table.append_column("place", pa.array(np.arange(whole.table.num_rows)))
    ordered = order_by_look(_BBQ, numbered, read_until(_BBQ, until), seed)
    answers = whole.answers.take(ordered["place"].combine_chunks())
    rule = StoppingRule(_BBQ, ordered.drop_columns(["place"]), until, {})
    outcome, _ = rule.follow(lambda rows: answers.filter(pa.array(rows)))
    assert outcome is not None
    return outcome, ordered.num_rows


def covered(whole: Answered, size: int, seed: int, truth: dict[str, float]) -> dict[str, tuple[bool, float, float]]:
    """By score whether the interval for these questions has the true one, its width, and that for more questions."""
    numbered = whole.table.append_column("place", pa.array(np.arange(whole.table.num_rows)))
    part = whole.take(sample(_BBQ, numbered, size, seed)["place"].combine_chunks())
    scores = _BBQ.score(part.table, part.answers)
    nowhere: Any = None  # stored answers have no origin of texts
    question = Question(Examples(_BBQ, nowhere, part.table, "", whole.table.num_rows), None, "", 1)
    arguments = RunArguments("bbq", "stored", seed=seed)
    file = Run(arguments, "", "", "", {}, 1, "", Path("stored"), "")
    table = estimands(Run.from_file(file, {"scores": scores, "question": question, "answers": part.answers}))
    assert table is not None
    found = {}
    rows: Any = table.rows
    for (_, like, these, _), measure in zip(rows, _BBQ.facts.chosen(_BBQ.facts.tiles), strict=True):
        is_in = these.low <= truth[measure.name] <= these.high
        found[measure.name] = is_in, these.high - these.low, like.high - like.low
    return found


def drawn_again(whole: Answered, rng: np.random.Generator) -> Answered:
    """As many templates of each category, drawn with replacement."""
    codes, categories = column_codes(whole.table["template_id"]), column_codes(whole.table["category"])
    places, names = [], []
    starts = np.unique(codes, return_index=True)[1]
    for category in np.unique(categories):
        own = np.flatnonzero(categories[starts] == category)
        for number, template in enumerate(rng.choice(own, len(own))):
            rows = np.flatnonzero(codes == template)
            places.append(rows)
            names += [f"{category}-{number}"] * len(rows)
    world = whole.take(np.concatenate(places))
    sets = [f"{name}-{old}" for name, old in zip(names, world.table["set_id"].to_pylist(), strict=True)]
    table = world.table.set_column(2, "template_id", pa.array(names)).set_column(3, "set_id", pa.array(sets))
    return Answered(table.set_column(1, "example_id", pa.array(np.arange(len(names)))), world.answers)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the three tables; 1 if a rate misses its bound."""
    parser = make_parser(__doc__, f"{QUICK} samples and worlds")
    parser.add_argument("folder", type=Path, nargs="?", default=os.environ.get("QABIAS_ANSWERS"), help="stored answers")
    chosen = parser.parse_args(arguments)
    if chosen.folder is None:
        print("skipped: no stored answers here; give a folder, or set QABIAS_ANSWERS")
        return 0
    n_samples, n_worlds = (QUICK, QUICK) if chosen.quick else (SAMPLES, WORLDS)
    n_orders = 2 if chosen.quick else ORDERS
    warnings.simplefilter("ignore", UserWarning)  # of missing answers and unequal sides
    whole = read(Path(chosen.folder))
    scores = _BBQ.score(whole.table, whole.answers)
    truth = {measure.name: float(scores[measure.name]) for measure in _BBQ.facts.chosen(_BBQ.facts.tiles)}
    value, low, high, *_ = estimate(scores, _NAME)
    print(f"all {whole.table.num_rows:,} questions: {_NAME} {value:.3f} [{low:.3f}, {high:.3f}]")
    is_wrong = False
    print(
        f"by category, {n_orders} orders: about, threshold, asked, clear decided, undecided, runs with a wrong verdict"
    )
    for about, threshold in itertools.product(SUBJECTS, THRESHOLDS):
        found = replay(whole, threshold, about, n_orders)
        most = MOST_WRONG * n_orders + _SIGMAS * np.sqrt(MOST_WRONG * (1 - MOST_WRONG) * n_orders)
        is_wrong |= found.n_runs_wrong > most
        is_wrong |= about == QUESTIONS and found.n_clear_decided < LEAST_DECIDED * found.n_clear
        counts = f"{found.n_clear_decided}/{found.n_clear}, {found.n_undecided}, {found.n_runs_wrong}"
        print(f"{about:10} {threshold:4} {found.asked:8,.0f}  {counts}", flush=True)
    for size in SIZES:
        results = [covered(whole, size, seed, truth) for seed in range(n_samples)]
        for name in truth:
            is_in, width, like = (np.array([one[name][k] for one in results]) for k in range(3))
            is_wrong |= is_in.mean() < LEAST_COVERAGE - _SIGMAS * np.sqrt(0.09 / n_samples) or bool(
                (width > like).any()
            )
            print(f"{size:5} {name:22} covered {is_in.mean():.3f}, width {width.mean():.3f} of {like.mean():.3f}")
    for times in TIMES:
        rng, wrong, asked = np.random.default_rng(45), 0, []
        for seed in range(n_worlds):
            state, share = verdict(drawn_again(whole, rng), truth[_NAME] / times, seed)
            wrong += state == "pass" or (times == 1.0 and state == "fail")
            asked.append(share)
        rate = wrong / n_worlds
        is_wrong |= rate > MOST_WRONG + _SIGMAS * np.sqrt(MOST_WRONG * (1 - MOST_WRONG) / n_worlds)
        print(
            f"templates drawn again, {times} times the threshold: {rate:.3f} wrong, {np.mean(asked):.0%} asked",
            flush=True,
        )
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
