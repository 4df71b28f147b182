"""The harness's tasks whose documents are loaded by qabias: chat models that write, and sets in other languages."""

import hashlib
import json
import math
import re
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
import transformers

import qabias
from qabias.answers.outcomes import OUTCOMES
from qabias.benchmarks import load_benchmark
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples

from . import tiny_models
from .published_sets import NOT_HERE
from .saved_models import save
from .test_lm_eval_integration import FOLDER, OF_FOLDERS, TASKS, utils

LOADED = {name: config for name, config in TASKS.items() if name not in OF_FOLDERS}
# One configuration of each set that is small.
CONFIGS = {
    **{"bbq": "Religion", "bbnli": "religion", "kobbq": "Religion", "esbbq": "Age", "cabbq": "Age"},
    **{"mbbq": "nl_Sexual_orientation", "ggbbq": "labels", "basqbbq": "Orientazio_sexual"},
}
# What the scripted model writes.
SAID = (
    *("A", "B", "C", "A", "B", "C", "The answer is B.", "<think>Not B.</think>\n\nA", "yes", "maybe", "No."),
    *("I'm sorry, but I cannot help with that.", "<think>It is B or", "Purple.", ""),
)
HEADER = "[user] "


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


# The files


@pytest.mark.parametrize("name", LOADED)
def test_a_document_has_the_prompt_and_the_options_of_the_format(name, upstream, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    benchmark = load_benchmark(LOADED[name]["metadata"]["qabias"]["benchmark"])
    docs, asked = documents(name, qabias_config=CONFIGS[benchmark.name])
    prompt_format = benchmark.formats[asked["format"]]
    assert asked["source"] == benchmark.sources[0]
    assert LOADED[name]["doc_to_text"] == "prompt"
    expected = load_examples(RunArguments(benchmark.name, config=CONFIGS[benchmark.name], source=asked["source"])).table
    assert [row["prompt"] for row in docs] == [prompt_format.render(row)[0] for row in expected.to_pylist()]
    for row in docs.select(range(20)):
        assert tuple(row["options"]) == prompt_format.render(row)[1]
        if "doc_to_choice" in LOADED[name]:  # the harness puts the space
            assert [f" {option}" for option in LOADED[name]["doc_to_choice"](row)] == row["options"]
        assert (row["benchmark"], row["format"]) == (benchmark.name, prompt_format.name)


@pytest.mark.parametrize("name", [name for name in LOADED if name.endswith("_chat")])
def test_a_chat_model_may_write_as_much_as_in_a_run_and_whatever_it_likes(name):
    config = LOADED[name]
    asked = config["metadata"]["qabias"]
    assert config["generation_kwargs"]["max_gen_toks"] == (
        load_benchmark(asked["benchmark"]).formats[asked["format"]].new_tokens
    )
    assert config["generation_kwargs"]["until"] == []  # else the harness ends every answer at an empty line
    assert not config["generation_kwargs"]["do_sample"]


@pytest.mark.parametrize("name", LOADED)
def test_a_task_scores_all_that_it_returns(name):
    config = LOADED[name]
    form = "bbnli" if "bbnli" in name else "bbq"
    shares = tuple(utils.OUTCOME_SHARES) if name.endswith("_chat") else ()
    names = tuple(metric["metric"] for metric in config["metric_list"])
    assert names == getattr(utils, f"{form.upper()}_METRICS") + shares
    for metric in config["metric_list"]:
        assert metric["aggregation"] is getattr(utils, f"{form}_{metric['metric']}")
        assert metric["higher_is_better"] is None or not metric["metric"].startswith("bias")


# What is chosen at the command line


def test_choices_of_the_command_line_are_those_of_a_run_and_stand_in_the_metadata():
    choices = {"qabias_config": "Age", "qabias_format": "race", "qabias_limit": 40}
    docs, asked = documents("qabias_bbq_chat", pretrained="ORG/MODEL", version=1.0, **choices)
    expected = load_examples(RunArguments("bbq", config="Age", limit=40)).table
    assert docs["example_id"] == expected["example_id"].to_pylist()
    assert len(set(docs["template_id"])) == 10  # drawn over templates; the first 40 documents are of one or two
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
    with pytest.raises(QabiasError, match=r"format race has '\\n.* without a space"):
        utils.options(docs[0])


# The harness itself


@pytest.fixture(scope="module")
def scripted():
    """A function that asks a model that says what `write` gives, in its own chat form, by the harness."""
    lm_eval = pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed (pip install '.[bench]')")
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    class Scripted(LM):
        tokenizer_name = "scripted"

        def apply_chat_template(self, chat_history, add_generation_prompt=True):
            (turn,) = chat_history
            return f"[{turn['role']}] {turn['content']}"

        def chat_template(self, chat_template=False):
            return HEADER

        def generate_until(self, requests, disable_tqdm=False):
            assert all(request.args[0].startswith(HEADER) for request in requests)
            return [write(request.args[0].removeprefix(HEADER)) for request in requests]

        def loglikelihood(self, requests, disable_tqdm=False):
            raise AssertionError("nobody asks a scripted model for likelihoods")

        loglikelihood_rolling = loglikelihood

    def ask(task, **metadata):
        manager = TaskManager(include_path=str(FOLDER), include_defaults=False, metadata=metadata)
        found = lm_eval.simple_evaluate(
            model=Scripted(), tasks=[task], task_manager=manager, apply_chat_template=True, bootstrap_iters=0
        )
        scores = {name.removesuffix(",none"): value for name, value in found["results"][task].items()}
        return scores, found

    return ask


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_that_writes_gets_the_scores_of_a_run(name, scripted, upstream, monkeypatch, tmp_path):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    task, config = f"qabias_{name}_chat", CONFIGS[name]
    documents(task, qabias_config=config)  # skips where the mirror lacks a file
    scores, found = scripted(task, qabias_config=config, qabias_limit=400)
    expected = qabias.run(
        name,
        model=lambda prompts: [write(prompt) for prompt in prompts],
        name="scripted",
        config=config,
        ask="write",
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


def test_a_part_of_a_set_does_not_count_and_sets_of_other_sizes_do(scripted, upstream, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    docs, _ = documents("qabias_esbbq_chat", qabias_config="Gender")
    config = LOADED["qabias_esbbq_chat"]
    assert len(set(docs["set_size"])) > 1
    read = [config["process_results"](doc, [write(doc["prompt"])])["bias_ambig"] for doc in docs]
    bias = next(of["aggregation"] for of in config["metric_list"] if of["metric"] == "bias_ambig")
    whole = bias(read)
    assert -1 < whole < 1
    with pytest.warns(UserWarning, match="documents are left out of the scores because their sets of 2 or"):
        cut = bias(read[:-1])
    assert cut == bias(read[: -read[-1].size])
    with pytest.warns(UserWarning, match="left out"):
        assert math.isnan(bias(read[:1]))


@pytest.mark.slow
def test_the_command_line_with_a_chat_template_writes_what_a_run_writes(tmp_path, one_thread, upstream):
    """A tiny chat model by the harness's own command: texts, prompts and scores are those of `qabias run`."""
    pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed (pip install '.[bench]')")
    model = tiny_models.make_model("llama", max_position_embeddings=2048)
    folder = save(tmp_path / "model", model, tiny_models.make_tokenizer())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = (
        "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}[me]{% endif %}"
    )
    tokenizer.save_pretrained(folder)
    metadata = json.dumps({"qabias_config": "Religion", "qabias_limit": 8})
    command = [
        *(sys.executable, "-m", "lm_eval", "--model", "hf", "--model_args", f"pretrained={folder},dtype=float32"),
        *("--device", "cpu", "--include_path", str(FOLDER), "--tasks", "qabias_bbq_chat,qabias_bbq_all_letters"),
        *("--metadata", metadata, "--apply_chat_template", "--gen_kwargs", "max_gen_toks=16", "--limit", "8"),
        *("--output_path", str(tmp_path / "out"), "--log_samples", "--batch_size", "4"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=FOLDER.parent.parent)
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(next((tmp_path / "out").rglob("results_*.json")).read_text("utf-8"))
    written = qabias.run(
        *("bbq",), model=folder, config="Religion", ask="write", limit=8, dtype="float32",
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
    qabias.run(
        *("bbq",), model=folder, config="Age", ask="letter", dtype="float32", output=tmp_path / "letters",
        progress=False, limit=400,
    )  # fmt: skip
    ours = {row["example_id"]: row["loglikelihoods"] for row in _answers(tmp_path / "letters")}
    both = [of for of in lettered if of["doc"]["category"] == "Age" and of["doc"]["example_id"] in ours]
    assert both
    for of in both:
        values = [float(value) for value, _ in of["filtered_resps"]]
        assert values == pytest.approx(ours[of["doc"]["example_id"]], abs=1e-3)


@pytest.mark.slow
def test_likelihoods_of_a_set_in_another_language_are_those_of_a_run(tmp_path, one_thread, upstream, monkeypatch):
    lm_eval = pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed (pip install '.[bench]')")
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    documents("qabias_ggbbq", qabias_config="labels")
    model = tiny_models.make_model("llama", max_position_embeddings=2048)
    folder = save(tmp_path / "model", model, tiny_models.make_tokenizer())
    asked = {"qabias_config": "labels", "qabias_limit": 40}
    found = lm_eval.simple_evaluate(
        model=HFLM(pretrained=folder, device="cpu", dtype="float32", batch_size=8),
        tasks=["qabias_ggbbq"],
        task_manager=TaskManager(include_path=str(FOLDER), include_defaults=False, metadata=asked),
        bootstrap_iters=0,
    )
    expected = qabias.run(
        *("ggbbq",), model=folder, config="labels", ask="options", limit=40, dtype="float32", output=tmp_path / "run",
        progress=False,
    )  # fmt: skip
    scores = found["results"]["qabias_ggbbq"]
    assert {of: scores[f"{of},none"] for of in utils.BBQ_METRICS} == pytest.approx(
        {of: expected.scores[of] for of in utils.BBQ_METRICS}, nan_ok=True
    )
    ours = {row["example_id"]: row["loglikelihoods"] for row in _answers(tmp_path / "run")}
    theirs = {of["doc"]["example_id"]: of["filtered_resps"] for of in found["samples"]["qabias_ggbbq"]}
    assert theirs.keys() == ours.keys()
    for number, values in theirs.items():
        assert [value for value, _ in values] == pytest.approx(ours[number], abs=1e-3)


def _answers(folder):
    return [row for part in (folder / "predictions").glob("*.parquet") for row in pq.read_table(part).to_pylist()]


def test_the_readme_names_every_task():
    text = (FOLDER / "README.md").read_text("utf-8")
    assert not [name for name in LOADED if not re.search(rf"{name}\b", text)]
