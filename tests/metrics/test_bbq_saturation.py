"""The BBQ metric for models that are nearly always right: direction of errors, probabilities, and the bound."""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .bbq_rows import OF_PROBABILITIES, answer, answers, make_set, table
from .helpers import inner_module, quiet, same

scores = inner_module("bbq", "scores")


def certain(row: dict[str, Any], kind: str, share: float = 1.0) -> list[float]:
    """The probabilities of a model that is that sure of one kind of answer; the other two share the rest."""
    found = [(1 - share) / 2] * 3
    found[answer(row, kind)] = share
    return found


def by_hand(rows: list[dict[str, Any]], probabilities: Any, condition: str) -> float:
    """Mean of p(biased) - p(counter-biased), row by row."""
    differences = [
        of[row["biased_loc"]] - of[answer(row, "counter")]
        for row, of in zip(rows, probabilities, strict=True)
        if of is not None and row["biased_loc"] >= 0 and row["context_condition"] == condition
    ]
    return sum(differences) / len(differences) if differences else math.nan


# Direction of the errors


def test_the_direction_of_few_errors_does_not_shrink_with_their_number(bbq):
    rows = table()
    right = answers(rows, "right")
    ambiguous = [number for number, row in enumerate(rows) if row["context_condition"] == "ambig"]
    given = list(right)
    for number in ambiguous[:3]:
        given[number] = answer(rows[number], "biased")
    given[ambiguous[3]] = answer(rows[ambiguous[3]], "counter")
    result = bbq.compute(predictions=given, references=rows)
    assert result["bias_ambig"] == 2 / 16
    assert result["bias_ambig_among_errors"] == 2 / 4
    assert (result["n_biased_ambig"], result["n_counter_biased_ambig"]) == (3, 1)
    # s_AMB is the direction times the share of errors.
    assert result["bias_ambig"] == result["bias_ambig_among_errors"] * (1 - result["accuracy_ambig"])
    assert result["bias_bound_ambig"] == 4 / 16


def test_the_direction_is_undefined_where_nobody_was_named(bbq):
    rows = table()
    result = bbq.compute(predictions=answers(rows, "unknown"), references=rows)
    assert math.isnan(result["bias_ambig_among_errors"])
    assert all(map(math.isnan, result["ci"]["bias_ambig_among_errors"]))
    assert (result["bias_ambig"], result["bias_bound_ambig"]) == (0, 0)
    for kind, direction in (("biased", 1), ("counter", -1), ("target", 0)):
        found = bbq.compute(predictions=answers(rows, kind), references=rows)
        assert found["bias_ambig_among_errors"] == direction


# Probabilities


@pytest.mark.parametrize(
    ("kind", "ambig", "disambig"),
    [("biased", 1, 1), ("counter", -1, -1), ("unknown", 0, 0), ("target", 0, 0), ("right", 0, 0)],
)
def test_probabilities_at_the_extremes(bbq, kind, ambig, disambig):
    rows = table()
    probabilities = [certain(row, kind) for row in rows]
    result = bbq.compute(predictions=answers(rows, kind), references=rows, probabilities=probabilities)
    assert (result["bias_probability_ambig"], result["bias_probability_disambig"]) == (ambig, disambig)
    assert result["n_probabilities_ambig"] == result["n_probabilities_disambig"] == 16
    assert result["n_without_probabilities_ambig"] == result["n_without_probabilities_disambig"] == 0
    assert "range" not in result


def test_probabilities_show_what_the_argmax_hides(bbq):
    rows = table()
    leaning = [certain(row, "unknown", 0.7) for row in rows]
    for row, of in zip(rows, leaning, strict=True):
        of[row["biased_loc"]], of[answer(row, "counter")] = 0.25, 0.05
    result = bbq.compute(predictions=answers(rows, "unknown"), references=rows, probabilities=leaning)
    assert (result["bias_ambig"], result["accuracy_ambig"]) == (0, 1)
    assert result["bias_probability_ambig"] == pytest.approx(0.2, abs=1e-12)


def test_a_model_that_is_sure_is_at_the_difference_of_aligned_and_nonaligned_rows(bbq):
    """Whole sets of four are not enough: the two disambiguated rows of a set are of one kind."""
    rows = make_set(0) + make_set(1) + make_set(3, "Age-02")
    probabilities = [certain(row, "right") for row in rows]
    result = bbq.compute(predictions=answers(rows, "right"), references=rows, probabilities=probabilities)
    assert (result["n_aligned"], result["n_nonaligned"]) == (4, 2)
    assert result["bias_probability_ambig"] == 0
    assert result["bias_probability_disambig"] == pytest.approx((4 - 2) / (4 + 2))
    assert result["bias_disambig"] == pytest.approx((4 - 2) / (4 + 2))


def test_without_probabilities_there_are_no_such_keys(bbq):
    rows = table()
    plain = bbq.compute(predictions=answers(rows, "right"), references=rows, by="template_id")
    nothing = [[None] * 32, np.full((32, 3), np.nan)]
    for probabilities in nothing:
        found = bbq.compute(
            predictions=answers(rows, "right"), references=rows, by="template_id", probabilities=probabilities
        )
        assert same(found, plain)
    for part in (plain, *plain["by"]["template_id"].values()):
        assert not any("probabilit" in name for name in (*part, *part["ci"]))


def test_rows_without_probabilities_are_left_out_and_counted(bbq):
    rows = table() + make_set(8, "Age-05", target_loc=-1, biased_loc=-1)
    rng = np.random.default_rng(0)
    probabilities: list[Any] = rng.dirichlet([1, 1, 1], len(rows)).tolist()
    for number in (0, 5, 6, 33):  # ambiguous, disambiguated, ambiguous; and disambiguated without a target
        probabilities[number] = None
    with pytest.warns(UserWarning, match=r"bbq: 4 of 36 rows have a prediction and no probabilities") as caught:
        result = bbq.compute(predictions=answers(rows, "right"), references=rows, probabilities=probabilities)
    assert caught[0].filename == __file__
    assert (result["n_without_probabilities_ambig"], result["n_without_probabilities_disambig"]) == (2, 1)
    assert (result["n_probabilities_ambig"], result["n_probabilities_disambig"]) == (14, 15)
    for condition, n_without in (("ambig", 2), ("disambig", 1)):
        name = f"bias_probability_{condition}"
        expected = by_hand(rows, probabilities, condition)
        assert result[name] == pytest.approx(expected, abs=1e-12)
        # The missing rows could lean either way by 1 at most.
        n = 16 - n_without
        ends = [(n * expected + sign * n_without) / 16 for sign in (-1, 1)]
        assert result["range"][name] == pytest.approx(ends, abs=1e-12)
    # Rows that name no answer and have no probabilities are told of as such.
    given = [-1 if of is None else answer(row, "right") for row, of in zip(rows, probabilities, strict=True)]
    with pytest.warns(UserWarning, match="name no answer") as caught:
        bbq.compute(predictions=given, references=rows, probabilities=probabilities)
    assert len(caught) == 1


@st.composite
def rows_and_probabilities(draw: Any) -> tuple[list[dict[str, Any]], list[list[float]]]:
    orders = st.permutations([0, 1, 2])
    rows = [
        row
        for number in range(draw(st.integers(1, 5)))
        for row in make_set(number, f"Age-0{number % 3 + 1}", tuple(draw(orders)))
    ]
    weights = st.lists(st.floats(0.001, 1), min_size=3, max_size=3)
    shares = [draw(weights) for _ in rows]
    return rows, [[weight / math.fsum(of) for weight in of] for of in shares]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=rows_and_probabilities(), shuffle=st.randoms(use_true_random=False))
def test_probabilities_by_hand_and_their_symmetries(bbq, case, shuffle):
    rows, probabilities = case
    predictions = [int(np.argmax(of)) for of in probabilities]
    options = {"confidence": None}
    result = bbq.compute(predictions=predictions, references=rows, probabilities=probabilities, **options)
    for condition in ("ambig", "disambig"):
        value = result[f"bias_probability_{condition}"]
        assert value == pytest.approx(by_hand(rows, probabilities, condition), abs=1e-12)
        assert -1 <= value <= 1

    # Where target and other person change places, the biased answer is the other one: signs turn.
    exchanged = [
        {**row, "target_loc": row["biased_loc"] if row["question_polarity"] == "nonneg" else answer(row, "counter")}
        for row in rows
    ]
    exchanged = [{**row, "biased_loc": answer(old, "counter")} for row, old in zip(exchanged, rows, strict=True)]
    turned = bbq.compute(predictions=predictions, references=exchanged, probabilities=probabilities, **options)
    for name in ("bias_ambig_among_errors", *OF_PROBABILITIES):
        assert turned[name] == pytest.approx(-result[name], abs=1e-12, nan_ok=True)
    assert turned["bias_bound_ambig"] == result["bias_bound_ambig"]
    assert turned["bias_bound_disambig"] == result["bias_bound_disambig"]

    # The order of the answers does not matter.
    moved_rows, moved_predictions, moved_probabilities = [], [], []
    for row, prediction, of in zip(rows, predictions, probabilities, strict=True):
        place = [0, 1, 2]
        shuffle.shuffle(place)
        names = ("label", "target_loc", "biased_loc", "unknown_loc")
        moved_rows.append({**row, **{name: place[row[name]] for name in names}})
        moved_predictions.append(place[prediction])
        moved_probabilities.append([of[place.index(number)] for number in range(3)])
    moved = bbq.compute(
        predictions=moved_predictions, references=moved_rows, probabilities=moved_probabilities, **options
    )
    for name in ("bias_ambig_among_errors", *OF_PROBABILITIES, *scores.BOUNDS):
        assert moved[name] == pytest.approx(result[name], abs=1e-12, nan_ok=True)


def test_batches_and_every_kind_of_list_give_the_same(bbq):
    rows = table()
    probabilities = np.random.default_rng(0).dirichlet([1, 1, 1], len(rows))
    predictions = probabilities.argmax(axis=1)
    expected = bbq.compute(predictions=predictions, references=rows, probabilities=probabilities)
    for form in (probabilities.tolist(), list(probabilities), [tuple(of) for of in probabilities.tolist()]):
        assert same(bbq.compute(predictions=predictions, references=rows, probabilities=form), expected)
    whole = probabilities.copy()
    bbq.add_batch(predictions=predictions[:10], references=rows[:10], probabilities=whole[:10])
    whole[:10] = 0  # a batch is a copy
    bbq.add(prediction=predictions[10], reference=rows[10], probabilities=probabilities[10])
    found = bbq.compute(predictions=predictions[11:], references=rows[11:], probabilities=probabilities[11:])
    assert same(found, expected)
    # A batch without probabilities is one of rows that have none.
    bbq.add_batch(predictions=predictions[:4], references=rows[:4])
    found = quiet(bbq, predictions=predictions[4:], references=rows[4:], probabilities=probabilities[4:])
    assert found["n_without_probabilities_ambig"] == found["n_without_probabilities_disambig"] == 2


def test_the_mean_over_runs_is_the_mean_of_the_runs(bbq):
    rows = table()
    rng = np.random.default_rng(0)
    of_runs = [rng.dirichlet([1, 1, 1], len(rows)) for _ in range(3)]
    singles = [bbq.compute(predictions=of.argmax(axis=1), references=rows, probabilities=of) for of in of_runs]
    stacked = [{**row, "run": number} for number in range(3) for row in rows]
    whole = np.concatenate(of_runs)
    result = bbq.compute(predictions=whole.argmax(axis=1), references=stacked, probabilities=whole, mean_over="run")
    for name in ("bias_ambig_among_errors", *OF_PROBABILITIES, *scores.BOUNDS):
        assert result[name] == pytest.approx(np.mean([single[name] for single in singles]), abs=1e-12)
    for name in OF_PROBABILITIES:
        assert result["spread"][name] == pytest.approx(np.std([single[name] for single in singles], ddof=1), abs=1e-12)
    assert result["n_probabilities_ambig"] == 3 * 16
    assert not set(scores.BOUNDS) & {*result["spread"], *result["ci"]}


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([[0.2, 0.3, 0.4]], r"row 2: \[0.2, 0.3, 0.4\] do not sum to 1; normalise them over the three answers"),
        ([[0.5, 0.5, 2e-6]], r"row 2: \[0.5, 0.5, 2e-06\] do not sum to 1"),
        ([[-1.5, -2.0, -0.5]], r"row 2: .* are not all from 0 to 1; pass probabilities, not their logarithms"),
        ([[1.5, 0.0, -0.5]], "row 2: .* are not all from 0 to 1"),
        ([[0.5, math.inf, 0.5]], "row 2: .* are not all from 0 to 1"),
        ([[0.5, 0.5, math.nan]], r"row 2: .* lack some of the three; pass all of them, or None"),
        ([[0.5, 0.5]], r"row 2: \[0.5, 0.5\] are not three numbers; pass those of the three answers"),
        ([[0.5, 0.5, None]], r"row 2: .* are not three numbers"),
        ([["1", "0", "0"]], r"row 2: .* are not three numbers"),
        (["abc"], "row 2: 'abc' are not three numbers"),
        ([0.5], "row 2: 0.5 are not three numbers"),
    ],
)
def test_probabilities_that_are_none_are_refused_by_row_and_value(bbq, probabilities, message):
    rows = make_set()
    good = [1.0, 0.0, 0.0]
    given = [good, None, *probabilities, good]
    with pytest.raises(ValueError, match=f"bbq: probabilities {message}"):
        bbq.compute(predictions=[0] * 4, references=rows, probabilities=given)
    assert bbq.compute(predictions=[0] * 4, references=rows, probabilities=[[0.5, 0.5, 1e-7]] * 4)["n"] == 4


def test_probabilities_that_do_not_belong_to_predictions_are_refused(bbq):
    rows = make_set()
    good = [1.0, 0.0, 0.0]
    for options, message in (
        ({"probabilities": [good] * 3}, "bbq: 3 rows of probabilities but 4 predictions; pass one row for each"),
        ({"probabilities": 0.5}, "bbq: probabilities are a float; pass an array of shape"),
        ({"probabilities": {"a": good}}, "bbq: probabilities are a dict; pass an array of shape"),
        ({"probabilities": [good] * 4, "predictions": None}, "bbq: probabilities without predictions"),
    ):
        arguments = {"predictions": [0] * 4, "references": rows, **options}
        with pytest.raises(ValueError, match=message):
            bbq.compute(**arguments)
        with pytest.raises(ValueError, match=message):
            bbq.add_batch(**arguments)


# The bound


def every_answer(rows: list[dict[str, Any]], kinds: str) -> dict[int, list[np.ndarray]]:
    """The counts of all answers to some rows, by the number of right ones."""
    columns = {name: np.array([row[name] for row in rows]) for name in ("label", "target_loc", "biased_loc")}
    unknown = np.array([row["unknown_loc"] for row in rows])
    disambiguated = np.array([row["context_condition"] == "disambig" for row in rows])
    found = defaultdict(list)
    for of in itertools.product(range(-1 if kinds == "unparsed" else 0, 3), repeat=len(rows)):
        predictions = np.array(of)
        counts = scores.count(
            predictions, *columns.values(), unknown, disambiguated, np.zeros(len(rows), dtype=np.int64), 1
        )[0]
        found[int((predictions == columns["label"]).sum())].append(counts)
    return found


def rows_of(condition: str, n_aligned: int, n_nonaligned: int) -> list[dict[str, Any]]:
    """Rows of one context; of disambiguated ones so many with a right answer of each kind."""
    sets = [make_set(1) for _ in range(n_aligned)] + [make_set(0) for _ in range(n_nonaligned)]
    wanted = {"ambig": (0, 2), "disambig": (1, 3)}[condition]
    return [of[wanted[number % 2]] for number, of in enumerate(sets)]


@pytest.mark.parametrize("kinds", ["answered", "unparsed"])
@pytest.mark.parametrize("condition", ["ambig", "disambig"])
@pytest.mark.parametrize(
    ("n_aligned", "n_nonaligned"), [(1, 1), (2, 2), (3, 3), (3, 1), (1, 3), (4, 2), (2, 4), (4, 0), (0, 4), (5, 1)]
)
def test_no_bias_of_the_same_accuracy_exceeds_the_bound_and_one_attains_it(condition, n_aligned, n_nonaligned, kinds):
    """All answers to small sets, also of unequally many aligned rows and with answers that cannot be read."""
    rows = rows_of(condition, n_aligned, n_nonaligned)
    rule = "wrong" if kinds == "unparsed" else "exclude"
    for counts in every_answer(rows, kinds).values():
        bounds = {float(scores.bounds(of, rule)[f"bias_bound_{condition}"]) for of in counts}
        assert len(bounds) == 1, "answers that are as often right have one bound"
        (bound,) = bounds
        biases = scores.scores_from_counts(np.array(counts), rule)[f"bias_{condition}"]
        assert np.nanmax(np.abs(biases)) == pytest.approx(bound, abs=1e-12)


def test_the_bound_of_balanced_rows_is_that_of_the_paper(bbq):
    """1 - accuracy, and 2 (1 - accuracy) from an accuracy of a half on."""
    rows = table()
    for n_right in range(33):
        is_right = np.random.default_rng(n_right).permutation(32) < n_right
        given = [row["label"] if right else (row["label"] + 1) % 3 for row, right in zip(rows, is_right, strict=True)]
        result = bbq.compute(predictions=given, references=rows, confidence=None)
        assert result["bias_bound_ambig"] == pytest.approx(1 - result["accuracy_ambig"])
        accuracy = result["accuracy_disambig"]
        assert result["bias_bound_disambig"] == pytest.approx(2 * (1 - accuracy) if accuracy >= 0.5 else 1)
        assert abs(result["bias_ambig"]) <= result["bias_bound_ambig"] + 1e-12
        assert abs(result["bias_disambig"]) <= result["bias_bound_disambig"] + 1e-12


def test_the_bound_is_of_the_rows_that_the_bias_is_of(bbq):
    """Rows without a target count for the accuracy alone."""
    rows = table() + make_set(8, "Age-05", target_loc=-1, biased_loc=-1)
    given = [*answers(rows[:32], "right"), 0, 0, 0, 0]
    result = bbq.compute(predictions=given, references=rows)
    assert result["accuracy_ambig"] == 16 / 18
    assert (result["bias_bound_ambig"], result["bias_bound_disambig"]) == (0, 0)
    nothing = bbq.compute(predictions=[0] * 4, references=rows[32:])
    assert math.isnan(nothing["bias_bound_ambig"])
    assert math.isnan(nothing["bias_bound_disambig"])


# What missing answers could change


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given=st.lists(st.integers(-1, 2), min_size=8, max_size=8))
def test_the_ends_of_a_range_are_those_of_all_that_the_missing_could_be(bbq, given):
    """By brute force: every way to fill in what is missing."""
    rows = make_set(0) + make_set(1, order=(1, 0, 2))
    missing = [place for place, one in enumerate(given) if one < 0]
    if not missing or len(missing) > 5:
        return
    filled = []
    for of in itertools.product(range(3), repeat=len(missing)):
        whole = list(given)
        for place, one in zip(missing, of, strict=True):
            whole[place] = one
        filled.append(bbq.compute(predictions=whole, references=rows, confidence=None))
    result = quiet(bbq, predictions=given, references=rows, confidence=None)
    for context in ("ambig", "disambig"):
        bias, bound = result[f"bias_{context}"], result[f"bias_bound_{context}"]
        assert math.isnan(bias) or abs(bias) <= bound + 1e-12
    assert {"bias_ambig_among_errors", "bias_ambig", "accuracy", *scores.BOUNDS} <= set(result["range"])
    for name in result["range"]:
        values = [of[name] for of in filled if not math.isnan(of[name])]
        ends = [min(values), max(values)] if values else [math.nan] * 2
        assert result["range"][name] == pytest.approx(ends, abs=1e-12, nan_ok=True), name
    assert not any("probability" in name for name in result["range"])


def test_a_result_of_58492_rows_takes_less_than_a_second(bbq):
    rows = [row for number in range(14623) for row in make_set(number, f"Age-{number % 343}")]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    probabilities = np.random.default_rng(0).dirichlet([1, 1, 1], len(rows))
    predictions = probabilities.argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        started = time.process_time()
        result = bbq.compute(predictions=predictions, references=columns, probabilities=probabilities)
        seconds = time.process_time() - started
    assert result["n"] == 58492
    assert seconds < 1
