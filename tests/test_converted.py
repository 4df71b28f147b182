"""Models that come as GGUF are converted once."""

import functools
import re

import numpy as np
import pytest

from qabias.errors import QabiasError
from qabias.models import loading
from qabias.models.loading import CAUSAL, SMOLLM2, converted, find_smollm2, load_model, model_name

NAME, DIGEST = "tiny", "0123456789abcdef0123"


def fill(folder):
    """A conversion that writes two files."""
    (folder / "model.safetensors").write_bytes(b"weights" * 1000)
    (folder / "config.json").write_text("{}", "utf-8")


def test_a_model_is_converted_once_whole_or_not_at_all(tmp_path, monkeypatch, caplog):
    cache = tmp_path / "cache"
    monkeypatch.setenv("QABIAS_CACHE", str(cache))

    def fail(folder):
        fill(folder)
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        converted(NAME, DIGEST, fail)
    assert list((cache / "models").iterdir()) == []

    def late(folder):  # another process finishes first
        fill(folder)
        converted(NAME, DIGEST, fill)

    folder = cache / "models" / f"{NAME}-{DIGEST[:16]}"
    assert converted(NAME, DIGEST, late) == converted(NAME, DIGEST, fail) == folder
    assert {path.name for path in folder.iterdir()} == {"model.safetensors", "config.json"}
    assert list((cache / "models").iterdir()) == [folder]
    with pytest.raises(RuntimeError, match="stopped"):
        converted(NAME, DIGEST[::-1], fail)
    # Where the cache cannot be written, it is said and the file itself is read.
    monkeypatch.setenv("QABIAS_CACHE", str(folder / "config.json"))
    assert converted(NAME, DIGEST, fill) is None
    assert "is converted at every start" in caplog.text


def write_gguf(path, architecture):
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(1)
    writer.add_tensor("token_embd.weight", np.zeros((2, 2), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    ("name", "problem", "fix"),
    [
        ("none.gguf", "no such file", "Correct the path"),
        ("text.gguf", "text.gguf is not a GGUF file", "another file"),
        ("m-00001-of-00003.gguf", "one part of a split", "llama-gguf-split --merge"),
        ("plamo.gguf", r"^plamo.gguf cannot be loaded here: .*architecture plamo", "llama-server -m .*plamo.gguf"),
    ],
)
def test_a_file_that_cannot_be_loaded_says_why_and_what_to_do(tmp_path, monkeypatch, name, problem, fix):
    pytest.importorskip("torch")
    monkeypatch.setenv("QABIAS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "text.gguf").write_text("no weights")
    write_gguf(tmp_path / "plamo.gguf", "plamo")
    (tmp_path / "m-00001-of-00003.gguf").write_bytes(b"GGUF")
    with pytest.raises(QabiasError, match=problem) as refused:
        load_model(CAUSAL, str(tmp_path / name))
    assert re.search(fix, refused.value.args[1])
    assert not [*(tmp_path / "cache").glob("models/*")]
    with pytest.raises(QabiasError, match="no revision"):
        load_model(CAUSAL, str(tmp_path / "plamo.gguf"), revision="main")


def test_a_file_is_named_without_its_folder():
    assert model_name("a/B.Q4_K_M.gguf") == "B.Q4_K_M.gguf"
    assert model_name("org/name-GGUF") == "org/name-GGUF"
    assert model_name(SMOLLM2) == SMOLLM2


@pytest.mark.slow
def test_the_default_model_from_the_cache_is_the_one_of_its_gguf(monkeypatch):
    torch, gguf = pytest.importorskip("torch"), pytest.importorskip("gguf")
    cached = load_model(CAUSAL, SMOLLM2)
    file = find_smollm2()
    # transformers makes this table for every weight, and its readers take a million slices, slow ones of memory maps.
    monkeypatch.setattr(gguf, "get_tensor_name_map", functools.cache(gguf.get_tensor_name_map))
    monkeypatch.setattr(np, "memmap", lambda file, mode, dtype=np.uint8: np.fromfile(file, dtype))
    monkeypatch.setattr(loading, "gguf_source", lambda _: (str(file.parent), {"gguf_file": file.name}))
    read = load_model(CAUSAL, SMOLLM2)
    ours, theirs = cached.model.state_dict(), read.model.state_dict()
    assert set(ours) == set(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert cached.signature == read.signature
    assert cached.model.generation_config == read.model.generation_config
    text = "<|im_start|>user\nDer Zug – “late”?<|im_end|>\n 12"
    assert cached.tokenizer(text)["input_ids"] == read.tokenizer(text)["input_ids"]
    assert cached.tokenizer.chat_template == read.tokenizer.chat_template
    assert cached.tokenizer.special_tokens_map == read.tokenizer.special_tokens_map
