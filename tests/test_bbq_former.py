"""`bundled@1`: the former texts of BBQ give the same bytes as before, wherever a source is chosen."""

import csv
import hashlib
import json
import shutil

import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from bbq_dataset.builder import ALL_NLI, BBQ, CATEGORIES, NLI_CONFIGS, Origin
from bbq_dataset.folder import FOLDER
from bbq_dataset.statements import asked_questions
from qabias.answers.named import BLANK
from qabias.benchmarks import kept_source, load_benchmark, make_origin
from qabias.benchmarks.bbq.prompts import statement
from qabias.cli import app
from qabias.comparison import compare
from qabias.errors import QabiasError
from qabias.hub.contents import dataset_push
from qabias.measuring.forms import run_forms
from qabias.measuring.run import run
from qabias.report.writing import write_report_of
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.folder import read_run
from qabias.runs.question import load_examples_of
from qabias.runs.scored import read_scored

from .conftest import ROOT
from .run_parts import unseal

FORMER = Origin("bundled@1")


def kept():
    """What the committed Parquet files of version 1 were, by configuration."""
    with (ROOT / "tests" / "bundled_1.csv").open(encoding="utf-8", newline="") as file:
        return {row["configuration"]: row for row in csv.DictReader(file)}


def call(*arguments):
    found = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "300"})
    assert found.exit_code == 0, found.output
    return " ".join(found.output.split())


def as_then(folder, output):
    """The run as an older version wrote it, which had one version of the bundled texts."""
    shutil.copytree(folder, output)
    content = json.loads((output / "run.json").read_text("utf-8"))
    assert content["arguments"]["source"] == "bundled@1"
    content["arguments"]["source"] = "bundled"
    (output / "run.json").write_text(json.dumps(content), "utf-8")
    unseal(output)
    return output


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """A run of every benchmark on these texts, as it lay in a folder before there were newer ones."""
    folder = tmp_path_factory.mktemp("former")
    for name, config in (("bbq", "Religion"), ("bbq_nli", "Religion_nli"), ("bbq_qa", "Religion_qa")):
        made = run(RunArguments(name, "baseline:random", config, "bundled@1", limit=80), folder / f"new-{name}")
        as_then(made.folder, folder / name)
    return folder


def test_every_configuration_has_the_rows_and_the_bytes_that_it_had(tmp_path):
    expected = kept()
    assert list(expected) == [*CATEGORIES, *NLI_CONFIGS]
    for config, was in expected.items():
        table = FORMER.table(config)
        digest = hashlib.sha256()
        for row in table.to_pylist():
            digest.update((json.dumps(row, sort_keys=True) + "\n").encode())
        assert (str(table.num_rows), digest.hexdigest()) == (was["rows"], was["sha256_of_rows"]), config
        path = tmp_path / "table.parquet"
        FOLDER.write_parquet(table, path)
        # Another version of Arrow writes other bytes for the same table.
        if pq.read_metadata(path).created_by == was["written_by"]:
            assert hashlib.sha256(path.read_bytes()).hexdigest() == was["sha256_of_parquet"], config


def test_the_present_texts_are_others_under_another_version():
    assert (FORMER.version, FORMER.inference_version) == ("bundled@1", "bundled@1")
    assert (Origin().version, Origin().inference_version) == ("bundled@2", "bundled@2")
    assert not FORMER.is_committed
    assert sum(FORMER.table(category).num_rows for category in CATEGORIES) == 58492


def test_only_versions_that_are_kept_are_sources(tmp_path):
    with pytest.raises(QabiasError, match=r"unknown source 'bundled@3'.*did you mean 'bundled@1'"):
        Origin("bundled@3")
    with pytest.raises(QabiasError, match=r"no known defects to fix: use fixes with the source official or release$"):
        Origin("bundled@1", fixes=True)


def test_the_builder_and_the_benchmarks_load_it(tmp_path):
    builder = BBQ(config_name="Religion", source="bundled@1", cache_dir=tmp_path)
    builder.download_and_prepare()
    assert builder.as_dataset(split="test").to_list() == list(FORMER.rows("Religion"))
    assert builder.info.license == "apache-2.0"
    assert ALL_NLI in BBQ.builder_configs
    for name, config in (("bbq", "Religion"), ("bbq_nli", "Religion_nli"), ("bbq_qa", "Religion_qa")):
        benchmark = load_benchmark(name)
        origin = make_origin(benchmark, "bundled@1", 0, False, None, {})
        assert origin.version == "bundled@1"
        assert benchmark.load(config, origin).num_rows > 0


def test_every_question_is_asked_with_the_statement_of_its_own_version():
    for category in CATEGORIES:
        file = ROOT / "bbq_dataset" / "bundled_1" / "templates" / f"{category}.yaml"
        statements = {}
        for template in yaml.safe_load(file.read_text("utf-8"))["templates"]:
            for asked in (template["negative"], template["non_negative"]):
                name = f"{category}-{template['id']:02d}"
                statements[name, asked["question"]] = asked["statement"].replace("{{ANSWER}}", BLANK)
        rows = {(row["template_id"], row["question"]): row for row in FORMER.rows(category)}
        plain = statements.keys() & rows.keys()
        assert len(plain) >= 30, "questions without words of their own"
        assert {key: statement(rows[key]) for key in plain} == {key: statements[key] for key in plain}


def test_a_question_and_context_of_both_versions_has_one_statement():
    """Else it would not be known which of the two statements was asked."""
    for category in CATEGORIES:
        former, present = (
            {
                (name, of.context.pattern, of.question.pattern): of.statement
                for name, questions in asked_questions(category, source).items()
                for of in questions
            }
            for source in ("bundled@1", "bundled")
        )
        assert {key: former[key] for key in former.keys() & present.keys() if former[key] != present[key]} == {}


def test_it_builds_a_folder_with_a_card_of_its_own(tmp_path):
    call("build", "bbq", "--config", "Age", "--source", "bundled@1", "--output", tmp_path)
    written = tmp_path / "data" / "Age" / "test-00000-of-00001.parquet"
    assert pq.read_table(written).num_rows == 3680
    card = (tmp_path / "README.md").read_text("utf-8")
    assert "bundled parallel form, version 1" in card
    assert "take the source `bundled` for new ones" in card
    assert "license: apache-2.0" in card


def test_it_can_be_pushed_without_an_attribution(tmp_path):
    push = dataset_push("bbq", "org/bbq-1", tmp_path, source="bundled@1")
    assert "bundled@1" in push.description
    assert push.files["data/Age/test-00000-of-00001.parquet"]
    with pytest.raises(QabiasError, match="one fixed set, which no seed changes"):
        dataset_push("bbq", "org/bbq-1", tmp_path, source="bundled@1", seed=1)


def test_items_for_raters_are_drawn_from_it(tmp_path):
    files = ("--output", tmp_path / "items.csv", "--key", tmp_path / "key.csv")
    call("validate", "export", "--config", "Religion", "--source", "bundled@1", "--fillers", "0", *files)
    with (tmp_path / "items.csv").open(encoding="utf-8", newline="") as file:
        shown = {(row["context"], row["question"]) for row in csv.DictReader(file)}
    assert len(shown) == 100
    assert shown <= {(row["context"], row["question"]) for row in FORMER.rows("Religion")}


@pytest.mark.parametrize("name", ["bbq", "bbq_nli", "bbq_qa"])
def test_a_run_of_then_is_read_shown_reported_and_scored_with_its_texts(old, name, tmp_path):
    found = read_run(old / name)
    assert found.arguments.source == "bundled@1"
    assert load_examples_of(found).table.equals(load_examples_of(read_run(old / f"new-{name}")).table)
    folder = shutil.copytree(old / name, tmp_path / "again")
    before = read_scored(folder)
    call("score", folder)
    assert read_scored(folder).scores == before.scores
    assert "source:bundled@1" in call("show", folder)
    assert "source:bundled@1" in write_report_of(folder, tmp_path / "report.html").read_text("utf-8")


def test_a_run_of_then_and_one_of_these_texts_today_answer_the_same_questions(old, tmp_path):
    arguments = RunArguments("bbq", "baseline:stereotyped", "Religion", "bundled@1", limit=80)
    today = run(arguments, tmp_path / "today").folder
    assert compare([old / "bbq", today]).analysis == compare([old / "new-bbq", today]).analysis


def test_a_run_of_then_is_not_continued_with_other_texts(old):
    arguments = RunArguments("bbq", "baseline:random", "Religion", limit=80)
    with pytest.raises(QabiasError, match=r"run \(source 'bundled@1' there, 'bundled' here\); choose another"):
        run(arguments, old / "bbq")


def test_texts_of_a_version_that_is_not_kept_are_refused(old, tmp_path):
    folder = shutil.copytree(old / "bbq", tmp_path / "future")
    content = (folder / "run.json").read_text("utf-8").replace("source:bundled@1", "source:bundled@9")
    (folder / "run.json").write_text(content, "utf-8")
    with pytest.raises(
        QabiasError, match=r"answers are to the texts bundled@9, and this is qabias .* with bundled@2; "
    ):
        load_examples_of(read_run(folder))


def test_a_version_is_found_where_the_benchmark_keeps_it():
    bbq, kobbq = load_benchmark("bbq"), load_benchmark("kobbq")
    assert kept_source(bbq, "bundled", "bundled@1") == "bundled@1"
    assert kept_source(bbq, "bundled", "bundled@2") == "bundled"
    assert kept_source(bbq, "official", "official@bea11bd") == "official"
    assert kept_source(kobbq, "test", "test@1") == "test"


def test_it_is_a_parallel_form_of_the_published_texts(upstream, tmp_path):
    arguments = RunArguments("bbq", "baseline:random", "Religion", source="release,bundled@1")
    made = run_forms(arguments, tmp_path / "both", Machine(upstream_dir=str(upstream)))
    assert [of.folder.name for of in made.runs] == ["release", "bundled@1"]
    assert made.comparison.names == ["published (release@bea11bd)", "parallel (bundled@1)"]
    assert made.comparison.analysis.tables
    # A run of then is set beside a published one in the same way.
    then = as_then(made.runs[1].folder, tmp_path / "then")
    found = compare([made.runs[0].folder, then], upstream_dir=str(upstream))
    assert found.names == made.comparison.names


def test_two_versions_of_the_parallel_form_are_no_two_forms():
    arguments = RunArguments("bbq", "baseline:random", "Religion", source="bundled,bundled@1")
    with pytest.raises(QabiasError, match="name one of official, release and one of bundled, bundled@1, such as"):
        run_forms(arguments)
