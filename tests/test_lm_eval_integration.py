"""The tasks for lm-evaluation-harness: their prompts, their scores, and the same scores as `qabias run`."""

import importlib.util
import math

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import transformers
import yaml

from qabias.benchmarks import load_benchmark, locate
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.runs.run import run

from .conftest import ROOT
from .tiny_models import ROTARY, make_tokenizer

FOLDER = ROOT / "integrations" / "lm_eval"
VOCABULARY_SIZE = 4000


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
# Those that read a dataset folder; the others load documents by a function (test_lm_eval_chat.py).
OF_FOLDERS = {name: config for name, config in TASKS.items() if "custom_dataset" not in config}


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


@pytest.mark.parametrize("name", OF_FOLDERS)
def test_a_task_reads_a_configuration_that_is_there_and_scores_all_that_it_returns(name):
    config = TASKS[name]
    benchmark = config["dataset_path"].removesuffix("_dataset")
    assert (ROOT / config["dataset_path"]).samefile(locate.dataset_folder(benchmark))
    assert config["dataset_name"] in load_benchmark(benchmark).configs
    metrics = [metric["metric"] for metric in config["metric_list"]]
    assert tuple(metrics) == getattr(utils, f"{benchmark.upper()}_METRICS")
    for metric in config["metric_list"]:
        assert metric["aggregation"] is getattr(utils, f"{benchmark}_{metric['metric']}")
        if metric["metric"].startswith("bias"):
            assert metric["higher_is_better"] is None


def test_the_metadata_of_a_task_says_what_it_asks():
    for name, config in OF_FOLDERS.items():
        asked = config["metadata"]["qabias"]
        benchmark = load_benchmark(config["dataset_path"].removesuffix("_dataset"))
        assert (asked["benchmark"], asked["source"], asked["norm"]) == (benchmark.name, "bundled", "none")
        row = _rows(benchmark.name, config["dataset_name"], 4).to_pylist()[0]
        if "process_docs" in config:
            row = {**row, "context": row["context_12"]}
        assert config["doc_to_text"](row) == benchmark.formats[asked["format"]].render(row)[0], name


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
    with pytest.warns(UserWarning, match="name no answer"):
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


def _save_model(folder):
    """Save a tiny model whose tokenizer knows the words of the questions, so that no probability is next to 0."""
    texts = [
        text
        for benchmark, config, names in (
            ("bbq", "all", ("context", "question", "ans0", "ans1", "ans2")),
            ("bbnli", "all", ("premise", "hypothesis")),
            ("unqover", "religion", ("context_12", "question")),
        )
        for row in _rows(benchmark, config, 1000).select(names).to_pylist()
        for text in row.values()
    ]
    tokenizer = make_tokenizer().train_new_from_iterator(texts, VOCABULARY_SIZE, show_progress=False)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**{**ROTARY, "vocab_size": VOCABULARY_SIZE, "max_position_embeddings": 512})
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def ask_harness(tmp_path_factory, one_thread):
    """A function that asks a tiny model by the harness, and the folder of that model."""
    lm_eval = pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed (pip install '.[bench]')")
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager
    from lm_eval.tasks._yaml_loader import load_yaml

    folder = _save_model(tmp_path_factory.mktemp("llama"))
    model = HFLM(pretrained=folder, device="cpu", dtype="float32", batch_size=16)
    manager = TaskManager(include_path=str(FOLDER), include_defaults=False)

    def ask(task, config, numbers):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(ROOT)
            found = lm_eval.simple_evaluate(
                model=model,
                tasks=[{**load_yaml(FOLDER / f"{task.removeprefix('qabias_')}.yaml"), "dataset_name": config}],
                task_manager=manager,
                samples={task: numbers},
                bootstrap_iters=0,
            )
        scores = {name.removesuffix(",none"): value for name, value in found["results"][task].items()}
        return scores, found["samples"][task]

    return ask, folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "benchmark", "config", "prompt_format", "limit"),
    [
        ("qabias_bbq_religion", "bbq", "Religion", "qa", 200),
        ("qabias_bbq_race_x_gender", "bbq", "Race_x_gender", "qa", 200),
        ("qabias_bbq_all_letters", "bbq", "SES", "letters", 200),
        ("qabias_bbnli", "bbnli", "all", "can_we_infer", 200),
        ("qabias_bbnli_qa", "bbnli", "all", "quoref_answer", 200),
        ("qabias_unqover_religion", "unqover", "religion", "qa", 60),
    ],
)
def test_the_harness_gives_the_scores_of_a_run(ask_harness, tmp_path, task, benchmark, config, prompt_format, limit):
    ask, model = ask_harness
    arguments = RunArguments(
        benchmark, model=model, config=config, format=prompt_format, scorer="causal", limit=limit, dtype="float32"
    )
    expected = run(arguments, tmp_path / "run").scores
    expected = expected["sets"][config] if benchmark == "unqover" else expected
    numbers, n_forms = _numbers(benchmark, config, limit)
    found, samples = ask(task, config, numbers)
    assert found["sample_len"] == n_forms * expected["n"]
    scores = {name: found[name] for name in getattr(utils, f"{benchmark.upper()}_METRICS")}
    # The probabilities of UnQover are small, so it is their relative difference that tells.
    tolerance = {"rel": 1e-4, "abs": 1e-9} if benchmark == "unqover" else {"rel": 0, "abs": 1e-6}
    assert scores == pytest.approx({name: expected[name] for name in scores}, nan_ok=True, **tolerance)
    if benchmark != "unqover":  # answers may agree by chance, likelihoods do not
        keys = load_benchmark(benchmark).key
        ours = {
            tuple(row[name] for name in keys): row["loglikelihoods"]
            for part in (tmp_path / "run" / "predictions").glob("*.parquet")
            for row in pq.read_table(part).to_pylist()
        }
        theirs = {
            tuple(sample["doc"][name] for name in keys): [value for value, _ in sample["filtered_resps"]]
            for sample in samples
        }
        assert theirs.keys() == ours.keys()
        for key, values in theirs.items():
            assert values == pytest.approx(ours[key], abs=1e-3)


def _numbers(benchmark, config, limit):
    """Places in the harness's list of documents of the examples of a sample, and documents to an example."""
    sample = _rows(benchmark, config, limit)
    keys = load_benchmark(benchmark).key
    wanted = set(zip(*(sample[name].to_pylist() for name in keys), strict=True))
    if benchmark == "unqover":  # the task asks a sample of its own, which holds every smaller one
        table, n_forms = _rows(benchmark, config, utils.UNQOVER_ROWS), 4
        columns = [table[name].to_pylist() for name in keys]
    else:  # the harness reads the files in their order, a run puts the forms of a set side by side
        docs = datasets.load_dataset(str(locate.dataset_folder(benchmark)), config, split="test")
        columns, n_forms = [docs[name] for name in keys], 1
    places = [i for i, key in enumerate(zip(*columns, strict=True)) if key in wanted]
    return [n_forms * place + form for place in places for form in range(n_forms)], n_forms
