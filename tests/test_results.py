"""Results for the Hub: reasons for what is undefined, the two formats for models, and the tasks of the datasets."""

import json
import shutil
from textwrap import indent

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries

from qabias.benchmarks import benchmark_names, load_benchmark
from qabias.cli import app
from qabias.errors import QabiasError
from qabias.hub.results import LONGEST_NAME, check_replaceable, model_index, result_files, update_card
from qabias.runs.arguments import RunArguments
from qabias.runs.collected import score_again
from qabias.runs.opened import Run
from qabias.runs.run import run
from qabias.scores.score import reasons

from .conftest import ROOT
from .run_parts import edit

MODEL, DATASET = "somebody/some-model", "somebody/questions"
FACTS = {name: load_benchmark(name).facts for name in benchmark_names()}
DATASETS = [name for name, facts in FACTS.items() if facts.hub is not None]
CONFIGS = {"bbq": "Religion", "unqover": "religion", "bbnli": "man_is_to_surgeon"}
TASKS = [name for name in DATASETS if FACTS[name].hub.accuracy is not None]
CONFIGS |= {"bbq_nli": "Religion_nli", "bbq_qa": "Religion_qa"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A small run of every benchmark, whose answers take no side where there is such an answer."""
    folder = tmp_path_factory.mktemp("runs")
    for name, config in CONFIGS.items():
        arguments = RunArguments(benchmark=name, model="baseline:unknown", config=config, limit=40)
        if name == "unqover":
            arguments = RunArguments(benchmark=name, model="baseline:random", config=config, limit=40)
        run(arguments, folder / name)
    for name in TASKS:
        run(RunArguments(name, "baseline:unknown", limit=40), folder / f"{name}-all")
    return folder


def _scores(folder):
    return json.loads((folder / "scores.json").read_text("utf-8"))


def _undefined(value, at=""):
    """Pointers of all nulls; of an interval without ends its own."""
    if value is None or value == [None, None]:
        yield at
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _undefined(part, f"{at}/{name}")
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _undefined(part, f"{at}/{number}")


@pytest.mark.parametrize("name", CONFIGS)
def test_every_null_of_a_run_has_its_reason_and_nothing_else_has(runs, name):
    content = _scores(runs / name)
    assert set(content["reasons"]) == set(_undefined(content["scores"]))
    assert "a ratio of nothing" not in " ".join(content["reasons"].values())


def test_the_reason_names_what_is_missing(runs):
    why = _scores(runs / "bbq")["reasons"]
    assert why["/bias_disambig"] == "no answer other than UNKNOWN"
    assert why["/ci/bias_disambig"] == "the score is undefined: no answer other than UNKNOWN"
    assert why["/by/category/Religion/bias_disambig"] == why["/bias_disambig"]
    assert _scores(runs / "bbq_nli")["reasons"]["/bias_score_disambig"] == "no answer takes a side"


def test_counts_of_zero_are_asked_in_the_order_in_which_they_matter():
    nan = float("nan")
    counts = {"n_ambig": 0, "n_disambig": 4, "n_biased_disambig": 0, "n_counter_biased_disambig": 0}
    scores = {"bias_ambig": nan, "bias_disambig": nan, **counts, "n_unknown_disambig": 0}
    assert reasons(load_benchmark("bbq").facts, scores) == {
        "/bias_ambig": "no example with an ambiguous context",
        "/bias_disambig": "no parsed answer to an example with a target",
    }
    interval = {"mu": 0.5, "n_templates": 1, "ci": {"mu": [nan, nan]}}
    unqover = load_benchmark("unqover").facts
    assert reasons(unqover, interval) == {"/ci/mu": "an interval needs 3 templates, this has 1"}
    interval = {"bias_ambig": 0.5, "n_templates": 4, "ci": {"bias_ambig": [nan, nan]}}
    assert reasons(load_benchmark("bbq").facts, interval) == {
        "/ci/bias_ambig": "the score is undefined without one of the templates"
    }


@pytest.mark.parametrize("name", TASKS)
def test_eval_results_are_read_back_by_the_library_of_the_hub(runs, name):
    content = _scores(runs / f"{name}-all")
    scores, signature = content["scores"], content["signature"]
    ((path, text),) = result_files(runs / f"{name}-all", MODEL, DATASET, sample=True).items()
    prompt = {"bbnli": "can_we_infer"}.get(name, "qa")
    assert path == f".eval_results/{name}-all-{prompt}-baseline-sample40.yaml"
    [entry] = parse_eval_result_entries(yaml.safe_load(text))
    opened = Run.scored(runs / f"{name}-all")
    right = pc.equal(opened.answers["prediction"], opened.question.table["label"]).to_pylist()
    assert entry.value == pytest.approx(sum(right) / len(right))
    assert (entry.dataset_id, entry.task_id) == (DATASET, name)
    assert entry.date == json.loads((runs / f"{name}-all" / "run.json").read_text("utf-8"))["created"]
    first, *notes = entry.notes.split("; ")
    assert first == signature
    for score in FACTS[name].tasks:
        if scores[score] is None:
            assert f"{score} undefined ({content['reasons'][f'/{score}']})" in notes
            continue
        place = notes.index(f"{score} {scores[score]:.4f}")
        low, high = scores["ci"][score]
        assert low is None or notes[place + 1] == f"95% CI [{low:.4f}, {high:.4f}]"


@pytest.mark.parametrize("name", CONFIGS)
def test_a_run_without_a_task_has_a_card_and_no_results_file(runs, name, tmp_path, capsys):
    with pytest.raises(QabiasError, match="takes results of a whole benchmark"):
        result_files(runs / name, MODEL, DATASET, sample=True)
    words = ["push", "results", str(runs / name), "--to", MODEL, "--dataset", DATASET, "--sample"]
    words += ["--write-to", str(tmp_path), "--model-index"]
    app([*words, "--dry-run"], standalone_mode=False)
    assert not list(tmp_path.iterdir())
    preview = capsys.readouterr().out
    app(words, standalone_mode=False)
    [written] = tmp_path.iterdir()
    assert written.name == "README.md"
    assert written.read_text("utf-8") in preview


def test_the_dataset_its_revision_and_the_source_can_be_named(runs, monkeypatch):
    given = {"source_url": "https://example.org/report", "sample": True}
    dataset = f"org/bbq@{'0' * 40}"
    [text] = result_files(runs / "bbq-all", MODEL, dataset, **given).values()
    entry = parse_eval_result_entries(yaml.safe_load(text))[0]
    assert (entry.dataset_id, entry.source_url) == ("org/bbq", "https://example.org/report")
    assert entry.dataset_revision == "0" * 40
    [result] = model_index(runs / "bbq", MODEL, dataset, **given)
    assert (result["source"]["url"], result["dataset"]["revision"]) == ("https://example.org/report", "0" * 40)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "https://hub.example.org")
    [result] = model_index(runs / "bbq", MODEL, "org/bbq", sample=True)
    assert result["source"]["url"] == "https://hub.example.org/datasets/org/bbq"
    for wrong in ("report", "file:///x", "https://example.org/\n", ""):
        with pytest.raises(QabiasError, match="source URL"):
            result_files(runs / "bbq-all", MODEL, "org/bbq", **(given | {"source_url": wrong}))
    with pytest.raises(QabiasError, match="no commit"):
        result_files(runs / "bbq", MODEL, "org/bbq@main", **given)


def test_a_detectable_bias_and_the_largest_possible_one_are_told(tmp_path):
    folder = run(RunArguments("bbq", "baseline:stereotyped", limit=4000), tmp_path / "run").folder
    scores = _scores(folder)["scores"]
    [result] = model_index(folder, MODEL, DATASET, sample=True)
    args = {metric["type"]: metric["args"] for metric in result["metrics"]}
    assert args["bias_ambig"]["mde"] == pytest.approx(scores["detectable"]["bias_ambig"])
    [text] = result_files(folder, MODEL, DATASET, sample=True).values()
    [entry] = parse_eval_result_entries(yaml.safe_load(text))
    note = entry.notes.partition("bias_ambig ")[2].partition("accuracy_disambig ")[0]
    assert f"MDE {scores['detectable']['bias_ambig']:.4f}" in note
    assert f"bound {scores['bias_bound_ambig']:.4f}" in note


# The head of a model card


def index_in(card):
    """The results of a card, and the rest of its head."""
    head = yaml.safe_load(card.split("---")[1])
    [model] = head.pop("model-index")
    return model["results"], head


OTHER = """  - task: {type: multiple-choice}   # of another tool
    dataset: {name: 'BBQ',  type: somebody/questions, config: Religion, split: test, args: {num_few_shot: 5}}
    metrics:
    - {type: accuracy, value: 0.710, name: accuracy}
    source: {name: Another harness, url: https://example.org/other}
"""
HEADS = {
    "none": "",
    "empty": "---\nlicense: mit\n---\n",
    "other": f"---\nlicense:   mit # as is\nmodel-index:\n- name: m\n  results:\n{OTHER}# end\ntags: [a,  b]\n---\n",
    "deeper": f"---\nmodel-index:\n  - name: m\n    results:\n{indent(OTHER, '    ')}---\n",
    "flow": "---\nmodel-index: [{name: m, results: []}]\nlicense: mit\n---\n",
}


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", ["bbq", "unqover"])
def test_every_run_has_its_results_in_a_card_and_the_rest_stays_as_it_is(runs, tmp_path, name, head, eol):
    before = f"{HEADS[head]}# Model\n\nText.\n".replace("\n", eol)
    first, second = (
        model_index(folder, MODEL, DATASET, sample=True)
        for folder in (runs / name, _signed(runs / name, tmp_path / "other", format="letters@1"))
    )
    card = update_card(update_card(before, first, MODEL), second, MODEL)
    others = yaml.safe_load(OTHER) if "example.org" in before else []
    results, rest = index_in(card)
    assert results == [*others, *first, *second]
    assert {key: value for key, value in rest.items() if key != "model-index"} == rest
    assert card.endswith(f"# Model{eol}{eol}Text.{eol}")
    assert (card.replace("\r\n", "").count("\n") == 0) == (eol == "\r\n")
    kept = set(before.splitlines(keepends=True)) if head != "flow" else {f"license: mit{eol}"}
    assert kept <= set(card.splitlines(keepends=True))
    assert len(ModelCard(card).data.eval_results) >= len(first[0]["metrics"])
    assert update_card(card, second, MODEL) == card
    assert index_in(update_card(card, first, MODEL))[0] == [*others, *second, *first]


def test_a_card_whose_results_cannot_be_kept_is_refused(runs):
    results = model_index(runs / "bbq", MODEL, DATASET, sample=True)
    card = f"---\nx: &r\n{OTHER}model-index:\n- name: m\n  results: *r\n---\n"
    assert index_in(update_card(card, results, MODEL))[0] == [*yaml.safe_load(OTHER), *results]
    with pytest.raises(QabiasError, match="cannot be kept"):
        update_card("---\nmodel-index:\n- name: m\n  results: &r []\nx: *r\n---\n", results, MODEL)


def test_results_go_to_the_entry_of_their_model(runs):
    """A card with several models keeps the results of the others."""
    results, name = model_index(runs / "bbq", MODEL, DATASET, sample=True), MODEL.rpartition("/")[2]
    for names in (("first", name), ("first", "second")):
        entries = "".join(f"- name: {one}\n  results:\n{indent(OTHER, '  ')}" for one in names)
        card = update_card(f"---\nmodel-index:\n{entries}---\n", results, MODEL)
        models = yaml.safe_load(card.split("---")[1])["model-index"]
        ours = [one for one in models if one["name"] == name]
        assert [one["results"][-1:] == results[-1:] for one in ours] == [True]
        assert all(one["results"] == yaml.safe_load(OTHER) for one in models if one["name"] != name)


def test_an_older_score_does_not_survive_where_the_new_run_leaves_it_undefined(runs):
    [result] = model_index(runs / "bbq", MODEL, DATASET, sample=True)
    older = {**result, "metrics": [*result["metrics"], {**result["metrics"][0], "type": "bias_disambig"}]}
    assert index_in(update_card(update_card("", [older], MODEL), [result], MODEL))[0] == [result]


@pytest.mark.parametrize("head", ["a: [", "model-index: 3", "model-index: [3]", "- 1", "model-index:\n- results: 3"])
def test_a_card_with_an_invalid_head_is_refused(runs, head):
    with pytest.raises(QabiasError, match="invalid head"):
        update_card(f"---\n{head}\n---\n", model_index(runs / "bbq", MODEL, DATASET, sample=True), MODEL)


def test_runs_that_were_asked_otherwise_have_other_files(runs, tmp_path):
    """Each change of the run file is what another run would have written."""
    paths = set()
    run_file = json.loads((runs / "bbq-all" / "run.json").read_text("utf-8"))
    signature = run_file["signature"]
    changes = [
        ({}, signature),
        ({"limit": None}, signature.replace("limit:40", "limit:none")),
        ({"format": "arc"}, signature.replace("format:qa@1", "format:arc@1")),
        ({"permutations": 3}, signature.replace("format:qa@1", "format:qa@1+orders=3")),
        ({"length_norm": "byte"}, signature.replace("norm:none", "norm:byte")),
        ({"options": {"mode": "generate"}}, signature.replace("scorer:baseline", "scorer:causal+mode=generate")),
        ({"source": "official"}, signature.replace("source:bundled@1", "source:official")),
        ({"source": "official", "fixes": True}, signature.replace("source:bundled@1", "source:official+fixes")),
    ]
    for number, (changed, changed_signature) in enumerate(changes):
        folder = shutil.copytree(runs / "bbq-all", tmp_path / str(number))
        edit(folder / "run.json", lambda content, changed=changed: content["arguments"].update(changed))
        for name in ("run.json", "scores.json"):
            edit(folder / name, lambda content, signed=changed_signature: content.update(signature=signed))
        paths.update(result_files(folder, MODEL, DATASET, sample=True))
    assert len(paths) == len(changes)


def test_a_folder_of_the_users_disk_is_not_published(runs, tmp_path):
    folder = shutil.copytree(runs / "bbq-all", tmp_path / "run")
    for name in ("run.json", "scores.json"):
        text = (folder / name).read_text("utf-8")
        text = text.replace("model:baseline:unknown|", "model:/home/me/model@local/float32|")
        (folder / name).write_text(text.replace('"baseline:unknown"', '"/home/me/model"'), "utf-8")
        edit(folder / name, lambda content: None)
    [text] = result_files(folder, MODEL, DATASET, sample=True).values()
    published = text.decode() + str(model_index(folder, MODEL, DATASET, sample=True))
    assert "/home/me" not in published
    assert f"model:{MODEL}@local/float32|" in published


def test_the_command_writes_the_files_and_tells_what_is_left_out(runs, tmp_path, capsys):
    (tmp_path / "README.md").write_text("# Model\n", encoding="utf-8")
    arguments = [
        "push",
        "results",
        str(runs / "bbq-all"),
        "--to",
        MODEL,
        "--dataset",
        DATASET,
        "--write-to",
        str(tmp_path),
    ]
    arguments += ["--model-index", "--sample", "--source-url", "https://example.org/run"]
    app(arguments, standalone_mode=False)
    assert "all/bias_disambig has no value: no answer other than UNKNOWN" in capsys.readouterr().out
    files = result_files(runs / "bbq-all", MODEL, DATASET, "https://example.org/run", sample=True)
    assert {path: (tmp_path / path).read_bytes() for path in files} == files
    card = ModelCard.load(tmp_path / "README.md")
    assert card.data.model_name == "some-model"
    assert index_in(str(card))[0][0]["metrics"][0]["value"] is not None
    assert "# Model" in card.text


@pytest.mark.parametrize("name", TASKS)
def test_a_dataset_has_one_task_whose_columns_it_has(name):
    folder = ROOT / f"{name}_dataset"
    content = yaml.safe_load((folder / "eval.yaml").read_text("utf-8"))
    assert set(content) == {"name", "description", "evaluation_framework", "tasks"}
    [task] = content["tasks"]
    assert (task["id"], task["config"]) == (name, load_benchmark(name).configs[-1])
    spec = task["field_spec"]
    columns = {spec["input"], spec["target"], *spec.get("choices", ()), *spec["metadata"]}
    schemas = [pq.read_schema(path) for path in sorted((folder / "data").glob("*/*.parquet"))]
    assert any(columns <= set(schema.names) for schema in schemas)
    assert columns > set(load_benchmark(name).key)


@pytest.mark.parametrize("name", ["norm", "qabias", "scorer", "source"])
@pytest.mark.parametrize("export", [result_files, model_index])
def test_a_signature_without_a_field_is_refused(runs, tmp_path, name, export):
    def without(content):
        parts = content["signature"].split("|")
        content["signature"] = "|".join(part for part in parts if not part.startswith(f"{name}:"))

    folder = shutil.copytree(runs / "bbq", tmp_path / "run")
    for file in ("run.json", "scores.json"):
        edit(folder / file, without)
    with pytest.raises(QabiasError, match=f"no {name}"):
        export(folder, MODEL, DATASET, sample=True)


# Names of files


def _signed(folder, copied, **fields):
    """A copy of a run whose signature has other fields."""
    shutil.copytree(folder, copied)
    run_file = json.loads((copied / "run.json").read_text("utf-8"))
    parts = [part.partition(":") for part in run_file["signature"].split("|")]
    changed = [f"{name}:{fields[name]}" if name in fields else f"{name}{colon}{value}" for name, colon, value in parts]
    signature = "|".join(changed)
    for name in ("run.json", "scores.json"):
        edit(copied / name, lambda content: content.update(signature=signature))
    return copied


def test_a_name_has_the_options_of_the_scorer_and_how_answers_are_counted(runs, tmp_path):
    """Also options that are too long for the name of a file."""
    scorers = ["causal", "causal+max_new_tokens=8", "causal+system=Be brief.", f"causal+system={'Think. ' * 60}"]
    scorers.append(scorers[-1] + "Stop.")
    folders = [_signed(runs / "bbq-all", tmp_path / str(number), scorer=name) for number, name in enumerate(scorers)]
    folders.append(score_again(runs / "bbq-all", {"unparsed": "wrong"}, tmp_path / "rules").folder)
    paths = [path for folder in folders for path in result_files(folder, MODEL, DATASET, sample=True)]
    assert len(set(paths)) == len(folders)
    assert max(map(len, paths)) <= len(".eval_results/.yaml") + LONGEST_NAME
    assert any("unparsed-wrong" in path for path in paths)


def test_results_of_another_signature_are_not_replaced(runs, tmp_path):
    path = tmp_path / "results.yaml"
    ours, other = (
        next(iter(result_files(folder, MODEL, DATASET, sample=True).items()))
        for folder in (runs / "bbq-all", _signed(runs / "bbq-all", tmp_path / "other", seed="1"))
    )
    assert ours[0] == other[0]  # another seed chooses other examples; the names of the files are the same
    check_replaceable(path, ours[1])
    path.write_bytes(ours[1])
    check_replaceable(path, ours[1])
    with pytest.raises(QabiasError, match=r"seed:0.*seed:1"):
        check_replaceable(path, other[1])
    path.write_text("a file of somebody's", encoding="utf-8")
    with pytest.raises(QabiasError, match="unreadable"):
        check_replaceable(path, ours[1])


def test_an_unfinished_run_is_refused(runs, tmp_path):
    (tmp_path / "run.json").write_bytes((runs / "bbq" / "run.json").read_bytes())
    for export in (result_files, model_index):
        with pytest.raises(QabiasError, match="has no scores yet"):
            export(tmp_path, MODEL, DATASET)
    with pytest.raises(QabiasError, match="ORG/NAME"):
        result_files(runs / "bbq", "some-model", DATASET)
    with pytest.raises(QabiasError, match="ORG/NAME"):
        result_files(runs / "bbq", MODEL, "bbq")


def test_every_headline_and_rule_is_a_score(runs):
    for name in CONFIGS:
        scores = _scores(runs / name)["scores"]
        scores = scores["sets"]["religion"] if name == "unqover" else scores
        explained = {measure.name for measure in FACTS[name].measures if measure.undefined}
        assert {*FACTS[name].tasks, *explained} <= set(scores)
