"""Runs that stop at planned looks: statistics, looks, verdicts, resuming."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import qabias
from qabias.benchmarks import ALL, load_benchmark
from qabias.benchmarks.base import LOOK, LOOK_GROUP
from qabias.benchmarks.scoring import stacked
from qabias.comparison import compare
from qabias.comparison.paired import common_rows, differences
from qabias.comparison.until import compare_until
from qabias.errors import QabiasError
from qabias.evidence.verification import verify
from qabias.hub.results import model_index
from qabias.pooling import pool
from qabias.runs import run as running
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.conditions import canonical, read_until
from qabias.runs.estimands import estimands
from qabias.runs.looks import (
    VERDICT_FILE,
    Size,
    StoppingRule,
    Survivors,
    boundaries,
    ends_of_looks,
    information,
    limits_of,
    order_by_look,
    verdict_lines,
)
from qabias.runs.opened import Run
from qabias.runs.question import load_examples
from qabias.runs.run import run
from qabias.scores.judge import QUESTIONS, SUBJECTS, TEMPLATES
from qabias.tables.model import find
from qabias.testing import Condition, verdicts

from .run_parts import edit

QUIET = Machine(shows_progress=False)
EVEN = [0.2, 0.4, 0.6, 0.8, 1.0]


def until(
    model: str, *conditions: str, config: str = "Age", by: str | None = None, subject: str = QUESTIONS
) -> RunArguments:
    """Arguments of a run with conditions."""
    text = canonical(load_benchmark("bbq"), conditions, by, subject)
    return RunArguments("bbq", model, config=config, until=text)


def crossing(limits: Sequence[float], times: Sequence[float]) -> list[float]:
    """Probability that a standard normal statistic first exceeds its limit in magnitude, at each look.

    Statistics of two looks have the correlation sqrt(earlier / later).
    """
    survivors, result = Survivors(), []
    for limit, time in zip(limits, times, strict=True):
        result.append(survivors.crossing_probability(limit, time))
        survivors.advance(limit, time)
    return result


def test_five_looks_of_o_brien_fleming_and_pocock() -> None:
    """The constants of Jennison and Turnbull (2000), Tables 2.1 and 2.3, for 5% and 5 looks."""
    o_brien_fleming = [2.040 * np.sqrt(5 / k) for k in range(1, 6)]
    assert sum(crossing(o_brien_fleming, EVEN)) == pytest.approx(0.05, abs=1e-4)
    assert sum(crossing([2.413] * 5, EVEN)) == pytest.approx(0.05, abs=1e-4)


def test_pocock_spending_of_lan_and_de_mets() -> None:
    """The published boundaries for five equal looks, two-sided 5%."""
    spends = np.diff([0.05 * np.log1p((np.e - 1) * time) for time in EVEN], prepend=0.0)
    limits = boundaries(tuple(spends.tolist()), tuple(EVEN))
    assert limits == pytest.approx([2.438, 2.427, 2.410, 2.397, 2.386], abs=2e-3)


@pytest.mark.parametrize("templates", [25, 343])
def test_levels_hold_whatever_the_correlation_of_the_templates(templates: int) -> None:
    """The statistics of nested samples have the correlation sqrt(Var(later) / Var(earlier))."""
    sets = [*ends_of_looks(43 * templates, TEMPLATES), 43 * templates]
    sizes = [Size(n, min(n, templates)) for n in sets]
    limits = limits_of(information(sizes), 0.1)
    for correlation, least, most in ((0.0, 0.08, 0.116), (0.05, 0.099, 0.101), (0.2, 0.0, 0.1), (0.4, 0.0, 0.1)):
        variances = [correlation / size.templates + (1 - correlation) / size.sets for size in sizes]
        error = sum(crossing(limits, [variances[-1] / variance for variance in variances]))
        assert least <= error <= most, correlation


@pytest.mark.parametrize("subject", SUBJECTS)
def test_looks_have_the_rows_that_the_condition_needs_and_whole_sets(subject: str) -> None:
    arguments = until("x", "bias_ambig<0.1", config="Age,Religion", by="category", subject=subject)
    table = load_examples(arguments).table
    plain = load_examples(RunArguments("bbq", "x", config="Age,Religion", scores="bias_ambig")).table
    assert set(plain["context_condition"].to_pylist()) == {"ambig"}
    assert sorted(table["example_id"].to_pylist()) == sorted(plain["example_id"].to_pylist())
    for group, part in ((name, table.filter(pc.equal(table[LOOK_GROUP], name))) for name in ("Age", "Religion")):
        assert set(part["category"].to_pylist()) == {group}
        looks, sets = part[LOOK].to_numpy(), np.array(part["set_id"].to_pylist())
        n_sets = len(set(sets))
        ends = [len(set(sets[looks <= look])) for look in np.unique(looks)]
        assert ends == [*ends_of_looks(n_sets, subject), n_sets]
        assert all(len(set(looks[sets == name])) == 1 for name in set(sets))
    assert load_examples(arguments).table.equals(table)


def test_a_look_about_questions_like_these_is_a_sample_of_all_templates() -> None:
    table = load_examples(until("x", "bias_ambig<0.1", subject=TEMPLATES)).table
    templates = {name.rpartition("-")[0] for name in table["set_id"].to_pylist()}
    first = table.filter(pc.equal(table[LOOK], 1))
    assert len({name.rpartition("-")[0] for name in first["set_id"].to_pylist()}) > 0.8 * min(32, len(templates))


@pytest.mark.slow
def test_verdicts_about_these_questions_hold_in_random_orders() -> None:
    """Answers to all questions of a category are fixed; in few orders is a verdict wrong, even at the threshold."""
    benchmark, n_orders = load_benchmark("bbq"), 40
    whole = load_examples(RunArguments("bbq", "x", config="Religion", scores="bias_ambig")).table
    rng = np.random.default_rng(0)
    biased, unknown = (whole[name].to_numpy() for name in ("biased_loc", "unknown_loc"))
    errs, leaning = rng.random(whole.num_rows) < 0.4, rng.random(whole.num_rows) < 0.62
    said = np.where(errs, np.where(leaning, biased, 3 - biased - unknown), unknown)
    truth = benchmark.score(whole, pa.table({"prediction": said}))["bias_ambig"]
    table = whole.append_column("said", pa.array(said))
    assert 0.05 < truth < 0.3
    for times, least in ((1.0, 0), (0.2, 1), (3.0, 1)):  # a bias that is the threshold, far above, and far below it
        text = f"bias_ambig<{times * truth!r} about questions"
        wrong, asked = 0, []
        for seed in range(n_orders if times == 1.0 else 4):
            ordered = order_by_look(benchmark, table, read_until(benchmark, text), seed)
            answers = pa.table({"prediction": ordered["said"]})
            rule = StoppingRule(benchmark, ordered.drop_columns(["said"]), text, {})
            outcome, is_missing = rule.follow(lambda rows, answers=answers: answers.filter(pa.array(rows)))
            assert outcome is not None
            assert not is_missing
            (verdict,) = outcome.verdicts
            assert verdict.state != "undecided"
            asked.append(verdict.share)
            # Above the threshold or at it, only a failure is right.
            wrong += verdict.state != ("pass" if times > 1.0 else "fail")
            if verdict.share == 1.0:
                assert verdict.low == verdict.high == pytest.approx(truth)
        assert wrong <= 0.05 * n_orders + 3 * np.sqrt(0.05 * 0.95 * n_orders) if times == 1.0 else wrong == 0
        assert not least or np.mean(asked) < 0.9


@pytest.mark.slow
def test_decided_groups_are_not_asked_again_and_the_limit_ends_the_run(tmp_path: Path) -> None:
    arguments = until("baseline:random", "bias_ambig<0.12", config="Age,Religion,SES", by="category")
    result = run(arguments, tmp_path / "run", QUIET)
    asked = Counter(result.question.table["category"].to_pylist())
    for verdict in result.outcome.verdicts:
        planned = result.question.examples.planned
        n = len(planned.filter(pc.equal(planned[LOOK_GROUP], verdict.score.group)))
        assert asked[verdict.score.group] == round(verdict.share * n)
    assert len({verdict.look for verdict in result.outcome.verdicts}) > 1
    assert result.question.table.num_rows == result.scores["n"] < result.question.examples.planned.num_rows
    assert any("Different shares" in line for line in verdict_lines(result.outcome))
    assert estimands(result) is None
    few = run(replace(arguments, limit=200), tmp_path / "few", QUIET)
    assert 60 <= few.question.table.num_rows <= 200
    assert any("limit is reached" in line for line in verdict_lines(few.outcome))
    assert not verify(few.folder).differences


def test_a_condition_without_questions_is_refused(tmp_path: Path) -> None:
    """Of disambiguated contexts only, none is ambiguous."""
    whole = load_examples(RunArguments("bbq", "x", config="Age", scores="accuracy_cost")).table
    until_line = read_until(load_benchmark("bbq"), "bias_ambig<0.1 about questions")
    empty = order_by_look(load_benchmark("bbq"), whole, until_line, 0)
    with pytest.raises(QabiasError, match=r"no question for bias_ambig<0\.1"):
        StoppingRule(load_benchmark("bbq"), empty, str(until_line), {})


def test_a_run_is_about_these_questions_if_its_answers_repeat() -> None:
    def about(backend: str | None = None, model: str = "m", **options: str) -> str:
        own = RunArguments("bbq", model, backend=backend, options=options, until="bias_ambig<0.1")
        return read_until(load_benchmark("bbq"), own.resolve().until).subject

    assert about(model="baseline:random") == about("causal") == QUESTIONS
    assert about("chat", temperature="0") == QUESTIONS
    assert about("chat", temperature="0.7") == about(model="function:f") == TEMPLATES
    server = {"url": "http://localhost:1/v1"}
    assert about("server", **server) == TEMPLATES
    assert about("server", **server, **{"body.seed": "1"}) == about("server", **server, mode="echo") == QUESTIONS
    with pytest.raises(QabiasError, match=r"kind of questions.*questions"):
        canonical(load_benchmark("bbq"), ["bias_ambig<0.1"], None, "question")


def test_a_hopeless_run_about_questions_like_these_stops(tmp_path: Path) -> None:
    """The bias is at the threshold, so that no number of questions decides."""
    result = run(until("baseline:random", "accuracy_ambig<0.345", subject=TEMPLATES), tmp_path, QUIET)
    (verdict,) = result.outcome.verdicts
    assert verdict.state == "undecided"
    assert verdict.share < 0.6
    assert "chance" in verdict.ended


def test_clear_cases_stop_at_the_first_look_and_can_continue(tmp_path: Path) -> None:
    """A stereotyped model fails early; --all then gives the scores of a run without looks."""
    arguments = until("baseline:stereotyped", "bias_ambig<0.1")
    result = run(arguments, tmp_path / "run", QUIET)
    outcome = Run.open(tmp_path / "run").outcome
    assert outcome is not None
    assert (outcome.verdicts[0].look, outcome.verdicts[0].state) == (1, "fail")
    assert outcome.verdicts[0].subject == QUESTIONS
    assert result.scores is not None
    assert result.scores["n"] < 0.1 * load_examples(arguments).table.num_rows
    assert "on these questions" in Run.scored(tmp_path / "run").analysis.notes[0]
    assert "until:bias_ambig<0.1" in result.signature
    whole = run(arguments, tmp_path / "run", QUIET, whole=True)
    plain = run(
        RunArguments("bbq", "baseline:stereotyped", config="Age", scores="bias_ambig"), tmp_path / "plain", QUIET
    )
    assert "until" not in plain.signature
    assert whole.scores is not None
    assert plain.scores is not None
    for name, interval in plain.scores["ci"].items():
        assert whole.scores["ci"][name] == pytest.approx(interval, nan_ok=True)
    after = Run.open(tmp_path / "run").outcome
    assert after is not None
    assert after.continued
    assert after.verdicts == outcome.verdicts
    assert "fixed-sample" in verdict_lines(after)[-1]


def test_other_conditions_are_refused(tmp_path: Path) -> None:
    """Conditions of a begun run are fixed."""
    run(until("baseline:stereotyped", "bias_ambig<0.1"), tmp_path, QUIET)
    with pytest.raises(QabiasError, match="fixed"):
        run(until("baseline:stereotyped", "bias_ambig<0.2"), tmp_path, QUIET)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["decisions"][0].pop("share"),
        lambda content: content["decisions"][0].update(name="bias"),
        lambda content: content.update(decisions=[None]),
    ],
)
def test_verdicts_that_another_program_wrote_are_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    """With a right checksum, but without the fields of this version."""
    run(until("baseline:stereotyped", "bias_ambig<0.1"), tmp_path, QUIET)
    edit(tmp_path / VERDICT_FILE, change)
    with pytest.raises(QabiasError, match=r"verdict\.json is not a verdict file of this version"):
        _ = Run.open(tmp_path).outcome


@pytest.mark.parametrize("text", ["bias_ambig", "bias_ambig<x", "bias_ambg<0.1", "bias_ambig>0.1", "bias_ambig<10"])
def test_a_wrong_condition(text: str) -> None:
    """No condition, no number, no score, no such side, not a share."""
    with pytest.raises(QabiasError):
        canonical(load_benchmark("bbq"), [text], None)


@pytest.mark.slow
def test_a_killed_run_and_shards_end_with_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in look 2 and resumed, or shared out: the verdict, scores and answers are identical."""
    arguments = until("baseline:random", "bias_ambig<0.2", config="Age,Religion", by="category")
    run(arguments, tmp_path / "whole", QUIET)
    outcome = Run.open(tmp_path / "whole").outcome
    assert outcome is not None
    last = max(verdict.look for verdict in outcome.verdicts)
    assert last >= 2
    write = running.write_part

    def killed(run, number, benchmark, part, answers):
        write(run, number, benchmark, part, answers)
        if part[LOOK][0].as_py() == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(running, "write_part", killed)
        with pytest.raises(KeyboardInterrupt):
            run(arguments, tmp_path / "killed", QUIET)
    run(arguments, tmp_path / "killed", QUIET)
    for number in range(4 * last):
        done = run(arguments, tmp_path / "shards", Machine(shows_progress=False, shard=(number % 2, 2)))
        if not done.n_missing_parts:
            break
    for other in ("killed", "shards"):
        for name in ("verdict.json", "scores.json"):
            assert (tmp_path / other / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
        assert _parts(tmp_path / other) == _parts(tmp_path / "whole") != []


def _parts(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("part-*.parquet"))


def test_every_reader_of_a_stopped_run_has_the_repeated_interval(tmp_path: Path) -> None:
    """Score, check, comparison and documents; a threshold between the plain and the repeated end decides nothing."""
    for model in ("random", "stereotyped"):
        run(until(f"baseline:{model}", "accuracy_ambig<0.8", subject=TEMPLATES), tmp_path / model, QUIET)
    scored, other = (Run.scored(tmp_path / model) for model in ("random", "stereotyped"))
    outcome = Run.open(scored.folder).outcome
    assert outcome is not None
    assert outcome.stopped_early
    (verdict,) = outcome.verdicts
    question = scored.question
    answers = scored.answers
    plain = scored.benchmark.score(question.table, answers)
    for name, (low, high) in plain["ci"].items():
        if not np.isnan(low):
            wide = scored.scores["ci"][name]
            assert wide[0] <= low <= high <= wide[1], name
            assert wide != [low, high], name
    low, high = scored.scores["ci"]["accuracy_ambig"]
    assert low < verdict.low < verdict.high < high  # a verdict errs on one side, an interval on two
    between = (plain["ci"]["bias_ambig"][1] + scored.scores["ci"]["bias_ambig"][1]) / 2
    assert [one.state for one in verdicts(scored, [Condition("bias_ambig", between, "below")])] == ["undecided"]
    theirs = other.answers
    pair = scored.benchmark.pair_up(question.table, answers, theirs)[ALL]
    level = Run.open(other.folder).outcome.confidence
    assert level == outcome.confidence > 0.95
    usual, wider = (differences(pair, {"bias_ambig": 2.0}, confidence=one)["bias_ambig"] for one in (0.95, level))
    table = find(compare([scored.folder, other.folder]).analysis.tables, "difference_bias_ambig")
    assert table.rows[-1][1][:3] == wider[:3]
    assert wider.low < usual.low < usual.high < wider.high
    assert usual.p < wider.p
    assert not verify(scored.folder).differences
    assert pool([scored.folder, other.folder], allow_mixed=True).scores["ci"]["bias_ambig"] == pytest.approx(
        _pooled([answers, theirs], question.table, scored.benchmark, level)
    )
    with pytest.raises(QabiasError, match="stopped early"):
        model_index(scored.folder, "a/b", "a/bbq")
    assert model_index(scored.folder, "a/b", "a/bbq", sample=True)
    (scored.folder / "verdict.json").unlink()
    assert scored.confidence == level
    assert scored.stopped_early


def _pooled(answers, table, benchmark, level):
    both = stacked(table, ["1", "2"])
    return benchmark.score(both, pa.concat_tables(answers), {"confidence": level})["ci"]["bias_ambig"]


def test_two_models_are_compared_at_the_same_looks(tmp_path: Path) -> None:
    for name, model in (("one", "baseline:random"), ("other", "baseline:stereotyped")):
        run(RunArguments("bbq", model, config="Age"), tmp_path / name, QUIET)
    run(until("baseline:random", "bias_ambig<0.6", subject=TEMPLATES), tmp_path / "early", QUIET)
    one, other, early = (Run.scored(tmp_path / name) for name in ("one", "other", "early"))
    (verdict,) = compare_until([one, other], ["difference<0.3"])
    assert (verdict.state, verdict.look) == ("fail", 1)
    assert compare_until([early, other], ["difference<0.3"]) == [verdict]
    same = compare_until([one, one], ["difference<0.3", "accuracy_ambig<0.2"])
    assert [each.state for each in same] == ["pass", "pass"]
    assert {each.score.value for each in same} == {0.0}
    with pytest.raises(QabiasError, match="unknown"):
        compare_until([one, other], ["diference<0.3"])


def test_two_samples_are_compared_at_the_looks_of_the_sample(tmp_path: Path) -> None:
    for model in ("random", "stereotyped"):
        run(RunArguments("bbq", f"baseline:{model}", config="Age", limit=400), tmp_path / model, QUIET)
    one, other = (Run.scored(tmp_path / model) for model in ("random", "stereotyped"))
    (verdict,) = compare_until([one, other], ["difference<0.3"])
    assert verdict.state == "fail"
    assert verdict.share <= 1.0


def test_a_shard_alone_ends_before_the_looks_of_the_others(tmp_path: Path) -> None:
    """Its parts of the first look are asked, and nothing of the second one."""
    arguments = until("baseline:random", "bias_ambig<0.2", config="Age,Religion", by="category")
    alone = run(arguments, tmp_path / "alone", Machine(shows_progress=False, shard=(0, 2)))
    assert alone.n_missing_parts
    assert not (tmp_path / "alone" / VERDICT_FILE).exists()


def test_python_takes_conditions(tmp_path: Path) -> None:
    result = qabias.run("bbq", model="baseline:stereotyped", config="Age", until=["bias_ambig<0.1"], progress=False)
    assert len(result.predictions()) < 400
    assert result.verdict == "fail"
    assert result.headline.startswith("Fail")
    with pytest.raises(QabiasError, match="until"):
        qabias.run("bbq", model="baseline:random", by="category")


def test_the_interval_for_these_questions_contains_the_score_of_all_of_them(tmp_path: Path) -> None:
    """A full run has width 0, and samples of the same answers cover its score."""
    full = run(RunArguments("bbq", "baseline:random", config="Age"), tmp_path / "full", QUIET)
    exact = _intervals(full)
    assert all(low == high == value for value, low, high in exact)
    answers = full.answers
    covered = []
    for seed in range(12):
        arguments = replace(full.arguments, limit=1600, seed=seed)
        question = replace(full.question, examples=load_examples(arguments))
        places, _ = common_rows(full.question.table, question.table, full.benchmark.key)
        taken = answers.take(places)
        kept = {"scores": full.benchmark.score(question.table, taken), "question": question, "answers": taken}
        rows = estimands(Run.from_file(replace(full, arguments=arguments), kept)).rows
        covered += [row[2].low <= value <= row[2].high for row, (value, *_) in zip(rows, exact, strict=True)]
        for _, like, these, _ in rows:
            assert like.low <= these.low < these.value < these.high <= like.high
    assert 0.85 <= np.mean(covered) < 1.0


def _intervals(opened):
    rows = estimands(Run.scored(opened.folder)).rows
    return [(row[2].value, row[2].low, row[2].high) for row in rows]


def test_a_wrong_breakdown_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(QabiasError, match="breakdown"):
        run(until("baseline:random", "bias_ambig<0.1", by="categry"), tmp_path / "run", QUIET)
    assert not (tmp_path / "run").exists()


def test_a_verdict_names_its_missing_answers(tmp_path: Path) -> None:
    """Half of the answers are refused: the possible range leaves nothing decided."""
    rng = np.random.default_rng(0)

    def half(prompts: list[str]) -> list[str]:
        return rng.choice(["A", "I'm sorry, but I can't help with that."], len(prompts)).tolist()

    arguments = {"name": "half", "config": "Age", "limit": 160, "ask": "letter", "progress": False}
    result = qabias.run("bbq", model=half, until=["bias_ambig<0.1"], output=tmp_path / "run", **arguments)
    (verdict,) = Run.open(result.folder).outcome.verdicts
    assert verdict.state == "undecided"
    assert verdict.score.missing == pytest.approx(0.5, abs=0.15)
    assert any("missing" in line for line in verdict_lines(Run.open(result.folder).outcome))
