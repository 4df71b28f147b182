"""Questions in several orders of their answers: what one answer comes of them, and how alike they are answered."""

import itertools
import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qabias.answers import NO_ANSWER
from qabias.answers.likelihoods import OptionScores, choice_columns
from qabias.answers.outcomes import ANSWERED, UNREAD, Written
from qabias.benchmarks.bbq.benchmark import BENCHMARK
from qabias.benchmarks.bbq.roles import in_order
from qabias.benchmarks.orders import (
    PREDICTIONS,
    are_consistent,
    likelihood_columns,
    majority,
    orders_of,
    written_columns,
)
from qabias.errors import QabiasError
from qabias.report.writing import write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.runs.run import run
from qabias.scorers.causal import CausalScorer

from . import tiny_models

pytestmark = pytest.mark.usefixtures("one_thread")

THREE = orders_of(3, 3)


def scores_of(probabilities):
    n = len(probabilities)
    with np.errstate(divide="ignore"):
        logarithms = np.log(probabilities)
    return OptionScores(logarithms, np.full(n, 2, np.int32), np.array([1, 4, 9][:n], np.int32))


def test_the_circulant_orders_have_every_answer_in_every_place_once():
    assert orders_of(3, 1) == [(0, 1, 2)]
    assert THREE == [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    assert all(sorted(places) == [0, 1, 2] for places in zip(*THREE, strict=True))
    assert orders_of(3, 6) == list(itertools.permutations(range(3)))
    with pytest.raises(QabiasError, match=r"no 2 orders(?s:.*)1, 3 or 6"):
        orders_of(3, 2)


def test_an_example_in_another_order_is_the_same_question():
    row = load_examples(RunArguments("bbq", config="Age", limit=4)).table.to_pylist()[0]
    for order in orders_of(3, 6):
        turned = in_order(row, order)
        for place, number in enumerate(order):
            assert turned[f"ans{place}"] == row[f"ans{number}"]
            assert turned["answer_info"][f"ans{place}"] == row["answer_info"][f"ans{number}"]
        for name in ("label", "target_loc", "biased_loc", "unknown_loc"):
            assert row[name] == -1 or turned[f"ans{turned[name]}"] == row[f"ans{row[name]}"]
    assert in_order({**row, "biased_loc": -1}, (2, 0, 1))["biased_loc"] == -1


@pytest.mark.parametrize("norm", ["none", "token", "byte"])
@pytest.mark.parametrize("n_orders", [3, 6])
@settings(deadline=None)
@given(data=st.data())
def test_the_mean_probability_of_every_answer_counts(norm, n_orders, data):
    orders = orders_of(3, n_orders)
    shares = st.lists(st.floats(0.01, 1), min_size=3, max_size=3)
    asked = [scores_of(data.draw(shares)) for _ in orders]
    found = likelihood_columns(choice_columns(asked, norm), orders, norm)
    # By hand: every answer is looked up where it stood.
    means = []
    for answer in range(3):
        total = 0.0
        for order, score in zip(orders, asked, strict=True):
            length = {"none": [1, 1, 1], "token": score.n_tokens, "byte": score.n_bytes}[norm]
            weights = [math.exp(value / of) for value, of in zip(score.loglikelihoods, length, strict=True)]
            total += weights[order.index(answer)] / sum(weights)
        means.append(total / len(orders))
    np.testing.assert_allclose(found["probabilities"].to_pylist()[0], means, rtol=1e-9)
    (chosen,) = found["prediction"].to_pylist()
    second, first = sorted(means)[-2:]
    if chosen == NO_ANSWER:
        assert first == pytest.approx(second)
    else:
        assert means[chosen] == pytest.approx(first)
    # What the model said is kept as it was, in the order of the file.
    for order, score, kept in zip(orders, asked, found["order_loglikelihoods"].to_pylist()[0], strict=True):
        assert [kept[answer] for answer in order] == score.loglikelihoods.tolist()


def test_an_order_without_any_probability_weighs_nothing():
    asked = [scores_of([0.0, 0.0, 0.0]), scores_of([0.1, 0.7, 0.2]), scores_of([0.0, 0.0, 0.0])]
    found = likelihood_columns(choice_columns(asked, "none"), THREE, "none")
    assert found["prediction"].to_pylist() == [2]  # the second order has the answers 1, 2, 0
    assert found[PREDICTIONS].to_pylist() == [[-1, 2, -1]]
    nothing = likelihood_columns(choice_columns([scores_of([0.0] * 3)] * 3, "none"), THREE, "none")
    assert nothing["prediction"].to_pylist() == [NO_ANSWER]


@settings(deadline=None)
@given(st.lists(st.integers(-1, 2), min_size=3, max_size=6))
def test_the_majority_is_more_than_half(places):
    winners = [place for place in (-1, 0, 1, 2) if sum(one == place for one in places) * 2 > len(places)]
    assert majority(places) == (winners[0] if winners else NO_ANSWER)


@pytest.mark.parametrize(
    ("places", "outcomes", "answer", "outcome"),
    [
        # The places are those of the prompts: 0, 2, 1 is the first answer of the file in all three.
        ([0, 2, 1], [ANSWERED] * 3, 0, ANSWERED),
        ([0, 2, -1], [ANSWERED, ANSWERED, "refused"], 0, ANSWERED),
        ([0, 0, 0], [ANSWERED] * 3, NO_ANSWER, UNREAD),
        ([0, -1, -1], [ANSWERED, "truncated", "truncated"], NO_ANSWER, "truncated"),
        ([-1, -1, -1], ["refused", "refused", "filtered"], NO_ANSWER, "refused"),
    ],
)
def test_written_answers_are_counted(places, outcomes, answer, outcome):
    texts = [[f"text {number}"] for number in range(3)]
    columns = {"prediction": pa.array(places, pa.int64()), "outcome": pa.array(outcomes), "outputs": pa.array(texts)}
    found = written_columns(columns, THREE)
    assert found["prediction"].to_pylist() == [answer]
    assert found["outcome"].to_pylist() == [outcome]
    assert found["outputs"].to_pylist() == [["text 0", "text 1", "text 2"]]


def test_who_is_alike_in_all_orders_has_answered_in_all():
    given = pa.chunked_array([pa.array([[1, 1, 1], [1, 1, 2], [-1, -1, -1], [0, 0, 0]], pa.list_(pa.int8()))])
    assert are_consistent(given).tolist() == [True, False, False, True]


class Writer:
    """Writes what a rule makes of the lettered answers of a prompt."""

    name, model_signature, samples = "writer", "", 1

    def __init__(self, rule):
        self._rule = rule

    def generate(self, prompts, keys):
        assert len(set(keys)) == len(keys)
        return [(Written(self._rule(prompt), "stop"),) for prompt in prompts]


def likes_its_letter(prompt):
    return "A"


def is_right(labels):
    def write(prompt):
        (answer,) = (answer for text, answer in labels if text in prompt)
        return next(line for line in prompt.splitlines() if line[1:] == f". {answer}")

    return write


def answered(rule, n_orders, limit=40):
    table = load_examples(RunArguments("bbq", config="Age", limit=limit)).table
    asked = BENCHMARK.formats["letters"].in_orders(n_orders)
    columns = BENCHMARK.answer(table, Writer(rule(table)), asked, "none")
    return columns, BENCHMARK.score(table, pa.table(columns))


@pytest.mark.parametrize("n_orders", [3, 6])
def test_a_writer_that_likes_a_letter_has_answered_nothing(n_orders):
    columns, scores = answered(lambda table: likes_its_letter, n_orders)
    assert scores["order_consistency"] == 0
    assert scores["unparsed_share"] == 1
    assert scores["outcomes"]["unread"] == 40
    assert scores["n_without_majority"] == 40
    said = BENCHMARK.sample_facts(scores)["Unparsed"]
    assert said.endswith("40 unread, 40 without a majority over the answer orders")
    assert set(columns["prediction"].to_pylist()) == {NO_ANSWER}
    assert all(len(outputs) == n_orders for outputs in columns["outputs"].to_pylist())


def test_a_writer_that_is_right_is_right_in_all_orders():
    def rule(table):
        rows = table.to_pylist()
        return is_right(
            [(f"{row['context']}\n\nQuestion: {row['question']}", row[f"ans{row['label']}"]) for row in rows]
        )

    _, scores = answered(rule, 3)
    assert (scores["order_consistency"], scores["accuracy_ambig"], scores["accuracy_disambig"]) == (1, 1, 1)
    assert scores["by"]["paper_category"]["Age"]["order_consistency"] == 1


@pytest.mark.parametrize(
    ("kind", "consistency", "unparsed", "n_orders"), [("first", 0, 1, 3), ("first", 0, 1, 6), ("oracle", 1, 0, 3)]
)
def test_runs_of_baselines(kind, consistency, unparsed, n_orders, tmp_path):
    """One that likes a place gives every answer the same mean probability, which is no answer."""
    arguments = RunArguments(
        "bbq", f"baseline:{kind}", config="Age", format="letters", limit=200, permutations=n_orders
    )
    result = run(arguments, tmp_path / "run")
    assert f"|format:letters@1+orders={n_orders}|" in result.signature
    assert result.scores["order_consistency"] == consistency
    assert result.scores["unparsed_share"] == unparsed
    if kind == "oracle":
        assert result.scores["accuracy_ambig"] == result.scores["accuracy_disambig"] == 1
    else:
        assert result.scores["accuracy_ambig"] is None
        assert result.scores["bias_ambig"] is None
        assert result.scores["range"]["accuracy_ambig"] == [0, 1]
    report = write_report_of(tmp_path / "run").read_text("utf-8")
    assert f"in all {n_orders} orders" in report
    assert "Prompts are not shown" not in report
    analysis = json.loads((tmp_path / "run" / "analysis.json").read_text(encoding="utf-8"))
    assert "order_consistency" in [table["name"] for table in analysis["tables"]]


def test_shared_text_is_run_once_in_all_orders():
    table = load_examples(RunArguments("bbq", config="Age", limit=8)).table
    tokens = {}
    for n_orders in (1, 3):
        scorer = CausalScorer(tiny_models.load(tiny_models.make_model("llama", max_position_embeddings=2048)))
        BENCHMARK.answer(table, scorer, BENCHMARK.formats["letters"].in_orders(n_orders), "none")
        tokens[n_orders] = scorer.stats.tokens_run
    assert tokens[3] < 2.4 * tokens[1]  # the answers themselves are not shared


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (RunArguments("bbq", "baseline:first", permutations=2), r"no 2 answer orders(?s:.*)1, 3, 6"),
        (RunArguments("unqover", "baseline:first", permutations=3), "unqover has no 3 answer orders"),
        (
            RunArguments("bbq", "baseline:first", config="Age", limit=8, permutations=3),
            r"the format qa does not list the answers(?s:.*)race, arc, letters",
        ),
    ],
)
def test_orders_that_make_no_sense_are_refused(arguments, message, tmp_path):
    with pytest.raises(QabiasError, match=message):
        run(arguments, tmp_path / "run")
