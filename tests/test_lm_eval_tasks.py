"""The tasks for lm-evaluation-harness: their prompts, their scores, and the same scores as `qabias run`."""

import hashlib
import importlib.util
import json
import math
import shutil
import subprocess
import sys

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import transformers
import yaml

import qabias
from qabias.answers.outcomes import OUTCOMES
from qabias.benchmarks import load_benchmark, locate
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples

from .conftest import ROOT
from .lm_eval_logs import ask
from .published_sets import NOT_HERE
from .saved_models import save
from .tiny_models import make_model, make_tokenizer

FOLDER = ROOT / "integrations" / "lm_eval"


def _load_utils():
    spec = importlib.util.spec_from_file_location("qabias_lm_eval_utils", FOLDER / "utils.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


utils = _load_utils()


class _Loader(yaml.SafeLoader):
    """Reads `!function utils.NAME` as the function."""


_Loader.add_constructor(
    "!function", lambda loader, node: getattr(utils, loader.construct_scalar(node).removeprefix("utils."))
)


def _read(path):
    config = yaml.load(path.read_text("utf-8"), _Loader)
    included = config.pop("include", None)
    return {**_read(FOLDER / included), **config} if included else config


CONFIGS = {
    config.get("task") if "group" not in config else config["group"]: config
    for config in map(_read, sorted(FOLDER.glob("*.yaml")))
}
TASKS = {name: config for name, config in CONFIGS.items() if "group" not in config}
# Those that read a dataset folder; the others load documents by a function.
OF_FOLDERS = {name: config for name, config in TASKS.items() if "custom_dataset" not in config}
LOADED = {name: config for name, config in TASKS.items() if name not in OF_FOLDERS}


def _rows(benchmark, config, limit=None):
    return load_examples(RunArguments(benchmark, config=config, limit=limit)).table


def _chosen(number, n_options):
    """Log-likelihoods, as the harness gives them, by which one option is the likeliest."""
    return [(0.0 if i == number else -1.0, i == number) for i in range(n_options)]


def _aggregate(config, items):
    """Scores of documents from what `process_results` returned for each."""
    return {
        metric["metric"]: metric["aggregation"]([item[metric["metric"]] for item in items])
        for metric in config["metric_list"]
    }


# The files


def test_there_is_a_task_for_every_category_and_set():
    assert len(TASKS) == len(list(FOLDER.glob("*.yaml"))) - 1
    categories = [f"qabias_bbq_{name.lower()}" for name in load_benchmark("bbq").configs if name != "all"]
    assert sorted(CONFIGS["qabias_bbq"]["task"]) == sorted(categories)
    sets = {f"qabias_unqover_{name}" for name in ("gender", "nationality", "ethnicity", "religion")}
    extra = {"qabias_bbq_all", "qabias_bbq_all_letters", "qabias_bbnli", "qabias_bbnli_qa"}
    assert set(OF_FOLDERS) == {*categories, *sets, *extra}
    languages = {f"qabias_{name}" for name in ("kobbq", "esbbq", "cabbq", "mbbq", "ggbbq", "basqbbq")}
    chats = {f"{name}_chat" for name in ("qabias_bbq", "qabias_bbnli", *languages)}
    assert set(TASKS) - set(OF_FOLDERS) == {*languages, *chats}


def test_a_task_scores_all_that_it_returns_on_data_that_are_there():
    for name, config in TASKS.items():
        asked = config["metadata"]["qabias"]
        form = {"bbnli": "bbnli", "unqover": "unqover"}.get(asked["benchmark"], "bbq")
        shares = tuple(utils.OUTCOME_SHARES) if name.endswith("_chat") else ()
        names = tuple(metric["metric"] for metric in config["metric_list"])
        assert names == getattr(utils, f"{form.upper()}_METRICS") + shares
        for metric in config["metric_list"]:
            assert metric["aggregation"] is getattr(utils, f"{form}_{metric['metric']}")
            assert metric["higher_is_better"] is None or not metric["metric"].startswith("bias")
        if name.endswith("_chat"):
            generation = config["generation_kwargs"]
            most = load_benchmark(asked["benchmark"]).formats[asked["format"]].new_tokens
            # Without an end, else the harness ends every answer at an empty line.
            assert (generation["max_gen_toks"], generation["until"], generation["do_sample"]) == (most, [], False)
        if name in OF_FOLDERS:
            assert (ROOT / config["dataset_path"]).samefile(locate.dataset_folder(asked["benchmark"]))
            assert config["dataset_name"] in load_benchmark(asked["benchmark"]).configs


# Prompts


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("qabias_bbq_religion", ("bbq", "qa")),
        ("qabias_bbq_all_letters", ("bbq", "letters")),
        ("qabias_bbnli", ("bbnli", "can_we_infer")),
        ("qabias_bbnli_qa", ("bbnli", "quoref_answer")),
        ("qabias_unqover_religion", ("unqover", "qa")),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_prompts_and_options_are_those_of_the_format(name, asked):
    config = TASKS[name]
    prompt_format = load_benchmark(asked[0]).formats[asked[1]]
    metadata = config["metadata"]["qabias"]
    assert {name: metadata[name] for name in ("benchmark", "source", "format", "norm")} == {
        **{"benchmark": asked[0], "source": "bundled", "format": asked[1], "norm": "none"},
    }
    assert "target_delimiter" not in config  # the harness puts a space
    benchmark = config["dataset_path"].removesuffix("_dataset")
    table = _rows(benchmark, {"bbq": "Religion"}.get(benchmark, config["dataset_name"]), 200)
    docs = table.to_pylist()
    if "process_docs" in config:
        docs = list(config["process_docs"](datasets.Dataset(table)))
    for doc in docs:
        options = tuple(f" {option}" for option in config["doc_to_choice"](doc))
        assert (config["doc_to_text"](doc), options) == prompt_format.render(doc)


def test_unqover_asks_the_rows_of_a_run_of_that_size_by_four_questions_each():
    table = _rows("unqover", "religion")
    docs = utils.unqover_docs(datasets.Dataset(table.drop_columns("set")))
    assert len(docs) == 4 * utils.UNQOVER_ROWS
    expected = _rows("unqover", "religion", utils.UNQOVER_ROWS)
    assert docs["example_id"][::4] == expected["example_id"].to_pylist()
    assert docs["context"][:4] == [expected[f"context_{order}"][0].as_py() for order in ("12", "12", "21", "21")]
    questions = [expected[name][0].as_py() for name in ("question", "negated_question")]
    assert docs["question"][:4] == 2 * questions


# Scores of answers with known scores


@pytest.mark.parametrize(
    ("answer", "bias_ambig", "bias_disambig"),
    [
        (lambda row: row["biased_loc"], 1, 1),
        (lambda row: 3 - row["biased_loc"] - row["unknown_loc"], -1, -1),
        (lambda row: row["unknown_loc"], 0, math.nan),
        (lambda row: row["label"], 0, 0),
    ],
    ids=["stereotyped", "anti-stereotyped", "unknown", "right"],
)
def test_bbq_scores_of_responders_are_right_at_the_extremes(answer, bias_ambig, bias_disambig):
    config = TASKS["qabias_bbq_religion"]
    rows = [row for row in _rows("bbq", "Religion").to_pylist() if row["biased_loc"] >= 0]
    scores = _aggregate(config, [config["process_results"](row, _chosen(answer(row), 3)) for row in rows])
    assert scores["bias_ambig"] == bias_ambig
    assert scores["bias_disambig"] == pytest.approx(bias_disambig, nan_ok=True)


def test_bbnli_scores_of_any_answers_are_those_of_the_benchmark():
    config, benchmark = TASKS["qabias_bbnli"], load_benchmark("bbnli")
    table = _rows("bbnli", "all")
    answers = np.random.default_rng(0).integers(0, 3, table.num_rows)
    items = [
        config["process_results"](row, _chosen(answer, 3))
        for row, answer in zip(table.to_pylist(), answers, strict=True)
    ]
    expected = benchmark.score(table, pa.table({"prediction": answers}))
    scores = _aggregate(config, items)
    assert scores == {name: expected[name] for name in utils.BBNLI_METRICS}
    assert scores["bias_score"] != 0


def test_equal_likelihoods_are_no_answer_instead_of_the_first():
    config = TASKS["qabias_bbq_religion"]
    rows = _rows("bbq", "Religion").to_pylist()
    with pytest.warns(UserWarning, match="unparseable"):
        scores = _aggregate(config, [config["process_results"](row, [(-1.0, False)] * 3) for row in rows])
    assert scores["unparsed_share"] == 1
    assert math.isnan(scores["bias_ambig"])


def test_what_a_limit_leaves_of_a_set_does_not_count_and_a_warning_says_so():
    config = TASKS["qabias_bbq_religion"]
    rows = _rows("bbq", "Religion").to_pylist()
    items = [config["process_results"](row, _chosen(row["biased_loc"], 3)) for row in rows]
    with pytest.warns(UserWarning, match="2 of 42 documents .* sets of 4 are not complete"):
        cut = _aggregate(config, items[:42])
    assert cut == _aggregate(config, items[:40])
    with pytest.warns(UserWarning, match="3 of 3 documents"):
        nothing = _aggregate(config, items[:3])
    assert all(math.isnan(value) for value in nothing.values())


# The harness itself


# One configuration of each set that is small.
SMALL = {
    **{"bbq": "Religion", "bbnli": "religion", "kobbq": "Religion", "esbbq": "Age", "cabbq": "Age"},
    **{"mbbq": "nl_Sexual_orientation", "ggbbq": "labels", "basqbbq": "Orientazio_sexual"},
}
# What the scripted model writes.
SAID = (
    *("A", "B", "C", "A", "B", "C", "The answer is B.", "<think>Not B.</think>\n\nA", "yes", "maybe", "No."),
    *("I'm sorry, but I cannot help with that.", "<think>It is B or", "Purple.", ""),
)


def write(prompt):
    """The same for the same prompt, whoever asks."""
    return SAID[int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:4], "big") % len(SAID)]


def documents(name, **choices):
    """The documents of a task by the metadata of its file; the test is skipped where the mirror lacks a file."""
    asked = dict(LOADED[name]["metadata"]["qabias"])
    try:
        return utils.documents(asked, **choices)["test"], asked
    except QabiasError as error:
        if "is not in the mirror" in str(error):
            pytest.skip(f"{error}: {NOT_HERE}")
        raise


# Documents that are loaded by a function: chat models that write, and sets in other languages


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if "_bb" in name else pytest.mark.slow) for name in LOADED],
)
def test_a_document_has_the_prompt_and_the_options_of_the_format(name, upstream, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    benchmark = load_benchmark(LOADED[name]["metadata"]["qabias"]["benchmark"])
    docs, asked = documents(name, qabias_config=SMALL[benchmark.name])
    prompt_format = benchmark.formats[asked["format"]]
    assert asked["source"] == benchmark.sources[0]
    assert LOADED[name]["doc_to_text"] == "prompt"
    expected = load_examples(RunArguments(benchmark.name, config=SMALL[benchmark.name], source=asked["source"])).table
    assert [row["prompt"] for row in docs] == [prompt_format.render(row)[0] for row in expected.to_pylist()]
    for row in docs.select(range(20)):
        assert tuple(row["options"]) == prompt_format.render(row)[1]
        if "doc_to_choice" in LOADED[name]:  # the harness puts the space
            assert [f" {option}" for option in LOADED[name]["doc_to_choice"](row)] == row["options"]
        assert (row["benchmark"], row["format"]) == (benchmark.name, prompt_format.name)


# What is chosen at the command line


def test_choices_of_the_command_line_are_those_of_a_run_and_stand_in_the_metadata():
    choices = {"qabias_config": "Age", "qabias_format": "race", "qabias_limit": 40}
    docs, asked = documents("qabias_bbq_chat", pretrained="ORG/MODEL", version=1.0, **choices)
    expected = load_examples(RunArguments("bbq", config="Age", limit=40)).table
    assert docs["example_id"] == expected["example_id"].to_pylist()
    assert len(set(docs["template_id"])) == 5  # pairs of sets over templates; the first 40 documents are of one or two
    assert docs["prompt"][0] == load_benchmark("bbq").formats["race"].render(docs[0])[0]
    assert asked == {
        **LOADED["qabias_bbq_chat"]["metadata"]["qabias"], "config": "Age", "format": "race", "limit": 40
    }  # fmt: skip


def test_published_texts_and_options_of_a_set_can_be_chosen(upstream, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    docs, _ = documents("qabias_bbq_chat", qabias_config="Age", qabias_source="release")
    assert len(docs) == 3680
    released, asked = documents("qabias_ggbbq", qabias_config="labels", qabias_options={"answers": "released"})
    drawn, _ = documents("qabias_ggbbq", qabias_config="labels")
    assert asked["options"] == {"answers": "released"}
    assert released["context"] == drawn["context"]
    assert released["ans0"] != drawn["ans0"]


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"qabias_confg": "Age"}, r"qabias_confg.*'qabias_config'"),
        ({"qabias_config": "Ages"}, "'Age'"),
        ({"qabias_format": "leters"}, "'letters'"),
        ({"qabias_format": "five"}, "several wordings"),
        ({"qabias_format": "pair"}, "pairs of texts"),
        ({"qabias_limit": "40"}, "limit"),
        ({"qabias_source": "oficial"}, "'official'"),
    ],
)
def test_a_wrong_choice_is_named(choices, said):
    with pytest.raises(QabiasError, match=said):
        documents("qabias_bbq_chat", **choices)


def test_answers_that_the_harness_would_put_a_space_before_are_refused():
    docs, _ = documents("qabias_bbq_chat", qabias_config="Age", qabias_format="race")
    with pytest.raises(QabiasError, match=r"format race has '\\n.* without a leading space"):
        utils.options(docs[0])


# The harness itself


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ("bbq", "bbnli") else pytest.mark.slow) for name in SMALL]
)
def test_a_model_that_writes_gets_the_scores_of_a_run(name, upstream, monkeypatch, tmp_path):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    task, config = f"qabias_{name}_chat", SMALL[name]
    documents(task, qabias_config=config)  # skips where the mirror lacks a file
    metadata = {"qabias_config": config, "qabias_limit": 400}
    log = ask([task], tmp_path, text=lambda doc: write(doc["prompt"]), include=FOLDER, metadata=metadata)[task]
    found = json.loads(next(log.parent.glob("results_*.json")).read_text("utf-8"))
    scores = {key.removesuffix(",none"): value for key, value in found["results"][task].items()}
    expected = qabias.run(
        name,
        model=lambda prompts: [write(prompt) for prompt in prompts],
        name="scripted",
        config=config,
        ask="letter",
        limit=400,
        output=tmp_path / "run",
        progress=False,
    )
    form = "bbnli" if name == "bbnli" else "bbq"
    of_both = getattr(utils, f"{form.upper()}_METRICS")
    assert {of: scores[of] for of in of_both} == pytest.approx({of: expected.scores[of] for of in of_both}, nan_ok=True)
    assert scores["sample_len"] == expected.scores["n"]
    counts = expected.scores["outcomes"]
    shares = {of: counts[of.removesuffix("_share")] / expected.scores["n"] for of in utils.OUTCOME_SHARES}
    assert {of: scores[of] for of in shares} == pytest.approx(shares)
    assert min(shares.values()) > 0
    assert sum(shares.values()) == pytest.approx(scores["unparsed_share"])
    assert set(counts) == set(OUTCOMES)
    assert counts["filtered"] == 0
    # The harness's log says what was asked.
    asked = found["configs"][task]["metadata"]["qabias"]
    assert (asked["benchmark"], asked["config"], asked["limit"]) == (name, config, 400)


@pytest.mark.slow
def test_a_part_of_a_set_does_not_count_and_sets_of_other_sizes_do(upstream, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    docs, _ = documents("qabias_esbbq_chat", qabias_config="Gender", qabias_limit=400)
    config = LOADED["qabias_esbbq_chat"]
    assert len(set(docs["set_size"])) > 1
    read = [config["process_results"](doc, [write(doc["prompt"])])["bias_ambig"] for doc in docs]
    bias = next(of["aggregation"] for of in config["metric_list"] if of["metric"] == "bias_ambig")
    whole = bias(read)
    assert -1 < whole < 1
    with pytest.warns(UserWarning, match="documents do not count in the scores, because their sets of 2 or"):
        cut = bias(read[:-1])
    assert cut == bias(read[: -read[-1].size])
    with pytest.warns(UserWarning, match="do not count"):
        assert math.isnan(bias(read[:1]))


# The harness's own command, without the thousands of its own tasks, which take 7 seconds to list.
HARNESS = """
from functools import partialmethod
from lm_eval.__main__ import cli_evaluate
from lm_eval.tasks import TaskManager
TaskManager.__init__ = partialmethod(TaskManager.__init__, include_defaults=False)
cli_evaluate()
"""


@pytest.mark.slow
def test_the_command_line_with_a_chat_template_writes_what_a_run_writes(tmp_path, one_thread, upstream):
    """A tiny chat model by the harness's own command: texts, prompts and scores are those of `qabias run`."""
    pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed (pip install '.[bench]')")
    model = make_model("llama", max_position_embeddings=2048)
    folder = save(tmp_path / "model", model, make_tokenizer())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = (
        "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}[me]{% endif %}"
    )
    tokenizer.save_pretrained(folder)
    metadata = json.dumps({"qabias_config": "Religion", "qabias_limit": 8})
    tasks = shutil.copytree(FOLDER, tmp_path / "tasks")
    letters = (tasks / "bbq_all_letters.yaml").read_text("utf-8")
    # The harness reads all rows before it asks some.
    (tasks / "bbq_all_letters.yaml").write_text(letters.replace("dataset_name: all", "dataset_name: Age"), "utf-8")
    qabias.run(
        *("bbq",), model=folder, config="Age", ask="letter-logprob", dtype="float32", output=tmp_path / "letters",
        progress=False, limit=40,
    )  # fmt: skip
    letters = {row["example_id"]: row["loglikelihoods"] for row in _answers(tmp_path / "letters")}
    samples = json.dumps({"qabias_bbq_chat": list(range(8)), "qabias_bbq_all_letters": sorted(letters)})
    command = [
        *(sys.executable, "-c", HARNESS, "--model", "hf", "--model_args", f"pretrained={folder},dtype=float32"),
        *("--device", "cpu", "--include_path", str(tasks), "--tasks", "qabias_bbq_chat,qabias_bbq_all_letters"),
        *("--metadata", metadata, "--apply_chat_template", "--gen_kwargs", "max_gen_toks=16", "--samples", samples),
        *("--output_path", str(tmp_path / "out"), "--log_samples", "--batch_size", "4"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(next((tmp_path / "out").rglob("results_*.json")).read_text("utf-8"))
    written = qabias.run(
        *("bbq",), model=folder, config="Religion", ask="letter", limit=8, dtype="float32",
        option={"max_new_tokens": 16}, output=tmp_path / "written", progress=False,
    )  # fmt: skip
    logged = [json.loads(line) for line in next((tmp_path / "out").rglob("samples_qabias_bbq_chat_*")).open()]
    ours = {row["example_id"]: row["outputs"][0] for row in _answers(tmp_path / "written")}
    theirs = {of["doc"]["example_id"]: of["resps"][0][0] for of in logged}
    assert theirs.keys() == ours.keys()
    assert {number: text.strip() for number, text in theirs.items()} == {n: text.strip() for n, text in ours.items()}
    assert written.scores["unparsed_share"] == result["results"]["qabias_bbq_chat"]["unparsed_share,none"]
    assert result["configs"]["qabias_bbq_chat"]["metadata"]["qabias"]["config"] == "Religion"
    # The likelihoods of letters in the model's own chat template.
    lettered = [json.loads(line) for line in next((tmp_path / "out").rglob("samples_qabias_bbq_all_*")).open()]
    assert {of["doc"]["example_id"] for of in lettered} == letters.keys()
    for of in lettered:
        values = [float(value) for value, _ in of["filtered_resps"]]
        assert values == pytest.approx(letters[of["doc"]["example_id"]], abs=1e-3)


def _answers(folder):
    return [row for part in (folder / "predictions").glob("*.parquet") for row in pq.read_table(part).to_pylist()]
