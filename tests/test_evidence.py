"""Documents of a run: valid for the store, equal to an independent computation, and verified to the digit."""

import itertools
import json
import math
import re
import shutil
from html import unescape
from types import SimpleNamespace
from urllib.parse import urlsplit

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qabias.benchmarks import locate
from qabias.errors import QabiasError
from qabias.evidence.content import Evidence
from qabias.evidence.verification import verify
from qabias.evidence.writing import FORMS, documents, export
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.folder import part_path, read_part, write_checked
from qabias.runs.opened import Run
from qabias.runs.run import run, score_run
from qabias.scores.facts import Hazards
from qabias.support.files import write_text
from qabias.support.stored import CHECKSUM, checked_text
from qabias.tables.export import export as export_tables
from qabias.tables.model import find

from .conftest import ROOT
from .kit.commands import command
from .recompute_evidence import group_of, recompute, rows_of

DATA = ROOT / "bbq_dataset" / "data"
SCHEMAS = ROOT / "tests" / "data" / "every_eval_ever"
CONFIG = "Age,Nationality,Race_ethnicity,Religion"
TILES = ("bias_ambig", "accuracy_ambig", "accuracy_disambig", "accuracy_cost")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A run with its documents, which no test may change."""
    folder = tmp_path_factory.mktemp("evidence") / "run"
    run(RunArguments("bbq", "baseline:random", CONFIG, limit=400, seed=3), folder, Machine(shows_progress=False))
    for form in FORMS:
        export(folder, form)
    return folder


@pytest.fixture
def copied(measured, tmp_path):
    return shutil.copytree(measured, tmp_path / "run")


def reseal(path, change):
    """Change a JSON file and give it a valid checksum."""
    content = json.loads(path.read_text("utf-8"))
    del content[CHECKSUM]
    change(content)
    write_text(path, checked_text(content))


def schema(name):
    content = json.loads((SCHEMAS / name).read_text("utf-8"))
    return jsonschema.validators.validator_for(content)(content)


def places(folder, run_folder=None):
    return [difference.place for difference in verify(folder, run_folder).differences]


def records(folder):
    """The aggregate and the instances."""
    [aggregate] = (folder / "export" / "data").rglob("*.json")
    [instances] = (folder / "export" / "data").rglob("*.jsonl")
    return json.loads(aggregate.read_text("utf-8")), list(map(json.loads, instances.read_text("utf-8").splitlines()))


def test_the_records_are_valid_by_the_schemas_of_the_store(measured):
    aggregate, instances = records(measured)
    schema("eval.schema.json").validate(aggregate)
    one = schema("instance_level_eval.schema.json")
    for instance in instances:
        one.validate(instance)
    assert len(instances) == aggregate["detailed_evaluation_results"]["total_rows"] > 350


@pytest.mark.slow
@pytest.mark.parametrize(("name", "config"), [("unqover", "religion"), ("bbnli", "religion")])
def test_records_of_other_benchmarks_are_valid(name, config, tmp_path):
    run(RunArguments(name, "baseline:random", config, limit=60), tmp_path / "run", Machine(shows_progress=False))
    files = documents(Evidence(Run.scored(tmp_path / "run")), "every-eval-ever")
    assert any(path.endswith(".jsonl") for path in files) == (name == "bbnli")
    for path, content in files.items():
        kind = "instance_level_eval.schema.json" if path.endswith(".jsonl") else "eval.schema.json"
        for text in content.decode().splitlines() if path.endswith(".jsonl") else [content.decode()]:
            schema(kind).validate(json.loads(text))
    for form in FORMS:
        [path] = export(tmp_path / "run", form, tmp_path / form)[-1:]
        assert verify(path, tmp_path / "run").differences == ()


def test_a_bias_of_minus_0_3_has_its_range_and_direction(measured):
    evidence = Evidence(Run.scored(measured))
    scores = {**evidence.run.scores, "bias_ambig": -0.3}
    changed = Evidence(Run.from_file(evidence.run, {"scores": scores}))
    [*_, content] = documents(changed, "every-eval-ever").values()
    aggregate = json.loads(content)
    schema("eval.schema.json").validate(aggregate)
    [record] = [one for one in aggregate["evaluation_results"] if one["evaluation_result_id"] == "All/bias_ambig"]
    config = record["metric_config"]
    assert record["score_details"]["score"] == -0.3
    assert (config["min_score"], config["max_score"]) == (-1, 1)
    assert config["metric_parameters"] == {"best_value": 0, "compare_absolute_value": True}


def test_an_independent_script_recomputes_the_records(measured):
    aggregate, instances = records(measured)
    scores, examples, answers = recompute(str(measured), str(DATA))
    n_intervals = n_detectable = n_bounds = 0
    for record in aggregate["evaluation_results"]:
        name, details = record["evaluation_result_id"], record["score_details"]
        score = scores[tuple(name.rsplit("/", 1))]
        assert details["score"] == pytest.approx(score.value, abs=1e-12), name
        assert details["uncertainty"]["num_samples"] == score.n, name
        interval = details["uncertainty"].get("confidence_interval")
        shown = interval and (interval["lower"], interval["upper"])
        assert (shown is None) == (score.ends is None), name
        if shown:
            assert shown == pytest.approx(score.ends, abs=1e-9), name
            n_intervals += 1
        if size := details["details"].get("minimum_detectable_effect"):
            assert size == points(score.detectable), name
            n_detectable += 1
        if bound := details["details"].get("largest_absolute_value_at_this_accuracy"):
            assert float(bound) == pytest.approx(score.bound, abs=1e-12), name
            n_bounds += 1
    assert len(aggregate["evaluation_results"]) == 54
    assert min(n_intervals, n_detectable, n_bounds) > 10
    details = aggregate["source_metadata"]["additional_details"]
    assert examples in details["examples"]
    assert answers in details["answers"]
    right = [one["evaluation"]["is_correct"] for one in instances]
    counts = [scores["All", f"accuracy_{name}"] for name in ("ambig", "disambig")]
    assert sum(right) == pytest.approx(sum(score.value * score.n for score in counts))


def points(size):
    return "n/a" if math.isnan(size) else f"{100 * size:.1f} points"


def shown(number, signed=""):
    rounded = round(100 * number, 1)
    return f"{rounded:{signed}.1f}".replace("-", "−") if rounded else "0.0"


def cell(score, name):
    """A score as a text shows it."""
    signed = "" if name.startswith("accuracy_") and name != "accuracy_cost" else "+"
    ends = f"[{shown(score.ends[0], signed)}, {shown(score.ends[1], signed)}]" if score.ends else "(no CI)"
    return f"{shown(score.value, signed)} % {ends}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model-card.md", "bias-profile.html", "bias.md"])
def test_an_independent_script_recomputes_the_numbers_of_texts(measured, name):
    """Every number of a text is recomputed: what remains without the recomputed passages has no digits."""
    scores, examples, answers = recompute(str(measured), str(DATA))
    rows = rows_of(str(measured), str(DATA))
    text = (measured / "export" / name).read_text("utf-8")
    text = unescape(text).replace("\\", "").replace("\u00a0", " ")
    assert examples in text
    assert answers in text
    text = text[text.find("<body>") + 1 :]
    text = text[: text.rindex("Identity")]
    harms = {}
    for row in rows:
        words = {"old": "older people", "nonOld": "younger people"}
        groups = [words.get(group, group) for group in row["additional_metadata"]["stereotyped_groups"]]
        people = ", ".join(groups) or row["category"]
        harms.setdefault((people, row["social_value"].replace("_", " ")), set()).add(row["template_id"])
    if name == "bias-profile.html":
        for (group, harm), templates in harms.items():
            row = f'<th scope="row">{group}</th><td class="text">{harm}</td><td>{len(templates)}</td>'
            assert text.count(row) == 1, row
            text = text.replace(row, "")
        text = re.sub(r'<p class="muted">[^\n]*doi[^\n]*', "", text)
        for url in {url for row in rows for url in row["additional_metadata"]["source"].split()}:
            text = text.replace(f">{urlsplit(url).netloc}</a>", "></a>")
        text = text.replace(f"test {len(harms)} documented harms of {len({group for group, _ in harms})} groups", "")
    text = " ".join(re.sub(r"<[^>]+>", " ", text).replace("|", " ").split())
    if name == "bias.md":
        ranked = {measure: [] for measure in TILES}
        for (group, measure), score in scores.items():
            if measure in TILES and group != "All" and score.ends:
                ranked[measure].append((score.value, group))
        worst = max(ranked["bias_ambig"], key=lambda one: abs(one[0]))[1], min(ranked["accuracy_disambig"])[1]
        assert re.search(rf"difference in performance {worst[0]}: .* overall {worst[1]}: ", text)
        assert all(f": {cell(scores['All', measure], measure)}." in text for measure in TILES)
    else:
        for group in {group for group, _ in scores}:
            assert " ".join([group, *(cell(scores[group, measure], measure) for measure in TILES)]) in text
    for (_, measure), score in scores.items():
        text = text.replace(cell(score, measure), "")
    whole = {measure: score for (group, measure), score in scores.items() if group == "All"}
    n = {context: sum(row["context_condition"] == context for row in rows) for context in ("ambig", "disambig")}
    n_templates, n_groups = len({row["template_id"] for row in rows}), len({group_of(row) for row in rows})
    all_rows = [row for one in CONFIG.split(",") for row in pq.read_table(DATA / one).to_pylist()]
    n_all = len({row["template_id"] for row in all_rows})
    without = [score for (group, measure), score in scores.items() if score.ends is None]
    for passage in (
        f"{len(rows)} examples ({n['ambig']} ambiguous, {n['disambig']} disambiguated)",
        f"from {n_templates} templates in 4",
        f"Sample: {len(rows)} of {len(all_rows):,} examples, from {n_templates} of {n_all} templates",
        f"Accuracy, disambiguated contexts: {shown(whole['accuracy_disambig'].value)} %",
        f"a bias of {points(whole['bias_ambig'].detectable)}",
        f"{len(without)} scores have no CI",
        f"of {n_groups} groups",
        f"{sum(row['prediction'] is None for row in rows)} outputs named no answer (0.0 %)",
        *{row["additional_metadata"]["source"] for row in rows},
        *("0 is best", "1 is best", "above 0", "Above 0", "below 0", "near 0", "95%", "qabias 0.1.0"),  # fixed words
        "Chance is 33%",
    ):
        text = text.replace(passage, "")
    assert re.findall(r".{,40}\d.{,40}", text) == []


def test_a_document_names_itself_and_is_verified_under_any_name(measured, tmp_path):
    card = tmp_path / "my card.md"
    assert command("export", measured, "--as", "model-card", "--output", card).code == 0
    assert "`qabias verify 'my card.md' --run RUN`" in card.read_text("utf-8")
    assert command("verify", card, "--run", measured).code == 0
    assert command("verify", card.rename(tmp_path / "other.md"), "--run", measured).code == 0


def test_documents_name_their_source_and_claim_no_absence_of_bias(measured):
    signature = Run.open(measured).signature
    for name in ("model-card.md", "bias-profile.html", "bias.md"):
        text = (measured / "export" / name).read_text("utf-8")
        assert signature in text
        assert "TO COMPLETE:" in text
        assert "does not show that the model is free of bias" in text
        assert not re.search(r"\b(unbiased|no bias)\b", text, re.IGNORECASE)
    page = (measured / "export" / "bias-profile.html").read_text("utf-8")
    assert page.count('<td class="text"><a href="https://') > 20, "harms have sources"


def test_a_run_and_its_documents_are_verified(measured):
    for path in (measured, *(path for path in (measured / "export").rglob("*") if path.is_file())):
        result = verify(path)
        assert result.differences == ()
        assert result.n_numbers > 500
        assert result.notes == ()


@pytest.mark.slow
def test_the_folder_of_an_export_is_verified_file_by_file(copied, tmp_path, monkeypatch):
    """Also records deep in it, and tables. The run is next to the folder."""
    store = tmp_path / "doc" / "store"
    for form in FORMS:
        export(copied, form, store)
    copied.rename(tmp_path / "doc" / "run")
    run_folder = tmp_path / "doc" / "run"
    result = verify(store)
    assert result.differences == ()
    assert result.n_numbers > verify(run_folder).n_numbers
    export_tables(run_folder, store)
    with pytest.raises(QabiasError, match="no run folder nearby has its digest"):
        verify(store)
    assert verify(store, run_folder).differences == ()
    [record] = store.rglob("*_samples.jsonl")
    paths = (record, store / "bias.md", store / "bias_by_category.csv", store / "bias_by_category.tex")
    texts = [path.read_text("utf-8") for path in paths]
    for path, text in zip(paths, texts, strict=True):
        [begin] = [match.start() for match in itertools.islice(re.finditer(r"\d", text), 40, 41)]
        path.write_text(f"{text[:begin]}{(int(text[begin]) + 1) % 10}{text[begin + 1 :]}", "utf-8")
    assert {place.partition(":")[0] for place in places(store, run_folder)} == {path.name for path in paths}
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, "utf-8")
    (store / "bias.pdf").write_bytes(b"%PDF-")
    assert verify(store, run_folder).notes == ("bias.pdf is a picture, not verified.",)
    (store / "extra.csv").write_text("a,b\n", "utf-8")
    assert places(store, run_folder) == ["extra.csv"]


def test_groups_of_documents_are_no_codes(measured):
    evidence = Evidence(Run.scored(measured))
    groups = {one.group for one in evidence.hazards}
    assert {"older people", "younger people"} <= groups
    assert not groups & {"old", "nonOld"}
    stereotypes = find(evidence.run.analysis.tables, "stereotypes_Age")
    assert {row[1] for row in stereotypes.rows} == {"older people", "younger people"}


@pytest.mark.parametrize(
    ("source", "public"),
    [
        ("http://journals-sagepub-com.proxy.library.some.edu/doi/1", "https://journals.sagepub.com/doi/1"),
        ("A title: https://www-jstor-org.ezproxy.some.edu/stable/10-2", "A title: https://www.jstor.org/stable/10-2"),
        ("https://doi.org/10.1/a-proxy.b/c", "https://doi.org/10.1/a-proxy.b/c"),
    ],
)
def test_a_source_behind_the_proxy_of_a_library_gets_its_public_address(source, public):
    table = pa.table({"harm": ["x"], "template": ["one"]})
    hazards = Hazards(("harm",), lambda row: ("people", row["harm"], source))
    view = SimpleNamespace(template=lambda table: table["template"])
    benchmark = SimpleNamespace(facts=SimpleNamespace(hazards=hazards, view=view))
    run = SimpleNamespace(benchmark=benchmark, question=SimpleNamespace(table=table))
    assert [one.sources for one in Evidence(run).hazards] == [(public,)]


def test_no_source_of_our_texts_needs_a_login_session():
    templates = (path.read_text("utf-8") for path in (ROOT / "bbq_dataset" / "templates").glob("*.yaml"))
    assert [found for text in templates for found in re.findall(r"\S*(?:proxy\.|[?&]sid=)\S*", text)] == []


def test_a_completed_draft_is_verified_and_the_completed_lines_are_named(copied):
    path = copied / "export" / "bias.md"
    lines = path.read_text("utf-8").splitlines()
    [number] = [number for number, line in enumerate(lines, 1) if "TO COMPLETE: what" in line]
    lines[number - 1] = "| Measures taken | We removed 3% of the texts. |"
    path.write_text("\n".join(lines), "utf-8")
    result = verify(path)
    assert result.differences == ()
    assert str(number) in result.notes[0]
    with pytest.raises(QabiasError, match="overwrite"):
        export(copied, "nvidia-bias-md")  # would lose what the person wrote


def test_a_changed_answer_with_a_valid_checksum_is_named(copied):
    changed = Run.open(copied)
    answers = read_part(changed, 0)
    places_of = answers["prediction"].to_pylist()
    places_of[0] = (places_of[0] + 1) % 3
    column = answers.schema.get_field_index("prediction")
    answers = answers.set_column(column, "prediction", [[*places_of]])
    answers = answers.cast(read_part(changed, 0).schema)
    write_checked(part_path(copied, 0), answers, changed.digest)
    differing = places(copied)
    assert any(place.startswith("scores.json/scores/") for place in differing)
    assert any(place.startswith("analysis.json/") for place in differing)
    score_run(copied)  # hides the change from the folder, and not from documents
    assert places(copied) == []
    assert any(place.startswith("bias.md:") for place in places(copied / "export" / "bias.md"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", 4), ("limit", 401), ("model", "baseline:oracle"), ("config", "Age"), ("length_norm", "token")],
)
def test_changed_arguments_are_named_with_and_without_a_checksum(copied, name, value):
    path = copied / "run.json"
    text = path.read_text("utf-8")
    content = json.loads(text)
    content["arguments"][name] = value
    path.write_text(json.dumps(content), "utf-8")
    assert places(copied) == ["run.json"]
    path.write_text(text, "utf-8")
    reseal(path, lambda content: content["arguments"].update({name: value}))
    assert any(place.startswith(("run.json/signature", "predictions/")) for place in places(copied))


def test_a_score_without_a_checksum_or_with_another_value_is_named(copied):
    path = copied / "scores.json"
    content = json.loads(path.read_text("utf-8"))
    del content[CHECKSUM]
    path.write_text(json.dumps(content), "utf-8")
    assert places(copied) == ["scores.json"]
    write_text(path, checked_text(content))
    assert places(copied) == []
    reseal(path, lambda content: content["scores"]["by"]["paper_category"]["Age"].update(accuracy_ambig=0.9))
    assert places(copied) == ["scores.json/scores/by/paper_category/Age/accuracy_ambig"]


def test_a_changed_text_is_named(copied, tmp_path, monkeypatch):
    folder = shutil.copytree(ROOT / "bbq_dataset", tmp_path / "texts")
    monkeypatch.setattr(locate, "dataset_folder", lambda _: folder)
    path = folder / "data" / "Age" / "test-00000-of-00001.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    [difference] = verify(copied).differences
    assert difference.place == "texts"
    assert "Age" in difference.what


def test_a_results_file_of_the_hub_is_verified(tmp_path):
    def always_first(prompts):
        return ["A"] * len(prompts)

    arguments = RunArguments("bbq", "me/model", limit=40, backend="function")
    run(arguments, tmp_path / "run", Machine(shows_progress=False), handed_over=always_first)
    [_, path] = export(tmp_path / "run", "model-card", dataset="me/set")
    assert verify(path).differences == ()
    text = path.read_text("utf-8")
    path.write_text(
        re.sub(r"value: 0\.(\d)", lambda match: f"value: 0.{(int(match[1]) + 1) % 10}", text, count=1), "utf-8"
    )
    assert places(path) == [f"{path.name}:4"]


def test_the_command_line(copied, tmp_path):
    assert command("verify", copied).code == 0
    output = tmp_path / "mine.md"
    assert command("export", copied, "--as", "model-card", "--output", output).code == 0
    text = output.read_text("utf-8")
    output.write_text(text.replace("[", "[1", 1), "utf-8")
    ended = command("verify", output, "--run", copied)
    assert ended.code == 1
    assert "mine.md:" in ended.out
    assert "cannot prove" in ended.out
    for words in (
        ("export", copied, "--as", "modelcard"),
        ("export", copied, "--as", "bias-profile", "--format", "csv"),
        ("export", copied, "--dataset", "me/set"),
        ("export", copied, "--as", "every-eval-ever", "--output", tmp_path / "one.json"),
        ("verify", copied, "--run", copied),
        ("verify", copied / "scores.json"),
        ("verify", tmp_path),
        ("verify", tmp_path / "nothing"),
    ):
        assert command(*words).code == 2, words
