"""`python -m lab.devices` on the CPU with tiny models: every scorer, its verdicts, its time limit and its file."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lab.devices import cases, check, models, speed
from lab.devices.__main__ import SIZES, main
from lab.devices.cases import Case
from lab.devices.check import MEASURES
from lab.devices.correct import FAILS, HOLDS, MEASURED, NOT_MEASURED, Written
from qabias.support.files import read_json

pytestmark = pytest.mark.usefixtures("one_thread", "small")
TINY = {case.way.name: case for case in cases.cases("tiny", "float32") if case.dtype == "float32"}


@pytest.fixture(scope="module")
def small():
    """Questions of a few examples, read once, and no time for speed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "EXAMPLES", 24)
        patch.setattr(speed, "SECONDS", 1e-9)
        yield
    cases.questions_of.cache_clear()
    cases.tokenizer_of.cache_clear()


def checked(monkeypatch, *chosen, make=cases.make_scorer, clock=lambda: 0.0, seconds=1e6):
    """The check of some cases."""
    monkeypatch.setattr(check, "cases", lambda sizes, usual: list(chosen))
    return check.check_device("cpu", "tiny", seconds, lambda _: None, clock, make)


def case_of(name, dtype="float32", timed=False):
    return Case(TINY[name].way, TINY[name].shape, dtype, timed)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", TINY)
def test_every_scorer_is_right_on_the_cpu(name, dtype, monkeypatch):
    (row,) = checked(monkeypatch, case_of(name, dtype)).rows
    assert list(row.outcomes) == ["equality", "invariance"]
    for outcome in row.outcomes.values():
        assert outcome.state == HOLDS, outcome.why
        assert outcome.figures["difference"] <= outcome.figures["bound"]
        assert outcome.figures["questions"] == 8
    assert row.outcomes["equality"].figures["reference"] == "float64 on the CPU"


class Wrong:
    """A scorer whose answers are off by what `change` makes of them."""

    def __init__(self, scorer, change):
        self._scorer, self._change = scorer, change

    def __getattr__(self, name):
        return getattr(self._scorer, name)

    def score(self, items):
        scores = self._scorer.score(items)
        for score in scores:
            score.loglikelihoods[...] = self._change(score.loglikelihoods)
        return scores

    def generate(self, prompts, keys):
        return [tuple(map(self._change, texts)) for texts in self._scorer.generate(prompts, keys)]


def wrong(change, *, only_small=False):
    def make(way, loaded, budget):
        scorer = cases.make_scorer(way, loaded, budget)
        return Wrong(scorer, change) if budget is not None or not only_small else scorer

    return make


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "make", "states"),
    [
        ("causal", wrong(lambda values: values + 1e-3), [FAILS, HOLDS]),
        ("causal", wrong(lambda values: values * np.nan), [FAILS, FAILS]),
        ("causal", wrong(lambda values: values * 1.001, only_small=True), [HOLDS, FAILS]),
        ("causal, written", wrong(lambda text: type(text)("nothing of that", text.finish)), [FAILS, FAILS]),
    ],
    ids=["slightly off", "no figure", "other in other batches", "another text"],
)
def test_a_wrong_scorer_is_found(monkeypatch, name, make, states):
    result = checked(monkeypatch, case_of(name), make=make)
    assert [outcome.state for outcome in result.rows[0].outcomes.values()] == states
    assert not result.is_right


@pytest.mark.slow
@pytest.mark.parametrize("name", ["causal", "seq2seq"])
def test_speed_counts_the_tokens_that_the_model_is_given(name, monkeypatch):
    (row,) = checked(monkeypatch, case_of(name, timed=True)).rows
    assert list(row.outcomes) == list(MEASURES)
    outcome = row.outcomes["speed"]
    assert outcome.state == MEASURED
    figures = outcome.figures
    assert figures["questions"] >= 16
    assert figures["tokens"] > figures["batches"] > 0
    loaded = cases.make_model(TINY["causal"].shape, cases.CAUSAL, "float32", "cpu")
    with speed.watched(loaded.model) as calls, torch.inference_mode():
        loaded.model(input_ids=torch.ones(3, 5, dtype=torch.long))
        loaded.model.base_model(input_ids=torch.ones(2, 7, dtype=torch.long))
    assert calls == [(3, 5), (2, 7)]
    assert figures["tokens_per_second"] == pytest.approx(figures["tokens"] / figures["seconds"])


@pytest.mark.parametrize(
    ("error", "state", "why"),
    [
        (torch.OutOfMemoryError("no room"), NOT_MEASURED, "ran out: no room"),
        (NotImplementedError("no such kernel"), FAILS, "no such kernel"),
    ],
)
def test_what_a_device_cannot_do_stops_nothing(monkeypatch, error, state, why):
    def make(way, loaded, budget):
        raise error

    result = checked(monkeypatch, case_of("causal"), case_of("causal"), make=make)
    assert {outcome.state for outcome in result.outcomes} == {state}
    assert why in result.outcomes[0].why
    assert len(result.rows) == 2


def test_texts_part_where_the_first_token_differs():
    words = SimpleNamespace(decode=lambda tokens, skip_special_tokens: " ".join(f"word{token}" for token in tokens))
    written = Written(words, [1, 2, 3], np.array([0.1, 0.2, 0.3]))
    texts = ("word1 word2 word3", "word1 word9 word3", "word9", "word1 word2 word3 word4", "")
    assert [written.parts_from(text) for text in texts] == [0.0, 0.2, 0.1, 0.3, 0.1]


def test_published_shapes_have_the_published_numbers_of_parameters():
    encoders = [models.LARGE_ENCODERS[family] for family in ("bert", "roberta", "deberta")]
    # That of T5 has one matrix of embeddings for all.
    shapes = (models.SMALL_CAUSAL, models.MIDDLE_CAUSAL, models.LARGE_T5, *encoders)
    assert [int(shape.parameters / 1e6) for shape in shapes] == [134, 1711, 737, 335, 355, 434]
    assert round(models.LARGE_CAUSAL.weights_bytes("bfloat16") / 2e9, 2) == 8.03


def test_a_model_that_does_not_fit_is_not_made_and_what_no_time_is_left_for_is_listed(monkeypatch):
    ticks, kept = itertools.count(0.0, 10.0), []
    large = Case(cases.CAUSAL, models.LARGE_CAUSAL, "bfloat16", True)
    monkeypatch.setattr(check, "cases", lambda sizes, usual: [large, case_of("causal"), case_of("causal")])
    monkeypatch.setattr(check, "free_memory", lambda device: 2**20 if len(kept) == 1 else None)
    result = check.check_device(
        "cpu", "tiny", 35.0, lambda _: None, lambda: next(ticks), keep=lambda so_far: kept.append(len(so_far.rows))
    )
    assert {outcome.state for outcome in result.outcomes} == {NOT_MEASURED}
    reasons = [row.outcomes["equality"].why.partition(" (")[0] for row in result.rows]
    assert reasons == ["too large for a CPU", "memory", "time"]
    assert list(result.rows[0].outcomes) == list(MEASURES)
    assert kept == [1, 2, 3]
    assert result.is_right


@pytest.mark.parametrize("sizes", cases.SIZES)
def test_every_scorer_is_asked_in_every_precision_and_none_twice(sizes):
    assert sizes in SIZES
    chosen = cases.cases(sizes, "bfloat16")
    keys = [(case.way.name, case.shape.name, case.dtype) for case in chosen]
    assert len(set(keys)) == len(keys)
    assert {(way.name, dtype) for way in cases.WAYS for dtype in ("float32", "bfloat16", "float16")} <= {
        (way, dtype) for way, _, dtype in keys
    }
    assert {case.dtype for case in chosen if case.timed} == {"bfloat16"}
    if sizes == "all":
        assert ("causal", "Llama-3.1-8B", "bfloat16") in keys
        assert ("causal", "Llama-3.1-8B", "float32") not in keys


def test_the_command_shows_and_writes_every_case_and_ends_with_1_where_one_is_wrong(monkeypatch, tmp_path, capsys):
    chosen = [case_of("causal", timed=True), case_of("nli")]
    monkeypatch.setattr(check, "cases", lambda sizes, usual: chosen)
    path = tmp_path / "device.json"
    command = ["--device", "cpu", "--shapes", "tiny", "--output", str(path)]
    assert main(command) == 0
    content = read_json(path)
    assert [list(row["measures"]) for row in content["rows"]] == [list(MEASURES), ["equality", "invariance"]]
    assert (content["is_right"], content["is_complete"], content["device"]["type"]) == (True, True, "cpu")
    assert "Llama 2 x 64" in capsys.readouterr().out
    original, make = check.check_device, wrong(lambda values: values + 1e-3)
    monkeypatch.setattr(check, "check_device", lambda *arguments, **named: original(*arguments, **named, make=make))
    chosen.pop()
    assert main(command) == 1
    assert read_json(path)["is_right"] is False
    assert "fails" in capsys.readouterr().out
