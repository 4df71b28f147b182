"""The classifier of pairs gives the model's own probabilities under the right labels, however its work is arranged."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from qabias.answers.parsing import LABELS
from qabias.errors import QabiasError
from qabias.models.loading import LoadedModel
from qabias.scorers.nli import NLIScorer
from qabias.scorers.registry import load_scorer

from .tiny_models import CONTEXTS, ENCODER_SMALL, QUESTIONS, first_of, inputs_of
from .tiny_models import ENCODER_CONFIGS as CONFIGS
from .tiny_models import make_encoder_tokenizer as make_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")

BART = {
    **{"d_model": 32, "init_std": 0.3, "bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 3},
    **{f"{side}_{size}": n for side in ("encoder", "decoder") for size, n in (("layers", 1), ("attention_heads", 4))},
    **{"encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64},
}
KINDS = {**CONFIGS, "bart": ("BartConfig", "bytes", BART)}
GLUE = ("entailment", "neutral", "contradiction")  # the order of MNLI in GLUE
PAIRS = [(premise, hypothesis) for premise in CONTEXTS for hypothesis in (*QUESTIONS, "Mary was a nurse.")]


def make_loaded(kind, names=GLUE, **changes):
    config_name, tokenizer, options = KINDS[kind]
    torch.manual_seed(0)
    config = getattr(transformers, config_name)(
        **{**ENCODER_SMALL, **options, **changes}, id2label=dict(enumerate(names)), num_labels=len(names)
    )
    return LoadedModel(
        # In float32 the order of additions, which memory alignment decides, moves a probability by up to 1e-6.
        model=transformers.AutoModelForSequenceClassification.from_config(config).double().eval(),
        tokenizer=make_tokenizer(tokenizer),
        name="tiny",
        version="local",
        device="cpu",
        dtype="float64",
    )


def one_at_a_time(loaded, pairs, names=GLUE):
    probabilities = []
    for premise, hypothesis in pairs:
        with torch.no_grad():
            logits = loaded.model(**inputs_of(loaded, premise, hypothesis)).logits[0].double().numpy()
        shares = np.exp(logits) / np.exp(logits).sum()
        probabilities.append([shares[names.index(label)] for label in LABELS])
    return np.array(probabilities)


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", first_of("bert", "deberta-v2", *sorted({*KINDS} - {"bert", "deberta-v2"}), n=2))
def test_probabilities_are_those_of_one_pair_at_a_time(kind):
    loaded = make_loaded(kind)
    probabilities = NLIScorer(loaded).classify(PAIRS)
    assert probabilities.dtype == np.float64
    assert probabilities.shape == (len(PAIRS), 3)
    assert_close(probabilities, one_at_a_time(loaded, PAIRS))
    assert_close(probabilities.sum(axis=1), 1)
    assert probabilities.std(axis=0).min() > 1e-4  # the model has an opinion on each label


@pytest.mark.parametrize("pad", [None, 5])
def test_a_decoder_that_does_not_know_the_pad_is_asked_row_by_row(pad):
    loaded = make_loaded("gpt2", pad_token_id=pad)
    scorer = NLIScorer(loaded)
    assert_close(scorer.classify(PAIRS), one_at_a_time(loaded, PAIRS))
    assert scorer.stats.batches == len(PAIRS)


def test_half_precision_gives_whole_probabilities():
    half = make_loaded("bert")
    probabilities = NLIScorer(replace(half, model=half.model.to(torch.bfloat16), dtype="bfloat16")).classify(PAIRS)
    assert probabilities.dtype == np.float64
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert NLIScorer(replace(half, dtype="bfloat16")).model_signature == "local/bfloat16"


# Labels


@pytest.mark.parametrize(
    "names",
    [
        ("contradiction", "neutral", "entailment"),
        ("ENTAILMENT", "CONTRADICTION", "NEUTRAL"),
        ("neutral", " Entails ", "Contradicts"),
        ("contradictory", "entail", "Neutral"),
    ],
)
def test_a_head_in_another_order_gives_the_same_probabilities(names):
    loaded = make_loaded("bert")
    expected = NLIScorer(loaded).classify(PAIRS)
    other = make_loaded("bert", names)
    first_letters = [label[0] for label in GLUE]
    order = [first_letters.index(name.strip().lower()[0]) for name in names]
    head, other_head = loaded.model.classifier, other.model.classifier
    other_head.load_state_dict({"weight": head.weight[order], "bias": head.bias[order]})
    scorer = NLIScorer(other)
    assert scorer.labels == tuple(GLUE[i] for i in order)
    assert_close(scorer.classify(PAIRS), expected)


def test_labels_of_a_model_without_names_are_given():
    nameless = make_loaded("bert", ("LABEL_0", "LABEL_1", "LABEL_2"))
    with pytest.raises(QabiasError, match="LABEL_0, LABEL_1, LABEL_2"):
        NLIScorer(nameless)
    scorer = NLIScorer(nameless, labels="entailment, Neutral,contradiction")
    assert scorer.labels == GLUE
    named = NLIScorer(make_loaded("bert")).classify(PAIRS)
    assert_close(scorer.classify(PAIRS), named)
    # Labels that are given go before the names of the model.
    turned = NLIScorer(make_loaded("bert"), labels="contradiction,neutral,entailment").classify(PAIRS)
    np.testing.assert_array_equal(turned, named[:, ::-1])
    with pytest.raises(QabiasError, match="2 outputs"):
        NLIScorer(make_loaded("bert", ("LABEL_0", "LABEL_1")), labels="contradiction,neutral,entailment")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("entailment", "not_entailment"), "2 outputs"),
        (("entailment", "neutral", "contradiction", "dummy"), "4 outputs"),
        (("negative", "neutral", "positive"), "negative, neutral, positive"),
        (("entailment", "entails", "neutral"), "entailment, entails, neutral"),
    ],
)
def test_models_with_other_outputs_are_refused(names, message):
    with pytest.raises(QabiasError, match=message):
        NLIScorer(make_loaded("bert", names))


@pytest.mark.parametrize("labels", ["contradiction,neutral", "contradiction,neutral,yes", "neutral,neutral,entailment"])
def test_labels_that_are_not_the_three_are_refused(labels):
    with pytest.raises(QabiasError, match=f"'{labels}'"):
        NLIScorer(make_loaded("bert"), labels=labels)
    with pytest.raises(QabiasError, match=f"labels is '{labels}'"):
        load_scorer("nli", "nowhere", scorer_options={"labels": labels})


# Limits


@pytest.mark.parametrize(
    ("kind", "changes"),
    # RoBERTa counts positions from its pad token's number, which published models set to 1.
    [("bert", {}), ("roberta", {}), ("roberta", {"pad_token_id": 1, "max_position_embeddings": 66}), ("bart", {})],
)
def test_too_long_a_pair_is_named_and_the_longest_is_run(kind, changes):
    loaded = make_loaded(kind, **changes)
    premise, hypothesis = "Mary saw James" + " a" * 64, "Mary left."
    room = 64 - len(loaded.tokenizer(premise, hypothesis)["input_ids"])
    longest = (premise[: len(premise) + 2 * room], hypothesis)
    assert len(loaded.tokenizer(*longest)["input_ids"]) == 64
    assert_close(NLIScorer(loaded).classify([longest]), one_at_a_time(loaded, [longest]))
    with pytest.raises(QabiasError, match=r"Mary saw.*65 tokens are more than the 64"):
        NLIScorer(loaded).classify([PAIRS[0], (longest[0] + " a", hypothesis)])
