"""Corrupted calls of every metric: refused by name, or scored as what they stand for."""

from dataclasses import replace
from typing import Any

import evaluate
import pytest

from tests.metrics.helpers import folder, same

from .helpers import LONGEST, SEED, HangError, TimeLimit, size
from .metric_calls import FORMS, Call, OddError, calls, clean

CALLS = 9000
"""Of each form."""
PARTS = 5
"""A form in so many tests, for several processes."""
SECONDS = 30
"""In which a call of a few rows ends on a busy machine."""


@pytest.fixture(scope="module")
def metrics():
    return {name: type(evaluate.load(str(folder(name)))) for name in ("bbq", "unqover", "bbnli")}


def sent(metric: Any, call: Call) -> dict[str, Any]:
    """The result of a call, in one or in two batches."""
    predictions, references = call.predictions, call.references
    if not call.in_batches or not (isinstance(predictions, list) and isinstance(references, list)):
        return metric.compute(predictions=predictions, references=references, **call.options)
    half = len(references) // 2
    metric.add_batch(predictions=predictions[half:], references=references[half:])
    return metric.compute(predictions=predictions[:half], references=references[:half], **call.options)


def outcome(metric: Any, call: Call) -> tuple[str, Any]:
    """How a call ends: "result" with it, "refused" with the message, or "fault" with what is wrong."""
    try:
        with TimeLimit(SECONDS):
            return "result", sent(metric, call)
    except (ValueError, TypeError) as error:
        text = str(error)
        is_named = text.startswith(f"{type(metric).__name__.lower()}: ") and len(text) <= LONGEST and "\n" not in text
        return ("refused", text) if is_named else ("fault", f"{type(error).__name__}: {text[:200]}")
    except OddError:
        return "refused", "the object's own error"
    except (Exception, HangError) as error:
        return "fault", f"{type(error).__name__}: {str(error)[:200]}"


def fault_of(metric: Any, call: Call) -> str | None:
    """What is wrong with how a call ends."""
    how, result = outcome(metric(), call)
    if how == "fault":
        return result
    if call.meaning is None:
        return "taken, though it stands for nothing" if how == "result" else None
    meant, expected = outcome(metric(), replace(call.meaning, in_batches=False))
    if meant == "fault":
        return f"plain call: {expected}"
    if how == "result":
        is_same = meant == "result" and same(result, expected)
        return None if is_same else f"another result than that of what it stands for: {str(expected)[:150]}"
    return (
        f"refused, though what it stands for is taken: {result[:150]}" if meant == "result" and call.is_plain else None
    )


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.filterwarnings("ignore")
def test_a_corrupted_call_is_refused_by_name_or_scored_as_what_it_stands_for(metrics, name, part):
    form, metric = FORMS[name], metrics[FORMS[name].metric]
    expected = sent(metric(), clean(form))
    odd = list(calls(form, size(CALLS // PARTS), f"{SEED}-{name}-{part}"))
    faults = {f"{call.name}: {fault}" for call in odd if (fault := fault_of(metric, call))}
    assert not faults, f"{len(faults)} kinds of faults:\n" + "\n".join(sorted(faults))
    assert same(sent(metric(), clean(form)), expected), "the good call after all others"
