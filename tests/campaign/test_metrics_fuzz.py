"""Corrupted calls of every metric: refused by name, or scored as what they stand for."""

from collections import Counter
from dataclasses import replace
from typing import Any

import evaluate
import pytest

from tests.metrics.helpers import folder, same

from .corruptions import FORMS, KINDS, Call, Form, calls, clean
from .counts import SEED, HangError, count, size, time_limit
from .odd_values import OddError

CALLS = 3000
"""Of each form and kind; with five forms and three kinds the number of the review and a little more."""
PARTS = 5
"""A form and kind in so many tests, for several processes."""
LONGEST = 2000
"""Letters of a message, however long the value is."""
SECONDS = 30
"""In which a call of a few rows ends on a busy machine."""


@pytest.fixture(scope="module")
def metrics():
    return {name: type(evaluate.load(str(folder(name)))) for name in ("bbq", "unqover", "bbnli")}


def sent(metric: Any, call: Call) -> dict[str, Any]:
    """The result of a call by its route."""
    options = dict(call.options)
    probabilities = {"probabilities": options.pop("probabilities")} if "probabilities" in options else {}
    predictions, references = call.predictions, call.references
    if call.route == "compute" or not (isinstance(predictions, list) and isinstance(references, list)):
        return metric.compute(predictions=predictions, references=references, **probabilities, **options)
    if call.route == "add_batch":
        metric.add_batch(predictions=predictions, references=references, **probabilities)
        return metric.compute(**options)
    half = len(references) // 2
    if call.route == "two batches":
        metric.add_batch(predictions=predictions[half:], references=references[half:])
        metric.add_batch(predictions=predictions[:half], references=references[:half])
        return metric.compute(**options)
    if call.route == "half added":
        metric.add_batch(predictions=predictions[:half], references=references[:half])
        return metric.compute(predictions=predictions[half:], references=references[half:], **options)
    if len(predictions) != len(references):
        return metric.compute(predictions=predictions, references=references, **options)
    for prediction, reference in zip(predictions, references, strict=True):
        metric.add(prediction=prediction, reference=reference)
    return metric.compute(**options)


def outcome(metric: Any, call: Call) -> tuple[str, Any]:
    """How a call ends: "result" with it, "refused" with the message, or "fault" with what is wrong."""
    try:
        with time_limit(SECONDS):
            return "result", sent(metric, call)
    except (ValueError, TypeError) as error:
        text = str(error)
        if not text.startswith(f"{type(metric).__name__.lower()}: "):
            return "fault", f"{type(error).__name__}: {text[:200]}"
        if len(text) > LONGEST:
            return "fault", f"a message of {len(text)} letters"
        return ("fault", "a message of several lines") if "\n" in text else ("refused", text)
    except OddError:
        return "refused", "the object's own error"
    except (Exception, HangError) as error:
        return "fault", f"{type(error).__name__}: {str(error)[:200]}"


class Meanings:
    """Results of plain calls, each computed once."""

    def __init__(self, new: Any) -> None:
        self.new = new
        self.known: dict[str, tuple[str, Any]] = {}

    def of(self, call: Call) -> tuple[str, Any]:
        key = repr((call.predictions, call.references, call.options))
        if key not in self.known:
            self.known[key] = outcome(self.new(), replace(call, route="compute"))
        return self.known[key]


def judged(ended: tuple[str, Any], call: Call, meanings: Meanings) -> str | None:
    """What is wrong with how a call ended."""
    how, what = ended
    if how == "fault":
        return what
    if call.meaning is None:
        return "taken, though it stands for nothing" if how == "result" else None
    meant, expected = meanings.of(call.meaning)
    if meant == "fault":
        return f"plain call: {expected}"
    if how == "result":
        if meant == "refused":
            return f"taken, though what it stands for is refused: {expected[:150]}"
        return None if same(what, expected) else "another score than that of what it stands for"
    if meant == "result" and call.plain:
        return f"refused, though what it stands for is taken: {what[:150]}"
    return None


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.filterwarnings("ignore")
def test_a_corrupted_call_is_refused_by_name_or_scored_as_what_it_stands_for(metrics, name, kind, part):
    form: Form = FORMS[name]
    new = metrics[form.metric]
    meanings = Meanings(new)
    faults: dict[str, str] = {}
    ends: Counter[str] = Counter()
    metric, good = new(), clean(form)
    expected = sent(new(), good)
    for call in calls(form, kind, size(CALLS // PARTS), f"{SEED}-{name}-{kind}-{part}"):
        ended = outcome(metric, call)
        fault = judged(ended, call, meanings)
        ends["faults" if fault else "accepted" if ended[0] == "result" else "refused"] += 1
        if fault:
            faults.setdefault(f"{call.name} ({call.route}): {fault}", fault)
        if ended[0] != "result":
            # Batches are kept after an error, so only a call without any leaves the metric as it was.
            metric = metric if call.route == "compute" else new()
    count("corrupted metric calls", sum(ends.values()), **ends)
    assert same(sent(metric, good), expected), "the good call after all others"
    assert not faults, f"{len(faults)} kinds of faults:\n" + "\n".join(sorted(faults))
