"""What holds of every metric whatever the answers: signs, groups, order, and rows that come twice."""

from __future__ import annotations

from typing import Any, NamedTuple

import evaluate
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from . import bbnli_rows, bbq_rows
from .helpers import folder, quiet, same, unsigned
from .unqover_rows import make_rows, random_scores

OTHER = {"pro": "anti", "anti": "pro", "target": "nontarget", "nontarget": "target"}
SIDES = ("stance", "context_stance", "statement_about")
OF_BBQ = ("bias_score", "bias_score_disambig", "table5_style", "accuracy_gap")


class Form(NamedTuple):
    """A metric with rows of one of its forms, and its scores of direction: those that a mirror turns round."""

    metric: str
    rows: list[dict[str, Any]]
    signed: tuple[str, ...]
    full: tuple[str, ...] = ("bias_score", "bias_score_disambig")
    """Scores that opposite answers turn round."""


FORMS = {
    "bbq": Form(
        "bbq",
        bbq_rows.table(),
        ("bias_ambig", "bias_disambig", "accuracy_cost", "bias_ambig_among_errors"),
        ("bias_ambig", "bias_disambig", "bias_ambig_among_errors"),
    ),
    "bbnli": Form(
        "bbnli",
        bbnli_rows.table(),
        ("bias_score", "bias_score_mean_subtopics", "accuracy_gap"),
        ("bias_score", "bias_score_mean_subtopics"),
    ),
    "bbq_nli": Form("bbnli", bbnli_rows.mixed_statements(6), OF_BBQ),
    "bbq_qa": Form("bbnli", bbnli_rows.mixed_questions(12), OF_BBQ),
}
METRICS = {name: evaluate.load(str(folder(name))) for name in ("bbq", "bbnli", "unqover")}
anything = st.integers(0, 2**32 - 1).map(np.random.default_rng)
often = settings(max_examples=15, deadline=None)


def opposite(row: dict[str, Any], answer: int) -> int:
    """The same answer about the other person."""
    neither = row.get("unknown_loc", 1)
    return answer if answer in (-1, neither) else 3 - neither - answer


def exchanged(row: dict[str, Any]) -> dict[str, Any]:
    """A row in which target and other person have changed places."""
    turned = {name: OTHER.get(value, value) if name in SIDES else value for name, value in row.items()}
    places = {name: opposite(row, row[name]) for name in ("target_loc", "biased_loc") if name in row}
    return turned | places


def score(form: Form, predictions: Any, rows: Any = None, **options: Any) -> dict[str, Any]:
    rows = form.rows if rows is None else rows
    return quiet(METRICS[form.metric], predictions=predictions, references=rows, **options)


@pytest.mark.parametrize("name", FORMS)
@often
@given(draw=anything, options=st.sampled_from([{"unparsed": "wrong"}, {"unparsed": "exclude"}]), script=st.booleans())
def test_the_other_group_or_the_opposite_answers_turn_every_sign(name, draw, options, script):
    form = FORMS[name]
    if form.metric == "bbnli" and script:
        options = {**options, "denominator": "released"}
    predictions = draw.integers(-1, 3, len(form.rows)).tolist()
    result = score(form, predictions, **options)
    other_group = score(form, predictions, [exchanged(row) for row in form.rows], **options)
    answers = [opposite(row, answer) for row, answer in zip(form.rows, predictions, strict=True)]
    other_answers = score(form, answers, **options)
    for bias in form.signed:
        assert same(other_group[bias], -result[bias]), bias
        assert same(other_group["ci"][bias], [-end for end in reversed(result["ci"][bias])], 1e-9), bias
    for bias in form.full:
        assert same(other_answers[bias], -result[bias]), bias
    open_bias = form.full[0]
    assert same(other_answers["ci"][open_bias], [-end for end in reversed(result["ci"][open_bias])], 1e-9)


ALL = {**FORMS, "unqover": Form("unqover", make_rows("abcd", 3, ("X", "Y")), ())}


@pytest.mark.parametrize("name", ALL)
@often
@given(draw=anything)
def test_the_order_of_the_rows_changes_nothing_and_a_row_that_comes_twice_is_refused(name, draw):
    form = ALL[name]
    n = len(form.rows)
    predictions = random_scores(n) if name == "unqover" else draw.integers(-1, 3, n).tolist()
    order = draw.permutation(n)
    turned = score(form, [predictions[k] for k in order], [form.rows[k] for k in order])
    assert same(turned, score(form, predictions), 1e-9)
    twice = int(draw.integers(n))
    with pytest.raises(ValueError, match="repeat"):
        score(form, [*predictions, predictions[twice]], [*form.rows, form.rows[twice]])


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("bbq", ["template_id", ["category", "context_condition"]]),
        ("bbnli", ["subtopic", ["domain", "kind"]]),
        ("bbq_nli", ["template_id", ["template_id", "context_condition"]]),
        ("bbq_qa", ["template_id"]),
    ],
)
@pytest.mark.parametrize("script", [False, True])
def test_each_group_of_a_breakdown_has_the_result_of_its_rows_alone(name, by, script):
    form, draw = FORMS[name], np.random.default_rng(8)
    options: dict[str, Any] = {"denominator": "released"} if script and form.metric == "bbnli" else {}
    predictions = draw.integers(0, 3, len(form.rows)).tolist()
    shares = draw.dirichlet([1, 1, 1], len(form.rows)) if script and name == "bbq" else None
    whole = score(form, predictions, by=by, **options, **({} if shares is None else {"probabilities": shares}))["by"]
    columns = [[entry] if isinstance(entry, str) else entry for entry in by]
    assert list(whole) == [",".join(names) for names in columns]
    for names in columns:
        keys = [",".join(row[name] for name in names) for row in form.rows]
        assert list(whole[",".join(names)]) == sorted(set(keys))
        for key, part in whole[",".join(names)].items():
            kept = [number for number, other in enumerate(keys) if other == key]
            chosen = {} if shares is None else {"probabilities": shares[kept]}
            rows = [form.rows[number] for number in kept]
            alone = score(form, [predictions[number] for number in kept], rows, **options, **chosen)
            assert same(part, unsigned(alone)), key
    if name == "bbnli":
        parts = [part["bias_score"] for part in whole["subtopic"].values()]
        assert same(score(form, predictions, **options)["bias_score_mean_subtopics"], float(np.mean(parts)))
