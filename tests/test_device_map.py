"""A model laid out over several devices answers as on one."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from qabias.errors import QabiasError
from qabias.models.loading import CAUSAL, SEQ2SEQ, input_device, load_model
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.scorers.base import Request
from qabias.scorers.causal import CausalScorer
from qabias.scorers.generation import GenerationScorer
from qabias.scorers.registry import load_scorer
from qabias.scorers.seq2seq import Seq2SeqScorer

from . import tiny_models
from .saved_models import make_t5, save

pytestmark = pytest.mark.usefixtures("one_thread")

REQUESTS = [
    Request("A baker shared a table. Who was generous?", (" The baker", " The nurse", " Unknown"), key="a/0"),
    Request("A baker shared a table. Who was forgetful?", (" The baker", " The nurse", " Unknown"), key="a/1"),
    Request("Two neighbours talked.", (" A", " B"), key="a/2"),
]
PROMPTS = [request.prefix for request in REQUESTS]
KEYS = [request.key for request in REQUESTS]
HERE = "cuda:0" if torch.cuda.is_available() else "cpu"
# Weights that lie on the disk are brought to the device, layer by layer, as those of a GPU that is too small.
MAPS = {
    "llama": {
        **dict.fromkeys(("model.embed_tokens", "model.rotary_emb", "model.layers.0", "model.norm"), HERE),
        "model.layers.1": "disk",
        "lm_head": HERE,
    },
    "first on disk": {
        **dict.fromkeys(("model.rotary_emb", "model.layers.0", "model.layers.1", "model.norm"), HERE),
        "model.embed_tokens": "disk",
        "lm_head": "disk",
    },
    "t5": {
        **dict.fromkeys(("shared", "encoder", "decoder.embed_tokens", "decoder.final_layer_norm", "lm_head"), HERE),
        **dict.fromkeys(("decoder.dropout", "decoder.block.1"), HERE),
        "decoder.block.0": "disk",
    },
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Saved models."""
    networks = {"llama": tiny_models.make_model("llama", max_position_embeddings=2048), "t5": make_t5()}
    return {
        name: save(tmp_path_factory.mktemp(name), network, tiny_models.make_tokenizer())
        for name, network in networks.items()
    }


def loglikelihoods(scorer):
    return np.concatenate([score.loglikelihoods for score in scorer.score(REQUESTS)])


@pytest.mark.parametrize("layout", ["tree", "flat"])
@pytest.mark.parametrize("name", ["llama", "first on disk"])
def test_trees_and_rows_score_as_on_one_device(name, layout, folders):
    folder = folders[name if name in folders else "llama"]
    one = load_model(CAUSAL, folder, device=HERE, dtype="float32")
    several = load_model(CAUSAL, folder, device_map=MAPS[name], dtype="float32")
    assert several.device == HERE
    assert any(weight.is_meta for weight in several.model.parameters())
    expected = loglikelihoods(CausalScorer(one, layout=layout))
    np.testing.assert_allclose(loglikelihoods(CausalScorer(several, layout=layout)), expected, rtol=0, atol=1e-5)


def test_answers_are_written_as_on_one_device(folders):
    one = load_model(CAUSAL, folders["llama"], device=HERE, dtype="float32")
    several = load_model(CAUSAL, folders["llama"], device_map=MAPS["llama"], dtype="float32")
    expected = GenerationScorer(one, max_new_tokens=6).generate(PROMPTS, KEYS)
    assert GenerationScorer(several, max_new_tokens=6).generate(PROMPTS, KEYS) == expected


def test_encoder_and_decoder_score_as_on_one_device(folders):
    one = load_model(SEQ2SEQ, folders["t5"], device=HERE, dtype="float32")
    several = load_model(SEQ2SEQ, folders["t5"], device_map=MAPS["t5"], dtype="float32")
    assert any(weight.is_meta for weight in several.model.parameters())
    np.testing.assert_allclose(
        loglikelihoods(Seq2SeqScorer(several)), loglikelihoods(Seq2SeqScorer(one)), rtol=0, atol=1e-5
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_layers_on_gpu_and_cpu_score_as_on_the_gpu(folders):
    """The states leave the model on another device than the one that reads the tokens."""
    from accelerate import dispatch_model

    one = load_model(CAUSAL, folders["llama"], device="cuda:0", dtype="float32")
    expected = loglikelihoods(CausalScorer(one))
    split = load_model(CAUSAL, folders["llama"], device="cpu", dtype="float32")
    layout = {**dict.fromkeys(MAPS["llama"], "cuda:0"), "model.layers.1": "cpu"}
    dispatch_model(split.model, layout, main_device="cuda:0")
    object.__setattr__(split, "device", "cuda:0")
    np.testing.assert_allclose(loglikelihoods(CausalScorer(split)), expected, rtol=0, atol=1e-4)


def test_auto_is_an_option_of_the_scorer_and_what_cannot_be_laid_out_is_refused(folders):
    automatic = load_scorer("seq2seq", folders["t5"], scorer_options={"device_map": "auto"})
    expected = loglikelihoods(load_scorer("seq2seq", folders["t5"]))
    np.testing.assert_allclose(loglikelihoods(automatic), expected, rtol=0, atol=1e-5)
    for scorer, device_map, more, message in (
        ("causal", "atuo", {}, r"'atuo'.*'auto'"),
        ("causal", "auto", {"device": "cpu"}, "device is 'cpu'"),
        ("nli", "auto", {}, "'device_map'"),
    ):
        with pytest.raises(QabiasError, match=message):
            load_scorer(scorer, folders["llama"], scorer_options={"device_map": device_map}, **more)


def test_a_run_goes_on_with_another_layout(folders, tmp_path):
    arguments = RunArguments("bbq", folders["llama"], config="Age", limit=4)
    laid_out = run(replace(arguments, options={"device_map": "auto"}), tmp_path / "run")
    assert "device_map" not in (tmp_path / "run" / "run.json").read_text()
    # The same run in the same folder, without it.
    again = run(arguments, tmp_path / "run")
    assert again.signature == laid_out.signature
    np.testing.assert_equal(again.scores, laid_out.scores)


@pytest.mark.parametrize(
    ("places", "device"), [(["disk", "cpu", "cuda:1", "cuda:0"], "cuda:1"), (["disk", "cpu"], "cpu")]
)
def test_tokens_of_weights_elsewhere_go_to_the_first_device_that_computes(places, device):
    weight = torch.empty(1, device="meta")
    network = SimpleNamespace(
        get_input_embeddings=lambda: SimpleNamespace(weight=weight), hf_device_map=dict(enumerate(places))
    )
    assert input_device(network) == torch.device(device)
