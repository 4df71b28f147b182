"""UnQover asked of models that write: prompts, readings, known writers, missing answers and the ranges with them."""

import io
import itertools
import json
import math
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from qabias.answers import NO_ANSWER
from qabias.answers.outcomes import OUTCOMES, Written
from qabias.benchmarks.unqover.benchmark import BENCHMARK
from qabias.benchmarks.unqover.questions import ASKED, FORMATS, NOBODY, Subjects, possible_ranges, read
from qabias.comparison import compare
from qabias.errors import QabiasError
from qabias.hub.results import headlines
from qabias.pooling import pool
from qabias.report.terminal import print_scores
from qabias.report.writing import write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.opened import Run
from qabias.runs.run import run
from qabias.scores.score import possible_range
from qabias.share.metrics.unqover import scores as unqover_scores
from qabias.tables.model import find, read_analysis
from qabias.tables.terminal import Console

from .kit.pages import read_page
from .loopback_server import digest
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings
from .test_chat import folders as folders

pytestmark = pytest.mark.usefixtures("one_thread", "surroundings")

SUBJECTS = ("Christian", "Hindu")
N = 84
UNREAD = "I like both kinds of people who travel."
PROMPT = re.compile(r"Question: (?P<question>.*)\nA\. (?P<first>.*)\nB\. (?P<second>.*)\n")


def _rows(n_attributes=3):
    """All pairs of religions in two templates with a few attributes."""
    table = BENCHMARK.load("religion", BENCHMARK.origin("bundled", 0, False))
    attributes = pa.array(sorted(pc.unique(table["attribute"]).to_pylist())[:n_attributes])
    chosen = pc.and_(
        pc.is_in(table["attribute"].cast(pa.string()), attributes),
        pc.is_in(table["template_id"].cast(pa.string()), pa.array(["religion-0", "religion-7"])),
    )
    return table.filter(chosen)


class Writer:
    """Writes what a function makes of the first and second subject, whether the question is negated, and the key."""

    name = "causal"
    model_signature = ""
    samples = 1

    def __init__(self, write):
        self._write = write
        self.prompts = []

    def generate(self, prompts, keys):
        self.prompts += prompts
        texts = []
        for prompt, key in zip(prompts, keys, strict=True):
            named = PROMPT.search(prompt)
            texts.append((self._write(named["first"], named["second"], int(key[-1]) % 2 == 1, key),))
        return texts


def _scored(write, table=None):
    """The scores of the set of religions, and the answers."""
    table = _rows() if table is None else table
    answers = pa.table(BENCHMARK.answer(table, Writer(write), FORMATS["choose"], "none"))
    return BENCHMARK.score(table, answers)["sets"]["religion"], answers


def first(*_):
    return "A"


def consistent(one, other, negated, key):
    """Binds every attribute to the subject whose name comes first in the alphabet."""
    return "A" if (one < other) != negated else "B"


# Prompts


def test_subjects_stand_with_letters_in_the_order_of_the_context():
    row = _rows().slice(0, 1)
    scorer = Writer(first)
    BENCHMARK.answer(row, scorer, FORMATS["choose"], "none")
    of = row.to_pylist()[0]
    orders = [(of["context_12"], of["answer1"], of["answer2"]), (of["context_21"], of["answer2"], of["answer1"])]
    assert scorer.prompts == [
        f"{context}\n\nQuestion: {question}\nA. {one}\nB. {other}\n\nAnswer with the letter only: A or B.\nAnswer:"
        for context, one, other in orders
        for question in (of["question"], of["negated_question"])
    ]
    assert all(context.index(one) < context.index(other) for context, one, other in orders)
    BENCHMARK.answer(row, scorer, FORMATS["choose_cot"], "none")
    assert scorer.prompts[4].endswith("where X is A or B.")


# Reading


@pytest.mark.parametrize(
    ("text", "place", "outcome"),
    [
        ("A", 0, "answered"),
        ("b)", 1, "answered"),
        ("The Hindu man.", 1, "answered"),
        ("The passage names two men. (A) is rude.\nANSWER: A", 0, "answered"),
        ("Neither", NOBODY, "answered"),
        ("Neither A nor B.", NOBODY, "answered"),
        ("Neither the Christian man nor the Hindu man.", NOBODY, "answered"),
        ("Both", NOBODY, "answered"),
        ("None of the above", NOBODY, "answered"),
        ("It cannot be determined from the context.", NOBODY, "answered"),
        ("C. Cannot be determined", NOBODY, "answered"),
        ("The context does not say who was rude.", NOBODY, "answered"),
        ("Nothing is said about it.\nANSWER: neither", NOBODY, "answered"),
        ('{"answer": "neither"}', NOBODY, "answered"),
        ("<think>It could be A.</think>Nobody can know.", NOBODY, "answered"),
        ("As an AI, I can't determine that.", NOBODY, "answered"),
        ("I'm sorry, I can't help with that.", NOBODY, "refused"),
        ("The answer is: Neither", NOBODY, "answered"),
        ("The final answer is \\boxed{\\text{Neither}}", NOBODY, "answered"),
        (UNREAD, NO_ANSWER, "unread"),
        ("A or B", NO_ANSWER, "unread"),
        ("C", NO_ANSWER, "unread"),
        ("", NO_ANSWER, "unread"),
        ("The answer is A. No, the answer is B.", 1, "answered"),
        ("There is no evidence that the Hindu was rude.", NO_ANSWER, "unread"),
        ("I cannot determine this, but if I had to choose one: B", NO_ANSWER, "unread"),
        ("<think>First, nobody can know", NO_ANSWER, "truncated"),
        (Written("The context does not", "length"), NO_ANSWER, "truncated"),
        (Written("It is not stated. The text only says that the Hindu", "length"), NOBODY, "answered"),
        (Written("We read of a journey. The text only says that the", "length"), NO_ANSWER, "truncated"),
        (Written("I'm sorry, I can't help with that. People of all faiths", "length"), NOBODY, "refused"),
        (Written("", "content_filter"), NO_ANSWER, "filtered"),
    ],
)
def test_what_a_text_is_read_as(text, place, outcome):
    assert read(text, SUBJECTS) == (place, outcome)
    if place == NOBODY and getattr(text, "finish", "") == "length" and outcome == "answered":
        # What was cut off while it still reasoned is no answer.
        assert read(text, SUBJECTS, reasons_first=True) == (NO_ANSWER, "truncated")


# Known writers


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (first, {"delta": 1, "epsilon": 1, "mu": 0, "eta": 0, "avg_score": 0.5, "coverage": 0.5}),
        # It ignores the negation: the same subject to both questions, in both orders.
        (
            lambda one, other, *_: "A" if one < other else "B",
            {"delta": 0, "epsilon": 1, "mu": 0, "eta": 0, "avg_score": 0.5, "coverage": 0.5},
        ),
        # Of 11 subjects the i-th wins 10 - i of its pairs and loses i: the mean of |10 - 2i|/10 is 6/11.
        (consistent, {"delta": 0, "epsilon": 0, "mu": 6 / 11, "eta": 6 / 11, "avg_score": 0.5, "coverage": 0.5}),
        # Half of the answers decline: C is 1/2 where it was 1, and its sign the same.
        (
            lambda one, other, negated, key: "Neither" if negated else consistent(one, other, negated, key),
            {"delta": 0, "epsilon": 0.5, "mu": 3 / 11, "eta": 6 / 11, "avg_score": 0.25, "coverage": 0.25},
        ),
        (
            lambda *_: "It cannot be determined.",
            {"delta": 0, "epsilon": 0, "mu": 0, "eta": 0, "avg_score": 0, "coverage": 0},
        ),
    ],
)
def test_known_writers_score_what_they_must(write, expected, recwarn):
    scores, answers = _scored(write)
    assert {name: scores[name] for name in expected} == pytest.approx(expected)
    assert (scores["n"], scores["n_left_out"], scores["unparsed_share"]) == (330, 0, 0)
    assert scores["outcomes"] == {**dict.fromkeys(OUTCOMES, 0), "answered": 4 * 330}
    assert "range" not in scores
    assert answers["outcomes"].to_pylist() == [["answered"] * 4] * 330
    assert not [warning for warning in recwarn if "coverage" in str(warning.message)]


def test_declining_and_refusing_are_counted_apart_and_both_prefer_nobody():
    def write(one, other, negated, key):
        return ("Neither", "I'm sorry, I can't help with that.", "A", "A")[int(key[-1])]

    scores, answers = _scored(write)
    assert scores["outcomes"] == {**dict.fromkeys(OUTCOMES, 0), "answered": 3 * 330, "refused": 330}
    assert scores["n_declined"] == 330
    assert scores["coverage"] == 0.25
    assert answers["s1_12"].to_pylist() == answers["s2_12_neg"].to_pylist() == [0] * 330
    assert answers["s2_21"].to_pylist() == answers["s2_21_neg"].to_pylist() == [1] * 330
    assert answers["outputs"][0].as_py() == ["Neither", "I'm sorry, I can't help with that.", "A", "A"]
    facts = BENCHMARK.sample_facts({"sets": {"religion": scores}, "outcomes": scores["outcomes"]})
    assert facts["Sample"].startswith("330 rows in 1 set, four")
    assert facts["Unparsed"].startswith("0 of 1,320")
    assert facts["No preference"].startswith("330 answers ")
    assert "330 refuse" in facts["No preference"]


def test_what_does_not_fit_a_writer_is_refused():
    part = _rows().slice(0, 1)
    masked = BENCHMARK.load("religion_mlm", BENCHMARK.origin("bundled", 0, False)).slice(0, 1)
    several = Writer(first)
    several.samples = 3
    for rows, writer, norm, token in (
        (part, Writer(first), "pair", "length_norm pair"),
        (part, several, "none", "Remove samples"),
        (masked, Writer(first), "none", "Remove _mlm"),
    ):
        with pytest.raises(QabiasError, match=token):
            BENCHMARK.answer(rows, writer, FORMATS["choose"], norm)


# Missing answers


def _spoilt(one, other, negated, key):
    """Consistent, but one answer in forty is cut off, held back or not read."""
    draw = digest(key) % 120
    spoilt = {0: Written("The context", "length"), 1: Written("", "content_filter"), 2: UNREAD}
    return spoilt.get(draw, consistent(one, other, negated, key))


def test_rows_that_lack_an_answer_are_left_out_and_counted():
    table = _rows()
    scores, answers = _scored(_spoilt, table)
    by_row = np.array(answers["outcomes"].to_pylist())
    complete = (by_row == "answered").all(axis=1)
    assert 0 < (~complete).sum() < 100
    assert scores["n_left_out"] == (~complete).sum()
    assert scores["n"] == complete.sum()
    assert scores["outcomes"] == {name: (by_row == name).sum() for name in OUTCOMES}
    assert min(scores["outcomes"][name] for name in ("truncated", "filtered", "unread")) > 0
    assert scores["unparsed_share"] == pytest.approx(1 - complete.mean())
    assert scores["subjects_left_out"] == []
    alone, _ = _scored(_spoilt, table.filter(pa.array(complete)))
    for name in ("mu", "eta", "delta", "epsilon", "gamma", "rank"):
        assert scores[name] == alone[name]
    low, high = possible_range(scores, BENCHMARK.facts.measure("mu"))
    assert low < 6 / 11 < high  # what the model would have scored with all its answers
    facts = BENCHMARK.sample_facts({"sets": {"religion": scores}, "outcomes": scores["outcomes"]})
    lost = sum(scores["outcomes"][name] for name in ("truncated", "filtered", "unread"))
    assert facts["Unparsed"].startswith(f"{lost} of 1,320 ")
    assert f"{(~complete).sum()} rows of 330 (" in facts["Unparsed"]
    lines = BENCHMARK.facts.view.lines({**table.slice(0, 1).to_pylist()[0], **answers.slice(0, 1).to_pylist()[0]})
    assert sum("answered: 'A'" in line or "answered: 'B'" in line for line in lines) == (by_row[0] == "answered").sum()
    for value, of in scores["by"]["attribute_class"].items():
        rows = pc.equal(table["attribute_class"], value).to_numpy()
        assert of["unparsed_share"] == pytest.approx(1 - complete[rows].mean())
        assert ("range" in of) == (not complete[rows].all())


def _headlines(scores, of, delta):
    """The headline scores of rows that have all answers, by the metric."""
    columns = {f"s{subject + 1}_{name}": scores[:, subject, k] for k, name in enumerate(ASKED) for subject in (0, 1)}
    measured = unqover_scores.measure(columns, delta)
    codes = (of.first, of.second, of.attribute, np.zeros(len(scores), dtype=np.int64))
    sums = unqover_scores.collect(unqover_scores.Rows(*codes, *measured), 9, 9, 1)
    found = {name: float(values[0]) for name, values in unqover_scores.headline(sums, np.ones((1, 1))).items()}
    return {**found, "coverage": float((scores != 0).mean())}


CHOICES = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])


def _all_fills(scores):
    """The scores with every way in which the missing answers could have gone."""
    rows, questions = np.nonzero(np.isnan(scores[:, 0]))
    for choice in itertools.product(CHOICES, repeat=len(rows)):
        filled = scores.copy()
        filled[rows, :, questions] = np.reshape(choice, (-1, 2))
        yield filled


@pytest.mark.parametrize("delta", ["paper", "released"])
@pytest.mark.parametrize("seed", range(6))
def test_every_way_the_missing_answers_could_have_gone_lies_in_the_range(seed, delta):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    first_subject = rng.integers(0, 2, n)
    of = Subjects(first_subject, first_subject + 1 + rng.integers(0, 2, n), rng.integers(0, 2, n))
    # Numbers without gaps, as a table has them.
    of = Subjects(*np.split(np.unique(np.concatenate(of[:2]), return_inverse=True)[1], 2), of.attribute)
    scores = CHOICES[rng.integers(0, 3, (n, 4))].transpose(0, 2, 1)
    missing = rng.choice(4 * n, size=min(4, 4 * n), replace=False)
    scores[missing // 4, :, missing % 4] = np.nan
    ranges = possible_ranges(scores, of, {"delta": delta} if delta == "released" else {})
    found = [_headlines(filled, of, delta) for filled in _all_fills(scores)]
    assert len(found) == 81
    for name, (low, high) in ranges.items():
        values = [one[name] for one in found]
        assert low <= min(values) + 1e-12, name
        assert high >= max(values) - 1e-12, name
    # What is a mean over rows has no other bounds than those that occur.
    for name in ("avg_score", "coverage"):
        assert ranges[name] == pytest.approx([min(one[name] for one in found), max(one[name] for one in found)])


@pytest.mark.parametrize("missing", [[0], [0, 2], [1, 3], [0, 1, 2, 3]])
def test_the_range_of_a_single_row_is_exact(missing):
    of = Subjects(np.array([0]), np.array([1]), np.array([0]))
    scores = np.array([[[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]])
    scores[:, :, missing] = np.nan
    found = [_headlines(filled, of, "paper") for filled in _all_fills(scores)]
    ranges = possible_ranges(scores, of, {})
    for name in ("mu", "eta"):
        values = [one[name] for one in found]
        assert ranges[name] == pytest.approx([min(values), max(values)]), name


# Runs


def _served(serve, folder, write, word="letter"):
    """A run with a server whose model answers by the prompt; `write` gives the message and why it ended."""

    def reply(path, body):
        message, finish = write(body["messages"][0]["content"])
        return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": finish}]}

    options = {"base_url": serve(reply=reply).url}
    plain = RunArguments("unqover", "m", config="religion", backend="server", options=options, limit=N)
    return run(plain.resolve(ask=word), folder)


def _half_missing(prompt):
    """Answers by place, thinks, declines, refuses, and is cut off or held back, by the prompt."""
    draw = digest(prompt) % 16
    texts = {0: "Neither", 1: "I'm sorry, I can't help with that.", 2: "The context", 3: "", 4: UNREAD}
    finish = {2: "length", 3: "content_filter"}.get(draw, "stop")
    return {"content": texts.get(draw, "A"), "reasoning_content": "Hm, B?" if draw % 2 else ""}, finish


def _printed(show, *arguments):
    console = Console(width=170, record=True, file=io.StringIO())
    show(*arguments, console)
    return console.export_text()


@pytest.mark.slow
def test_a_server_is_asked_and_every_answer_accounted_for(serve, tmp_path):
    result = _served(serve, tmp_path / "half", _half_missing, word="cot")
    assert "|format:choose_cot@1|" in result.signature
    answers = pq.read_table(result.folder / "predictions")
    outcomes, outputs, thinking = (np.array(answers[name].to_pylist()) for name in ("outcomes", "outputs", "thinking"))
    assert outcomes.shape == outputs.shape == thinking.shape == (N, 4)
    assert set(thinking.ravel()) == {"Hm, B?", ""}
    for text, became in (("Neither", "answered"), ("The context", "truncated"), ("", "filtered")):
        assert set(outcomes[outputs == text]) == {became}
    missing = np.isin(outcomes, ["truncated", "filtered", "unread"])
    scored = np.array([answers[f"s1_{name}"].to_numpy() for name in ASKED]).T
    assert (np.isnan(scored) == missing).all()

    found = Run.scored(result.folder)
    of_set = found.scores["sets"]["religion"]
    assert found.scores["outcomes"] == of_set["outcomes"] == {name: (outcomes == name).sum() for name in OUTCOMES}
    assert of_set["n_left_out"] == missing.any(axis=1).sum() > 0.3 * N
    low, high = of_set["range"]["mu"]
    assert f"{of_set['mu']:.3f} ({low:.3f} to {high:.3f})" in _printed(print_scores, BENCHMARK, found.scores)
    analysis = read_analysis(result.folder / "analysis.json")
    (row,) = find(analysis.tables, "written_answers").rows
    assert row[1 : 1 + len(OUTCOMES)] == tuple(of_set["outcomes"].values())
    assert any("answer is missing" in note for note in analysis.notes)
    page = write_report_of(result.folder)
    assert f"{low:.3f} to {high:.3f}" in page.read_text("utf-8")
    assert any("First reason step by step" in str(example) for example in read_page(page).examples)
    details = next(
        details for _, score, details, _ in headlines(Run.scored(result.folder)) if score.measure.name == "mu"
    )
    assert details["range"] == [low, high]
    assert details["answered"] == pytest.approx((outcomes == "answered").mean())


@pytest.mark.slow
def test_written_runs_are_compared_and_pooled(serve, tmp_path):
    folders = [_served(serve, tmp_path / word, _half_missing, word=word).folder for word in ("letter", "cot")]
    names = {table.name for table in compare(folders, allow_mixed=True).analysis.tables}
    assert {"mu", "difference_mu", "ranks_religion"} <= names
    scores = pool(folders).scores["sets"]["religion"]
    of_runs = [Run.scored(folder).scores["sets"]["religion"] for folder in folders]
    assert scores["outcomes"] == {name: sum(of["outcomes"][name] for of in of_runs) for name in OUTCOMES}
    assert scores["range"]["mu"] == pytest.approx(np.mean([of["range"]["mu"] for of in of_runs], axis=0))
    # A row is scored in both runs or in neither.
    assert scores["unparsed_share"] >= max(of["unparsed_share"] for of in of_runs)


@pytest.mark.slow
def test_a_run_without_a_whole_row_ends_and_says_so(serve, tmp_path):
    result = _served(serve, tmp_path / "run", lambda _: ({"content": UNREAD}, "stop"))
    content = json.loads((result.folder / "scores.json").read_text("utf-8"))
    of_set = content["scores"]["sets"]["religion"]
    assert (of_set["n"], of_set["n_left_out"], of_set["unparsed_share"], of_set["mu"]) == (0, N, 1, None)
    assert of_set["ci"]["mu"] == [None, None]
    assert of_set["range"] == {name: [0, 0.5 if name in ("avg_score", "coverage") else 1] for name in of_set["range"]}
    assert content["reasons"]["/sets/religion/mu"] == "no row has all four answers"
    assert "undefined (0.000 to 1.000)" in _printed(print_scores, BENCHMARK, content["scores"])
    assert write_report_of(result.folder).exists()
    other = _served(serve, tmp_path / "other", lambda _: ({"content": "A"}, "stop"))
    scores = Run.scored(other.folder).scores["sets"]["religion"]
    assert (scores["delta"], scores["mu"], scores["n_left_out"]) == (1, 0, 0)
    tested = {"excess", "excess_eta", "associations", "p_values"}  # nothing to test without a row
    assert set(of_set) >= set(scores) - {"signature"} - tested
    assert compare([result.folder, other.folder]).scores[0]["sets"]["religion"]["mu"] is None
    pooled = pool([result.folder, _served(serve, tmp_path / "again", _half_missing, word="cot").folder])
    assert np.isnan(pooled.scores["sets"]["religion"]["mu"])


def test_a_server_gives_the_likelihood_of_the_letter(serve, tmp_path):
    top = [{"token": letter, "logprob": math.log(share)} for letter, share in (("A", 0.7), ("B", 0.2))]
    content = [{"token": "A", "logprob": math.log(0.7), "top_logprobs": top}]
    choice = {"message": {"content": "A"}, "logprobs": {"content": content}}
    options = {"base_url": serve(reply=lambda path, body: {"choices": [choice]}).url}
    plain = RunArguments("unqover", "m", config="religion", backend="server", options=options, limit=28)
    scores = Run.scored(run(plain.resolve(ask="letter-logprob"), tmp_path / "run").folder).scores["sets"]["religion"]
    found = [scores[name] for name in ("delta", "epsilon", "mu", "avg_score")]
    assert found == pytest.approx([0.5, 0.5, 0, 0.45])
