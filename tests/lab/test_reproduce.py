"""The experiments of the papers: who is asked what, and what comes of a list of runs of which some fail."""

import collections
import json
import re
from dataclasses import replace

import pytest

from lab.reproduce.__main__ import main
from lab.reproduce.running import is_finished
from lab.reproduce.suites import choose_models, expand, load_suite, suite_names
from qabias.benchmarks import load_benchmark
from qabias.errors import QabiasError
from qabias.pooling import pool
from qabias.runs.arguments import Machine, check_arguments
from qabias.runs.opened import Run
from qabias.scorers.registry import BASELINE, check_options, load_kind, scorers_for
from qabias.tables.model import find, read_analysis

from ..tiny_models import make_model, make_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "tiny-llama"
    make_model("llama", max_position_embeddings=1024).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return str(folder)


def runs_of(name, *models, **changes):
    suite = load_suite(name)
    return expand(suite, choose_models(suite, models), **changes)


@pytest.mark.parametrize("name", suite_names())
def test_every_run_of_a_suite_can_be_asked_and_says_where_the_paper_tells_of_it(name):
    suite = load_suite(name)
    runs = expand(suite, suite.models)
    assert len({run.name for run in runs}) == len(runs)
    for run in runs:
        arguments, benchmark = run.arguments, load_benchmark(run.arguments.benchmark)
        assert arguments.backend in scorers_for(benchmark.interfaces)
        assert arguments.format in benchmark.formats
        assert arguments.config in benchmark.configs
        assert arguments.source in benchmark.sources
        assert arguments.norm in benchmark.norms
        assert all(isinstance(value, str) for value in arguments.options.values())
        check_arguments(benchmark, arguments, Machine())
        check_options(load_kind(arguments.backend or BASELINE), arguments.scorer_options)
        own = {name: value for name, value in arguments.options.items() if name in benchmark.options}
        assert all(value in benchmark.options[name] for name, value in own.items())
    for entry in (*suite.experiments, *suite.models):
        in_paper = "not in the paper" not in entry.claim
        assert not in_paper or any(word in entry.claim for word in ("Section", "Table", "Figure", "Appendix"))
        assert in_paper == getattr(entry, "in_paper", in_paper)
    for model in suite.models:
        # What lies in no place on the Hub is made here.
        assert model.model.startswith("models/") == bool(model.made_by)


def test_the_paper_of_bbq_asks_unifiedqa_in_three_ways_and_four_models_trained_on_race():
    assert [run.name for run in runs_of("bbq")] == [
        *(f"unifiedqa-11b-{prompt}_unifiedqa" for prompt in ("race", "arc", "question_only")),
        *(f"{model}-race-pair" for model in ("roberta-base", "roberta-large", "deberta-v3-base", "deberta-v3-large")),
    ]
    differs = {experiment.name: experiment.differs for experiment in load_suite("bbq").experiments}
    for name in ("formats", "question_only"):
        assert all(word in differs[name] for word in ("lower case", "backslash", "19 tokens"))
    assert "anew" in differs["multiple_choice"]


SIZES = ("distilbert-base-uncased", "bert-base-uncased", "bert-large-uncased", "roberta-base", "roberta-large")


def test_the_paper_of_unqover_asks_five_language_models_and_the_authors_ten_trained_ones():
    runs = runs_of("unqover")
    masked = {run.arguments.model: run.arguments for run in runs if run.arguments.backend == "masked_lm"}
    assert len(masked) == 5
    assert {arguments.config for arguments in masked.values()} == {"all_mlm"}
    for model, arguments in masked.items():
        # RoBERTa has another vocabulary, and so lists of subjects of its own.
        assert arguments.options["subjects"] == ("roberta" if "roberta" in model else "bert")
    trained = {run.arguments.model: run.arguments.options for run in runs if run.arguments.backend == "extractive_qa"}
    released = {"span": "released", "layout": "released"}
    assert trained == {
        **{f"tli8hf/unqover-{size}-squad": released for size in SIZES},
        **{f"tli8hf/unqover-{size}-newsqa": {**released, "header": "newsqa"} for size in SIZES},
    }
    assert len(runs) == 15
    assert {run.arguments.source for run in runs} == {"official"}


def test_models_trained_here_are_asked_by_unqovers_paper_only_if_they_are_named():
    (own,) = runs_of("unqover", "roberta-base-newsqa-retrained")
    assert own.arguments.model == "models/roberta-base-newsqa"
    assert own.arguments.options == {"span": "released", "layout": "released", "header": "newsqa"}
    assert "--recipe newsqa" in own.model.made_by
    # Texts of another source have no choice of subjects.
    assert all("subjects" not in run.arguments.options for run in runs_of("unqover", source="bundled"))
    assert runs_of("unqover", "roberta-base", source="official") == runs_of("unqover", "roberta-base")


def test_the_paper_of_bbnli_asks_t0pp_in_ten_prompts_and_bbq_in_all_rows_of_its_tables_and_t0_in_six():
    names = [run.name for run in runs_of("bbnli")]
    bbq = [name for name in names if "bbq-" in name]
    # Rows NLI, QA and QAn of Tables 4 and 5 for three domains, tasks NLI and QA of Figure 3.
    assert len(bbq) == 3 * (3 + 3 + 4) + (3 + 3)
    assert len([name for name in names if name.startswith("t0pp-") and name not in bbq]) == 3 + 3 + 4
    assert len([name for name in names if name.startswith("t0-")]) == 6


def test_models_are_named_by_the_table_by_their_id_or_freely(tiny):
    suite = load_suite("bbq")
    by_name, by_id, own, baseline = choose_models(
        suite, ["unifiedqa-3b", "allenai/unifiedqa-t5-small", tiny, "baseline:random"]
    )
    assert (by_name.model, by_id.name) == ("allenai/unifiedqa-t5-3b", "unifiedqa-small")
    assert (own.name, own.scorer, own.model) == ("tiny-llama", "causal", tiny)
    assert (baseline.name, baseline.scorer) == ("baseline-random", "baseline")
    (run,) = expand(suite, [own], source="bundled", limit=8)
    assert (run.arguments.source, run.arguments.limit, run.name) == ("bundled", 8, "tiny-llama-qa")


@pytest.mark.parametrize(
    ("suite", "models", "message"),
    [
        ("bqb", (), "'bbq'"),
        ("", (), "bbnli, bbq or unqover"),
        ("bbq", ("unifiedqa-11",), "'unifiedqa-11b'"),
        ("bbq", ("no/such",), "cannot be loaded"),
    ],
)
def test_what_is_not_known_is_refused(suite, models, message):
    with pytest.raises(QabiasError, match=message):
        runs_of(suite, *models)


def test_two_models_of_one_name_are_refused(tiny):
    suite = load_suite("bbq")
    (own,) = choose_models(suite, [tiny])
    with pytest.raises(QabiasError, match="tiny-llama-qa"):
        expand(suite, [own, own])


@pytest.fixture
def reproduce(capsys):
    """A function that runs the command; returns its exit status and what it printed."""

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return call


@pytest.mark.slow
def test_a_suite_runs_compares_and_skips_what_is_finished(tmp_path, tiny, monkeypatch, reproduce):
    command = (
        *("bbq", "--models", f"{tiny},baseline:stereotyped", "--models", "baseline:unknown"),
        *("--source", "bundled", "--limit", 40, "--output", tmp_path),
    )
    code, printed = reproduce(*command)
    assert code == 0, printed
    folder = tmp_path / "paper-bbq"
    names = {f"{model}-qa" for model in ("tiny-llama", "baseline-stereotyped", "baseline-unknown")}
    assert {path.name for path in folder.iterdir()} == names | {"compared"}
    scores = json.loads((folder / "baseline-stereotyped-qa" / "scores.json").read_text())["scores"]
    assert scores["bias_ambig"] == 1.0
    assert "run 3" in printed
    assert "3 of 3" in printed

    def never(*_, **__):
        raise AssertionError("a finished run was made again")

    monkeypatch.setattr("lab.reproduce.running.run", never)
    code, printed = reproduce(*command)
    assert code == 0, printed
    assert printed.count(": finished\n") == 3


GENERATED = ("seq2seq", "released", {"mode": "generate"})
AS_LONG_AS_BY_DEFAULT = ("seq2seq", "released", {"mode": "generate", "max_new_tokens": "19"})
BERTS = {"topk": "10", "pronouns": "yes", "subjects": "bert"}
RELEASED = {"span": "released", "layout": "released"}
QUOREF = ("quoref_answer", "quoref_given", "quoref_extract")
NOVEL = ("novel_1", "novel_2", "novel_3", "novel_4")
ROWS = {"": 3, "-qa": 3, "-novel": 4}
INFERENCE = ("can_we_infer", "gpt3", "does_this_imply")
# For some runs of a suite what they ask of which data, and how.
PAPERS_WAYS = {
    "bbq": {
        **{
            f"unifiedqa-11b-{prompt}": ("bbq", "all", prompt, *AS_LONG_AS_BY_DEFAULT)
            for prompt in ("race_unifiedqa", "arc_unifiedqa", "question_only_unifiedqa")
        },
        "roberta-base-race-pair": ("bbq", "all", "pair", "multiple_choice", "none", {}),
    },
    "unqover": {
        "bert-base-squad-qa": ("unqover", "all", "qa", "extractive_qa", "none", RELEASED),
        "bert-base-qa": ("unqover", "all_mlm", "qa", "masked_lm", "none", BERTS),
    },
    "bbnli": {
        f"t0pp-{kind}{prompt}": (benchmark, config, prompt, *GENERATED)
        for kind, benchmark, config, prompts in (
            ("", "bbnli", "all", (*INFERENCE, *QUOREF, *NOVEL)),
            ("bbq-length-qa-", "bbq_qa", "Gender_identity_qa_context", QUOREF),
            ("bbq-race-", "bbq_nli", "Race_ethnicity_nli", INFERENCE),
            ("bbq-religion-novel-", "bbq_qa", "Religion_qa", NOVEL),
        )
        for prompt in prompts
    },
}


# Experiments of which a paper prints means, with the number of their formats.
MEANS = {
    "bbq": {"formats": 2},
    "unqover": {},
    "bbnli": {
        **{"nli": 3, "qa": 3, "novel": 4, "bbq-length": 3, "bbq-length-qa": 3},
        **{f"bbq-{domain}{row}": n for domain in ("gender", "race", "religion") for row, n in ROWS.items()},
    },
}


@pytest.mark.parametrize(
    ("suite", "models"),
    [
        ("bbq", ("unifiedqa-11b", "roberta-base-race")),
        ("unqover", ("bert-base-squad", "bert-base")),
        ("bbnli", ("t0pp",)),
    ],
)
def test_models_of_the_papers_kinds_are_asked_in_the_papers_ways(suite, models):
    runs = runs_of(suite, *models)
    keys = ("benchmark", "config", "format", "backend", "norm", "options")
    ways = {run.name: tuple(getattr(run.arguments, key) for key in keys) for run in runs}
    assert ways == {**ways, **PAPERS_WAYS[suite]}
    assert suite == "bbnli" or len(ways) == len(PAPERS_WAYS[suite])
    means = collections.Counter(run.experiment.name for run in runs if run.experiment.mean)
    assert {name: n for name, n in means.items() if n > 1} == MEANS[suite]
    assert all(re.search(r"(Table|Figure)s? \d", run.experiment.mean) for run in runs if run.experiment.mean)


def test_a_run_that_fails_is_told_at_the_end_and_the_others_go_on(tmp_path, reproduce):
    code, printed = reproduce(
        *("bbq", "--models", "unifiedqa-small,roberta-base-race,baseline:stereotyped"),
        *("--source", "bundled", "--limit", 40, "--output", tmp_path),
    )
    assert code == 2
    assert "1 of 5" in printed
    assert (tmp_path / "paper-bbq" / "baseline-stereotyped-qa" / "scores.json").exists()
    failed = [line for line in printed.splitlines() if "not finished" in line]
    assert len(failed) == 4
    assert "lab.finetuning.race" in failed[-1]


@pytest.mark.slow
def test_a_run_of_another_version_or_with_other_arguments_is_measured_again(compared_runs, monkeypatch):
    folder = compared_runs / "bbq-random"
    arguments = Run.open(folder).arguments
    assert is_finished(folder, arguments)
    assert not is_finished(folder, replace(arguments, seed=1))
    monkeypatch.setattr("lab.reproduce.running.__version__", "9")
    assert not is_finished(folder, arguments)


def test_an_unforeseen_error_does_not_stop_the_list(tmp_path, monkeypatch, reproduce):
    monkeypatch.setattr("lab.reproduce.running.run", lambda *_, **__: 1 / 0)
    models = ("--models", "baseline:stereotyped,baseline:unknown")
    code, printed = reproduce("bbq", *models, "--source", "bundled", "--output", tmp_path)
    assert code == 2
    assert printed.count("not finished: ZeroDivisionError: ") == 2


@pytest.mark.slow
def test_published_outputs_give_runs_means_and_a_comparison(tmp_path, monkeypatch, reproduce, upstream):
    """Figure 6 and Appendix E of Parrish et al. 2022, and what the specification computes from the outputs."""
    monkeypatch.chdir(tmp_path)
    if not (upstream / "nyu-mll/BBQ/results/UnifiedQA/preds_Age.jsonl").exists():
        pytest.skip("the authors' outputs are not in the mirror")
    command = ("bbq", "--published", "--models", "unifiedqa-11b", "--config", "Age,Religion")
    code, printed = reproduce(*command, "--mirror", upstream)
    assert code == 0, printed
    assert "3 of 3 runs are finished" in printed
    where = tmp_path / "runs" / "paper-bbq-published"
    blind = next(where.glob("*question_only*"))
    rows = {row[0]: row for row in find(read_analysis(blind / "analysis.json").tables, "question_only").rows}
    for category, bias, accuracy in (("Age", 51.4, 30.3), ("Religion", 21.3, 58.0)):  # Figure 6
        assert [round(100 * rows[category][place].value, 1) for place in (1, 2)] == [bias, accuracy]
    race, arc = sorted(path for path in where.glob("unifiedqa-11b-*") if "question" not in path.name
                       and "mean" not in path.name)[::-1]  # fmt: skip
    assert "race" in race.name
    found = pool([race, arc])
    groups = found.benchmark.groups(found.scores)
    mean = {name: round(100 * groups[name]["bias_ambig"], 2) for name in ("Age", "Religion")}
    assert mean == pytest.approx({"Age": (29.78 + 48.94) / 2, "Religion": (14.33 + 24.50) / 2}, abs=0.011)
    assert (where / "unifiedqa-11b-formats-mean" / "pool.html").exists()
    assert (where / "compared" / "compare.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bqb",), "'bbq'"),
        (("bbq", "--models", "unifiedqa-11"), "'unifiedqa-11b'"),
        (("unqover", "--published"), "no published answers"),
        (("bbq", "--published", "--config", "Agee"), "Did you mean 'Age'"),
        (("bbq", "--published", "--config", "Religion,Age"), "Age,Religion"),
        (("bbq", "--published", "--limit", "100"), "--limit does not apply to --published"),
        (("bbq", "--config", "Age"), "--config"),
    ],
)
def test_a_mistake_is_a_problem_and_its_fix(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert [line[:6] for line in error.splitlines()] == ["error:", "  fix:"]
    assert not list(tmp_path.iterdir())


def test_without_a_benchmark_the_papers_and_their_models_are_listed(reproduce):
    code, printed = reproduce()
    assert code == 0
    assert all(f"{name}: " in printed for name in suite_names())
    assert "unifiedqa-11b" in printed
