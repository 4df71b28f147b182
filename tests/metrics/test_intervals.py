"""The intervals of all metrics: published values, the three steps worked out in plain Python, and what always holds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from .bbnli_rows import make_pair, mixed_statements
from .bbq_rows import answer, answers, make_set
from .helpers import inner_module, quiet, same

INTERVALS = inner_module("bbq", "intervals")
BBQ = inner_module("bbq", "summary")
NORMAL = statistics.NormalDist().inv_cdf(0.975)

# Published values


@pytest.mark.parametrize(
    ("confidence", "freedom", "printed"),
    [
        *((0.95, freedom, value) for freedom, value in ((3, 3.182), (4, 2.776), (5, 2.571), (10, 2.228), (30, 2.042))),
        *((0.99, freedom, value) for freedom, value in ((10, 3.169), (30, 2.750))),
        *((0.90, freedom, value) for freedom, value in ((4, 2.132), (120, 1.658))),
    ],
)
def test_quantiles_of_student_are_those_of_printed_tables(confidence, freedom, printed):
    assert INTERVALS.student(freedom, confidence) == pytest.approx(printed, rel=0.003)


def share(value: float, rows: float, quantile: float = NORMAL) -> tuple[float, float]:
    """The interval of a share of independent rows."""
    spread = INTERVALS.Spread(np.array(rows), np.array(quantile), np.nan, np.nan)
    low, high = INTERVALS.limits(value, INTERVALS.Shape(np.array(value), None, np.array(rows)), spread)
    return float(low), float(high)


@pytest.mark.parametrize(
    ("right", "rows", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_of_a_share_of_independent_rows_is_wilsons(right, rows, low, high):
    # Newcombe (1998), Table I, the score method without a correction for continuity.
    assert share(right / rows, rows) == pytest.approx((low, high), abs=5.1e-5)
    assert share(1 - right / rows, rows) == pytest.approx((1 - high, 1 - low), abs=5.1e-5)


@pytest.mark.parametrize(
    ("up", "down", "rows", "low", "high"),
    # Their formula by hand. 1 and 7 of 21 (data of an example of Fagerland, Lydersen and Laake 2014):
    # 2/23 - 8/23 +- 1.95996 sqrt((10/23 - (6/23)^2) / 23). 0 and 0 of 18: +- 1.95996 sqrt((2/20) / 20).
    [(1, 7, 21, -0.5084, -0.0134), (0, 0, 18, -0.1386, 0.1386)],
)
def test_the_interval_of_a_contrast_of_independent_rows_is_that_of_bonett_and_price(up, down, rows, low, high):
    spread = INTERVALS.Spread(np.array(float(rows)), np.array(NORMAL), np.nan, np.nan)
    of = INTERVALS.Shape(np.array(up / rows), np.array(down / rows), np.array(float(rows)), low=-1.0)
    assert INTERVALS.limits((up - down) / rows, of, spread) == pytest.approx((low, high), abs=5.1e-5)
    doubled = of._replace(scale=2.0, low=-2.0, high=2.0)
    found = INTERVALS.limits(2 * (up - down) / rows, doubled, spread)
    assert found == pytest.approx((2 * low, 2 * high), abs=1.1e-4)


# The three steps in plain Python


def jackknife(replicates: Sequence[float]) -> float:
    mean = statistics.fmean(replicates)
    return (len(replicates) - 1) / len(replicates) * sum((value - mean) ** 2 for value in replicates)


def excess_kurtosis_of_beta(a: float, b: float) -> float:
    """From the raw moments E[X^k] = product of (a + r) / (a + b + r) for r < k."""
    moments = [math.prod((a + r) / (a + b + r) for r in range(k)) for k in range(5)]
    mean = moments[1]
    fourth = sum(math.comb(4, k) * moments[k] * (-mean) ** (4 - k) for k in range(5))
    return fourth / (moments[2] - mean**2) ** 2 - 3.0


def by_hand(
    up: float, down: float | None, replicates: list[float], departures: list[float], rows: list[int], prior: float
) -> list[float]:
    """The interval of a score of templates with so many rows, in the scale of the shares, 95 %."""
    moved, difference = up + (down or 0.0), up - (down or 0.0)
    largest = moved - difference**2
    alone, together = 1 / sum(rows), sum(n**2 for n in rows) / sum(rows) ** 2
    templates = 1 / together  # those of unequal size count as fewer

    def correlation(variance: float, of: float) -> float | None:
        return (variance / of - alone) / (together - alone) if of > 0 else None

    between, erring = (
        correlation(jackknife(replicates), largest),
        correlation(jackknife(departures), moved * (1 - moved)),
    )
    known = [value for value in (between, erring) if value is not None]
    rho = min(max(max(known), 0.02), 0.9) if known else 0.3
    rare = min(moved, 1 - abs(difference))
    worth = 1 / (alone + rho * (together - alone))
    smoothed = min((rare * worth + 1) / (worth + 2), 0.5)
    excess = excess_kurtosis_of_beta(smoothed * (1 / rho - 1), (1 - smoothed) * (1 / rho - 1))
    information = min(1.0, (5.0 - 1) / max(excess + 2, 1))
    freedom = (templates - 1) * information
    weight = 3.0 * (1 - information) + 0.8 * information
    taken = alone + prior * (together - alone)
    variance = (weight * largest * taken + freedom * jackknife(replicates)) / (weight + freedom)
    n = max(largest / variance, templates) if variance > 0 else 1 / taken
    most = max(3.0, templates)
    t = float(INTERVALS.student(min(3.0 + freedom, most), 0.95))
    if down is None:
        middle, half = (up + t**2 / (2 * n)) / (1 + t**2 / n), t * math.sqrt(up * (1 - up) / n + t**2 / (4 * n**2))
        half /= 1 + t**2 / n
    else:
        p, q = (up * n + 1) / (n + 2), (down * n + 1) / (n + 2)
        middle, half = p - q, t * math.sqrt((p + q - (p - q) ** 2) / (n + 2))
    return [middle - half, middle + half]


def without(of: dict[str, Any], n: str, *missing: str) -> int:
    """A number of rows, by the rule "exclude" without those that are missing."""
    return of[n] - sum(of[name] for name in missing if "unparsed:exclude" in of["signature"])


# For each form: its rows of a cluster, the column that names the cluster, and for each score the shares of the rows
# that raise and that lower it, their number, the factor to the score, and the correlation that is taken for granted.
FORMS = {
    "bbq": (
        lambda k: [row for n in range(6) for row in make_set(6 * k + n, f"Age-{k:02d}")],
        "template_id",
        {
            "accuracy_ambig": (
                lambda of, n: (of["accuracy_ambig"], None),
                lambda of: without(of, "n_ambig", "n_unparsed_ambig"),
                1,
                0.3,
            ),
            "bias_ambig": (
                lambda of, n: [of[f"n_{side}_ambig"] / n for side in ("biased", "counter_biased")],
                lambda of: without(of, "n_ambig", "n_unparsed_ambig"),
                1,
                0.2,
            ),
            "accuracy_cost": (
                lambda of, n: [(1 - of[f"accuracy_{side}"]) / 2 for side in ("aligned", "nonaligned")],
                lambda of: of["n_aligned"] + of["n_nonaligned"],
                2,
                0.06,
            ),
        },
    ),
    "bbnli": (
        lambda k: [
            row
            for n in range(12)
            for row in make_pair(12 * k + n, *(("test", n % 3) if n % 2 else ()), premise_id=k, subtopic="ab"[k % 2])
        ],
        "premise_id",
        {
            "accuracy_pro": (
                lambda of, n: (of["accuracy_pro"], None),
                lambda of: without(of, "n_test_pro", "n_unparsed_pro"),
                1,
                0.3,
            ),
            "bias_score": (
                lambda of, n: [of[f"n_{side}"] / n for side in ("aligned", "opposed")],
                lambda of: without(of, "n_bias", "n_unparsed_bias"),
                1,
                0.2,
            ),
            "accuracy_gap": (
                lambda of, n: [(1 - of[f"accuracy_{stance}"]) / 2 for stance in ("anti", "pro")],
                lambda of: without(of, "n_test", "n_unparsed_pro", "n_unparsed_anti"),
                2,
                0.06,
            ),
        },
    ),
}
FORMS["bbnli_released"] = (*FORMS["bbnli"][:2], {"accuracy_gap_relative": FORMS["bbnli"][2]["accuracy_gap"]})


@pytest.mark.parametrize("unparsed", ["exclude", "wrong"])
@pytest.mark.parametrize("rare", [0.5, 0.05, 0.0])
@pytest.mark.parametrize("clusters", [2, 5, 25])
@pytest.mark.parametrize("form", FORMS)
def test_intervals_equal_the_steps_in_plain_python(request, form, clusters, rare, unparsed):
    metric, (make, column, scores) = request.getfixturevalue(form.partition("_")[0]), FORMS[form]
    options: dict[str, Any] = {"unparsed": unparsed, **({"denominator": "released"} if "released" in form else {})}
    random = np.random.default_rng(clusters)
    rows, said = [], []
    for k, tilt in enumerate(random.uniform(0.0, 2.0, clusters)):
        rows += make(k)
        for row in rows[len(said) :]:
            said.append(int(random.integers(-1, 3)) if random.random() < rare * tilt else row["label"])

    def scored(kept: Any, confidence: float | None = None):
        kept = [k for k, row in enumerate(rows) if kept(row[column])]
        predictions, references = [said[k] for k in kept], [rows[k] for k in kept]
        return quiet(metric, predictions=predictions, references=references, confidence=confidence, **options)

    names = dict.fromkeys(row[column] for row in rows)
    result = scored(lambda name: True, 0.95)
    rest = [scored(lambda name, one=one: name != one) for one in names]
    each = [scored(lambda name, one=one: name == one) for one in names]
    for name, (sides, n, scale, prior) in scores.items():
        up, down = sides(result, n(result))
        is_relative = name.endswith("_relative")
        scale = scale / result["accuracy_pro"] if is_relative else scale
        moved = [sum(filter(None, sides(of, n(of)))) for of in rest]
        ends = by_hand(up, down, [of[name] / scale for of in rest], moved, [n(of) for of in each], prior)
        expected = [result[name] + scale * (end - up + (down or 0)) for end in ends]
        least = 0 if down is None else -math.inf if is_relative else -1
        assert result["ci"][name] == pytest.approx(np.clip(expected, least, 1), abs=1e-9), name


def test_where_every_answer_takes_a_side_the_other_biases_have_the_interval_of_the_accuracy_gap(bbq, bbnli):
    def answered(metric: Any, rows: list[dict[str, Any]], kinds: Any) -> dict[str, Any]:
        random = np.random.default_rng(7)
        rows = [row for row in rows if row["context_condition"] == "disambig"]
        said = [int(random.choice(kinds(row))) if random.random() < 0.4 else row["label"] for row in rows]
        return metric.compute(predictions=said, references=rows)

    rows = [row for k in range(6) for row in FORMS["bbq"][0](k)]
    result = answered(bbq, rows, lambda row: [answer(row, "biased"), answer(row, "counter")])
    assert same(result["bias_disambig"], -result["accuracy_cost"])
    assert same(result["ci"]["bias_disambig"], [-end for end in reversed(result["ci"]["accuracy_cost"])])
    result = answered(bbnli, mixed_statements(24), lambda row: [0, 2])
    for name, factor in (("bias_score_disambig", 1), ("table5_style", 2)):
        assert same(result[name], factor * result["accuracy_gap"])
        assert same(result["ci"][name], [factor * end for end in result["ci"]["accuracy_gap"]])


# What always holds


COUNTS = arrays.arrays(np.int64, st.tuples(st.integers(2, 8), st.just(12)), elements=st.integers(0, 6))


def count_matrix(answers: np.ndarray) -> np.ndarray:
    """Counts of BBQ's metric, shape (T, K): ambiguous rows, then aligned and non-aligned ones, by answer and place."""
    field = dict.fromkeys(BBQ.FIELDS, np.zeros(len(answers), dtype=np.int64))
    unknown, biased, counter, lost = answers[:, :4].T
    field |= {"rows_ambig": answers[:, :4].sum(axis=1), "correct_ambig": unknown, "unknown_ambig": unknown}
    field |= {"biased_ambig": biased, "counter_biased_ambig": counter, "unparsed_ambig": lost, "lost_ambig": lost}
    aligned, other = answers[:, 4:8].T, answers[:, 8:].T  # right, wrong person, UNKNOWN, unparsed
    for side, (right, *_, missing) in (("aligned", aligned), ("nonaligned", other)):
        rows = (aligned if side == "aligned" else other).sum(axis=0)
        field |= {f"rows_{side}": rows, f"correct_{side}": right, f"unparsed_{side}": missing}
    field["rows_disambig"] = aligned.sum(axis=0) + other.sum(axis=0)
    field["correct_disambig"] = aligned[0] + other[0]
    field["unknown_disambig"] = aligned[2] + other[2]
    field["unparsed_disambig"] = aligned[3] + other[3]
    field["biased_disambig"] = aligned[0] + other[1]
    field["counter_biased_disambig"] = aligned[1] + other[0]
    return np.stack([field[name] for name in BBQ.FIELDS], axis=1)


TURNED = ("bias_ambig", "bias_disambig", "bias_ambig_among_errors", "accuracy_cost")
SIGNED = (*TURNED, "bias_probability_ambig", "bias_probability_disambig")


@settings(max_examples=30, deadline=None)
@given(answers=COUNTS, order=st.randoms(use_true_random=False), unparsed=st.sampled_from(["exclude", "wrong"]))
def test_what_holds_of_every_interval(answers, order, unparsed):
    counts = count_matrix(answers)
    result = BBQ.summarize(counts, 0.95, unparsed)
    wide = BBQ.summarize(counts, 0.99, unparsed)["ci"]
    for name, (low, high) in result["ci"].items():
        least = -1.0 if name in SIGNED else 0.0
        if math.isnan(low):
            without = [BBQ.summarize(np.delete(counts, k, axis=0), None, unparsed)[name] for k in range(len(counts))]
            single = BBQ.shapes(counts[:, None, :], unparsed)[name].rows.max() <= 1
            assert single or any(map(math.isnan, [result[name], *without])), name
            assert math.isnan(high)
        else:
            assert least <= low <= result[name] <= high <= 1.0, name
            assert high - low > 1e-3, name
            assert wide[name][0] <= low, name
            assert high <= wide[name][1], name

    places = list(range(len(counts)))
    order.shuffle(places)
    assert same(BBQ.summarize(counts[places], 0.95, unparsed)["ci"], result["ci"])
    # Nothing is known of a template without rows.
    assert same(BBQ.summarize(np.vstack([counts, 0 * counts[:1]]), 0.95, unparsed)["ci"], result["ci"])

    # The two people change places: what was biased is counter-biased, what was aligned is not.
    exchanged = count_matrix(answers[:, [0, 2, 1, 3, 8, 9, 10, 11, 4, 5, 6, 7]])
    mirror = BBQ.summarize(exchanged, 0.95, unparsed)["ci"]
    for name in TURNED:
        assert same(mirror[name], [-bound for bound in reversed(result["ci"][name])], 1e-9)


def test_24_rows_that_are_all_right_do_not_claim_certainty(bbq):
    rows = [row for place in range(12) for row in make_set(place, f"Age-{place % 2}")]
    result = bbq.compute(predictions=answers(rows, "right"), references=rows)
    low, high = result["ci"]["accuracy_ambig"]
    # As many independent rows as 24 of a correlation of 0.3 are worth, 5.6: 1 / (1/24 + 0.3 (1/2 - 1/24)).
    assert (low, high) == pytest.approx(share(1.0, 24 / 4.3, INTERVALS.student(3.0, 0.95)), rel=0.01)
    low, high = result["ci"]["bias_ambig"]
    assert low < -0.3 < 0.3 < high
    low, high = result["ci"]["bias_disambig"]
    assert low < -0.1 < 0.1 < high


def test_one_template_has_no_interval():
    counts = count_matrix(np.full((1, 12), 3))
    assert all(math.isnan(bound) for pair in BBQ.summarize(counts)["ci"].values() for bound in pair)


def test_templates_of_one_row_each_are_independent_rows():
    counts = count_matrix(np.array([[1, *[0] * 11]] * 12 + [[0, 1, *[0] * 10]] * 8))
    low, high = BBQ.summarize(counts)["ci"]["accuracy_ambig"]
    assert low == pytest.approx(share(12 / 20, 20, INTERVALS.student(19.0, 0.95))[0], abs=0.01)
    assert high == pytest.approx(share(12 / 20, 20, INTERVALS.student(19.0, 0.95))[1], abs=0.01)


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_a_statistic_of_templates_that_are_alike_has_an_interval_too(value):
    low, high = INTERVALS.of_statistic(value, np.full(5, value))
    assert 0.0 <= low <= value <= high <= 1.0
    if value == 0.3:
        # Only what is taken for granted is left: a correlation of 0.07 that counts as 0.8 of 4.8 templates.
        expected = share(value, 5 / 0.07 * 4.8 / 0.8, INTERVALS.student(4.0, 0.95))
        assert (low, high) == pytest.approx(expected)
    else:  # five templates do not show that others are as extreme
        assert high - low > 0.05
    assert all(map(math.isnan, INTERVALS.of_statistic(value, np.full(2, value))))


def test_a_statistic_of_templates_that_differ_by_rounding_has_the_interval_of_those_that_are_alike():
    rounded = INTERVALS.of_statistic(0.3, np.array([0.3, 0.1 + 0.2, 0.3, 0.3, 0.3]))
    assert rounded == pytest.approx(INTERVALS.of_statistic(0.3, np.full(5, 0.3)))


def test_intervals_of_several_selections_are_those_of_each():
    rng = np.random.default_rng(2)
    many = np.stack([count_matrix(rng.integers(0, 6, (5, 12))) for _ in range(3)], axis=1)
    together = INTERVALS.ends(BBQ.spreads(many[:, :, None, :]))
    for place in range(3):
        alone = INTERVALS.ends(BBQ.spreads(many[:, place, None, :]))
        for name, (low, high) in alone.items():
            assert same([float(low), float(high)], [float(end[place]) for end in together[name]])
