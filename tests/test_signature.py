"""The one line that pins what was measured: whatever a name holds, it is read from it as it was given."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabias.benchmarks import load_benchmark
from qabias.hub.results import public_signature
from qabias.runs.arguments import RunArguments
from qabias.runs.signature import joined, make_signature, scorer_name, signature_fields, with_rules
from qabias.scorers.registry import load_scorer

TEXT = st.text(alphabet=st.one_of(st.characters(), st.sampled_from("|%:\n\r\x1b@+0147AFCudD\ud83d\u2028")))


def signature_of(**changes):
    arguments = RunArguments("bbq", model="baseline:random", config="Age", format="qa")
    for name, value in changes.items():
        object.__setattr__(arguments, name, value)
    benchmark = load_benchmark("bbq")
    origin = SimpleNamespace(version="bundled@1")
    return make_signature(arguments, origin, benchmark.formats["qa"], load_scorer(None, "baseline:random"))


@given(fields=st.dictionaries(st.from_regex("[a-z]+", fullmatch=True), TEXT))
def test_what_is_put_into_a_signature_is_read_from_it(fields):
    signature = joined("toy", fields)
    assert signature_fields(signature) == fields
    assert len(signature.splitlines()) == 1
    signature.encode("utf-8")


@given(model=TEXT)
def test_no_name_of_a_model_adds_or_changes_a_field(model):
    usual, found = signature_fields(signature_of()), signature_fields(signature_of(model=model))
    assert found == {**usual, "model": model if model else found["model"]}


@pytest.mark.parametrize(
    ("model", "written"),
    [
        ("a|config:Religion", "model:a%7Cconfig:Religion"),
        ("a\nb", "model:a%0Ab"),
        ("half \ud83d", "model:half %uD83D"),
        ("50%25", "model:50%2525"),
        ("org/name-1.5_b@main", "model:org/name-1.5_b@main"),
        ("100% mine, ünïcode 模型", "model:100% mine, ünïcode 模型"),
        ("C:\\models\\a+b", "model:C:\\models\\a+b"),
    ],
)
def test_only_what_would_end_a_field_is_written_otherwise(model, written):
    assert f"|config:Age|format:qa@1|{written}" in signature_of(model=model)


def test_rules_and_the_public_name_are_put_in_beside_an_escaped_name():
    signature = joined("bbq", {"model": "a|score:b@local/float32", "scorer": "causal+x=1", "norm": "none", "seed": 0})
    counted = signature_fields(with_rules(signature, {"match": "strict"}))
    assert counted == {**signature_fields(signature), "score": "match=strict"}
    assert scorer_name(signature) == "causal"
    run = SimpleNamespace(arguments=SimpleNamespace(model="a|score:b"), signature=signature)
    assert signature_fields(public_signature(run, "me/mine"))["model"] == "me/mine@local/float32"
