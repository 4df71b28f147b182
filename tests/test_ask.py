"""One word says how a model is asked: the run is the one that the single options would give."""

import pytest

from qabias.benchmarks import load_benchmark
from qabias.errors import QabiasError
from qabias.measuring.run import run
from qabias.runs.arguments import RunArguments
from qabias.runs.asking import asked
from qabias.scorers.base import LimitedScorer, SettledScorer
from qabias.scorers.chat import ChatTemplate
from qabias.scorers.generation import THINKING_TOKENS, GenerationScorer
from qabias.scorers.kind import ASKS
from qabias.scorers.registry import kinds

from .test_chat import TEMPLATE, chat_model
from .test_chat import folders as folders

pytestmark = pytest.mark.usefixtures("one_thread")

SERVER = {"url": "http://localhost:1/v1"}


def test_every_word_of_a_benchmark_names_one_of_its_formats():
    for name in ("bbq", "unqover", "bbnli", "bbq_nli", "bbq_qa"):
        benchmark = load_benchmark(name)
        assert set(benchmark.asks) <= set(ASKS)
        assert all(prompt_format in ("", *benchmark.formats) for prompt_format in benchmark.asks.values())
    for kind in kinds().values():
        assert set(kind.asks) <= set(ASKS)
        assert all(set(options) <= set(kind.options) for options in kind.asks.values())


@pytest.mark.parametrize(
    ("word", "given", "prompt_format", "options"),
    [
        ("options", {}, None, {}),
        ("letter", {}, "letters", {"chat": "auto"}),
        ("write", {}, "letters", {"chat": "auto", "mode": "generate"}),
        ("reason", {}, "letters_cot", {"chat": "auto", "mode": "generate"}),
        (
            "write",
            {"chat": "no", "max_new_tokens": "5"},
            "letters",
            {"chat": "no", "mode": "generate", "max_new_tokens": "5"},
        ),
    ],
)
def test_a_word_is_a_format_and_options(word, given, prompt_format, options):
    arguments = RunArguments("bbq", "smollm2", options=given)
    assert asked(arguments, word) == RunArguments("bbq", "smollm2", format=prompt_format, options=options)


def test_a_format_that_is_given_goes_before_the_word():
    assert asked(RunArguments("bbq", "smollm2", format="race"), "write").format == "race"


def test_a_server_is_asked_for_texts_or_for_an_echo():
    arguments = RunArguments("bbq", "m", scorer="server", options=SERVER)
    assert asked(arguments, "options").options == {**SERVER, "mode": "echo"}
    assert asked(arguments, "reason").options == {**SERVER, "mode": "chat"}


@pytest.mark.parametrize(
    ("arguments", "word", "message"),
    [
        (RunArguments("bbq"), "letters", "unknown way of asking 'letters'.*did you mean 'letter'"),
        (
            RunArguments("bbq", "baseline:first"),
            "write",
            "--ask write: the scorer baseline cannot be asked so.*options, letter",
        ),
        (
            RunArguments("bbq", options={"mode": "likelihood"}),
            "write",
            "--ask write and --option mode=likelihood contradict each other",
        ),
        (
            RunArguments("bbq", options={"mode": "generate"}),
            "letter",
            "--ask letter and --option mode=generate contradict",
        ),
        (RunArguments("bbq", "m", scorer="nli"), "options", "bbq cannot be asked by the scorer nli"),
    ],
)
def test_what_cannot_be_asked_is_refused(arguments, word, message):
    with pytest.raises(QabiasError, match=message):
        asked(arguments, word)


def test_a_format_for_writers_is_refused_where_likelihoods_are_asked(tmp_path):
    arguments = RunArguments("bbq", "baseline:first", config="Age", limit=8, format="letters_cot")
    with pytest.raises(QabiasError, match="the format letters_cot asks for a written answer; use --ask write, reason"):
        run(arguments, tmp_path / "run")


def test_what_a_writer_may_write_stands_in_the_signature(folders, tmp_path):
    arguments = asked(RunArguments("bbq", folders["chat"], config="Age", limit=8), "write")
    signature = run(arguments, tmp_path / "run").signature
    assert "|format:letters@2|" in signature
    assert "|scorer:causal+chat=auto+max_new_tokens=64+mode=generate+samples=1+temperature=0|" in signature


@pytest.mark.parametrize(
    ("template", "given", "needed", "allowed"),
    [
        (TEMPLATE, None, 64, 64),
        (TEMPLATE, None, 1024, 1024),
        (TEMPLATE, 7, 1024, 7),
        (TEMPLATE + "{# <think> #}", None, 64, THINKING_TOKENS),
        (TEMPLATE + "{# <think> #}", 100, 64, 100),
    ],
)
def test_a_model_may_write_what_the_format_needs_and_more_if_it_thinks(template, given, needed, allowed):
    loaded = chat_model(template)
    loaded.model.config.max_position_embeddings = 100_000
    loaded.tokenizer.model_max_length = 100_000
    scorer = GenerationScorer(loaded, name="causal", max_new_tokens=given, template=ChatTemplate(loaded))
    assert isinstance(scorer, LimitedScorer)
    assert isinstance(scorer, SettledScorer)
    scorer.allow(needed)
    assert scorer.settings["max_new_tokens"] == str(allowed)


def test_half_of_few_positions_is_left_to_the_prompt():
    loaded = chat_model()
    scorer = GenerationScorer(loaded, name="causal")
    scorer.allow(THINKING_TOKENS)
    assert scorer.settings["max_new_tokens"] == str(loaded.model.config.max_position_embeddings // 2)
