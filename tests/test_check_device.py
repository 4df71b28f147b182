"""`qabias check-device` on the CPU with tiny models: every scorer, its verdicts, its time limit and its file."""

import contextlib
import itertools

import numpy as np
import pytest
import torch
from rich.console import Console

from qabias.cli.check_device import SIZES
from qabias.devices import cases, check, recovery, subjects
from qabias.devices.costs import Costs
from qabias.devices.deadline import Deadline
from qabias.devices.device import Device
from qabias.devices.loops import Wrote
from qabias.devices.outcome import FAILS, HOLDS, MEASURED, MEASURES, NOT_MEASURED, STATES
from qabias.devices.printing import as_json, print_check
from qabias.devices.questions import take
from qabias.devices.shapes import LARGE_CAUSAL, LARGE_ENCODERS, LARGE_T5, MIDDLE_CAUSAL, SMALL_CAUSAL
from qabias.support.files import read_json, write_json

from .test_cli import invoke

pytestmark = pytest.mark.usefixtures("one_thread", "small")
TINY = {case.way.name: case for case in cases.cases("tiny", "float32") if case.dtype == "float32"}


@pytest.fixture(scope="module")
def small():
    """Questions of a few examples, read once, and no time for the products of large matrices."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subjects, "EXAMPLES", 24)
        patch.setattr(check, "SPEED_SHARE", 1e-9)
        patch.setattr(Device, "product_rate", lambda self, dtype: 1e12)
        yield
    subjects.questions_of.cache_clear()
    subjects._tokenizer.cache_clear()


def checked(monkeypatch, *chosen, make=subjects.make_scorer, clock=lambda: 0.0, seconds=1e6):
    """What is found of some cases."""
    monkeypatch.setattr(check, "cases", lambda sizes, usual: list(chosen))
    return check.check_device("cpu", "tiny", seconds, lambda _: None, clock, make)


def of(case, *measures, dtype="float32"):
    return cases.Case(case.way, case.shape, dtype, measures)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", TINY)
def test_every_scorer_is_right_on_the_cpu(name, dtype, monkeypatch):
    (row,) = checked(monkeypatch, of(TINY[name], *cases.CORRECT, dtype=dtype)).rows
    for outcome in row.outcomes.values():
        assert outcome.state == HOLDS, outcome.why
        assert outcome.figures["difference"] <= outcome.figures["bound"]
        assert outcome.figures["questions"] == 8
    assert row.outcomes["equality"].figures["reference"] == "float64 on the CPU"
    assert row.notes == ()


class Wrong:
    """A scorer whose answers are off by what `change` makes of them."""

    def __init__(self, scorer, change):
        self._scorer, self._change = scorer, change

    def __getattr__(self, name):
        return getattr(self._scorer, name)

    def score(self, items):
        found = self._scorer.score(items)
        for score in found:
            score.loglikelihoods[...] = self._change(score.loglikelihoods)
        return found

    def generate(self, prompts, keys):
        return [tuple(map(self._change, texts)) for texts in self._scorer.generate(prompts, keys)]


def wrong(change, *, only_small=False):
    def make(way, loaded, budget):
        scorer = subjects.make_scorer(way, loaded, budget)
        return Wrong(scorer, change) if budget is not None or not only_small else scorer

    return make


def test_a_scorer_that_is_slightly_wrong_is_found(monkeypatch):
    found = checked(monkeypatch, of(TINY["causal"], "equality"), make=wrong(lambda values: values + 1e-3))
    outcome = found.rows[0].outcomes["equality"]
    assert outcome.state == FAILS
    assert outcome.figures["difference"] > outcome.figures["bound"]
    assert "at most" in outcome.why
    assert not found.is_right


def test_a_scorer_that_has_no_figure_where_the_reference_has_one_is_found(monkeypatch):
    found = checked(monkeypatch, of(TINY["causal"], "equality"), make=wrong(lambda values: values * np.nan))
    assert found.rows[0].outcomes["equality"].state == FAILS


def test_a_scorer_whose_figures_depend_on_the_batch_is_found(monkeypatch):
    make = wrong(lambda values: values * 1.001, only_small=True)
    outcomes = checked(monkeypatch, of(TINY["causal"], *cases.CORRECT), make=make).rows[0].outcomes
    assert (outcomes["equality"].state, outcomes["invariance"].state) == (HOLDS, FAILS)


def test_a_writer_of_other_texts_is_found(monkeypatch):
    make = wrong(lambda text: type(text)("nothing of that", text.finish))
    found = checked(monkeypatch, of(TINY["causal, written"], *cases.CORRECT), make=make)
    assert [one.state for one in found.rows[0].outcomes.values()] == [FAILS, FAILS]


class Words:
    def decode(self, tokens, skip_special_tokens):
        return " ".join(f"word{token}" for token in tokens)


@pytest.mark.parametrize(
    ("text", "margin"),
    [
        ("word1 word2 word3", 0.0),
        ("word1 word9 word3", 0.2),
        ("word9", 0.1),
        ("word1 word2 word3 word4", 0.3),
        ("", 0.1),
    ],
)
def test_texts_part_where_the_first_token_differs(text, margin):
    wrote = Wrote(Words(), [1, 2, 3], np.array([0.1, 0.2, 0.3]))
    assert wrote.parts_from(text) == margin


def test_speed_is_told_with_its_shares_and_a_plain_loop(monkeypatch):
    (row,) = checked(monkeypatch, of(TINY["causal"], *MEASURES)).rows
    speed, peer = row.outcomes["speed"], row.outcomes["peer"]
    assert speed.state == peer.state == MEASURED
    figures = speed.figures
    assert figures["questions"] >= 16
    assert figures["tokens_per_second"] == pytest.approx(figures["tokens"] / figures["seconds"])
    assert figures["share_of_dense"] == pytest.approx(figures["tokens_per_second"] / figures["dense_tokens_per_second"])
    assert figures["share_of_peak"] == pytest.approx(figures["operations_per_second"] / 1e12)
    assert 0 < figures["share_outside_model"] < 1
    assert figures["layout"] == "tree"
    assert peer.figures["ratio"] == pytest.approx(peer.figures["peer_seconds"] / peer.figures["seconds"])
    assert row.outcomes["recovery"].why == "not tried on CPU"


@pytest.mark.parametrize("name", ["seq2seq", "causal, written"])
def test_models_that_write_are_timed_too(name, monkeypatch):
    figures = checked(monkeypatch, of(TINY[name], "speed")).rows[0].outcomes["speed"].figures
    assert figures["tokens"] > figures["batches"] > 0
    # A model that writes one token after the other has no dense pass to be held against.
    assert (figures["share_of_dense"] is None) == TINY[name].way.writes


class SmallDevice(Device):
    """A device whose memory is so small, once it is limited, that many tokens do not fit."""

    largest = None

    def allocated(self):
        return 0

    @contextlib.contextmanager
    def limited(self, room):
        self.largest = 100
        yield
        self.largest = None


def test_memory_that_runs_out_is_survived_and_counted():
    case, device = TINY["causal"], SmallDevice("cpu")
    loaded = subjects.make_model(case.shape, case.way, "float32", "cpu")

    def refuse(module, inputs, named):
        if device.largest is not None and named["input_ids"].numel() > device.largest:
            raise torch.OutOfMemoryError("no room")

    loaded.model.base_model.register_forward_pre_hook(refuse, with_kwargs=True)
    items = take(subjects.questions_of(case.way), 12)
    units = np.ones(36)

    def make(budget):
        return subjects.make_scorer(case.way, loaded, budget)

    outcome = recovery.recovery(case, device, make, items, units, 1e-4)
    assert outcome.state == HOLDS
    assert outcome.figures["halvings"] >= 2

    outcome = recovery.recovery(
        case,
        device,
        lambda budget: wrong(lambda v: v - (budget is not None))(case.way, loaded, budget),
        items,
        units,
        1e-4,
    )
    assert outcome.state == FAILS


def test_memory_that_does_not_run_out_is_no_proof():
    case = TINY["causal"]
    loaded = subjects.make_model(case.shape, case.way, "float32", "cpu")
    device = SmallDevice("cpu")
    outcome = recovery.recovery(
        case,
        device,
        lambda budget: subjects.make_scorer(case.way, loaded, budget),
        take(subjects.questions_of(case.way), 4),
        np.ones(12),
        1e-4,
    )
    assert (outcome.state, outcome.why) == (NOT_MEASURED, "memory did not run out")


def test_a_model_that_runs_out_of_memory_is_not_measured_and_stops_nothing(monkeypatch):
    def make(way, loaded, budget):
        raise torch.OutOfMemoryError("no room")

    rows = checked(monkeypatch, of(TINY["causal"], *cases.CORRECT), make=make).rows
    assert {one.state for one in rows[0].outcomes.values()} == {NOT_MEASURED}
    assert "ran out: no room" in rows[0].outcomes["equality"].why


def test_what_a_device_cannot_compute_fails_with_its_own_words(monkeypatch):
    def make(way, loaded, budget):
        raise NotImplementedError("no such kernel")

    found = checked(monkeypatch, of(TINY["causal"], "equality"), make=make)
    assert found.rows[0].outcomes["equality"].why == "NotImplementedError: no such kernel"
    assert not found.is_right


def test_published_shapes_have_the_published_numbers_of_parameters():
    shapes = (SMALL_CAUSAL, MIDDLE_CAUSAL, LARGE_ENCODERS["bert"], LARGE_ENCODERS["roberta"])
    in_millions = [round(shape.parameters / 1e6, 1) for shape in shapes]
    assert in_millions == [134.5, 1711.4, 335.1, 355.4]
    assert round(LARGE_CAUSAL.weights_bytes("bfloat16") / 2e9, 2) == 8.03
    assert round(LARGE_ENCODERS["deberta"].parameters / 1e6) == 434
    # The published one has one matrix of embeddings for all.
    assert round((LARGE_T5.parameters) / 1e6) == 738


def test_a_model_that_does_not_fit_is_not_made(monkeypatch):
    monkeypatch.setattr(Device, "free_memory", lambda self: 2**30)
    case = cases.Case(subjects.CAUSAL, LARGE_CAUSAL, "bfloat16", MEASURES)
    outcomes = checked(monkeypatch, case).rows[0].outcomes
    assert outcomes["equality"].state == NOT_MEASURED
    assert outcomes["equality"].why == "memory (needs 16.5 GiB, 1.0 GiB free)"
    assert list(outcomes) == list(MEASURES)


def test_costs_learn_from_what_took_long_enough_to_tell():
    case = cases.Case(subjects.CAUSAL, SMALL_CAUSAL, "float32", MEASURES)
    costs = Costs(Device("cpu"), {"float32": 1e12}, 1e12)
    before = costs.building(case)
    costs.learn(1.0, 50.0)
    assert costs.building(case) == before
    costs.learn(10.0, 40.0)
    assert costs.building(case) == pytest.approx(4 * before)
    costs.learn(40.0, 1.0)
    assert costs.building(case) == before


def test_a_reference_that_fits_no_cpu_is_made_on_the_device(monkeypatch):
    case = cases.Case(subjects.CAUSAL, MIDDLE_CAUSAL, "bfloat16", MEASURES)
    device = Device("cpu")
    costs = Costs(device, {"float32": 1e14, "bfloat16": 1e15}, 1e14)
    free = iter([2**33, 2**34, 2**30, 2**30])
    monkeypatch.setattr(Device, "free_memory", lambda self: next(free))
    assert costs.choose_reference(case, 100.0) == ("float32 on the device", None)
    _, why = costs.choose_reference(case, 100.0)
    assert why == "memory (needs 9.6 GiB, 1.0 GiB free)"


def test_nothing_is_begun_when_the_time_is_over_and_all_of_it_is_listed(monkeypatch):
    chosen = [of(TINY["causal"], *cases.CORRECT) for _ in range(8)]
    ticks = itertools.count(0.0, 10.0)
    found = checked(monkeypatch, *chosen, clock=lambda: next(ticks), seconds=400.0)
    states = [[one.state for one in row.outcomes.values()] for row in found.rows]
    assert states[0] == [HOLDS, HOLDS]
    assert states[-1] == [NOT_MEASURED, NOT_MEASURED]
    assert len(found.rows) == 8
    assert found.rows[-1].outcomes["equality"].why.startswith("time (needs about ")
    assert found.is_right


def test_what_was_found_so_far_is_kept_after_every_case(monkeypatch):
    monkeypatch.setattr(
        check, "cases", lambda sizes, usual: [of(TINY["causal"], "equality"), of(TINY["nli"], "equality")]
    )
    kept = []
    check.check_device(
        "cpu", "tiny", 1e-9, lambda _: None, keep=lambda found: kept.append((len(found.rows), found.is_complete))
    )
    assert kept == [(1, False), (2, True)]


def test_a_deadline_refuses_what_takes_longer_than_is_left():
    now = [0.0]
    deadline = Deadline(10.0, lambda: now[0])
    assert deadline.refusal(9.0) is None
    now[0] = 4.0
    assert deadline.refusal(9.0) == "time (needs about 9 s, 6 s left)"
    now[0] = 11.0
    assert deadline.left == 0.0
    assert deadline.refusal(0.0) is not None


@pytest.mark.parametrize("sizes", cases.SIZES)
def test_every_scorer_is_asked_in_every_precision_and_none_twice(sizes):
    assert sizes in SIZES
    found = cases.cases(sizes, "bfloat16")
    keys = [(case.way.name, case.shape.name, case.dtype) for case in found]
    assert len(set(keys)) == len(keys)
    assert {(way.name, dtype) for way in subjects.WAYS for dtype in ("float32", "bfloat16", "float16")} <= {
        (way, dtype) for way, _, dtype in keys
    }
    if sizes == "all":
        assert ("causal", "Llama-3.1-8B", "bfloat16") in keys
        assert ("causal", "Llama-3.1-8B", "float32") not in keys


def test_the_file_is_strict_and_has_every_measure_of_every_case(monkeypatch, tmp_path):
    chosen = [of(TINY["causal"], *MEASURES), of(TINY["nli"], *cases.CORRECT)]
    path = tmp_path / "device.json"
    write_json(path, as_json(checked(monkeypatch, *chosen), "tiny", 8))
    content = read_json(path)
    assert [list(row["measures"]) for row in content["rows"]] == [list(case.measures) for case in chosen]
    assert {one["state"] for row in content["rows"] for one in row["measures"].values()} <= set(STATES)
    assert content["rows"][0]["measures"]["recovery"]["why"] == "not tried on CPU"
    assert content["device"]["type"] == "cpu"
    assert content["is_right"] is True


def test_the_table_shows_every_case_and_says_why_something_is_not_measured(monkeypatch):
    found = checked(monkeypatch, of(TINY["causal"], *MEASURES), make=wrong(lambda values: values + 1e-3))
    console = Console(record=True, width=200)
    print_check(found, console)
    shown = console.export_text()
    assert "Llama 2 x 64" in shown
    assert "fails 5.0e-04 / " in shown
    assert "not measured: not tried on CPU: causal, Llama 2 x 64, float32: recovery" in shown
    assert "1 of the measures failed" in shown


def test_the_command_ends_with_0_where_all_is_right_and_with_1_where_it_is_not(monkeypatch, tmp_path):
    monkeypatch.setattr(check, "cases", lambda sizes, usual: [of(TINY["causal"], "equality")])
    path = tmp_path / "device.json"
    result = invoke("check-device", "--device", "cpu", "--shapes", "tiny", "--output", path)
    assert result.exit_code == 0, result.output
    content = read_json(path)
    assert (content["is_right"], content["is_complete"]) == (True, True)
    original, make = check.check_device, wrong(lambda values: values + 1e-3)
    monkeypatch.setattr(check, "check_device", lambda *given, **named: original(*given, **named, make=make))
    result = invoke("check-device", "--device", "cpu", "--shapes", "tiny", "--output", path)
    assert result.exit_code == 1, result.output
    assert read_json(path)["is_right"] is False
    assert "fails" in result.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--minutes", 0], "--minutes is 0.0; give minutes above 0"),
        (["--shapes", "huge"], "unknown --shapes 'huge'"),
        (["--device", "nowhere"], "device 'nowhere' is not available here"),
        (["--output", "."], "is a folder; name a file"),
    ],
)
def test_a_mistake_is_one_line(options, said):
    result = invoke("check-device", *options)
    assert said in str(result.exception)
