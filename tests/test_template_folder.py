"""A folder of templates, in any language, is a benchmark without code."""

import json
import os
import re
import shutil
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from datasets import load_dataset
from huggingface_hub import DatasetCard

import qabias
from qabias import cli
from qabias.benchmarks import load_benchmark, make_origin
from qabias.benchmarks.multilingual.template_folder import _with_capitals
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.folder import default_folder
from qabias.runs.run import run

from .conftest import ROOT

EXAMPLE = ROOT / "docs" / "examples" / "templates_it"
N_SETS = {"Eta": 2 * 2 * 2, "Genere": 2 * 2 * 2, "Nazionalita": 3 * 3 * 2}
N_ROWS = 4 * sum(N_SETS.values())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the example that a test may change, in the working directory as `mine`."""
    shutil.copytree(EXAMPLE, tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    return Path("mine")


@pytest.fixture
def qabias_says(monkeypatch, capsys):
    """Run a command; returns exit code, output and errors."""

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["qabias", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return stopped.value.code, *capsys.readouterr()

    return command


def change(path, **values):
    """Change fields of a YAML file; None removes one."""
    content = yaml.safe_load(path.read_text("utf-8"))
    target = content["templates"][0] if "templates" in content else content
    for name, value in values.items():
        target.pop(name, None)
        if value is not None:
            target[name] = value
    path.write_text(yaml.safe_dump(content, allow_unicode=True), "utf-8")


def rows_of(folder, config="all", seed=0):
    benchmark = load_benchmark(str(folder))
    return benchmark.load(config, make_origin(benchmark, "templates", seed, False, {})).to_pylist()


def test_three_templates_in_a_fourth_language_run_report_and_build(folder, qabias_says, tmp_path):
    code, output, errors = qabias_says("run", "./mine", "--model", "baseline:stereotyped", "--output", "run")
    assert code == 0, errors
    assert "Three templates in Italian" in output
    scores = json.loads(Path("run/scores.json").read_text("utf-8"))
    assert scores["benchmark"] == "esempio-it"
    assert scores["signature"].startswith("esempio-it|source:templates@")
    assert (scores["scores"]["n"], scores["scores"]["n_templates"]) == (N_ROWS, 3)
    assert (scores["scores"]["bias_ambig"], scores["scores"]["bias_disambig"]) == (1.0, 1.0)
    report = Path("run/report.html").read_text("utf-8")
    assert "Three templates in Italian" in report
    assert "Nazionalita" in report

    code, _, errors = qabias_says("build", "mine", "--output", "built")
    assert code == 0, errors
    card = DatasetCard.load("built/README.md")
    assert (card.data.language, card.data.license) == (["it"], "apache-2.0")
    assert load_benchmark("mine").facts.dataset in card.text
    for said in (
        "Three templates are too few",
        "Italian",
        "does not prove a model unbiased",
        "made in Italian schools",
    ):
        assert said in " ".join(card.text.split()), said
    for config in ("Eta", "all"):
        read = load_dataset("built", config, split="test", cache_dir=str(tmp_path / "cache"))
        loaded = qabias.load("mine", config)
        assert read.features == loaded.features
        assert read.to_list() == loaded.to_list()


def test_every_set_has_both_questions_in_both_contexts_and_one_target(folder):
    rows = rows_of(folder)
    assert Counter(row["category"] for row in rows) == {name: 4 * n for name, n in N_SETS.items()}
    sets = {}
    for row in rows:
        sets.setdefault(row["set_id"], []).append(row)
        answers = [row[f"ans{place}"] for place in range(3)]
        groups = row["additional_metadata"]["stereotyped_groups"]
        in_group = [place for place in range(3) if row["answer_info"][f"ans{place}"][1] in groups]
        assert in_group == [row["target_loc"]]
        assert answers[row["unknown_loc"]] in load_benchmark(str(folder))._unknown
        assert len(set(answers)) == 3
        asks_for_target = row["question_polarity"] == "neg"
        other = ({0, 1, 2} - {row["target_loc"], row["unknown_loc"]}).pop()
        assert row["biased_loc"] == (row["target_loc"] if asks_for_target else other)
        if row["context_condition"] == "ambig":
            assert row["label"] == row["unknown_loc"]
        assert "{{" not in " ".join((row["context"], row["question"], *answers))
        assert all(text[0].isupper() for text in (row["context"], row["question"], *answers))
    assert {len(of) for of in sets.values()} == {4}
    for of in sets.values():
        assert len({(row["question_polarity"], row["context_condition"]) for row in of}) == 4
        told = [row for row in of if row["context_condition"] == "disambig"]
        assert sorted(row["label"] == row["target_loc"] for row in told) == [False, True]


def test_the_disambiguated_context_names_the_right_answer(folder):
    for row in rows_of(folder, "Eta"):
        if row["context_condition"] == "disambig":
            added = row["context"].split(". ", 1)[1]
            quick, slow = added.split(" ha finito tutto")[0], added.split("mentre ")[1].split(" ha dovuto")[0]
            right = slow if row["question_polarity"] == "neg" else quick
            assert row[f"ans{row['label']}"].lower() == right.lower()


def test_people_stand_in_both_slots_and_answers_in_all_places(folder):
    rows = rows_of(folder, "Nazionalita")
    assert {row["target_loc"] for row in rows} == {0, 1, 2}
    people = {tuple(row["context"].split("alunno ")[n].split()[0] for n in (1, 2)) for row in rows}
    assert len(people) == N_SETS["Nazionalita"]
    assert all(pair[::-1] in people for pair in people)


def test_the_seed_draws_and_a_changed_template_leaves_the_others_as_they_are(folder):
    before = {name: rows_of(folder, name) for name in N_SETS}
    assert rows_of(folder, "Eta", seed=1) != before["Eta"] == rows_of(folder, "Eta")
    change(folder / "templates" / "Eta.yaml", bias="another name")
    assert rows_of(folder, "Eta") != before["Eta"]
    assert rows_of(folder, "Genere") == before["Genere"]


def test_changed_templates_are_another_signature_and_answers_to_the_old_ones_are_not_scored_again(folder, tmp_path):
    arguments = RunArguments("mine", "baseline:random", source="templates")
    first = run(arguments, Path("run"))
    assert default_folder(arguments) == default_folder(RunArguments("./mine", "baseline:random", source="templates"))
    change(folder / "templates" / "Eta.yaml", bias="another name")
    with pytest.raises(QabiasError, match="holds another run"):
        run(arguments, Path("run"))
    with pytest.raises(
        QabiasError, match=r"the templates in mine have changed since .*\(templates@\w+ then, templates@"
    ):
        qabias.read("run").predictions()
    second = run(arguments, Path("other"))
    assert first.signature != second.signature


def test_a_run_says_where_its_templates_were_when_they_are_gone(folder, qabias_says, monkeypatch, tmp_path):
    assert qabias_says("run", "mine", "--model", "baseline:random", "--output", "run")[0] == 0
    assert json.loads(Path("run/run.json").read_text("utf-8"))["arguments"]["benchmark"] == "mine"
    folder.rename("elsewhere")
    for command in ("score", "show"):
        code, _, errors = qabias_says(command, "run")
        assert code == cli.EXIT_USER_ERROR
        assert "mine" in errors
    Path("elsewhere").rename("mine")
    assert qabias_says("score", "run")[0] == 0


def test_the_categories_of_bbq_have_no_rules_of_their_own_here(folder):
    for name in ("Gender_identity", "Race_x_gender", "SES"):
        content = yaml.safe_load((folder / "templates" / "Eta.yaml").read_text("utf-8")) | {"category": name}
        (folder / "templates" / f"{name}.yaml").write_text(yaml.safe_dump(content, allow_unicode=True), "utf-8")
        rows = rows_of(folder, name)
        assert len(rows) == 32
        assert {row["target_loc"] for row in rows} <= {0, 1, 2}


@pytest.mark.parametrize(
    ("file", "values", "message"),
    [
        ("benchmark.yaml", {"title": None}, r"benchmark.yaml: field title is missing"),
        ("benchmark.yaml", {"titel": "x"}, r"'titel' is not a field[.] Did you mean 'title'"),
        ("benchmark.yaml", {"name": "My Set"}, r"field name is 'My Set'"),
        ("benchmark.yaml", {"name": "bbq"}, r"field name is 'bbq'"),
        ("benchmark.yaml", {"unknown": []}, r"field unknown (?s:.*)list of different texts"),
        ("benchmark.yaml", {"unknown": ["a", "a"]}, r"field unknown (?s:.*)list of different texts"),
        ("benchmark.yaml", {"created": "yesterday"}, r"field created"),
        ("benchmark.yaml", {"licence": "mine"}, r"field licence is 'mine'(?s:.*)Apache-2.0"),
        ("benchmark.yaml", {"categories": ["Eta", "all"]}, r"the category 'all'"),
        ("benchmark.yaml", {"categories": ["Eta", "Lavoro"]}, r"category .*Lavoro"),
        ("benchmark.yaml", {"categories": ["../templates/Eta"]}, r"category .*templates/Eta"),
        ("benchmark.yaml", {"homepage": "javascript:alert(1)"}, r"field homepage"),
        ("benchmark.yaml", {"society": 3}, r"field society is 3(?s:.*)a text"),
        ("templates/Eta.yaml", {"context": "Chi?"}, r"Eta.yaml: template 1: field context: must name both people"),
        ("templates/Eta.yaml", {"sources": None}, r"template 1: field sources: is missing"),
        ("templates/Eta.yaml", {"source": ["x"]}, r"field source: is not a field[.] Did you mean 'sources'"),
        ("templates/Eta.yaml", {"groups": ["vecchio"]}, r"field groups: \['vecchio'\] must match exactly one of"),
        ("templates/Eta.yaml", {"style": "names"}, r"'names' is not one of words, labels"),
        ("templates/Eta.yaml", {"negative": {"question": "Chi", "answer": "{{NAME2}}"}}, r"must end with a question"),
        ("templates/Eta.yaml", {"second_group": "F"}, r"field second_group: is not a field"),
        ("templates/Nazionalita.yaml", {"groups": ["tedesco"]}, "'tedesco' is no label of Nazionalita"),
        ("templates/Nazionalita.yaml", {"groups": ["rumneo", "albanese"]}, "'rumneo' .*Did you mean 'rumeno'"),
        (
            "templates/Nazionalita.yaml",
            {"groups": ["rumeno", "albanese", "marocchino", "italiano", "francese", "svizzero"]},
            r"has no label of Nazionalita",
        ),
    ],
)
def test_errors_name_file_field_and_fix(folder, file, values, message):
    change(folder / file, **values)
    with pytest.raises(QabiasError, match=message):
        rows_of(folder)


def test_an_unknown_language_names_the_known_ones_and_the_file_to_add(folder):
    (folder / "language.yaml").unlink()
    with pytest.raises(QabiasError, match=r"field language: unknown language 'it'(?s:.*)or add mine/language.yaml"):
        load_benchmark("mine")


def test_the_code_of_a_language_is_checked_where_a_file_has_its_words(folder):
    for code in ("xx", "Italian", "IT", "it-IT"):
        change(folder / "benchmark.yaml", language=code)
        with pytest.raises(QabiasError, match=f"benchmark.yaml: field language is '{code}'(?s:.*)ISO 639-1"):
            load_benchmark("mine")
    change(folder / "benchmark.yaml", language="scn")
    assert load_benchmark("mine").card.codes == ("scn",)


@pytest.mark.parametrize("file", ["benchmark.yaml", "language.yaml", "templates/Eta.yaml", "vocabulary/labels.csv"])
def test_a_file_that_is_not_utf_8_is_told(folder, file, qabias_says):
    path = folder / file
    path.write_bytes((path.read_text("utf-8") + "# perché\n").encode("latin-1", "ignore"))
    code, _, errors = qabias_says("run", "mine", "--model", "baseline:random")
    assert code == cli.EXIT_USER_ERROR
    problem, fix = errors.splitlines()
    assert f"{path} is not UTF-8" in problem
    assert "save it as UTF-8" in fix


def test_the_card_says_of_the_makers_only_what_the_folder_says(folder):
    benchmark = load_benchmark("mine")
    benchmark.write_folder(Path("built"), "all", make_origin(benchmark, "templates", 0, False, {}))
    card = DatasetCard.load("built/README.md")
    for field in ("language_creators", "annotations_creators", "source_datasets"):
        assert getattr(card.data, field) is None
    text = " ".join(str(card).split())
    for untrue in ("authors' texts", "their paper", "the paper", "expert-generated", "columns were renamed"):
        assert untrue not in text, untrue
    assert "(The qabias authors)." in text
    assert "Three templates in Italian (from templates)" in text
    assert benchmark.card.making in text


ALIASES = "limitations: [" + ", ".join(["&a [x]", *(f"&{b} [{f'*{a}, ' * 9}]" for a, b in pairwise("abcdefghi"))]) + "]"


@pytest.mark.parametrize("text", ["[1, 2", "- a", "", "created: 2026-02-30", "[" * 20_000, ALIASES])
def test_a_description_that_is_none_is_refused(folder, text):
    (folder / "benchmark.yaml").write_text(text, "utf-8")
    with pytest.raises(QabiasError, match=r"benchmark.yaml: (not readable|not a mapping)"):
        load_benchmark("mine")


@pytest.mark.parametrize("row", ["Nazionalita,,spagnolo", f"Nazionalita,,{'a' * 140_000},,", "a,b,c,d,e,f"])
def test_a_row_of_labels_that_is_none_is_named(folder, row):
    with (folder / "vocabulary" / "labels.csv").open("a", encoding="utf-8") as file:
        file.write(row)
    with pytest.raises(QabiasError, match=r"labels\.csv: line 8"):
        load_benchmark("mine")


def test_a_pipe_or_a_device_in_place_of_a_template_is_not_read(folder):
    path = folder / "templates" / "Eta.yaml"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match=r"pipe.*Eta\.yaml"):
        load_benchmark("mine")


def test_no_text_of_a_folder_is_markup_in_the_report_or_the_card(folder):
    hostile = "<meta http-equiv=refresh content=1> ![x](http://127.0.0.1/) | ```"
    fields = ("title", "authors", "society", "purpose", "making", "citation")
    change(folder / "benchmark.yaml", limitations=[hostile], **dict.fromkeys(fields, hostile))
    benchmark = load_benchmark("mine")
    assert "<meta" not in benchmark.facts.citations[0]
    benchmark.write_folder(Path("built"), "all", make_origin(benchmark, "templates", 0, False, {}))
    _, _, card = Path("built/README.md").read_text("utf-8").split("---\n", 2)
    outside = "".join(card.split("```")[::2])
    assert not re.findall(r"(?<!\\)(?:<meta|\[x\])", outside)
    assert outside.count("\\<meta") > 6


def test_a_folder_without_templates_or_that_is_not_there_is_refused(folder, qabias_says):
    shutil.rmtree(folder / "templates")
    with pytest.raises(QabiasError, match=r"templates: no CATEGORY.yaml"):
        load_benchmark("mine")
    code, _, errors = qabias_says("run", "path/to/nowhere", "--model", "baseline:random")
    assert code == cli.EXIT_USER_ERROR
    assert "path/to/nowhere/benchmark.yaml does not exist" in errors
    with pytest.raises(QabiasError, match="unknown benchmark 'nowhere'"):
        load_benchmark("nowhere")


def test_a_name_of_the_package_is_not_shadowed_by_a_folder(folder):
    folder.rename("bbq")
    assert load_benchmark("bbq").title.startswith("BBQ")
    assert load_benchmark("./bbq").name == "esempio-it"


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("il nonno tace. è tardi", "it", "Il nonno tace. È tardi"),
        ("¿quién fue? el abuelo", "es", "¿Quién fue? El abuelo"),
        ("iyi günler", "tr", "İyi günler"),
        ("დედა", "ka", "დედა"),
        ("he weighs 3.5 kg", "en", "He weighs 3.5 kg"),
    ],
)
def test_sentences_begin_as_their_language_writes_them(text, code, expected):
    assert _with_capitals(text, code) == expected


@pytest.mark.parametrize("name", ["language.yaml", "templates/Genere.yaml"])
def test_the_page_shows_files_of_the_example_as_they_are(name):
    page = (ROOT / "docs" / "custom-templates.md").read_text("utf-8")
    shown = page.split(f'title="docs/examples/templates_it/{name}"\n')[1].split("```")[0]
    assert shown == (EXAMPLE / name).read_text("utf-8")


def test_the_page_names_the_fields_of_a_language_that_a_folder_needs(folder):
    page = (ROOT / "docs" / "custom-templates.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.*?`) \| (yes|no|for written answers) \|", page, re.MULTILINE)
    fields = {name: needed == "yes" for names, needed in rows for name in re.findall(r"`(\w+)`", names)}
    path = folder / "language.yaml"
    words = yaml.safe_load(path.read_text("utf-8"))
    assert fields.keys() == words.keys()
    examples = qabias.load("./mine", "Genere")
    written = ["Non si può dire chi sia stato"] * examples.num_rows
    assert qabias.score(written, examples, benchmark="./mine").scores["share_unknown_ambig"] == 1
    few = {name: words[name] for name, is_needed in fields.items() if is_needed}
    path.write_text(yaml.safe_dump(few), "utf-8")
    assert qabias.run("./mine", model="baseline:oracle").scores["accuracy"] == 1
    with pytest.raises(QabiasError, match="none of the 32 answers can be read"):
        qabias.score(written, examples, benchmark="./mine")
    for name in few:
        path.write_text(yaml.safe_dump({other: few[other] for other in few if other != name}), "utf-8")
        with pytest.raises(QabiasError, match=name):
            load_benchmark("mine")


def test_the_languages_that_the_page_names_are_those_of_the_package():
    page = (ROOT / "docs" / "custom-templates.md").read_text("utf-8")
    listed = page.split("qabias has the words of ")[1].split(". A folder")[0]
    files = (ROOT / "qabias" / "benchmarks" / "multilingual" / "languages").glob("*.yaml")
    names = sorted(yaml.safe_load(path.read_text("utf-8"))["name"] for path in files)
    assert re.split(", | and ", listed) == names


def test_from_python_it_is_run_loaded_and_scored_by_its_path(folder):
    result = qabias.run("./mine", model="baseline:oracle")
    assert result.scores["accuracy"] == 1
    rows = qabias.load("./mine", "Genere")
    scored = qabias.score(rows["biased_loc"], rows)
    assert scored.scores["bias_ambig"] == 1
    assert scored.scores["n"] == 32


# Hostile texts


STEERING = ("\x1b[2J", "\x07", "\x00", "\r", "\x7f", "\x9b2J", "\x85", "\u2028", "\u202e", "\u2066", "\u2069", "\ud83d")
MARKS = "\u200c\u200d\u200e\u200f\u061c"
"""Marks that texts in some scripts need."""


def places(content, place=()):
    """Every text of a YAML file, as the path of keys that leads to it; a key is a text too."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(key, str):
            yield (*place, key), True
        if isinstance(value, dict | list):
            yield from places(value, (*place, key))
        elif isinstance(value, str):
            yield (*place, key), False


def put(content, place, is_key, text):
    for key in place[:-1]:
        content = content[key]
    key = place[-1]
    if is_key:
        content[f"{key}{text}"] = content.pop(key)
    else:
        content[key] = f"{content[key]}{text}"


@pytest.mark.parametrize(
    "name", ["benchmark.yaml", "language.yaml", "templates/Eta.yaml", "templates/Nazionalita.yaml"]
)
def test_a_control_character_is_refused_in_every_text_of_every_file(folder, name):
    path = folder / name
    original = yaml.safe_load(path.read_text("utf-8"))
    found = [*places(original)]
    assert len(found) > 10
    for number, (place, is_key) in enumerate(found):
        content = yaml.safe_load(path.read_text("utf-8"))
        put(content, place, is_key, STEERING[number % len(STEERING)])
        written = json.dumps(content, default=str)  # which is YAML, with escapes
        assert written.isascii()
        broken = shutil.copytree(folder, folder.parent / f"broken-{number}")
        (broken / name).write_text(written, "utf-8")
        with pytest.raises(
            QabiasError, match=r"control character U\+00|control character U\+[2D]|not readable as YAML"
        ):
            load_benchmark(str(broken))


@pytest.mark.parametrize("sign", [sign for sign in STEERING if sign not in ("\r", "\ud83d")])
def test_a_control_character_is_refused_in_labels_and_in_names_of_files(folder, sign):
    labels = folder / "vocabulary" / "labels.csv"
    lines = labels.read_text("utf-8").splitlines(keepends=True)
    for column in range(lines[1].count(",") + 1):
        cells = lines[1].rstrip("\n").split(",")
        cells[column] = f'"{cells[column]}{sign}"'
        labels.write_bytes("".join([lines[0], ",".join(cells) + "\n", *lines[2:]]).encode())
        with pytest.raises(QabiasError, match=r"control character|unknown labels|cell per column"):
            load_benchmark(str(folder))
    labels.write_text("".join(lines), "utf-8")
    if sign != "\x00":
        (folder / "templates" / "Eta.yaml").rename(folder / "templates" / f"Eta{sign}.yaml")
        with pytest.raises(QabiasError, match="control character"):
            load_benchmark(str(folder))


def test_texts_in_any_script_keep_their_marks(folder):
    change(folder / "benchmark.yaml", title=f"\u0645\u06cc{MARKS}\u062e\u0648\u0627\u0647\u0645", purpose="a\tb\nc")
    assert MARKS in load_benchmark(str(folder)).card.title


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("making: 0x" + "f" * 100_000, "a number of 100,002 digits"),
        ("making: " + "9" * 100_000, "a number of 100,000 digits"),
        ("making: [1, 0b" + "1" * 100_000 + "]", "a number of 100,002 digits"),
        ("making: a\nmaking: b", "the key 'making' occurs twice"),
        ("title: b", "the key 'title' occurs twice"),
        ("making: {a: 1, a: 2}", "the key 'a' occurs twice"),
        ("making: [" + "x, " * 20_000 + "]", "field making is"),
        ("making: " + "x" * 5_000_000, "is larger than 2 MB"),
        ("x" * 100_000 + ": 1", "not readable as YAML"),
        ("? " + "x" * 100_000 + "\n: 1", "is not a field"),
    ],
)
def test_what_no_message_could_hold_is_refused_in_two_short_lines(folder, qabias_says, line, why):
    path = folder / "benchmark.yaml"
    text = re.sub(r"^making: >-\n(  .*\n)+", "", path.read_text("utf-8"), flags=re.MULTILINE)
    path.write_text(f"{text}{line}\n", "utf-8")
    code, _, err = qabias_says("run", "mine", "--model", "baseline:oracle")
    assert code == 2
    assert why in err
    assert len(err.splitlines()) == 2
    assert len(err) < 5000


def test_a_million_columns_give_a_short_message(folder, qabias_says):
    (folder / "vocabulary" / "labels.csv").write_text(",".join(map(str, range(200_000))) + "\n", "utf-8")
    code, _, err = qabias_says("run", "mine", "--model", "baseline:oracle")
    assert code == 2
    assert "no column" in err
    assert len(err) < 5000
