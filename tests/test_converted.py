"""Models that come as GGUF are converted once."""

import pytest

from qabias.models import loading
from qabias.models.converted import converted
from qabias.models.loading import CAUSAL, SMOLLM2, find_smollm2, load_model

NAME, DIGEST = "tiny", "0123456789abcdef0123"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QABIAS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Conversion:
    """Fills a folder with two files, and counts how often."""

    def __init__(self):
        self.count = 0

    def __call__(self, folder):
        self.count += 1
        (folder / "model.safetensors").write_bytes(b"weights" * 1000)
        (folder / "config.json").write_text("{}", "utf-8")


def test_a_model_is_converted_once(cache):
    convert = Conversion()
    folders = {converted(NAME, DIGEST, convert) for _ in range(3)}
    assert folders == {cache / "models" / f"{NAME}-{DIGEST[:16]}"}
    assert convert.count == 1
    assert [path.name for path in (cache / "models").iterdir()] == [f"{NAME}-{DIGEST[:16]}"]
    converted(NAME, DIGEST[::-1], convert)
    assert convert.count == 2


def test_a_conversion_that_fails_leaves_nothing(cache):
    def fail(folder):
        (folder / "model.safetensors").write_bytes(b"half")
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        converted(NAME, DIGEST, fail)
    assert list((cache / "models").iterdir()) == []


def test_a_conversion_that_another_process_finished_first_is_used(cache):
    convert, other = Conversion(), Conversion()

    def convert_late(folder):
        convert(folder)
        converted(NAME, DIGEST, other)

    folder = converted(NAME, DIGEST, convert_late)
    assert (convert.count, other.count) == (1, 1)
    assert {path.name for path in folder.iterdir()} == {"model.safetensors", "config.json"}


def test_where_the_cache_cannot_be_written_it_is_said_and_the_file_itself_is_read(tmp_path, monkeypatch, caplog):
    (tmp_path / "cache").write_text("a file", "utf-8")
    monkeypatch.setenv("QABIAS_CACHE", str(tmp_path / "cache"))
    assert converted(NAME, DIGEST, Conversion()) is None
    assert "is converted at every start" in caplog.text


@pytest.mark.slow
def test_the_default_model_from_the_cache_is_the_one_of_its_gguf(monkeypatch):
    torch = pytest.importorskip("torch")
    cached = load_model(CAUSAL, SMOLLM2)
    monkeypatch.setattr(loading, "_smollm2_source", find_smollm2)
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
