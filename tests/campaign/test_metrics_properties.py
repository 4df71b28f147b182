"""What holds for every result of every metric, whatever the predictions are."""

import random
from dataclasses import replace
from typing import Any

import evaluate
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.metrics.helpers import folder, same, unsigned

from .corruptions import FORMS, Call, Form, clean
from .counts import count, size
from .test_metrics_fuzz import sent

EXAMPLES = 40
SCORES = (
    "bias_ambig",
    "bias_disambig",
    "bias_ambig_among_errors",
    "bias_score",
    "bias_score_ambig",
    "bias_score_disambig",
)

checked = settings(
    max_examples=size(EXAMPLES, 3),
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def metrics():
    return {name: type(evaluate.load(str(folder(name)))) for name in ("bbq", "unqover", "bbnli")}


def answers(form: Form) -> st.SearchStrategy[list[Any]]:
    """Predictions for the rows of a form."""
    n = len(form.rows)
    if form.metric == "unqover":
        score = st.floats(0, 1, width=32)
        rows = st.fixed_dictionaries({name: score for name in form.predictions[0] if name != "example_id"})
        return st.lists(rows, min_size=n, max_size=n)
    return st.lists(st.sampled_from([0, 1, 2, -1, None]), min_size=n, max_size=n)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.filterwarnings("ignore")
@checked
@given(data=st.data())
def test_a_result_depends_on_the_rows_alone(metrics, name, data):
    form = FORMS[name]
    new = metrics[form.metric]
    by = sorted(form.texts - {"ans0", "ans1", "ans2"})[0]
    call = replace(clean(form, confidence=0.95, by=[by]), predictions=data.draw(answers(form)))
    expected = sent(new(), call)
    n = len(form.rows)
    order = random.Random(data.draw(st.integers(0, 2**32))).sample(range(n), n)
    turned = replace(
        call, predictions=[call.predictions[k] for k in order], references=[call.references[k] for k in order]
    )
    columns = {key: [row[key] for row in form.rows] for key in form.rows[0]}
    count("properties of metrics", 5)
    for other in (
        call,
        turned,
        replace(call, references=columns),
        *(replace(turned, route=route) for route in ("two batches", "row by row")),
    ):
        assert same(sent(new(), other), expected, 1e-9)


def _without_intervals(call: Call) -> Call:
    return replace(call, options={**call.options, "confidence": None})


def _exchanged(form: Form, call: Call) -> Call:
    """The answers of who prefers the other person of every pair."""
    if form.metric == "bbq" or form is FORMS["bbnli as bbq"]:

        def turned(prediction: Any, row: dict[str, Any]) -> Any:
            persons = [place for place in range(3) if place != row["unknown_loc"]]
            return sum(persons) - prediction if prediction in persons else prediction

        pairs = zip(call.predictions, call.references, strict=True)
        return replace(call, predictions=[turned(prediction, row) for prediction, row in pairs])
    return replace(call, predictions=[2 - p if p in (0, 1, 2) else p for p in call.predictions])


@pytest.mark.parametrize("name", [name for name in FORMS if name != "unqover"])
@pytest.mark.filterwarnings("ignore")
@checked
@given(data=st.data())
def test_who_answers_with_the_other_person_has_the_opposite_bias(metrics, name, data):
    form = FORMS[name]
    call = _without_intervals(replace(clean(form), predictions=data.draw(answers(form))))
    result, opposite = (sent(metrics[form.metric](), one) for one in (call, _exchanged(form, call)))
    count("properties of metrics", 1)
    found = [score for score in SCORES if score in result]
    assert found
    for score in found:
        assert same(opposite[score], -result[score], 1e-9), score
    assert same(opposite["unparsed_share"], result["unparsed_share"])


@pytest.mark.filterwarnings("ignore")
@checked
@given(data=st.data())
def test_the_names_of_the_two_subjects_may_be_exchanged(metrics, data):
    form = FORMS["unqover"]
    call = _without_intervals(replace(clean(form), predictions=data.draw(answers(form))))
    exchange = {"subject1": "subject2", "cluster1": "cluster2", "s1_12": "s2_21", "s2_12": "s1_21"}
    exchange |= {f"{a}_neg": f"{b}_neg" for a, b in exchange.items() if a.startswith("s") and "_" in a}
    exchange |= {b: a for a, b in exchange.items()}
    turned = replace(
        call,
        predictions=[{exchange[key]: value for key, value in row.items()} for row in call.predictions],
        references=[{exchange.get(key, key): value for key, value in row.items()} for row in call.references],
    )
    results = [unsigned(sent(metrics["unqover"](), one)) for one in (call, turned)]
    count("properties of metrics", 1)
    for result in results:
        result["top"] = sorted([entry[0], entry[1], round(entry[2], 9)] for entry in result["top"])
    assert same(*results, 1e-9)
