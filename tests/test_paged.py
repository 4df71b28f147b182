"""Answers that are written in pages are those that are written batch by batch, or the scorer says that it cannot."""

import copy
import warnings

import pytest
import torch

from qabias.errors import QabiasError
from qabias.measuring.run import run
from qabias.runs.arguments import RunArguments
from qabias.scorers import paged
from qabias.scorers.causal import parse_options
from qabias.scorers.generation import GenerationScorer
from tests import tiny_models
from tests.saved_models import save

pytestmark = pytest.mark.usefixtures("one_thread")

START = "A baker and a carpenter shared a table at the library. "
PROMPTS = ["The nurse", *(f"{START}Who was {what}?" for what in ("generous", "forgetful", "late"))]
KEYS = [f"a/{number}" for number in range(len(PROMPTS))]


def written(loaded, paged, **options):
    """What a model writes to the prompts, one of them asked twice."""
    scorer = GenerationScorer(loaded, name="causal", max_new_tokens=6, paged=paged, **options)
    return scorer.generate([*PROMPTS, PROMPTS[1]], [*KEYS, "b/0"])


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_answers_are_those_of_the_other_way(kind, dtype, recwarn):
    model = tiny_models.make_model(kind).to(getattr(torch, dtype))
    loaded = tiny_models.load(model, dtype=dtype)
    before = copy.deepcopy(model.generation_config)
    attention = model.config._attn_implementation
    found = written(loaded, True)
    assert not [one for one in recwarn if "pages" in str(one.message)]
    assert model.generation_config is not before
    assert model.generation_config.to_dict() == before.to_dict()
    assert model.config._attn_implementation == attention
    expected = written(loaded, False)
    # In bfloat16 two tokens can be equally likely but for rounding, which differs with the shape of a batch.
    alike = [ours == theirs for ours, theirs in zip(found, expected, strict=True)]
    assert all(alike) if dtype == "float32" else sum(alike) >= 3
    assert found[-1] == found[1]


def test_an_answer_ends_at_the_end_token_and_says_so():
    loaded = tiny_models.load(tiny_models.make_model("llama"))
    (first,) = GenerationScorer(loaded, name="causal", max_new_tokens=1, paged=True).generate(PROMPTS[:1], KEYS[:1])
    assert first[0].finish == "length"
    tokens = loaded.tokenizer.encode(PROMPTS[0])
    with torch.inference_mode():
        likeliest = int(loaded.model(torch.tensor([tokens])).logits[0, -1].argmax())
    loaded.model.generation_config.eos_token_id = likeliest
    ended, plain = (
        GenerationScorer(loaded, name="causal", max_new_tokens=6, paged=paged).generate(PROMPTS[:1], KEYS[:1])[0][0]
        for paged in (True, False)
    )
    assert (ended, ended.finish) == (plain, plain.finish) == (loaded.tokenizer.decode([likeliest]), "stop")


def test_prompts_longer_than_the_budget_are_answered():
    loaded = tiny_models.load(tiny_models.make_model("llama"))
    assert written(loaded, True, token_budget=8) == written(loaded, False)


@pytest.mark.filterwarnings("ignore:causal. model 'tiny' cannot write in pages")
@pytest.mark.parametrize("kind", sorted(tiny_models.CONFIGS))
def test_no_kind_of_model_answers_otherwise(kind):
    """Some have windows, capped logits or positions of their own; some know no pages, and one does not say so."""
    loaded = tiny_models.load(tiny_models.make_model(kind))
    assert written(loaded, True) == written(loaded, False)


def test_a_model_that_knows_no_pages_says_so_once():
    scorer = GenerationScorer(tiny_models.load(tiny_models.make_model("mamba")), name="causal", paged=True)
    with pytest.warns(UserWarning, match="cannot write in pages .*it writes batch by batch"):
        found = scorer.generate(PROMPTS, KEYS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scorer.generate(PROMPTS, KEYS) == found


def test_a_model_that_answers_wrongly_in_pages_is_not_asked_so(monkeypatch):
    """Attention that does not know pages sees the other prompts too, and raises nothing."""
    loaded = tiny_models.load(tiny_models.make_model("llama"))
    expected = written(loaded, False)
    asked = paged.PagedWriter._ask

    def wrong(self, prompts, config):
        return [(tokens, [value + 0.1 for value in values]) for tokens, values in asked(self, prompts, config)]

    monkeypatch.setattr(paged.PagedWriter, "_ask", wrong)
    with pytest.warns(UserWarning, match=r"log-probabilities differ by 0\.1 from one prompt at a time"):
        assert written(loaded, True) == expected


def test_a_prompt_without_an_answer_is_no_reason_to_lose_any(monkeypatch):
    loaded = tiny_models.load(tiny_models.make_model("llama"))
    expected = written(loaded, False)
    generate_batch = type(loaded.model).generate_batch

    def loses_one(self, inputs, *given, **named):
        found = generate_batch(self, inputs, *given, **named)
        return dict(list(found.items())[1:])

    monkeypatch.setattr(type(loaded.model), "generate_batch", loses_one)
    with pytest.warns(UserWarning, match="1 prompts have no answer"):
        assert written(loaded, True) == expected


def test_nan_is_an_error():
    loaded = tiny_models.load(tiny_models.make_model("llama"))
    loaded.model.lm_head.weight.data.fill_(float("nan"))
    with pytest.raises(QabiasError, match="answers with NaN"):
        written(loaded, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "generate", "paged": "on"}, "paged is 'on'; give yes or no"),
        ({"paged": "yes"}, "paged is for written answers"),
        ({"mode": "generate", "paged": "yes", "temperature": "0.5"}, "takes the likeliest token"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(QabiasError, match=message):
        parse_options(options)


def test_a_run_ends_with_the_same_answers_and_signature(tmp_path):
    """Pages do not determine the answers: a run may go on with them or without."""
    model = save(tmp_path / "model", tiny_models.make_model("llama"), tiny_models.make_tokenizer())
    found = {}
    for name in ("yes", "no"):
        options = {"mode": "generate", "max_new_tokens": "4", "paged": name}
        arguments = RunArguments("bbq", model, "Age", limit=20, scorer="causal", format="letters", options=options)
        found[name] = run(arguments, tmp_path / name)
    assert found["yes"].signature == found["no"].signature
    parts = [(tmp_path / name / "predictions" / "part-00000.parquet").read_bytes() for name in found]
    assert parts[0] == parts[1]
