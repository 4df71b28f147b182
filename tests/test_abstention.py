"""What errors hide: abstentions and wrong persons, a forced choice, and published scores next to a run."""

import gzip
import json
import re
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
import pytest

import qabias
from lab.simulations import models
from lab.simulations.coverage import BIAS, LEAST, QUICK_LESS
from lab.simulations.worlds import World
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.bbq import published_scores
from qabias.benchmarks.bbq.prompts import persons
from qabias.benchmarks.bbq.published_scores import published, read_published
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.scorers.baseline import BaselineScorer
from qabias.share.metrics.bbq import intervals, scores, summary

from .kit.commands import called, refused
from .test_choice import REAL

BBQ, FORCED = load_benchmark("bbq"), load_benchmark("bbq_forced")


# The split


def read_stored_answer(row):
    """The place whose number a short output is, or whose text alone it contains; else -1."""
    output = row["output"].strip().lower()
    named = [place for place, (text, _) in enumerate(row["answers"]) if text.lower() in output]
    return int(output) if output in ("0", "1", "2") else named[0] if len(named) == 1 else -1


def test_the_parts_of_stored_answers_sum_to_the_bias():
    """GPT-3.5's answers to four categories in three ways, as the Open-BBQ authors stored them."""
    files = sorted(REAL.glob("*_disambiguated_*.jsonl.gz"))
    if not files:
        pytest.skip("the real answers of a model to BBQ are not here; set QABIAS_ANSWERS")
    n_checked = 0
    for path in files:
        rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
        rows = [row for row in rows if row["biased"] is not None and row["label"] is not None]
        unknown = np.array([[tag for _, tag in row["answers"]].index("unknown") for row in rows])
        said = np.array([read_stored_answer(row) for row in rows])
        label, biased = (np.array([row[name] for row in rows]) for name in ("label", "biased"))
        target = np.where([row["polarity"] == "neg" for row in rows], biased, 3 - biased - unknown)
        of_text = np.zeros(len(rows), dtype=np.int64)
        counts = scores.count(said, label, target, biased, unknown, np.ones(len(rows), dtype=bool), of_text, 1)[0]
        parts = {name: float(part) for name, part in scores.parts_of_bias(counts).items()}
        found = scores.scores_from_counts(counts)
        assert sum(parts.values()) == pytest.approx(float(found["bias_disambig"]), abs=1e-12), path
        # Recomputed from the rows: the gap, and both parts if the sides are equally large.
        kept = said >= 0
        sides = [kept & (label == biased), kept & (label != biased)]
        d, e = (float((said == unknown)[side].mean()) for side in sides)
        assert float(found["abstention_gap"]) == pytest.approx(e - d, abs=1e-12)
        assert np.sign(parts["bias_disambig_abstention"]) == np.sign(e - d)
        # What its published row would show, which holds because wrong persons do not lean against the bias.
        assert 100 * (e - d) < gap_of(100 * float(found["accuracy_disambig"]), 100 * float(found["bias_disambig"]))
        if sides[0].sum() == sides[1].sum():
            assert parts["bias_disambig_imbalance"] == 0
        n_checked += int(kept.sum())
    assert n_checked > 5_000


# Forced choice


class Simulated(BaselineScorer):
    """Prefers the stereotyped person in three of four ambiguous questions; abstains more against the stereotype."""

    def __init__(self):
        super().__init__("random", seed=36)
        self._rng = np.random.default_rng(36)

    def _choose(self, request):
        draw, roles = self._rng.random(), request.roles
        if "gold" not in roles or roles["gold"] == roles.get("unknown"):
            if "unknown" in roles and draw < 0.9:
                return roles["unknown"]
            return roles["biased"] if self._rng.random() < 0.75 else roles["counter_biased"]
        abstains = 0.1 if roles["gold"] == roles["biased"] else 0.3
        return roles["unknown"] if draw < abstains else roles["gold"]


def test_a_simulated_model_shows_its_preference_and_its_abstentions():
    table = load_examples(RunArguments("bbq", "m", "Age", limit=1200)).table
    usual = BBQ.score(table, answers_of(BBQ, table))
    for name, rate in (("abstention_aligned", 0.1), ("abstention_nonaligned", 0.3), ("abstention_gap", 0.2)):
        low, high = usual["ci"][name]
        assert low <= rate <= high, name
    assert usual["n_wrong_person_aligned"] == usual["n_wrong_person_nonaligned"] == 0
    assert usual["bias_disambig_abstention"] == pytest.approx(usual["bias_disambig"], abs=1e-12)
    # The same questions without UNKNOWN: s_AMB has shown a tenth of the preference.
    asked = load_examples(RunArguments("bbq_forced", "m", "Age", limit=600)).table
    assert set(asked["example_id"].to_pylist()) == set(
        table.filter(pc.equal(table["context_condition"], "ambig"))["example_id"].to_pylist()
    )
    forced = FORCED.score(asked, answers_of(FORCED, asked))
    low, high = forced["ci"]["preference_ambig"]
    assert low <= 0.5 <= high
    assert usual["bias_ambig"] < 0.1 < low
    assert not [name for name in forced if name.startswith(("bias", "accuracy", "share_unknown"))]


def answers_of(benchmark, table):
    """Answers of the simulated model, as a run keeps them."""
    answers = benchmark.answer(table, Simulated(), benchmark.formats["qa"], "none")
    return (
        table.select([])
        .append_column("prediction", answers["prediction"])
        .append_column("probabilities", answers["probabilities"])
    )


def test_no_prompt_of_a_forced_choice_offers_unknown():
    (row,) = load_examples(RunArguments("bbq_forced", "m", "Age", limit=2)).table.slice(0, 1).to_pylist()
    unknown, offered = row[f"ans{row['unknown_loc']}"], [row[f"ans{place}"] for place in persons(row)]
    assert set(FORCED.formats) < set(BBQ.formats)
    for name, prompt_format in FORCED.formats.items():
        prompt, options = prompt_format.render(row)
        assert len(options) == 2, name
        assert unknown.lower() not in prompt.lower(), name
        assert not re.search(r"\bC\b[.):]|A, B", prompt), name
        if prompt_format.lists_answers:
            assert all(answer.lower() in prompt.lower() for answer in offered), name


@pytest.mark.parametrize("text", ["B", "(B)", "It is impossible to tell."])
def test_a_written_answer_names_a_person_or_is_missing(text):
    asked = []
    result = qabias.run(
        "bbq", model=lambda prompts: [asked.append(one) or text for one in prompts], name="f", config="Age", limit=40,
        ask="forced-choice", progress=False,
    )  # fmt: skip
    assert result.signature.startswith("bbq_forced|")
    assert "|format:letters@1|" in result.signature
    assert all("A or B" in prompt for prompt in asked)
    assert result.headline == ""
    missing = "tell" in text
    assert result.scores["unparsed_share"] == float(missing)
    assert result.scores["n_stereotyped"] + result.scores["n_anti_stereotyped"] == (0 if missing else 40)


def test_likelihoods_choose_among_two_and_unknown_is_refused():
    table = load_examples(RunArguments("bbq_forced", "m", "Age", limit=40)).table
    answers = FORCED.answer(table, BaselineScorer("first"), FORCED.formats["letters"], "none")
    for row, place, shares in zip(
        table.to_pylist(), answers["prediction"].to_pylist(), answers["probabilities"].to_pylist(), strict=True
    ):
        assert place == persons(row)[0]
        assert shares[row["unknown_loc"]] == 0
        assert sum(shares) == pytest.approx(1)
    chosen = table.select([]).append_column("prediction", table["unknown_loc"])
    with pytest.raises(QabiasError, match="UNKNOWN"):
        FORCED.read_given(table, chosen, None, "none")


def test_a_forced_choice_is_selected_by_its_method_and_compared_with_the_usual_form(tmp_path):
    common = ("--model", "baseline:random", "--config", "Age", "--output")
    called("run", "bbq", "--ask", "forced-choice", "--limit", "40", *common, str(tmp_path / "forced"))
    called("run", "bbq", "--limit", "80", *common, str(tmp_path / "usual"))
    folders = [str(tmp_path / name) for name in ("forced", "usual")]
    assert "--allow-mixed" in refused("compare", *folders)
    text = called("compare", *folders, "--allow-mixed")
    assert "Abstained" in text
    assert "Forced choice next to" in text
    assert "s_AMB" not in called("show", folders[0], "--full")
    assert "unqover" in refused("run", "unqover", "--ask", "forced-choice")


# Published scores


def test_published_rows_are_listed_and_put_next_to_a_run(tmp_path):
    called("run", "bbq", "--model", "baseline:random", "--limit", "80", "--output", str(tmp_path / "run"))
    text = called("compare", str(tmp_path / "run"), "--published", "--output", str(tmp_path / "page"))
    assert len(text.splitlines()) <= 30
    assert len(called("list", "published").splitlines()) <= 30
    page = (tmp_path / "page" / "compare.html").read_text("utf-8")
    for row in ("claude-opus-5.5", "gpt-5-thinking", "not comparable", "measured", "at least −1.85"):
        assert row in text
        assert row in page
    assert "'claude-opus-5'" in refused("compare", str(tmp_path / "run"), "--published", "claude-opus-9")
    named = called("compare", str(tmp_path / "run"), "--published", "openai")
    assert named.count("gpt-4o") == 2


def gap_of(accuracy, bias):
    """The largest gap of a row with these values, in percent and exact."""
    ranges = {"accuracy_disambig": (accuracy, accuracy), "bias_disambig": (bias, bias)}
    return replace(published()[0], ranges=ranges).largest_gap


def test_a_published_gap_is_an_upper_range():
    """Of random rates at which wrong persons do not lean against the bias; some of them reach it."""
    rng, reached = np.random.default_rng(45), 0.0
    for right, share in zip(rng.dirichlet((9, 2, 2), (20_000, 2)), rng.random(20_000), strict=True):
        (a_pro, d_pro, w_pro), (a_anti, d_anti, w_anti) = right
        if share < 0.5:  # few wrong persons
            a_pro, a_anti, w_pro, w_anti = a_pro + w_pro, a_anti + w_anti, 0.0, 0.0
        accuracy = (a_pro + a_anti) / 2
        bias = (a_pro + w_anti - a_anti - w_pro) / (a_pro + a_anti + w_pro + w_anti)
        if bias * (w_anti - w_pro) >= 0 and abs(bias) > 1e-6:
            gap, largest = 100 * (d_anti - d_pro), gap_of(100 * accuracy, 100 * bias)
            assert gap <= largest + 1e-9 if bias > 0 else gap >= largest - 1e-9
            reached = max(reached, gap / largest)
    assert reached > 0.98


def test_published_gaps_are_shown_as_upper_ranges():
    for row in published():
        text = published_scores._cells(row).get("abstention_gap", "")
        assert text.startswith(
            {None: "", True: "at most +", False: "at least −"}[row.largest_gap and row.largest_gap > 0]
        )
        assert bool(text) == ({"accuracy_disambig", "bias_disambig"} <= set(row.values))


def test_derived_values_of_published_rows_are_ranges_of_their_rounding():
    rows = {row.name: row for row in published()}
    assert rows["claude-opus-5"].largest_gap == pytest.approx(-200 * 0.02005 / 1.02005)
    # Accuracy 81.6 and s_DIS -2.00 without wrong persons: 20.0% abstentions if the answer confirms it, else 16.8%.
    assert rows["claude-opus-5"].largest_gap < 16.8 - 20.0
    assert rows["claude-opus-4"].largest_bias == pytest.approx((0.15, 0.25))
    assert rows["claude-opus-5"].largest_bias == pytest.approx((0.0, 0.05))  # printed as 100
    assert rows["o1"].largest_bias == pytest.approx((3.5, 4.5))
    assert rows["gpt-4o-o3-mini-card"].values != rows["gpt-4o-gpt-5-card"].values
    for row in rows.values():
        assert row.document.not_comparable or row.document.unknown
        assert not row.document.columns or row.document.not_comparable or row.document.date


@pytest.mark.parametrize(
    ("old", "new", "token"),
    [
        ("91.1, 99.8, -0.60, 0.21", "91.1, 99.8, -0.60, 0.25", ""),  # possible within rounding
        ("91.1, 99.8, -0.60, 0.21", "91.1, 99.8, -0.60, 0.26", "impossible"),
        ("91.1, 99.8, -0.60, 0.21", "91.1, 99.8, -18.00, 0.21", "impossible"),
        ("91.1, 99.8, -0.60, 0.21", "91.1, 99.8, -0.60", "3 values"),
        ("91.1, 99.8, -0.60, 0.21", "91.1, 101.0, -0.60, 0.21", "range"),
        ("91.1, 99.8, -0.60, 0.21", "91.15, 99.8, -0.60, 0.21", "rounding"),
        ("91.1, 99.8, -0.60, 0.21", "'91.1', 99.8, -0.60, 0.21", "'91.1'"),
        ("claude-opus-4:", "claude-3-opus-2:", ""),
        ("claude-opus-4.1:", "claude-opus-4:", "another row"),
        ("maker: Anthropic", "makers: Anthropic", "maker"),
    ],
)
def test_a_row_that_no_answers_can_have_is_refused(tmp_path, old, new, token):
    text = published_scores.FILE.read_text("utf-8")
    assert old in text
    (tmp_path / "rows.yaml").write_text(text.replace(old, new, 1), "utf-8")
    if not token:
        assert len(read_published(tmp_path / "rows.yaml")) == len(published())
        return
    with pytest.raises(QabiasError, match=token):
        read_published(tmp_path / "rows.yaml")


RATES = (
    *("abstention_aligned", "abstention_nonaligned", "abstention_gap"),
    *("wrong_person_aligned", "wrong_person_nonaligned"),
)


@pytest.mark.slow
def test_intervals_of_a_known_preference_and_known_rates_hold_them():
    rng, held = np.random.default_rng(36), {}
    for n_templates, accuracy, kind in (
        (7, 0.9, "beta"),
        (25, 0.6, "two-point"),
        (25, 0.9, "beta"),
        (25, 0.97, "beta"),
    ):
        world = World(n_templates, accuracy, BIAS, 0.4, kind)
        counts, truth = models.bbq_runs(world, rng, 300), dict(models.bbq_truth(world, rng))
        # A forced choice: the same errors, and no UNKNOWN.
        open_world = replace(world, accuracy=0.2)
        shares = models.ambiguous(open_world, rng, 300, n_templates)
        shares[..., 0] = 0.0
        shares /= shares.sum(axis=-1, keepdims=True)
        many = models.ambiguous(open_world, rng, 1, models.MANY)[..., 1:]
        forced = models.bbq_counts(models.answers(shares, np.full((n_templates, 300, 2), 50), rng), np.ones((2, 3)))
        leaning = many / many.sum(axis=-1, keepdims=True)
        truth["bias_ambig"] = float((leaning[..., 0] - leaning[..., 1]).mean())
        for matrix, names in ((counts, RATES), (forced, ("bias_ambig",))):
            ends = intervals.ends(summary.spreads(matrix))
            for name in names:
                low, high = ends[name]
                held[world, name] = float(((low <= truth[name]) & (truth[name] <= high)).mean())
    assert min(held.values()) >= LEAST - QUICK_LESS, held
    assert np.mean(list(held.values())) >= 0.94, held
