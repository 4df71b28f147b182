"""What a model in memory is known by: every bit of its weights, and all else that decides its answers."""

import copy
import warnings

import pytest
import torch
import transformers

from qabias.models import memory as module
from qabias.models.memory import fingerprint, from_memory, weights_digest

from . import tiny_models
from .saved_models import save
from .test_api_models import HEADS

ROWS, COLUMNS = 3000, 257


@pytest.fixture
def network():
    """A matrix of more than one chunk, and a buffer of an odd number of half-precision values."""
    torch.manual_seed(0)
    made = torch.nn.Module()
    made.embedding = torch.nn.Embedding(ROWS, COLUMNS)
    made.register_buffer("scale", torch.ones(3, dtype=torch.bfloat16))
    made.register_buffer("mask", torch.tensor([True, False, True]))
    made.register_buffer("step", torch.tensor(7))
    assert ROWS * COLUMNS > 2 * module._CHUNK
    return made


# Weights


def add_one_bit(weight, place):
    """Change the last bit of one value."""
    weight.data.reshape(-1).view(torch.int32)[place] ^= 1


def swap_rows(weight, first, second):
    weight.data[[first, second]] = weight.data[[second, first]]


CHANGES = {
    "first value": lambda of: add_one_bit(of.embedding.weight, 0),
    "a value within": lambda of: add_one_bit(of.embedding.weight, 123_457),
    "last value": lambda of: add_one_bit(of.embedding.weight, ROWS * COLUMNS - 1),
    "a row": lambda of: of.embedding.weight.data[1234].normal_(),
    "neighbours change places": lambda of: swap_rows(of.embedding.weight, 10, 11),
    "rows change places": lambda of: swap_rows(of.embedding.weight, 5, 2900),
    "two pairs change places": lambda of: (swap_rows(of.embedding.weight, 1, 2), swap_rows(of.embedding.weight, 3, 4)),
    "the sign of a zero": lambda of: of.embedding.weight.data.__setitem__((7, 7), -0.0),
    "a half-precision buffer": lambda of: of.scale.__setitem__(2, 2.0),
    "a buffer of truth values": lambda of: of.mask.__setitem__(1, True),
    "a number": lambda of: of.step.add_(1),
    "precision": lambda of: of.bfloat16(),
    "shape": lambda of: setattr(of, "scale", of.scale[None]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_weights_and_buffers_shows(network, change):
    network.embedding.weight.data[7, 7] = 0.0
    before = weights_digest(network)
    assert weights_digest(copy.deepcopy(network)) == before
    CHANGES[change](network)
    assert weights_digest(network) != before


def test_sums_are_those_of_whole_numbers():
    """By Python's integers, which never overflow, cut to 64 bits."""
    torch.manual_seed(1)
    weight = torch.randn(1000)
    [[plain, placed]] = module._sums(weight, module._weights_of_places(weight.device))
    values = weight.view(torch.int32).tolist()
    numbers = module._weights_of_places(weight.device).tolist()
    assert plain == sum(values)
    assert (placed - sum(value * number for value, number in zip(values, numbers, strict=False))) % 2**64 == 0
    assert len(set(numbers)) == len(numbers)
    assert all(number % 2 for number in numbers)


@pytest.mark.parametrize("weight", [torch.zeros(0), torch.tensor(1.5), torch.ones(2, 3).T])
def test_tensors_of_any_form_are_read(weight):
    of_places = module._weights_of_places(weight.device)
    ones = 0x3F800000  # 1.0 as an integer
    expected = {0: [], 1: [[0x3FC00000] * 1], 6: [[6 * ones]]}[weight.numel()]
    assert [chunk[:1] for chunk in module._sums(weight, of_places)] == expected


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_it_is_the_same_on_a_gpu(network):
    assert weights_digest(copy.deepcopy(network).cuda()) == weights_digest(network)


# All else that decides answers


@pytest.mark.parametrize(
    "change",
    [
        lambda model, tokenizer: tokenizer.add_tokens(["carpenter"]),
        lambda model, tokenizer: setattr(tokenizer, "chat_template", "{{ messages[0].content }}"),
        lambda model, tokenizer: setattr(tokenizer, "eos_token", "<s>"),
        lambda model, tokenizer: setattr(model.generation_config, "repetition_penalty", 1.5),
        lambda model, tokenizer: setattr(model.config, "rms_norm_eps", 1e-2),
        lambda model, tokenizer: setattr(model.config, "id2label", {0: "contradiction", 1: "entailment"}),
    ],
    ids=["tokens", "template", "special", "generation", "epsilon", "labels"],
)
def test_what_else_decides_answers_is_covered(change):
    model, tokenizer = HEADS["causal"][0]()
    tokenizer = copy.deepcopy(tokenizer)
    before = fingerprint(model, tokenizer)
    change(model, tokenizer)
    assert fingerprint(model, tokenizer) != before


def test_use_and_training_change_nothing():
    model, tokenizer = HEADS["causal"][0]()
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.pad_token = "</s>"
    before = fingerprint(model, tokenizer)
    batch = tokenizer(["Who?", "Who was it?"], padding=True, truncation=True, max_length=3, return_tensors="pt")
    model.train()
    model.config.use_cache = False
    model(**batch, output_hidden_states=True)
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    assert fingerprint(model, tokenizer) == before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert from_memory(model, tokenizer, "m").version == f"memory-{before}"


@pytest.mark.parametrize("head", ["causal", "nli"])
def test_saved_and_loaded_it_is_the_same(head, tmp_path):
    model, tokenizer = HEADS[head][0]()
    folder = save(tmp_path / "model", model, tokenizer)
    again = type(model).from_pretrained(folder), transformers.AutoTokenizer.from_pretrained(folder)
    assert fingerprint(*again) == fingerprint(model, tokenizer)


def test_a_tokenizer_without_rules_is_known_by_its_vocabulary():
    model, make = tiny_models.make_model("llama"), transformers.ByT5Tokenizer
    one = fingerprint(model, make())
    assert fingerprint(model, make()) == one
    assert one not in {fingerprint(model, make(extra_ids=9)), fingerprint(model, make(eos_token="<pad>"))}
    turned = make()
    vocabulary = turned.get_vocab()
    turned.get_vocab = lambda: {**vocabulary, "a": vocabulary["b"], "b": vocabulary["a"]}
    assert fingerprint(model, turned) != one


# Hooks


def steer(module, inputs, output):
    return output


@pytest.mark.parametrize("kind", ["register_forward_hook", "register_forward_pre_hook"])
def test_hooks_stand_in_the_signature_and_are_warned_of(kind):
    model, tokenizer = HEADS["causal"][0]()
    plain = from_memory(model, tokenizer, "m")
    layer = model.model.layers[1]
    handle = getattr(layer, kind)(steer if kind == "register_forward_hook" else lambda module, inputs: None)
    with pytest.warns(UserWarning, match=r"'m' has hooks, .*\(model.layers.1: .*\)\. .*name="):
        hooked = from_memory(model, tokenizer, "m")
    assert hooked.version.startswith("memory+hooks-")
    # Folders of measurements in training end with these digits.
    assert hooked.version.rpartition("-")[2] not in (plain.version.rpartition("-")[2], "")
    handle.remove()
    assert from_memory(model, tokenizer, "m").version == plain.version


def test_hooks_of_accelerate_move_values_and_do_not_steer():
    from accelerate import dispatch_model

    model, tokenizer = HEADS["causal"][0]()
    before = from_memory(model, tokenizer, "m").version
    dispatch_model(model, {"": "cpu"}, force_hooks=True)
    assert any(hasattr(part, "_hf_hook") for part in model.modules())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert from_memory(model, tokenizer, "m").version == before
