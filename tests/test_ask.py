"""One word says how a model is asked: the run is the one that the single options would give."""

import json
import shutil
from dataclasses import replace

import pytest
import transformers

from qabias.benchmarks import load_benchmark
from qabias.comparison import compare
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.folder import default_folder
from qabias.runs.run import run
from qabias.runs.signature import signature_fields
from qabias.scorers import generation
from qabias.scorers.base import ConfiguredScorer, GeneratingScorer
from qabias.scorers.chat import ChatTemplate
from qabias.scorers.generation import THINKING_TOKENS, GenerationScorer
from qabias.scorers.kind import ASK_METHODS
from qabias.scorers.registry import kinds

from .loopback_server import letter_of
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings
from .test_chat import TEMPLATE, chat_model
from .test_chat import folders as folders
from .thinking_models import OPENED

pytestmark = pytest.mark.usefixtures("one_thread", "surroundings")

SERVER = {"base_url": "http://localhost:1/v1"}


def test_every_word_of_a_benchmark_names_one_of_its_formats():
    for name in ("bbq", "unqover", "bbnli", "bbq_nli", "bbq_qa"):
        benchmark = load_benchmark(name)
        assert set(benchmark.asks) <= set(ASK_METHODS)
        for word, prompt_format in benchmark.asks.items():
            assert not prompt_format or word in (benchmark.formats[prompt_format].asks or ASK_METHODS)
        for prompt_format in benchmark.formats.values():
            assert set(prompt_format.asks) <= set(benchmark.asks)
    for kind in kinds().values():
        assert set(kind.asks) <= set(ASK_METHODS)
        names = (name for options in kind.asks.values() for name in options)
        assert all("".join(name.partition(".")[:2]) in kind.known_options for name in names)


@pytest.mark.parametrize(
    ("word", "given", "prompt_format", "options"),
    [
        ("answer-logprob", {}, None, {}),
        ("letter-logprob", {}, "letters", {"chat": "auto"}),
        ("letter", {}, "letters", {"chat": "auto", "mode": "generate"}),
        ("cot", {}, "letters_cot", {"chat": "auto", "mode": "generate"}),
        ("letter", {"chat": "no", "samples": "1"}, "letters", {"chat": "no", "mode": "generate", "samples": "1"}),
    ],
)
def test_a_word_is_a_format_and_options(word, given, prompt_format, options):
    arguments = RunArguments("bbq", "smollm2", options=given)
    assert arguments.resolve(ask=word) == RunArguments("bbq", "smollm2", format=prompt_format, options=options)
    assert replace(arguments, format="five").resolve(ask="letter-logprob").format == "five"


@pytest.mark.parametrize(
    ("arguments", "word", "message"),
    [
        (RunArguments("bbq"), "letters", "'letters'.*'letter'"),
        (RunArguments("bbq", "baseline:first"), "letter", "(?s)baseline.*answer-logprob, letter-logprob"),
        (RunArguments("bbq", options={"mode": "likelihood"}), "letter", "contradicts .*mode=likelihood"),
        (RunArguments("bbq", options={"mode": "generate"}), "letter-logprob", "contradicts .*mode=generate"),
        (RunArguments("bbq", "smollm2", format="qa"), "letter-logprob", "(?s)is for answer-logprob.*letters"),
        (RunArguments("bbq", "smollm2", format="letters"), "cot", "letters_cot"),
        (RunArguments("unqover", "smollm2", format="choose_cot"), "letter", "(?s)is for cot.*format choose"),
        (RunArguments("bbq", "smollm2", format="fil"), "fill-blank", "'fil'.*'fill'"),
        (RunArguments("bbq", "m", backend="nli"), "answer-logprob", "nli"),
    ],
)
def test_what_cannot_be_asked_is_refused(arguments, word, message):
    with pytest.raises(QabiasError, match=message):
        arguments.resolve(ask=word)


def test_a_server_is_asked_for_texts_letters_or_an_echo():
    arguments = RunArguments("bbq", "m", backend="server", options=SERVER)
    assert arguments.resolve(ask="answer-logprob").options == {**SERVER, "mode": "echo"}
    assert arguments.resolve(ask="letter-logprob").options == {**SERVER, "mode": "logprobs"}
    assert arguments.resolve(ask="cot").options == SERVER


def test_a_server_constrains_an_answer_by_a_schema_or_says_that_it_cannot(serve, tmp_path):
    formats = []

    def reply(path, body):
        formats.append(body["response_format"])
        letter = letter_of(body["messages"][0]["content"])
        return {"choices": [{"message": {"content": json.dumps({"answer": letter})}, "finish_reason": "stop"}]}

    arguments = RunArguments("bbq", "m", config="Age", limit=8, backend="server")
    served = replace(arguments, options={"base_url": serve(reply).url}).resolve(ask="json")
    result = run(served, tmp_path / "run")
    assert result.scores["unparsed_share"] == 0
    assert formats[0]["json_schema"]["schema"]["properties"]["answer"]["enum"] == ["A", "B", "C"]
    assert "body.response_format=" in result.signature
    refusing = serve(lambda path, body: (400, {"error": {"message": "unknown field"}}, {}))
    with pytest.raises(QabiasError, match="response_format") as refused:
        run(replace(arguments, options={"base_url": refusing.url}).resolve(ask="json"), tmp_path / "refused")
    assert "ask letter" in refused.value.args[1]


def test_what_is_the_default_anyway_makes_no_other_run():
    """A run that was paid for once is the same run, with the word or without it."""
    plain = RunArguments("bbq", "m", format="letters", backend="server", options=SERVER)
    named = replace(plain, options={**SERVER, "mode": "chat"})
    assert plain.resolve(ask="letter") == named.resolve(ask="letter") == plain
    assert default_folder(replace(plain, format=None).resolve(ask="letter")) == default_folder(plain)


def test_a_format_for_writers_is_refused_where_likelihoods_are_asked(tmp_path):
    arguments = RunArguments("bbq", "baseline:first", config="Age", limit=8, format="letters_cot")
    with pytest.raises(QabiasError, match="the format letters_cot asks for a written answer"):
        run(arguments, tmp_path / "run")


def test_what_a_writer_may_write_stands_in_the_signature(folders, tmp_path):
    arguments = RunArguments("bbq", folders["chat"], config="Age", limit=8).resolve(ask="letter")
    signature = run(arguments, tmp_path / "run").signature
    assert "|format:letters@1|" in signature
    assert "|scorer:causal+chat=auto+max_new_tokens=64+mode=generate+samples=1+temperature=0|" in signature


@pytest.mark.parametrize(
    ("template", "given", "needed", "allowed"),
    [
        (TEMPLATE, None, 64, 64),
        (TEMPLATE, None, 1024, 1024),
        (TEMPLATE, 7, 1024, 7),
        (TEMPLATE, None, 60_000, 50_000),  # half of the positions is left to the prompt
        (OPENED, None, 64, THINKING_TOKENS),
        (OPENED, 100, 64, 100),
    ],
)
def test_a_model_may_write_what_the_format_needs_and_more_if_it_thinks(template, given, needed, allowed):
    loaded = chat_model(template)
    loaded.model.config.max_position_embeddings = 100_000
    loaded.tokenizer.model_max_length = 100_000
    scorer = GenerationScorer(loaded, max_new_tokens=given, template=ChatTemplate(loaded))
    assert isinstance(scorer, GeneratingScorer)
    assert isinstance(scorer, ConfiguredScorer)
    scorer.limit_new_tokens(needed)
    assert scorer.settings["max_new_tokens"] == str(allowed)


def test_a_run_is_named_after_all_its_arguments():
    first = RunArguments("bbq", "baseline:first", config="Age")
    names = {default_folder(replace(first, **change)).name for change in ({}, {"permutations": 3}, {"asked_by": "x"})}
    assert len(names) == 3
    assert all(name.startswith("bbq-Age-baseline-first-") for name in names)
    assert default_folder(first).parts[0] == "runs"


@pytest.mark.slow
def test_models_that_need_more_room_are_compared(folders, tmp_path, monkeypatch):
    """How much a model may write follows from its template; asked by the same word, both are asked alike."""
    monkeypatch.setattr(generation, "THINKING_TOKENS", 72)
    thinks = tmp_path / "thinks"
    shutil.copytree(folders["chat"], thinks)
    tokenizer = transformers.AutoTokenizer.from_pretrained(thinks)
    tokenizer.chat_template = OPENED
    tokenizer.save_pretrained(thinks)
    models = (folders["chat"], str(thinks))
    given = [RunArguments("bbq", model, config="Age", limit=4).resolve(ask="letter") for model in models]
    runs = [run(arguments, tmp_path / f"run-{number}") for number, arguments in enumerate(given)]
    rooms = [signature_fields(of.signature)["scorer"] for of in runs]
    assert "max_new_tokens=64" in rooms[0]
    assert "max_new_tokens=72" in rooms[1]
    assert not compare([of.folder for of in runs]).mixed
