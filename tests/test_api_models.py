"""A model in memory and a pipeline answer as the same model by its name, and are left as they were found."""

import copy
import warnings
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
import torch
import transformers

import qabias
from qabias.api.given_models import given_model
from qabias.benchmarks.unqover.benchmark import BENCHMARK as UNQOVER
from qabias.models.memory import fingerprint, from_memory

from . import tiny_models
from .saved_models import make_t5, save

pytestmark = pytest.mark.usefixtures("one_thread")

LONG = {"max_position_embeddings": 512}
LABELS = dict(enumerate(("entailment", "neutral", "contradiction")))


def make_encoder(head, **changes):
    return tiny_models.make_encoder.__wrapped__("bert", f"AutoModelFor{head}", **LONG, **changes)


def make_masks():
    """A masked model that knows every subject as one token, with its tokenizer."""
    words = copy.deepcopy(tiny_models.make_encoder_tokenizer("wordpiece"))
    rows = UNQOVER.load("religion_mlm", UNQOVER.origin("bundled", 0, False))
    words.add_tokens(sorted({*rows["answer1"].to_pylist(), *rows["answer2"].to_pylist()}))
    return make_encoder("MaskedLM", vocab_size=len(words)), words


def with_words(model):
    return model, tiny_models.make_encoder_tokenizer("wordpiece")


# Head: how it is made with its tokenizer, what it is asked, and the task of a pipeline that has it.
HEADS = {
    "causal": (
        lambda: (tiny_models.make_model("llama", max_position_embeddings=2048), tiny_models.make_tokenizer()),
        {"benchmark": "bbq", "config": "Age"},
        "text-generation",
    ),
    "causal that writes": (
        lambda: (tiny_models.make_model("gpt2", n_positions=2048), tiny_models.make_tokenizer()),
        {"benchmark": "bbq", "config": "Age", "ask": "letter", "option": {"max_new_tokens": 4}},
        "text-generation",
    ),
    "seq2seq": (
        lambda: (make_t5(), tiny_models.make_tokenizer()),
        {"benchmark": "bbq", "config": "Age"},
        None,
    ),
    "seq2seq that writes": (
        lambda: (make_t5(), tiny_models.make_tokenizer()),
        {"benchmark": "bbq", "config": "Age", "ask": "letter", "option": {"max_new_tokens": 4}},
        None,
    ),
    "multiple choice": (
        lambda: with_words(make_encoder("MultipleChoice")),
        {"benchmark": "bbq", "config": "Age"},
        None,
    ),
    "nli": (
        lambda: with_words(make_encoder("SequenceClassification", id2label=LABELS, num_labels=3)),
        {"benchmark": "bbnli", "config": "gender"},
        "text-classification",
    ),
    "extractive": (
        lambda: with_words(make_encoder("QuestionAnswering")),
        {"benchmark": "unqover", "config": "religion"},
        None,
    ),
    "masked": (make_masks, {"benchmark": "unqover", "config": "religion_mlm"}, "fill-mask"),
}
PIPED = [head for head, (_, _, task) in HEADS.items() if task]


def measure(arguments, **more):
    return qabias.run(**{"limit": 16, "progress": False, **arguments, **more})


def predictions(result):
    """Everything that the run keeps of the answers."""
    return pq.read_table(result.folder / "predictions")


def small():
    return HEADS["causal"][0]()


@pytest.fixture(scope="module")
def by_name(tmp_path_factory):
    """For every head the result of its folder's name, made when it is first asked for."""
    found = {}

    def result(head):
        if head not in found:
            make, arguments, _ = HEADS[head]
            folder = save(tmp_path_factory.mktemp("model"), *make())
            found[head] = measure(arguments, model=folder)
        return found[head]

    return result


# The same answers


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS)
def test_a_model_in_memory_answers_as_by_its_name_and_can_be_trained_on(head, by_name):
    make, arguments, _ = HEADS[head]
    made, tokenizer = make()
    # Loaded as it is by name: where weights lie in memory may change the last bit of a sum.
    model = type(made).from_pretrained(by_name(head).model)
    model.config.architectures = None
    model.train()
    frozen = next(iter(model.children()))
    frozen.eval()
    modes = {name: module.training for name, module in model.named_modules()}
    config = model.config.to_dict()
    side, pad = tokenizer.padding_side, tokenizer.pad_token
    result = measure(arguments, model=model, tokenizer=tokenizer, name="mine")
    assert predictions(result).equals(predictions(by_name(head)))
    assert result.model == "mine"
    assert f"|model:mine@memory-{fingerprint(model, tokenizer)}/float32|" in result.signature
    assert result.signature.partition("|scorer:")[2] == by_name(head).signature.partition("|scorer:")[2]
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert True in modes.values()
    assert False in modes.values()
    assert model.config.to_dict() == config
    assert (tokenizer.padding_side, tokenizer.pad_token) == (side, pad)
    assert all(weight.grad is None and not weight.is_inference() for weight in model.parameters())
    assert not any(buffer.is_inference() for buffer in model.buffers())
    batch = torch.tensor([[5, 6, 7, 8], [8, 7, 6, 5]])
    inputs = {"input_ids": batch[:, None].repeat(1, 2, 1)} if head == "multiple choice" else {"input_ids": batch}
    if head.startswith("seq2seq"):
        inputs["labels"] = batch
    given = model(**inputs)
    sum(value.sum() for value in (given.logits if "logits" in given else given.start_logits,)).backward()
    assert any(weight.grad is not None for weight in model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("head", PIPED)
def test_a_pipeline_answers_as_its_model_by_name(head, by_name):
    make, arguments, task = HEADS[head]
    made, tokenizer = make()
    model = type(made).from_pretrained(by_name(head).model)  # where weights lie may change the last bit of a sum
    pipeline = transformers.pipeline(task, model=model, tokenizer=tokenizer)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="the pipeline")
        result = measure(arguments, model=pipeline, name="piped")
    assert predictions(result).equals(predictions(by_name(head)))
    assert result.model == "piped"


@pytest.mark.parametrize(
    ("task", "head", "settings"),
    [
        ("text-generation", "causal", {"max_new_tokens": 5, "return_full_text": False}),
        ("text-classification", "nli", {"function_to_apply": "none", "truncation": True}),
        ("fill-mask", "masked", {"top_k": 3}),
    ],
)
def test_settings_of_a_pipeline_are_said_to_be_unused(task, head, settings):
    model, tokenizer = HEADS[head][0]()
    pipeline = transformers.pipeline(task, model=model, tokenizer=tokenizer, **settings)
    with pytest.warns(UserWarning, match="does not use the pipeline") as told:
        given_model(pipeline, None, "piped")
    [said] = [str(warning.message) for warning in told if "the pipeline" in str(warning.message)]
    for name in settings:
        # Some are kept by transformers under a name of its own.
        assert name in said or (name == "return_full_text" and "return_type" in said)


def test_a_model_from_a_folder_has_its_name(tmp_path):
    folder = save(tmp_path / "model", *small())
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    result = measure(HEADS["causal"][1], model=model, tokenizer=tiny_models.make_tokenizer())
    assert result.model == folder


def test_the_model_is_as_it_was_after_an_error():
    model, tokenizer = small()
    model.train()
    with pytest.raises(qabias.QabiasError, match="unknown length normalization"):
        measure(HEADS["causal"][1], model=model, tokenizer=tokenizer, name="m", length_norm="tokens")
    assert model.training


# Other weights are another model


def test_changed_weights_do_not_continue_a_run_of_the_old_ones(tmp_path):
    arguments = HEADS["causal"][1]
    model, tokenizer = small()
    first = measure(arguments, model=model, tokenizer=tokenizer, name="m", output=tmp_path / "run")
    again = measure(arguments, model=model, tokenizer=tokenizer, name="m", output=tmp_path / "run")
    assert again.signature == first.signature
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    model(torch.tensor([[5, 6, 7]])).logits.sum().backward()
    optimizer.step()
    with pytest.raises(qabias.QabiasError, match="memory-"):
        measure(arguments, model=model, tokenizer=tokenizer, name="m", output=tmp_path / "run")
    assert not predictions(measure(arguments, model=model, tokenizer=tokenizer, name="m")).equals(predictions(first))


# Wrappers, devices and precisions


class Wrapper(torch.nn.Module):
    """As PEFT wraps a model: adapters are in its layers."""

    def __init__(self, model, learns_prompts=False):
        super().__init__()
        self.model = model
        self.active_peft_config = SimpleNamespace(is_prompt_learning=learns_prompts)

    def get_base_model(self):
        return self.model


def test_a_wrapper_of_adapters_is_asked_with_them(by_name):
    model, tokenizer = small()
    result = measure(HEADS["causal"][1], model=Wrapper(model), tokenizer=tokenizer, name="adapted")
    assert predictions(result).equals(predictions(by_name("causal")))
    with pytest.raises(qabias.QabiasError, match="learned prompts"):
        given_model(Wrapper(model, learns_prompts=True), tokenizer, "adapted")


def test_a_class_of_ones_own_is_known_by_what_it_is_made_from(by_name):
    class Patched(transformers.LlamaForCausalLM):
        pass

    model, tokenizer = small()
    model.__class__ = Patched
    result = measure(HEADS["causal"][1], model=model, tokenizer=tokenizer, name="patched")
    assert predictions(result).equals(predictions(by_name("causal")))


def test_a_model_on_several_devices_is_asked_where_it_reads(tmp_path, by_name):
    folder = save(tmp_path / "model", *small())
    spread = transformers.AutoModelForCausalLM.from_pretrained(folder)
    spread.hf_device_map = {"": "cpu"}  # as accelerate notes it
    loaded = from_memory(spread, tiny_models.make_tokenizer(), "spread")
    assert loaded.device == "cpu"
    result = measure(HEADS["causal"][1], model=spread, tokenizer=tiny_models.make_tokenizer())
    assert predictions(result).equals(predictions(by_name("causal")))
    parts = ("model.embed_tokens", "model.rotary_emb", "model.layers", "model.norm")
    places = dict.fromkeys(parts, "cpu") | {"lm_head": "disk"}
    aside = transformers.AutoModelForCausalLM.from_pretrained(
        folder, device_map=places, offload_folder=tmp_path / "offloaded"
    )
    with pytest.raises(qabias.QabiasError, match=r"weight lm_head.weight of the model is offloaded [\s\S]*device_map"):
        from_memory(aside, tiny_models.make_tokenizer(), "aside")


# What makes no sense with a model in memory


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"dtype": "bfloat16"}, "dtype"),
        ({"device": "cpu", "revision": "main"}, "revision, device"),
        ({"option": {"device_map": "auto"}}, "device_map"),
        ({"backend": "nli"}, "LlamaForCausalLM"),
        ({"backend": "seq2seq"}, "LlamaForCausalLM"),
        ({"backend": "server"}, "memory"),
    ],
)
def test_a_model_in_memory_is_taken_as_it_is(more, message):
    model, tokenizer = small()
    arguments = {"benchmark": "bbnli", "config": "gender"} if more.get("backend") == "nli" else HEADS["causal"][1]
    with pytest.raises(qabias.QabiasError, match=message):
        measure(arguments, model=model, tokenizer=tokenizer, name="m", **more)


class Prefixed(transformers.TextGenerationPipeline):
    """A pipeline with code of its own."""


def shrunk():
    model = small()[0]
    model.resize_token_embeddings(300)
    return model


WORDS = tiny_models.make_tokenizer()


@pytest.mark.parametrize(
    ("model", "tokenizer", "name", "token"),
    [
        (lambda: Prefixed(*small()), None, "m", "Prefixed"),
        (lambda: transformers.pipeline("text-generation", model=small()[0], tokenizer=WORDS), WORDS, "m", "pipeline"),
        (lambda: small()[0].double(), WORDS, "m", "float64"),
        (lambda: small()[0], None, "m", "tokenizer"),
        (lambda: small()[0], "gpt2", "m", "a str"),
        (shrunk, WORDS, "m", "has 400 tokens"),
        (lambda: small()[0], WORDS, None, "name="),
        *((lambda: small()[0], WORDS, name, "name is ") for name in ("a|b", "two\nlines", "  ", "baseline:oracle", 3)),
        (lambda: transformers.LlamaForCausalLM, None, "m", "the class LlamaForCausalLM"),
        (lambda: torch.nn.Linear(2, 2), None, "m", "a Linear"),
        (lambda: WORDS, None, "m", "is a tokenizer"),
        (lambda: ["Who?"], None, "m", "a list"),
        (lambda: None, None, "m", "a NoneType"),
        (lambda: "smollm2", None, "m", "name is for"),
        (lambda: "smollm2", WORDS, None, "tokenizer is for"),
    ],
)
def test_what_cannot_be_asked_is_refused(model, tokenizer, name, token):
    with pytest.raises(qabias.QabiasError, match=token):
        measure(HEADS["causal"][1], model=model(), tokenizer=tokenizer, name=name)


def test_a_processor_has_the_tokenizer():
    model, tokenizer = small()
    assert given_model(model, SimpleNamespace(tokenizer=tokenizer), "m").handed_over.tokenizer is tokenizer


def test_another_tokenizer_template_or_hook_does_not_continue_a_run(tmp_path):
    arguments = HEADS["causal"][1]
    model, tokenizer = small()
    measure(arguments, model=model, tokenizer=tokenizer, name="m", output=tmp_path / "run")
    other = copy.deepcopy(tokenizer)
    other.chat_template = "{{ messages[0].content }}"
    with pytest.raises(qabias.QabiasError, match="memory-"):
        measure(arguments, model=model, tokenizer=other, name="m", output=tmp_path / "run")
    model.model.layers[0].register_forward_hook(lambda module, inputs, output: None)
    with pytest.warns(UserWarning, match="has hooks"), pytest.raises(qabias.QabiasError, match="another run"):
        measure(arguments, model=model, tokenizer=tokenizer, name="m", output=tmp_path / "run")
    with pytest.warns(UserWarning, match="has hooks"):
        steered = measure(arguments, model=model, tokenizer=tokenizer, name="steered")
    assert "|model:steered@memory+hooks-" in steered.signature
