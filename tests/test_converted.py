"""Models that come as GGUF are converted once."""

import pytest

from qabias.models import loading
from qabias.models.loading import CAUSAL, SMOLLM2, converted, find_smollm2, load_model

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


@pytest.mark.slow
def test_the_default_model_from_the_cache_is_the_one_of_its_gguf(monkeypatch):
    torch = pytest.importorskip("torch")
    cached = load_model(CAUSAL, SMOLLM2)
    file = find_smollm2()
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
