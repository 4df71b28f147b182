"""Dataset folders of the BBQ family: read by `load_dataset`, with a card, pushed only where a licence allows it."""

import dataclasses
import sys

import pytest
import yaml
from datasets import ClassLabel, load_dataset
from huggingface_hub import DatasetCard

import qabias
from qabias import cli
from qabias.benchmarks import load_benchmark, make_origin
from qabias.benchmarks.multilingual.folder import read_card
from qabias.building import sources
from qabias.building.origin import LICENCES, check_passing_on, licence_of
from qabias.errors import QabiasError

SPANISH = load_benchmark("esbbq")


@pytest.fixture(scope="module")
def built(upstream, tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    origin = make_origin(SPANISH, "release", 0, False, {})
    SPANISH.write_folder(folder, "Nationality,Religion", origin)
    return folder


@pytest.fixture
def push(monkeypatch, capsys, upstream):
    """Run `qabias push dataset`; returns exit code and what was printed."""

    def run(name, *arguments):
        command = ["qabias", "push", "dataset", name, "--to", f"me/{name}", "--dry-run", *arguments]
        monkeypatch.setattr(sys, "argv", [*command, "--mirror", str(upstream)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return stopped.value.code, *capsys.readouterr()

    return run


def test_a_folder_is_read_with_the_features_and_rows_of_qabias_load(built, upstream, tmp_path):
    read = load_dataset(str(built), "Religion", split="test", cache_dir=str(tmp_path))
    loaded = qabias.load("esbbq", "Religion", mirror=upstream)
    assert read.features == loaded.features
    assert read.features["label"] == ClassLabel(names=["ans0", "ans1", "ans2"])
    assert read.num_rows == 648
    assert read.to_list() == loaded.to_list()


@pytest.mark.parametrize("licence", ["NONE", "CLOSED"])
def test_push_stops_with_one_line_where_the_licence_forbids_it(push, monkeypatch, licence):
    monkeypatch.setattr(SPANISH, "card", dataclasses.replace(SPANISH.card, licence=licence))
    monkeypatch.setattr(SPANISH, "write_folder", lambda *arguments: pytest.fail("built before it was refused"))
    code, output, errors = push("esbbq")
    assert (code, output) == (cli.EXIT_USER_ERROR, "")
    line, _ = errors.splitlines()
    assert "esbbq: the texts cannot be pushed" in line
    assert licence_of(licence).terms in line


def test_a_card_without_a_licence_says_so(upstream, tmp_path, monkeypatch):
    monkeypatch.setattr(SPANISH, "card", dataclasses.replace(SPANISH.card, licence="NONE"))
    SPANISH.write_folder(tmp_path, "Religion", make_origin(SPANISH, "release", 0, False, {}))
    head = yaml.safe_load((tmp_path / "README.md").read_text("utf-8").split("---\n")[1])
    assert (head["license"], head["license_name"]) == ("other", "none-stated")


def test_the_licences_of_all_pinned_files_are_known_and_only_those_that_allow_it_pass():
    for repository in sources.pins():
        assert sources.licence(repository) in LICENCES, repository
    assert not licence_of(sources.licence("Veranep/MBBQ")).allows
    check_passing_on("basqbbq", sources.licence("orai-nlp/BasqBBQ"))
    assert "non-commercial" in licence_of("CC-BY-NC-SA-4.0").terms
    with pytest.raises(QabiasError, match="unknown licence 'CC0'"):
        licence_of("CC0")


def test_a_field_that_a_card_has_not_is_named_with_the_file(tmp_path):
    path = tmp_path / "toki.yaml"
    path.write_text("societa: nobody", encoding="utf-8")
    with pytest.raises(QabiasError, match=r"toki\.yaml: .*'societa'"):
        read_card(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "config", "codes"),
    [
        ("kobbq", "Religion", ["ko"]),
        ("mbbq", "nl_Gender_identity", ["nl"]),
        ("ggbbq", "labels", ["de"]),
        ("basqbbq", "Orientazio_sexual", ["eu"]),
    ],
)
def test_every_set_is_built_and_read_back(name, config, codes, upstream, tmp_path):
    benchmark = load_benchmark(name)
    origin = make_origin(benchmark, "release", 0, False, {})
    benchmark.write_folder(tmp_path / "built", config, origin)
    card = DatasetCard.load(tmp_path / "built" / "README.md")
    assert card.data.language == codes
    assert sources.commit(benchmark.card.repository)[:7] in card.text
    read = load_dataset(str(tmp_path / "built"), config, split="test", cache_dir=str(tmp_path / "cache"))
    loaded = qabias.load(name, config, mirror=upstream)
    assert read.features == loaded.features
    assert read.to_list() == loaded.to_list()
    undefined = sum(row["target_loc"] == -1 for row in read)
    assert (f"In {undefined:,} examples of {config} the target is undefined" in card.text) == bool(undefined)


def test_a_folder_of_two_languages_names_these_in_head_and_text(upstream, tmp_path):
    benchmark = load_benchmark("mbbq")
    origin = make_origin(benchmark, "release", 0, False, {})
    benchmark.write_folder(tmp_path, "en_Gender_identity,nl_Gender_identity", origin)
    card = DatasetCard.load(tmp_path / "README.md")
    assert card.data.language == ["en", "nl"]
    assert "- **Language:** English, Dutch\n" in card.text
    assert "Turkish are" not in card.text


@pytest.mark.slow
def test_configurations_of_several_categories_are_in_the_head_of_the_card(upstream, tmp_path):
    benchmark = load_benchmark("ggbbq")
    benchmark.write_folder(tmp_path, "all", make_origin(benchmark, "release", 0, False, {}))
    configs = DatasetCard.load(tmp_path / "README.md").data["configs"]
    assert [config["config_name"] for config in configs] == ["all", "labels", "names"]
    assert [config.get("default", False) for config in configs] == [True, False, False]


@pytest.mark.parametrize("name", ["mbbq", "jbbq"])
def test_sets_that_nobody_may_pass_on_are_not_pushed(push, name):
    code, output, errors = push(name)
    assert (code, output) == (cli.EXIT_USER_ERROR, "")
    line, _ = errors.splitlines()
    assert f"{name}: the texts cannot be pushed" in line
