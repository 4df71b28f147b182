"""BBNLI and both forms of BBQ through the whole pipeline: baselines, every kind of model, and written answers."""

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from qabias.answers.outcomes import OUTCOMES, Written
from qabias.answers.parsing import LABELS
from qabias.benchmarks import load_benchmark
from qabias.cli import app
from qabias.errors import QabiasError
from qabias.report.writing import write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.opened import Run
from qabias.runs.question import load_examples
from qabias.runs.run import run
from qabias.scores.formatting import percent
from qabias.scores.score import possible_range

from .loopback_server import digest
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings
from .saved_models import make_t5, save
from .test_chat import folders as folders
from .tiny_models import make_encoder, make_encoder_tokenizer, make_model, make_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")


def _run(folder, benchmark="bbnli", **arguments):
    return run(RunArguments(benchmark=benchmark, **arguments), folder)


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    return save(tmp_path_factory.mktemp("t5"), make_t5(), make_tokenizer())


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    model = make_model("llama", max_position_embeddings=1024)
    return save(tmp_path_factory.mktemp("llama"), model, make_tokenizer())


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    labels = dict(enumerate(LABELS[::-1]))
    model = make_encoder.__wrapped__(
        "bert", "AutoModelForSequenceClassification", id2label=labels, num_labels=3, max_position_embeddings=512
    )
    return save(tmp_path_factory.mktemp("classifier"), model, make_encoder_tokenizer("wordpiece"))


# Baselines: scores that are known before they are measured.


# Samples keep both forms of a pair together.


# Every kind of model, found out from its own configuration.


def test_a_causal_model_answers_both_forms_and_compare_shows_them(tmp_path, llama):
    for name, prompt_format in (("nli", "can_we_infer"), ("qa", "quoref_answer")):
        result = _run(tmp_path / name, model=llama, limit=40, format=prompt_format)
        assert f"|format:{prompt_format}@1|" in result.signature
        assert result.scores["unparsed_share"] == 0
    output = CliRunner().invoke(app, ["compare", "--allow-mixed", str(tmp_path / "nli"), str(tmp_path / "qa")]).output
    assert "can_we_infer@1" in output
    assert "quoref_answer@1" in output
    assert "Bias score" in output


def test_a_classifier_is_asked_pairs(tmp_path, classifier):
    result = _run(tmp_path / "run", model=classifier, limit=60)
    assert "|format:pair@1|" in result.signature
    assert "|scorer:nli|" in result.signature
    answers = pq.read_table(tmp_path / "run" / "predictions" / "part-00000.parquet")
    assert all(abs(sum(row) - 1) < 1e-9 for row in answers["probabilities"].to_pylist())
    with pytest.raises(QabiasError, match="needs the format pair"):
        _run(tmp_path / "wrong", model=classifier, limit=60, format="gpt3")


@pytest.mark.slow
def test_a_text_to_text_model_scores_options_and_writes(tmp_path, t5):
    likely = _run(tmp_path / "likely", model=t5, limit=40)
    assert "|scorer:seq2seq|" in likely.signature
    written = _run(tmp_path / "written", model=t5, limit=40, options={"mode": "generate"})
    answers = pq.read_table(tmp_path / "written" / "predictions" / "part-00000.parquet")
    assert all(len(texts) == 1 for texts in answers["outputs"].to_pylist())
    assert written.scores["n"] == likely.scores["n"] == 40


# What cannot be is refused.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"options": {"mode": "generate"}, "length_norm": "token"}, "length_norm token"),
        ({"parser": "released"}, "parser released"),
        ({"format": "pair"}, "reads prompts"),
        ({"fixes": True}, "fixes"),
        ({"config": "man_is_to_surgen"}, "Did you mean 'man_is_to_surgeon'"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path, llama, arguments, message):
    with pytest.raises(QabiasError, match=message):
        _run(tmp_path / "run", model=llama, limit=8, **arguments)


CONFIGS = {"bbnli": "man_is_to_surgeon", "bbq_nli": "Religion_nli", "bbq_qa": "Religion_qa"}
# What a model may give, and what becomes of it.
GIVEN = (
    ({"content": "<think>One of them? Yes.</think>ANSWER: {answer}"}, "stop", "answered"),
    ({"content": "{answer}", "reasoning_content": "Yes, or no."}, "stop", "answered"),
    ({"content": "**Final answer:** {answer}"}, "stop", "answered"),
    ({"content": None, "refusal": "I'm sorry, but I can't help with that."}, "stop", "refused"),
    ({"content": "Let us look at the text first. It", "reasoning_content": "Hm."}, "length", "truncated"),
    ({"content": ""}, "content_filter", "filtered"),
    ({"content": "The weather is fine."}, "stop", "unread"),
)


def answer_of(prompt):
    return "Unknown" if prompt.startswith("Context:") else ("no", "maybe", "yes")[digest(prompt) % 3]


def reply(path, body):
    """What a model behind a server gives; one of `GIVEN`, chosen by the prompt."""
    prompt = body["messages"][0]["content"]
    message, finish, _ = GIVEN[digest(f"{prompt}!") % len(GIVEN)]
    content = message["content"] and message["content"].replace("{answer}", answer_of(prompt))
    return {"choices": [{"message": {**message, "content": content}, "finish_reason": finish}]}


def run_by_server(server, benchmark, folder, **more):
    arguments = RunArguments(
        benchmark, "m", config=CONFIGS[benchmark], backend="server", limit=96, options={"base_url": server.url}, **more
    )
    return run(arguments, folder)


def written(folder):
    return pa.concat_tables(map(pq.read_table, sorted((folder / "predictions").iterdir())), promote_options="default")


@pytest.mark.slow
@pytest.mark.usefixtures("surroundings")
@pytest.mark.parametrize("benchmark", CONFIGS)
def test_a_served_model_is_instructed_and_every_answer_is_accounted_for(serve, tmp_path, benchmark):
    result = run_by_server(serve(reply), benchmark, tmp_path)
    assert "|format:instructed@1|" in result.signature
    answers = written(tmp_path)
    prompts = [
        load_benchmark(benchmark).formats["instructed"].render(row)[0]
        for row in load_examples(result.arguments).table.to_pylist()
    ]
    expected = [GIVEN[digest(f"{prompt}!") % len(GIVEN)] for prompt in prompts]
    assert answers["outcome"].to_pylist() == [outcome for *_, outcome in expected]
    assert set(answers["outcome"].to_pylist()) == set(OUTCOMES) - {"repeated"}
    assert answers["thinking"].to_pylist() == [message.get("reasoning_content", "") for message, *_ in expected]
    said = answers["prediction"].to_pylist()
    for place, prompt, outcome in zip(said, prompts, answers["outcome"].to_pylist(), strict=True):
        right = {"no": 0, "maybe": 1, "yes": 2, "Unknown": 2}[answer_of(prompt)]
        assert place == (right if outcome == "answered" else -1)
    scores = Run.scored(tmp_path).scores
    counts = Counter(answers["outcome"].to_pylist())
    assert scores["outcomes"] == {name: counts[name] for name in OUTCOMES}
    missing = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES[1:] if counts[name])
    unparsed = (
        f"{scores['n_unparsed']} outputs named no answer ({percent(scores['unparsed_share'])}): {missing}; "
        "they count as neutral and wrong"
    )
    assert load_benchmark(benchmark).sample_facts(scores) == {"Sample": "96 answers", "Unparsed": unparsed}
    page = write_report_of(tmp_path).read_text("utf-8")
    assert missing in page
    for name in load_benchmark(benchmark).facts.tiles:
        assert possible_range(scores, load_benchmark(benchmark).facts.measure(name)) is not None
    assert "missing, possible" in page


# Several answers to a question


class Writer:
    """Writes three answers to everything, of which the second is cut off and the third declines."""

    name, model_signature, samples = "seq2seq", "", 3

    def __init__(self, first):
        self._first = first

    def generate(self, prompts, keys):
        cut = Written("<think>It may be", "length", "Hm.")
        return [(Written(self._first, "stop"), cut, Written("I'm sorry, I cannot help with that.")) for _ in prompts]


@pytest.mark.parametrize(("benchmark", "first", "place"), [("bbnli", "ANSWER: no", 0), ("bbq_qa", "Unknown", 2)])
def test_samples_have_an_outcome_each(benchmark, first, place):
    benchmark = load_benchmark(benchmark)
    table = benchmark.load(CONFIGS[benchmark.name], benchmark.origin("bundled", 0, False)).slice(0, 24)
    answers = pa.table(benchmark.answer(table, Writer(first), benchmark.formats["instructed"], "none"))
    assert set(answers.column_names) == {"predictions", "outcomes", "thinking", "outputs"}
    assert answers["predictions"].to_pylist() == [[place, -1, -1]] * 24
    assert answers["outcomes"].to_pylist() == [["answered", "truncated", "refused"]] * 24
    assert answers["thinking"].to_pylist() == [["", "Hm.", ""]] * 24
    assert set(benchmark.stored_columns) >= {"predictions", "outcomes"}
    kept = answers.select([name for name in answers.column_names if name in benchmark.stored_columns])
    with pytest.warns(UserWarning, match="48 of 72 predictions are unparseable"):
        scores = benchmark.score(table, kept)
    assert scores["outcomes"] == {
        "answered": 24,
        "refused": 24,
        "truncated": 24,
        "filtered": 0,
        "repeated": 0,
        "unread": 0,
    }
    assert "range" in scores


# Answers of others


# One word


@pytest.mark.parametrize(
    ("benchmark", "word", "prompt_format"),
    [
        ("bbnli", "letter-logprob", "instructed"),
        ("bbnli", "letter", "instructed"),
        ("bbnli", "cot", "instructed_cot"),
        ("bbq_nli", "letter-logprob", "instructed"),
        ("bbq_nli", "cot", "instructed_cot"),
        ("bbq_qa", "letter", "instructed"),
        ("bbq_qa", "cot", "instructed_cot"),
    ],
)
def test_a_local_model_is_asked_in_one_word(tmp_path, folders, benchmark, word, prompt_format):
    arguments = RunArguments(benchmark, folders["chat"], config=CONFIGS[benchmark], limit=4)
    more = {} if word == "letter-logprob" else {"max_new_tokens": "4"}
    result = run(RunArguments(**{**vars(arguments), "options": more}), tmp_path, ask=word)
    assert f"|format:{prompt_format}@1|" in result.signature
    answers = written(tmp_path)
    if word == "letter-logprob":
        assert result.scores["unparsed_share"] == 0
        assert "outcomes" not in result.scores
        assert {len(values) for values in answers["loglikelihoods"].to_pylist()} == {3}
    else:
        assert set(answers["outcome"].to_pylist()) <= set(OUTCOMES)
        assert sum(result.scores["outcomes"].values()) == answers.num_rows


def test_persons_have_no_letters_and_reasoning_has_no_likelihood(tmp_path):
    with pytest.raises(QabiasError, match="ask letter-logprob does not work with bbq_qa"):
        RunArguments("bbq_qa", "smollm2").resolve(ask="letter-logprob")
    arguments = RunArguments("bbnli", "baseline:first", config="man_is_to_surgeon", limit=8, format="instructed_cot")
    with pytest.raises(QabiasError, match="the format instructed_cot asks for a written answer"):
        run(arguments, tmp_path / "run")


class _Echo:
    """Writes the lettered answer that a prompt lists at a place that depends on nothing else."""

    name, model_signature, samples = "seq2seq", "", 1

    def __init__(self, place):
        self._place = place

    def generate(self, prompts, keys):
        letters = ("(a)", "(b)", "(c)", "\n")
        start, end = letters[self._place], letters[self._place + 1]
        return [(prompt.split(start, 1)[1].split(end, 1)[0].strip() + ".",) for prompt in prompts]


@pytest.mark.parametrize("prompt_format", ["race", "arc"])
@pytest.mark.parametrize("rule", ["none", "released"])
def test_written_answers_of_bbq_are_read_by_exact_match(prompt_format, rule):
    benchmark = load_benchmark("bbq")
    table = benchmark.load("Age", benchmark.origin("bundled", 0, False)).slice(0, 200)
    for place in range(3):
        answers = benchmark.answer(table, _Echo(place), benchmark.formats[prompt_format], rule)
        assert set(answers["prediction"].to_pylist()) == {place}


def test_a_model_without_a_word_keeps_its_default(tmp_path, folders):
    arguments = RunArguments("bbnli", folders["chat"], config="man_is_to_surgeon", limit=4)
    assert "|format:can_we_infer@1|" in run(arguments, tmp_path / "bbnli").signature
    arguments = RunArguments("bbq_qa", folders["chat"], config="Religion_qa", limit=12)
    assert "|format:quoref_answer@1|" in run(arguments, tmp_path / "bbq_qa").signature
