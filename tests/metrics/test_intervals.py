"""The intervals of all metrics: published values, the formulas in plain Python, and what always holds."""

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
from .bbq_rows import answer, make_set
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


def ends(shape: Any, value: float, rows: float, quantile: float = NORMAL) -> tuple[float, float]:
    """The interval of a score of so many independent rows."""
    nothing = [np.nan] * (len(INTERVALS.Spread._fields) - 2)
    low, high = INTERVALS.limits(value, shape, INTERVALS.Spread(np.array(rows), np.array(quantile), *nothing))
    return float(low), float(high)


def share(value: float, rows: float, quantile: float = NORMAL) -> tuple[float, float]:
    """The interval of a share of independent rows."""
    return ends(INTERVALS.Shape(np.array(value), 0.0, np.array(rows), share=True), value, rows, quantile)


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
    shape = INTERVALS.Shape(np.array(up / rows), np.array(down / rows), np.array(float(rows)), low=-1.0)
    assert ends(shape, (up - down) / rows, rows) == pytest.approx((low, high), abs=5.1e-5)
    doubled = shape._replace(scale=2.0, low=-2.0, high=2.0)
    assert ends(doubled, 2 * (up - down) / rows, rows) == pytest.approx((2 * low, 2 * high), abs=1.1e-4)


# The formulas in plain Python


def jackknife(replicates: Sequence[float]) -> float:
    mean = statistics.fmean(replicates)
    return (len(replicates) - 1) / len(replicates) * sum((value - mean) ** 2 for value in replicates)


def kish(weights: Sequence[float]) -> float:
    return sum(weights) ** 2 / sum(weight**2 for weight in weights) if any(weights) else 0.0


def by_hand(
    up: float,
    down: float | None,
    replicates: list[float],
    moved: list[float],
    rows: list[float],
    prior: float,
    k: float,
) -> list[float]:
    """The 95% interval of a score, in the scale of its shares.

    Args:
        up: share of the rows that raise it.
        down: share of those that lower it; None for a share.
        replicates: the score without each cluster, in the scale of the shares.
        moved: numbers of rows of the clusters that move it.
        rows: numbers of rows of the clusters.
        prior: correlation of the prior.
        k: correlation by which errors count as fewer.
    """
    total, clusters = sum(rows), kish(rows)
    both, difference = up + (down or 0.0), up - (down or 0.0)
    most = both - difference**2
    fixed, known = (1 / total + rho * (1 / clusters - 1 / total) for rho in (prior, k))
    others = [n - m for n, m in zip(rows, moved, strict=True)]
    rarer = ([moved] if down is not None or up <= 0.5 else []) + ([others] if down is None and up >= 0.5 else [])
    f = max(0, min(*(kish(each) - 1 for each in (rows, *rarer)), min(both, 1 - abs(difference)) / known))
    seen = jackknife(replicates) / most if most > 0 else fixed
    n = (3 + f) / (3 * fixed + f * seen)
    t = float(INTERVALS.student(3 + f, 0.95))
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
# that raise and that lower it, their number, the factor to the score, and the two correlations.
FORMS = {
    "bbq": (
        lambda k: [row for n in range(6) for row in make_set(6 * k + n, f"Age-{k:02d}")],
        "template_id",
        {
            "accuracy_ambig": (
                lambda of, n: (of["accuracy_ambig"], None),
                lambda of: without(of, "n_ambig", "n_unparsed_ambig"),
                1,
                (0.25, 0.1),
            ),
            "bias_ambig": (
                lambda of, n: [of[f"n_{side}_ambig"] / n for side in ("biased", "counter_biased")],
                lambda of: without(of, "n_ambig", "n_unparsed_ambig"),
                1,
                (0.1, 0.1),
            ),
            "accuracy_cost": (
                lambda of, n: [(1 - of[f"accuracy_{side}"]) / 2 for side in ("aligned", "nonaligned")],
                lambda of: of["n_aligned"] + of["n_nonaligned"],
                2,
                (0.05, 0.05),
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
                (0.25, 0.1),
            ),
            "bias_score": (
                lambda of, n: [of[f"n_{side}"] / n for side in ("aligned", "opposed")],
                lambda of: without(of, "n_bias", "n_unparsed_bias"),
                1,
                (0.1, 0.1),
            ),
            "accuracy_gap": (
                lambda of, n: [(1 - of[f"accuracy_{stance}"]) / 2 for stance in ("anti", "pro")],
                lambda of: without(of, "n_test", "n_unparsed_pro", "n_unparsed_anti"),
                2,
                (0.05, 0.05),
            ),
        },
    ),
}
FORMS["bbnli_released"] = (*FORMS["bbnli"][:2], {"accuracy_gap_relative": FORMS["bbnli"][2]["accuracy_gap"]})


@pytest.mark.parametrize("unparsed", ["exclude", "wrong"])
@pytest.mark.parametrize("rare", [0.5, 0.05, 0.0])
@pytest.mark.parametrize("clusters", [2, 5, 25])
@pytest.mark.parametrize("form", FORMS)
def test_intervals_equal_the_formulas_in_plain_python(request, form, clusters, rare, unparsed):
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
    for name, (sides, n, scale, priors) in scores.items():
        up, down = sides(result, n(result))
        is_relative = name.endswith("_relative")
        scale = scale / result["accuracy_pro"] if is_relative else scale
        moved = [n(of) * sum(filter(None, sides(of, n(of)))) for of in each]
        found = by_hand(up, down, [of[name] / scale for of in rest], moved, [n(of) for of in each], *priors)
        expected = [result[name] + scale * (end - up + (down or 0)) for end in found]
        least = 0 if down is None else -math.inf if is_relative else -1
        assert result["ci"][name] == pytest.approx(np.clip(expected, least, 1), abs=1e-12), name


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


TURNED = ("bias_ambig", "bias_disambig", "bias_ambig_among_errors", "accuracy_cost", "abstention_gap")
SIGNED = (*TURNED, "bias_probability_ambig", "bias_probability_disambig")


@pytest.mark.slow
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


def test_one_template_has_no_interval():
    counts = count_matrix(np.full((1, 12), 3))
    assert all(math.isnan(bound) for pair in BBQ.summarize(counts)["ci"].values() for bound in pair)


@pytest.mark.parametrize("clusters", [3, 12, 40])
def test_statistics_and_differences_equal_the_formulas_in_plain_python(clusters):
    random = np.random.default_rng(clusters)
    without, sizes = random.uniform(0.28, 0.32, clusters), random.uniform(5, 50, clusters)
    shape, spread = INTERVALS.of_clusters(0.3, without)
    moved = [abs(0.3 - (1 - 1 / clusters) * value) for value in without]
    expected = by_hand(0.3, None, list(without), [1e9 * m for m in moved], [1e9 / clusters] * clusters, 0.1, 0.1)
    assert INTERVALS.limits(0.3, shape, spread) == pytest.approx(expected, abs=1e-12)
    value, bound, shares = 0.1, 2.0, sizes / sizes.sum()
    without = 0.1 + random.uniform(-0.05, 0.04, clusters)
    added = [(value - (1 - w) * rest) / bound for w, rest in zip(shares, without, strict=True)]
    added = [a / max(1, sum(map(abs, added))) for a in added]
    up, down = (sum(max(sign * a, 0) for a in added) for sign in (1, -1))
    moved, rows = [1e9 * abs(a) for a in added], [1e9 * w for w in shares]
    found = by_hand(up, down, list(without / bound), moved, rows, 0.05, 0.05)
    expected = [max(-bound, min(bound, value + bound * (end - up + down))) for end in found]
    shape, spread = INTERVALS.of_clusters(value, without, sizes, bound)
    assert INTERVALS.limits(value, shape, spread) == pytest.approx(expected, abs=1e-12)


def test_intervals_of_several_selections_are_those_of_each():
    rng = np.random.default_rng(2)
    many = np.stack([count_matrix(rng.integers(0, 6, (5, 12))) for _ in range(3)], axis=1)
    together = INTERVALS.ends(BBQ.spreads(many[:, :, None, :]))
    for place in range(3):
        alone = INTERVALS.ends(BBQ.spreads(many[:, place, None, :]))
        for name, (low, high) in alone.items():
            assert same([float(low), float(high)], [float(end[place]) for end in together[name]])


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


def test_templates_of_one_row_each_are_independent_rows():
    counts = count_matrix(np.array([[1, *[0] * 11]] * 12 + [[0, 1, *[0] * 10]] * 8))
    low, high = BBQ.summarize(counts)["ci"]["accuracy_ambig"]
    # Of 8 wrong answers 7 degrees of freedom remain, and 3 of the prior.
    assert low == pytest.approx(share(12 / 20, 20, INTERVALS.student(10.0, 0.95))[0], abs=0.01)
    assert high == pytest.approx(share(12 / 20, 20, INTERVALS.student(10.0, 0.95))[1], abs=0.01)


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_a_statistic_of_templates_that_are_alike_has_an_interval_too(value):
    low, high = INTERVALS.limits(value, *INTERVALS.of_clusters(value, np.full(5, value)))
    assert 0.0 <= low <= value <= high <= 1.0
    assert high - low > 0.05  # five templates do not show that others are as extreme
    assert all(map(math.isnan, INTERVALS.limits(value, *INTERVALS.of_clusters(value, np.full(2, value)))))


@pytest.mark.parametrize("templates", [7, 25, 75])
@pytest.mark.parametrize(
    "name", ["accuracy_ambig", "accuracy_disambig", "bias_ambig", "bias_disambig", "accuracy_cost"]
)
def test_one_wrong_answer_in_700_rows_makes_no_interval_narrower(templates, name):
    right = np.zeros((templates, 12), dtype=np.int64)
    right[:, 0] = right[:, 4] = right[:, 8] = np.diff(np.linspace(0, 700, templates + 1).round()).astype(np.int64)
    wrong = right.copy()
    wrong[0, [0, 1, 4, 5]] += [-1, 1, -1, 1]
    widths = [high - low for low, high in (BBQ.summarize(count_matrix(of))["ci"][name] for of in (right, wrong))]
    assert 0 < widths[0] <= widths[1]
