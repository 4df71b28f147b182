"""The commands of README.md and docs/ that name models, runs or servers do what they say, with small ones in place.

A command is run as it stands but for the names of models, at most 12 examples a run, and `--dry-run` where it would
send something to the Hub. What needs weights of the Hub to say anything (the experiments of the papers, plans of them)
or hours is left to tests of its own, and so are the packages that two pages add (`test_toy_benchmark.py`).
"""

import copy
import functools
import os
import re
import shlex
import shutil
import threading
from pathlib import Path

import pytest
import transformers

from qabias.benchmarks import loadable_benchmarks
from qabias.benchmarks.unqover.benchmark import BENCHMARK as UNQOVER
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run

from . import tiny_models
from .batch_service import answer_files
from .conftest import ROOT
from .echo_model import EchoModel
from .loopback_server import Server, chat_reply
from .saved_models import make_t5, save
from .test_docs import PAGES, REACHABLE, SHELL_LANGUAGES, blocks_of, commands_of, run_qabias
from .thinking_models import SWITCHED
from .tool_logs import are_installed, make_logs, make_results

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

LIMIT = 12
CHAT = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}me: {% endif %}"
)
# Benchmarks whose texts their authors alone publish.
PUBLISHED = [name for name, benchmark in loadable_benchmarks().items() if benchmark.card is not None]
# Folders that the pages name of runs whose making they do not show: benchmark and configuration.
NAMED_RUNS = {
    "runs/bbq": ("bbq", "Age"),
    "runs/kobbq": ("kobbq", "Religion"),
    "runs/esbbq": ("esbbq", "Religion"),
    "runs/mbbq-nl": ("mbbq", "nl_Sexual_orientation"),
    "runs/mbbq-nl_control": ("mbbq", "nl_Sexual_orientation_control"),
    "runs/mbbq-en": ("mbbq", "en_Sexual_orientation"),
}
# The mirror has no file of BasqBBQ; `test_bbq_form` runs it on made-up ones. Others need a service, a log, a file, or
# plain completions; `test_services`, `test_hub`, `test_converted` and `test_server_templates` try these.
LEFT_OUT = re.compile(
    r"qabias (run basqbbq|score preds_|score logs/hub)|"
    r".*(api\.anthropic\.com|api\.openai\.com|NAME\.Q4_K_M\.gguf|mode=completions)"
)


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory):
    """A folder for every name of a model."""
    folder = tmp_path_factory.mktemp("models")
    llama = tiny_models.make_model("llama", max_position_embeddings=2048)
    tokenizer = tiny_models.make_tokenizer()
    causal = save(folder / "causal", llama, tokenizer)
    t5 = save(folder / "t5", make_t5(), tokenizer)
    labels = dict(enumerate(("entailment", "neutral", "contradiction")))
    encoder = {"max_position_embeddings": 512}
    words = tiny_models.make_encoder_tokenizer("wordpiece")
    classifier = tiny_models.make_encoder.__wrapped__(
        "bert", "AutoModelForSequenceClassification", id2label=labels, num_labels=3, **encoder
    )
    spans = tiny_models.make_encoder("bert", "AutoModelForQuestionAnswering", **encoder)
    choices = tiny_models.make_encoder("bert", "AutoModelForMultipleChoice", **encoder)
    knowing = copy.deepcopy(words)  # masked models are asked for subjects that are one token to them
    religions = UNQOVER.load("religion_mlm", UNQOVER.origin("bundled", 0, False))
    knowing.add_tokens(sorted({*religions["answer1"].to_pylist(), *religions["answer2"].to_pylist()}))
    masks = tiny_models.make_encoder.__wrapped__("bert", "AutoModelForMaskedLM", vocab_size=len(knowing), **encoder)
    shutil.copytree(causal, folder / "chat")
    chat = transformers.AutoTokenizer.from_pretrained(folder / "chat")
    chat.chat_template = CHAT
    chat.save_pretrained(folder / "chat")
    shutil.copytree(causal, folder / "thinking")
    chat.chat_template = SWITCHED
    chat.save_pretrained(folder / "thinking")
    return {
        "ORG/NAME": causal,
        "path/to/model": causal,
        "path/to/folder": causal,
        "ORG/UNIFIEDQA": t5,
        "ORG/FLAN-T5": t5,
        "ORG/MNLI-CLASSIFIER": save(folder / "classifier", classifier, words),
        "ORG/BERT-SQUAD": save(folder / "spans", spans, words),
        "ORG/CHAT-MODEL": str(folder / "chat"),
        "ORG/THINKING-MODEL": str(folder / "thinking"),
        "FacebookAI/roberta-base": save(folder / "masks", masks, knowing),
        "models/roberta-base-race": save(folder / "choices", choices, words),
    }


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A function that gives a folder with the logs of other tools that the pages name."""

    @functools.cache
    def made():
        folder = tmp_path_factory.mktemp("tools") / "logs"
        make_logs(folder, Path(os.environ["QABIAS_UPSTREAM"]))
        return folder

    return made


@pytest.fixture
def server_url():
    echo = EchoModel()
    server = Server(lambda path, body: (chat_reply if "chat" in path else echo)(path, body))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield server.url
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def named_runs(tmp_path_factory):
    """A folder with the runs that most pages name."""
    folder = tmp_path_factory.mktemp("named")
    for name in ("ONE", "OTHER", "name"):
        kind = {"ONE": "stereotyped", "name": "oracle"}.get(name, "random")
        config = "all" if name == "name" else "Age"  # results are pushed of the whole benchmark
        run(RunArguments("bbq", f"baseline:{kind}", config), folder / name)
    for name, prompt_format in (("PROMPT-1", "qa"), ("PROMPT-2", "race")):
        run(RunArguments("bbq", "baseline:random", "Age", format=prompt_format), folder / name)
    return folder


@pytest.fixture
def folder(tmp_path, named_runs, monkeypatch):
    """A folder with what the pages speak of: the checkout's datasets, two runs and a table of answers."""
    for name in REACHABLE:
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(named_runs, tmp_path / "runs")
    (tmp_path / "answers.csv").write_text("example_id,prediction\n" + "".join(f"{i},0\n" for i in range(8)), "utf-8")
    return tmp_path


def concrete(command, stand_ins, server_url, page, number):
    """The command with small models, a small sample and a folder of its own."""
    words = [stand_ins.get(word, word).replace("http://localhost:8000/v1", server_url) for word in command]
    if words[1] == "audit" and "--output" in words:  # pages show several models in one folder
        words[words.index("--output") + 1] += f"-{number}"
    if words[1] in ("run", "contamination"):
        words += ["--limit", str(LIMIT)]
    if words[1] == "run" and "--output" not in words and "--shard" not in words:
        words += ["--output", f"done/{page.stem}-{number}"]
    if words[1] == "audit":
        words = [stand_ins["ORG/NAME"] if word == "smollm2" else word for word in words]  # the real one: `make demo`
        words += ["--budget", "240", *([] if "--output" in words else ["--output", f"done/{page.stem}-{number}"])]
    if words[1] == "push":
        words += ["--dry-run"]
    if "cot" in words:  # a small model never comes to an end
        words += ["--option", "max_new_tokens=16"]
    return words


def commands_to_run(page):
    for block in blocks_of(page):
        if block.language in SHELL_LANGUAGES and not block.runs:
            for command in commands_of(block):
                if command[0] == "qabias" and not LEFT_OUT.match(shlex.join(command)):
                    yield command


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(commands_to_run(page)) and page.stem not in ("add-a-benchmark", "add-a-scorer")],
    ids=lambda page: page.stem,
)
def test_commands_do_what_they_say(page, stand_ins, server_url, folder, logs, monkeypatch, capsys):
    has_upstream = bool(os.environ.get("QABIAS_UPSTREAM"))
    n_run = 0
    for number, command in enumerate(commands_to_run(page)):
        named = [name for name in NAMED_RUNS if name in command and command[1] == "compare"]
        words = [*command, *(NAMED_RUNS[name][0] for name in named)]
        of_the_authors = {"official", "release", *PUBLISHED} & set(re.split("[ ,/]", " ".join(words)))
        if of_the_authors and not has_upstream:
            continue  # would download them
        if command[:2] == ["qabias", "merge"]:
            shards = [word for word in command[2:] if word.startswith("shard-")]
            for index, name in enumerate(shards):
                shutil.rmtree(name, ignore_errors=True)
                shared = ["qabias", "run", "bbq", "--model", "baseline:random", "--output", name, "--limit", "4000"]
                run_qabias([*shared, "--shard", f"{index}/{len(shards)}"], monkeypatch)
        for name in named:
            benchmark, config = NAMED_RUNS[name]
            if not (folder / name).exists():
                one = ["qabias", "run", benchmark, "--model", "baseline:random", "--config", config, "--output", name]
                run_qabias(one, monkeypatch)
        if command[:3] == ["qabias", "score", "age.parquet"]:
            shutil.copy(next((folder / "runs" / "ONE" / "predictions").iterdir()), "age.parquet")
        if command[1:3] == ["score", "results.jsonl"]:
            make_results(folder / "results.jsonl")
        if command[1] == "score" and command[2].split("/")[0] == "logs":
            if not (has_upstream and are_installed()):
                continue
            if not (folder / "logs").exists():
                shutil.copytree(logs(), folder / "logs")
        if "batch=read=results.jsonl" in command:
            answer_files(sorted((folder / "runs" / "batched" / "batch").glob("requests-*.jsonl")), "results.jsonl")
        # 12 examples of a tiny model decide no check.
        run_qabias(concrete(command, stand_ins, server_url, page, number), monkeypatch, ("audit", "check"))
        n_run += 1
    if not n_run:
        pytest.skip("all its commands read the authors' files (set QABIAS_UPSTREAM)")
    assert capsys.readouterr().out
