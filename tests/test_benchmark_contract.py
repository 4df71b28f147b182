"""What every benchmark keeps to: each one that is installed is found and tested by itself.

A run of a baseline on a sample of the first configuration stands for all runs. A new benchmark needs no entry here;
`python -m pytest tests/test_benchmark_contract.py -k NAME` tests one that another package installs.
"""

from __future__ import annotations

import functools
import io
import math
import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import qabias
from qabias.benchmarks import (
    ALL,
    Benchmark,
    base,
    benchmark_names,
    choose_format,
    headline,
    load_benchmark,
    make_origin,
)
from qabias.benchmarks.prompt_format import Example, PromptFormat
from qabias.comparison import compare
from qabias.errors import QabiasError
from qabias.report.content import with_prompts
from qabias.report.terminal import rates, show_template
from qabias.report.writing import write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.opened import Run
from qabias.runs.question import load_examples
from qabias.runs.run import run
from qabias.runs.sampling import sample
from qabias.scorers.base import OptionScores
from qabias.scorers.baseline import CERTAINTY, KINDS, BaselineScorer
from qabias.scorers.registry import kinds, scorers_for
from qabias.scores.score import Score, reasons
from qabias.support.arrow import plain
from qabias.support.files import strict
from qabias.tables.model import KINDS as COLUMN_KINDS
from qabias.tables.model import Analysis, read_analysis
from qabias.tables.terminal import Console

from . import jbbq_files
from .conftest import ROOT

pytestmark = pytest.mark.filterwarnings("ignore:.*no answer:UserWarning")

LIMIT = 120
SMALL = 24


class Case(NamedTuple):
    """A benchmark, and a run of a baseline on a sample of it."""

    benchmark: Benchmark
    folder: Any
    whole: pa.Table
    table: pa.Table
    answers: pa.Table
    scores: Mapping[str, Any]
    analysis: Analysis

    @property
    def facts(self):
        return self.benchmark.facts

    @property
    def format(self):
        return self.benchmark.formats[self.benchmark.default_format(BaselineScorer("random"))]


# A configuration without a million rows.
SHORT = {"unqover": ["religion"]}


def first_here(benchmark: Benchmark) -> str:
    """The first configuration whose texts are at hand: published files may not be."""
    for config in (*SHORT.get(benchmark.name, ()), *benchmark.configs):
        try:
            load_examples(RunArguments(benchmark.name, "baseline:random", config, benchmark.sources[0]))
        except QabiasError:
            continue
        return config
    pytest.skip(f"{benchmark.name}: no file of it is at hand")


@pytest.fixture(scope="module")
def mirror():
    """The mirror of the published files, for benchmarks that have no texts of their own."""
    folder = ROOT.parent / "shared" / "upstream"
    with pytest.MonkeyPatch.context() as patch:
        if "QABIAS_UPSTREAM" not in os.environ and folder.is_dir():
            patch.setenv("QABIAS_UPSTREAM", str(folder))
        yield


# Benchmarks that read the user's own files, with what writes invented ones into a folder.
BROUGHT = {"jbbq": jbbq_files.write_files}


@pytest.fixture(scope="module", params=benchmark_names())
def case(request, tmp_path_factory, mirror):
    with pytest.MonkeyPatch.context() as patch:
        if request.param in BROUGHT:
            patch.setenv("QABIAS_UPSTREAM", str(BROUGHT[request.param](tmp_path_factory.mktemp("brought"))))
        yield make_case(load_benchmark(request.param), tmp_path_factory)


def make_case(benchmark: Benchmark, tmp_path_factory) -> Case:
    config = first_here(benchmark)
    folder = tmp_path_factory.mktemp(benchmark.name)
    arguments = RunArguments(benchmark.name, "baseline:random", config, benchmark.sources[0], limit=LIMIT)
    result = run(arguments, folder)
    return Case(
        benchmark,
        folder,
        load_examples(RunArguments(benchmark.name, "baseline:random", config, benchmark.sources[0])).table,
        result.question.table,
        result.answers,
        qabias.read(folder).scores,
        read_analysis(folder / "analysis.json"),
    )


def answered_by(case: Case, kind: str, table: pa.Table) -> pa.Table:
    """The answers of a baseline, as a run keeps them; a kind that plays no part raises `QabiasError`."""
    return pa.table(case.benchmark.answer(table, BaselineScorer(kind), case.format, "none"))


def plays_a_part(case: Case, kind: str) -> bool:
    """Whether a kind of baseline can answer."""
    try:
        answered_by(case, kind, case.table.slice(0, 1))
    except QabiasError:
        return False
    return True


def all_scores(case: Case, scores: Mapping[str, Any]):
    """The scores of every group that a result has."""
    return [*case.benchmark.groups(scores).values(), *headline.scored_groups(case.benchmark, scores).values()]


# Facts


@pytest.mark.slow
def test_every_name_is_a_measure_with_what_is_needed_where_it_is_named(case):
    facts = case.facts
    names = [measure.name for measure in facts.measures]
    assert len(set(names)) == len(names)
    for field in ("compared", "columns", "tiles", "tasks"):
        chosen = getattr(facts, field)
        assert chosen, field
        assert len(set(chosen)) == len(chosen)
        assert set(chosen) <= set(names), field
    assert {measure.name for measure in facts.measures if measure.heatmap} <= set(facts.compared)
    assert any(measure.tile for measure in facts.chosen(facts.tiles))
    for measure in facts.measures:
        assert measure.title
        assert measure.kind in ("share", "signed", "number")
        assert measure.kind in COLUMN_KINDS
    assert all(measure.counts for measure in facts.chosen(facts.compared)), "a comparison shows how many examples"
    assert all(measure.heading for measure in facts.chosen(facts.columns)), "the terminal needs a heading"


def test_the_facts_are_whole(case):
    facts = case.facts
    for text in (facts.dataset, facts.caption, facts.row, facts.group, facts.task_type, facts.notes.limit):
        assert text
    assert case.benchmark.title
    assert len(facts.clusters) == 2
    assert facts.citations
    assert all(isinstance(text, str) and "<cite>" in text for text in facts.citations)
    assert facts.intro.is_file()
    assert set(case.benchmark.default_configs.values()) <= set(case.benchmark.configs)
    assert set(case.benchmark.rescored) <= set(benchmark_names())


def test_a_format_without_context_has_facts_and_the_other_way_round(case):
    facts = case.facts
    about = facts.question_only
    assert (about is not None) == any(one.question_only for one in case.benchmark.formats.values())
    assert headline.meaningful(case.benchmark, False) == facts.chosen(facts.compared)
    if about is not None:
        column, value = about.rows
        assert value in case.table[column].to_pylist()
        assert all(about.count in of for of in all_scores(case, case.scores))
        assert [measure.name for measure in headline.meaningful(case.benchmark, True)] == list(about.measures)
        assert about.source
        assert about.note
        assert about.remark


def test_the_tables_that_a_comparison_shows_itself_exist(case):
    names = {table.name for table in case.analysis.tables}
    for prompt_format in case.benchmark.formats.values():
        if prompt_format.question_only:
            analysis = case.benchmark.analyse(base.Scored(case.table, case.answers, case.scores, prompt_format))
            names |= {table.name for table in analysis.tables}
    assert set(case.facts.own_tables) <= names


# Scores


def test_a_result_has_all_scores_with_their_counts(case):
    facts = case.facts
    measures = [measure for measure in facts.chosen(facts.compared) if not measure.lacks]
    needed = {name for measure in measures for name in (measure.name, *measure.counts)}
    assert all(needed <= {*group} for group in case.benchmark.groups(strict(case.scores)).values())
    for of in all_scores(case, case.scores):
        assert of["n"] > 0
        assert type(of[facts.clusters[1]]) is int
    for measure in facts.measures:
        found = [of for of in all_scores(case, case.scores) if measure.name in of]
        assert found, f"no result has {measure.name}"
        for of in found:
            needed = {*measure.counts, *(count for rule in measure.undefined for count in rule.counts)}
            assert needed <= set(of), measure.name


def test_a_score_on_the_first_screen_says_what_missing_answers_could_change(case):
    measures = [measure for measure in case.facts.chosen(case.facts.tiles) if measure.missing]
    if not measures or "prediction" not in case.answers.column_names:
        pytest.skip("no score counts its missing answers")
    given = case.answers["prediction"].to_pylist()
    some = pa.array(
        [None if number % 3 == 0 else one for number, one in enumerate(given)], case.answers["prediction"].type
    )
    lacking = case.answers.set_column(case.answers.column_names.index("prediction"), "prediction", some)
    scores = case.benchmark.score(case.table, lacking)
    assert {measure.name for measure in measures} <= set(scores["range"])


def test_the_whole_comes_last_and_parts_and_groups_are_found_where_they_are_said_to_be(case):
    groups = case.benchmark.groups(case.scores)
    assert ALL not in list(groups)[:-1]
    assert groups
    places = [(case.benchmark.group_path(name), of) for name, of in groups.items()]
    for pointer, of in headline.scored_groups(case.benchmark, case.scores).items():
        places.append(([name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:]], of))
    for path, of in places:
        assert path is None or functools.reduce(lambda found, key: found[key], path, case.scores) is of


def undefined(scores: Mapping[str, Any], at: str = "") -> set[str]:
    """JSON pointers of what is None, and of intervals whose ends are."""
    found: set[str] = set()
    for name, value in scores.items():
        path = f"{at}/{name.replace('~', '~0').replace('/', '~1')}"
        if value is None or (at.endswith("/ci") and isinstance(value, list) and None in value):
            found.add(path)
        elif isinstance(value, Mapping):
            found |= undefined(value, path)
    return found


@pytest.mark.slow
def test_every_undefined_score_has_a_reason(case):
    tables = [case.table, case.table.slice(0, 1)]
    for column in case.facts.view.conditions:
        for value in case.table[column].unique().to_pylist():
            tables.append(case.table.filter(pa.array([one == value for one in case.table[column].to_pylist()])))
    n_scored = 0
    played = {kind for kind in KINDS if plays_a_part(case, kind)}
    for table in tables:
        for kind in filter(played.__contains__, ("uniform", "random", "unknown", "stereotyped", "first")):
            try:
                scores = case.benchmark.score(table, answered_by(case, kind, table))
            except QabiasError:  # the metric refuses sets that are not whole
                continue
            n_scored += 1
            found = reasons(case.facts, scores)
            assert set(found) == undefined(strict(scores))
            assert found == reasons(case.facts, strict(scores))
            assert not [pointer for pointer, reason in found.items() if "a ratio of nothing" in reason]
    assert n_scored >= 4


def known_bias(measure):
    """The bias of answers that always follow the stereotype."""
    is_part = measure.name.endswith(("_abstention", "_imbalance"))  # these answers name wrong persons only
    if not measure.name.startswith(("bias", "preference")) or measure.kind != "signed" or is_part:
        return None
    return CERTAINTY - (1 - CERTAINTY) / 2 if "probability" in measure.name else 1.0


KNOWN = {
    # Always right: accuracies are 1.
    "oracle": lambda measure: 1.0 if measure.name.startswith("accuracy") and measure.kind == "share" else None,
    # Always with the stereotype, or always against it; the other two answers share what is left of the probability.
    "stereotyped": lambda measure: known_bias(measure),
    "anti-stereotyped": lambda measure: None if known_bias(measure) is None else -known_bias(measure),
    # No preference: what has no direction is 0.
    "uniform": lambda measure: 0.0 if measure.name in ("mu", "eta", "delta", "epsilon") else None,
}


def test_baselines_score_as_is_known(case):
    n_checked = 0
    for kind, known in KNOWN.items():
        if not plays_a_part(case, kind):
            continue
        scores = case.benchmark.score(case.table, answered_by(case, kind, case.table))
        for measure in case.facts.measures:
            for of in case.benchmark.groups(scores, measure).values():
                if known(measure) is not None and not math.isnan(of[measure.name]):
                    assert of[measure.name] == pytest.approx(known(measure), abs=1e-6), (kind, measure.name)
                    n_checked += 1
    assert n_checked


# Comparison


def test_pairs_have_the_groups_of_the_scores_and_the_same_scores(case):
    pairs = case.benchmark.pair_up(case.table, case.answers, case.answers)
    assert list(pairs) == list(case.benchmark.groups(case.scores))
    for measure in case.facts.chosen(case.facts.compared):
        for name, of in case.benchmark.groups(case.scores, measure).items():
            pair = pairs[name]
            assert pair.n_clusters == of[case.facts.clusters[1]]
            once = np.ones((1, pair.n_clusters))
            for scored in (pair.first(once), pair.second(once), *pair.exchanged(once)):
                assert scored[measure.name].shape == (1,)
                np.testing.assert_allclose(scored[measure.name][0], of[measure.name], atol=1e-6)


def test_forms_are_sources(case):
    if case.benchmark.family:
        assert case.benchmark.language(case.benchmark.configs[-1])
    forms = case.benchmark.forms
    if forms is None:
        return
    assert {*forms.published, *forms.parallel} <= set(case.benchmark.sources)
    assert not set(forms.parallel) & set(forms.published)
    assert forms.basis
    assert forms.topic in case.table.column_names
    stereotypes = forms.stereotypes(case.table)
    assert len(stereotypes) == case.table.num_rows
    assert {name for name, _ in stereotypes}


@pytest.mark.slow
def test_a_run_does_not_differ_from_itself(case):
    comparison = compare([case.folder, case.folder])
    tables = {table.name: table for table in comparison.analysis.tables}
    for name in case.facts.compared:
        table = tables[f"difference_{name}"]
        kinds_of_columns = [column.kind for column in table.columns]
        assert table.rows
        for row in table.rows:
            for value, kind in zip(row, kinds_of_columns, strict=True):
                if isinstance(value, Score) and value.value is not None:
                    assert value.value == 0
                    assert (value.low or 0) == pytest.approx(-(value.high or 0))
                elif kind == "p":
                    assert value in (1, None)
    heatmaps = {measure.name for measure in case.facts.measures if measure.heatmap}
    assert heatmaps <= {name.removesuffix("_by_model") for name in tables}
    assert not set(case.facts.own_tables) & set(tables)


# Examples and units


def test_the_key_identifies_an_example(case):
    keys = pa.table({name: plain(case.whole[name]) for name in case.benchmark.key})
    assert keys.group_by(keys.column_names).aggregate([]).num_rows == keys.num_rows


def test_units_are_neighbours_of_one_stratum(case):
    unit, stratum = case.benchmark.units(case.whole)
    assert unit.shape == stratum.shape == (case.whole.num_rows,)
    assert unit.dtype == stratum.dtype == np.int64
    starts = np.flatnonzero(np.diff(unit, prepend=-1))
    assert len(starts) == len(np.unique(unit)), "a unit comes back after another"
    assert unit.min() == stratum.min() == 0
    assert (stratum == np.repeat(stratum[starts], np.diff(np.append(starts, len(unit))))).all()


def test_a_sample_has_whole_units_in_proportion_to_the_strata_and_pairs_of_both_sides(case):
    benchmark, whole = case.benchmark, case.whole.append_column("row", pa.array(np.arange(case.whole.num_rows)))
    (unit, stratum), side = benchmark.units(whole), np.sign(benchmark.sides(whole))
    sizes, n_strata, last = np.bincount(unit), int(stratum.max()) + 1, whole.num_rows - 1
    both = np.isin(stratum, np.intersect1d(stratum[side > 0], stratum[side < 0]))
    blocks = sizes[unit] * np.where(both, 2, 1)
    # Most of a million rows takes seconds, and follows the same way.
    for limit in (1, blocks.min(), LIMIT, 5 * LIMIT, *((last // 3, last) if last < 100_000 else ())):
        rows, again = (sample(benchmark, whole, int(limit), 1)["row"].to_numpy() for _ in range(2))
        assert rows.tolist() == again.tolist()
        assert (np.diff(rows) > 0).all()
        assert len(rows) <= max(limit, blocks.max())
        assert np.isin(np.bincount(unit[rows], minlength=sizes.size) / sizes, (0, 1)).all()
        shares, drawn = (np.bincount(one, minlength=n_strata) for one in (stratum, stratum[rows]))
        shares = shares * len(rows) / len(stratum)
        # The discrepancy of a van der Corput sequence grows with the binary digits of its length.
        apart = np.ptp(drawn) if len(np.unique(benchmark.cells(whole))) < sizes.size else np.abs(drawn - shares).max()
        assert apart <= blocks.max() * (1 + np.log2(len(whole)) / 3)
        # Units without a partner are as many in a stratum as one side has more.
        sided, sets = (side != 0) & both, np.stack((stratum, unit, side))
        pairs = (np.unique(sets[:, some], axis=1) for some in (sided, rows[sided[rows]]))
        alone, uneven = (np.abs(np.bincount(one[0], one[2], n_strata)) for one in pairs)
        assert (uneven <= alone).all()


def test_answers_have_the_columns_that_the_metric_reads(case):
    assert set(case.benchmark.answer_columns) <= set(case.answers.column_names)
    assert set(case.benchmark.key) <= set(case.answers.column_names)
    assert case.answers.num_rows == case.table.num_rows
    read = {*case.benchmark.answer_columns, *case.benchmark.stored_columns}
    chosen = case.answers.select([name for name in case.answers.column_names if name in read])
    np.testing.assert_equal(strict(case.benchmark.score(case.table, chosen)), strict(case.scores))
    of_others = case.benchmark.score(case.table, case.answers.select(list(case.benchmark.answer_columns)))
    for measure in case.facts.measures:
        for name, of in case.benchmark.groups(of_others, measure).items():
            expected = case.benchmark.groups(case.scores, measure)[name]
            np.testing.assert_equal(of[measure.name], expected[measure.name])
            if measure.name not in of:
                assert measure.lacks


# Formats and scorers


def has_text(one: PromptFormat, example: Example) -> bool:
    """Whether a format makes a text; one for classifiers of pairs says that it makes none."""
    try:
        one.render(example)
    except QabiasError:
        return False
    return True


def test_formats_are_versioned_and_pure(case):
    benchmark = case.benchmark
    questions = [one for example in case.analysis.examples[:SMALL] for one in case.facts.view.questions(example)]
    assert len({one.signature for one in benchmark.formats.values()}) == len(benchmark.formats)
    for name, one in benchmark.formats.items():
        assert one.name == name
        assert one.version >= 1
        assert one.description
        if not has_text(one, questions[0]):
            assert not all(kinds()[scorer].reads_prompt for scorer in scorers_for(benchmark.interfaces))
            continue
        for question in questions:
            given = dict(question)
            prefix, options = one.render(question)
            assert one.render(given) == (prefix, options)
            assert given == question, "a format changes its example"
            assert prefix == prefix.rstrip(" ")
            assert len(set(options)) == len(options)
            # A full-width mark at the end of a prompt has no space behind it.
            assert all((option[:1].isspace() or not prefix[-1].isascii()) and option.strip() for option in options)
            assert len(one.texts(question)) == (len(options) if one.pairs else 1)


def test_the_report_shows_every_example_with_its_prompt(case):
    scored = Run.scored(case.folder)
    examples = with_prompts(scored).examples
    assert examples
    assert all(example["prompt"] for example in examples)
    assert case.analysis.how_chosen
    page = write_report_of(case.folder).read_text("utf-8")
    for text in (*case.facts.citations, case.facts.clusters[0]):
        assert text in page


def test_all_examples_are_shown_like_those_of_the_analysis(case):
    key = case.benchmark.key
    shown = strict(list(case.benchmark.examples(case.table, case.answers)))
    by_key = {tuple(example[name] for name in key): example for example in shown}
    assert list(by_key) == list(zip(*(case.table[name].to_pylist() for name in key), strict=True))
    assert case.analysis.examples
    for example in case.analysis.examples:
        assert by_key[tuple(example[name] for name in key)] == example


def even(request):
    """Equal scores of all options."""
    n = len(request.options)
    return OptionScores(np.full(n, -math.log(n)), np.ones(n, np.int32), np.ones(n, np.int32))


FAKES = {
    "options": {"score": lambda requests: list(map(even, requests))},
    "choices": {"score": lambda requests: list(map(even, requests))},
    "texts": {"samples": 1, "generate": lambda prompts, keys: [("none of them",)] * len(prompts)},
    "pairs": {"classify": lambda pairs: np.full((len(pairs), 3), 1 / 3)},
    "spans": {"score": lambda items: np.full((len(items.context_of), 2), 0.5, np.float32)},
}


def test_every_scorer_that_fits_has_a_format_and_answers_in_it(case):
    benchmark = case.benchmark
    table = sample(benchmark, case.table, SMALL, 0)
    names = scorers_for(benchmark.interfaces)
    assert "baseline" in names
    n_answered = 0
    for name in names:
        kind = kinds()[name]
        assert base.whole_config(benchmark, kind) in benchmark.configs
        assert benchmark.units_per_part(kind) >= 1
        for way in set(kind.interfaces) & set(benchmark.interfaces):
            scorer = SimpleNamespace(name=name, model_signature="", **FAKES.get(way, {}))
            prompt_format = benchmark.formats[benchmark.default_format(scorer)]
            if way in FAKES:
                answers = benchmark.answer(table, scorer, prompt_format, benchmark.norms[0])
                assert set(benchmark.answer_columns) <= set(answers)
                assert {len(column) for column in answers.values()} == {table.num_rows}
                n_answered += 1
    assert n_answered >= len(names) - 1


# Templates


@pytest.mark.slow
def test_a_template_is_shown_with_its_answers(case):
    view = case.facts.view
    names = view.template(case.table).cast(pa.string())
    assert names.null_count == 0
    name = names[0].as_py()
    chosen = pa.array([one == name for one in names.to_pylist()])
    rows = case.table.filter(chosen)
    assert set(view.conditions) <= set(rows.column_names)
    for column in case.answers.column_names:
        if column not in rows.column_names:
            rows = rows.append_column(column, case.answers[column].filter(chosen))
    for row in rows.to_pylist():
        assert all(isinstance(line, str) and line for line in view.lines(row))
        assert set(view.answers(row)) <= {*view.kinds, *view.left_out}
    table = rates(view, name, rows)
    shares = [place for place, column in enumerate(table.columns) if column.name in view.kinds]
    assert len(shares) == len(view.kinds)
    for row in table.rows:
        if shares and row[shares[0]] is not None:
            assert sum(row[place] for place in shares) == pytest.approx(1)
    text = io.StringIO()
    show_template(case.folder, name, Console(file=text))
    assert f"of {rows.num_rows:,} items" in text.getvalue()
    with pytest.raises(QabiasError, match="template"):
        show_template(case.folder, f"{name}x", Console(file=text))


# Choices


def test_what_is_unknown_is_refused_with_what_was_probably_meant(case):
    benchmark = case.benchmark
    config, source, prompt_format = benchmark.configs[0], benchmark.sources[0], next(iter(benchmark.formats))
    origin = benchmark.origin(source, 0, False)
    assert origin.version.startswith(source)
    for call, meant in (
        (lambda: benchmark.load(f"{config}x", origin), config),
        (lambda: benchmark.origin(f"{source}x", 0, False), source),
        (lambda: choose_format(benchmark.formats, f"{prompt_format}x"), prompt_format),
        (lambda: load_benchmark(f"{benchmark.name}x"), benchmark.name),
    ):
        with pytest.raises(QabiasError, match=f"Did you mean '{meant}'") as caught:
            call()
        assert f"'{meant}x'" in str(caught.value)


def test_options_that_choose_texts_stand_in_the_version_and_refuse_other_values(case):
    benchmark = case.benchmark
    source = benchmark.sources[-1]
    default = benchmark.origin(source, 0, False).version
    for name, (first, *others) in benchmark.options.items():
        assert not any(name in kind.known_options for kind in kinds().values())
        assert make_origin(benchmark, source, 0, False, {name: first}).version == default
        for value in others:
            assert f"{name}={value}" in make_origin(benchmark, source, 0, False, {name: value}).version
        with pytest.raises(QabiasError, match=f"unknown {name} '{first}x'.*Did you mean '{first}'"):
            make_origin(benchmark, source, 0, False, {name: f"{first}x"})
    # What is no option of the benchmark is the scorer's.
    assert make_origin(benchmark, source, 0, False, {"nobody's": "1"}).version == default


def test_baselines_that_play_no_part_name_those_that_do(case):
    played = {kind for kind in KINDS if plays_a_part(case, kind)}
    assert played > {"random", "uniform"}
    for kind in set(KINDS) - played:
        with pytest.raises(QabiasError, match=f"{kind}' has no role .*\n.*baseline:"):
            answered_by(case, kind, case.table.slice(0, 1))
