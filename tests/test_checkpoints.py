"""One run, one checkpoint: what identifies a local model, and what another one under its path gives."""

import json
import os
import re
import shutil

import pytest
from safetensors.torch import load_file, save_file

from lab.reproduce.running import is_finished
from qabias.errors import QabiasError
from qabias.models import loading
from qabias.models.loading import files_digest
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.opened import Run
from qabias.runs.run import merge, run
from tests.campaign.helpers import contents

from .kit.commands import command
from .saved_models import save
from .test_api_models import HEADS

FIRST, SECOND = (Machine(shard=(shard, 2), shows_progress=False) for shard in (0, 1))


def train(folder):
    """Change a weight in place as a training would; size, header and time stay."""
    path = folder / "model.safetensors"
    about = path.stat()
    weights = load_file(path)
    name = max(weights, key=lambda one: weights[one].numel())
    weights[name] = weights[name] + 1e-3
    save_file(weights, path, metadata={"format": "pt"})
    assert path.stat().st_size == about.st_size
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def asked(head, folder):
    """Arguments of a run of a model in a folder, and how it is asked."""
    _, arguments, _ = HEADS[head]
    options = {name: str(value) for name, value in arguments.get("option", {}).items()}
    named = RunArguments(arguments["benchmark"], str(folder), arguments["config"], limit=16, options=options)
    return named, arguments.get("ask")


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS)
def test_no_run_of_a_kind_of_model_has_answers_of_two_checkpoints(head, tmp_path):
    folder = tmp_path / "model"
    save(folder, *HEADS[head][0]())
    before = shutil.copytree(folder, tmp_path / "before")
    arguments, ask = asked(head, folder)
    run(arguments, tmp_path / "run", FIRST, ask=ask)
    there = contents(tmp_path / "run")
    train(folder)
    with pytest.raises(QabiasError, match="have changed since this run began"):
        run(arguments, tmp_path / "run", SECOND, ask=ask)
    run(arguments, tmp_path / "other", SECOND, ask=ask)
    with pytest.raises(QabiasError, match="model_digest '"):
        merge([tmp_path / "run", tmp_path / "other"], tmp_path / "merged")
    assert contents(tmp_path / "run") == there
    shutil.copy(before / "model.safetensors", folder)
    run(arguments, tmp_path / "run", SECOND, ask=ask)  # of the same content again
    assert run(arguments, tmp_path / "run", ask=ask).scores


@pytest.fixture
def model(tmp_path):
    return tmp_path / save(tmp_path / "model", *HEADS["causal"][0]())


def test_a_finished_run_is_not_shown_for_other_weights(model, tmp_path):
    asks = ("run", "bbq", "--config", "Age", "--limit", "8", "--model", model, "--output", tmp_path / "run")
    assert command(*asks, "--no-report").code == 0
    arguments = Run.open(tmp_path / "run").arguments
    assert is_finished(tmp_path / "run", arguments)
    train(model)
    assert not is_finished(tmp_path / "run", arguments)  # so that `reproduce` does not skip it
    ended = command(*asks, "--no-report")
    assert ended.code == 2
    assert ended.is_clean
    assert "restore the files" in ended.err


def test_each_of_several_processes_compares_its_own_model(model, tmp_path, monkeypatch):
    """As a process that loads the model later than the first one."""
    arguments, _ = asked("causal", model)
    run(arguments, tmp_path / "run", FIRST)
    train(model)
    monkeypatch.setattr("qabias.runs.run.create_or_resume", lambda folder, *_: Run.open(folder))
    with pytest.raises(QabiasError, match="have changed"):
        run(arguments, tmp_path / "run", SECOND)


def test_a_model_that_changes_while_it_is_loaded_is_refused(model, tmp_path, monkeypatch):
    load = loading.load_pretrained

    def changing(auto_class, *arguments, **options):
        loaded = load(auto_class, *arguments, **options)
        if auto_class == "AutoModelForCausalLM":
            train(model)
        return loaded

    monkeypatch.setattr(loading, "load_pretrained", changing)
    with pytest.raises(QabiasError, match="while it was loaded"):
        run(asked("causal", model)[0], tmp_path / "run", FIRST)
    assert not (tmp_path / "run").exists()


AFFECTING = re.findall(
    r"\S+",
    """
model.safetensors model-00002-of-00002.safetensors model.safetensors.index.json pytorch_model.bin
pytorch_model-00001-of-00002.bin pytorch_model.bin.index.json adapter_model.safetensors adapter_model.bin
adapter_config.json weights.Q4_K_M.gguf config.json generation_config.json tokenizer.json tokenizer_config.json
tokenizer.model spiece.model sentencepiece.bpe.model special_tokens_map.json added_tokens.json vocab.txt vocab.json
merges.txt chat_template.jinja chat_template.json additional_chat_templates/tool.jinja
""",
)
OTHERS = ("README.md", "trainer_state.json", "training_args.bin", "optimizer.bin", "optimizer.pt", "scheduler.pt")
OTHERS += ("all_results.json", "rng_state.pth", "log.txt", "run/run.json", "checkpoint-9/model.safetensors")


def put(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def test_the_digest_is_that_of_the_files_that_answers_depend_on(tmp_path):
    folder = tmp_path / "model"
    digests = set()
    for name in AFFECTING:
        for content in (b"{}", b"[]"):
            put(folder, name, content)
            digests.add(files_digest(str(folder)))
    assert len(digests) == 2 * len(AFFECTING)
    for name in OTHERS:
        put(folder, name, b"something")
        assert files_digest(str(folder)) in digests, name
    moved = shutil.copytree(folder, tmp_path / "elsewhere")
    assert files_digest(str(moved)) == files_digest(str(folder))
    assert files_digest("org/name-on-the-hub") == ""


def test_an_adapter_is_identified_with_the_weights_that_it_adapts(tmp_path, monkeypatch):
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    put(base, "model.safetensors", b"one")
    put(adapter, "adapter_model.safetensors", b"small")
    put(adapter, "adapter_config.json", json.dumps({"base_model_name_or_path": str(base)}).encode())
    before = files_digest(str(adapter))
    put(base, "model.safetensors", b"two")
    assert files_digest(str(adapter)) != before
    # Of a base on the Hub, its commit.
    commits = iter(("a" * 40, "b" * 40))
    cached = "huggingface_hub.try_to_load_from_cache"
    monkeypatch.setattr(cached, lambda name, file, *, revision: f"/cache/{name}/snapshots/{next(commits)}/{file}")
    put(adapter, "adapter_config.json", b'{"base_model_name_or_path": "org/base", "revision": null}')
    assert files_digest(str(adapter)) != files_digest(str(adapter))
    monkeypatch.undo()
    for damaged in (b"{", b"[]", b"{}", b'{"base_model_name_or_path": null}', b'{"base_model_name_or_path": "a b/c"}'):
        put(adapter, "adapter_config.json", damaged)
        assert len(files_digest(str(adapter))) == 64


def test_a_gguf_file_is_identified_by_its_bytes_wherever_it_is(tmp_path, monkeypatch):
    digests = set()
    for folder, content in (("a", b"GGUF1"), ("b", b"GGUF1"), ("c", b"GGUF2")):
        put(tmp_path / folder, "m.gguf", content)
        put(tmp_path / folder, "tokenizer.json", folder.encode())  # which is not read
        digests.add(files_digest(str(tmp_path / folder / "m.gguf")))
        monkeypatch.setattr(loading, "find_smollm2", lambda file=tmp_path / folder / "m.gguf": file)
        assert files_digest(loading.SMOLLM2) in digests
    assert len(digests) == 2


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A model whose file counts as large and settled, and the paths that were read."""
    monkeypatch.setenv("QABIAS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "_LARGE", 0)
    monkeypatch.setattr(loading, "_SETTLED_NS", -(10**9))
    put(tmp_path / "model", "model.safetensors", b"one")
    read, compute = [], loading.sha256_of
    monkeypatch.setattr(loading, "sha256_of", lambda path: (read.append(path.name), compute(path))[1])
    return tmp_path / "model", read


def test_the_digest_of_a_large_file_is_computed_once(large):
    folder, read = large
    first = files_digest(str(folder))
    assert files_digest(str(folder)) == first
    assert read == ["model.safetensors"]
    about = (folder / "model.safetensors").stat()
    put(folder, "model.safetensors", b"two")
    os.utime(folder / "model.safetensors", ns=(about.st_atime_ns, about.st_mtime_ns))
    assert files_digest(str(folder)) != first
    assert len(read) == 2


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff", b'{"digest": "0"}', b'{"digest": 1, "sha256": ""}'])
def test_a_damaged_memory_of_digests_is_not_used(large, tmp_path, damage):
    folder, read = large
    first = files_digest(str(folder))
    (kept,) = (tmp_path / "cache" / "digests").iterdir()
    kept.write_bytes(damage)
    assert files_digest(str(folder)) == first
    kept.unlink()
    os.mkfifo(kept)
    assert files_digest(str(folder)) == first
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_text("no folder")
    assert files_digest(str(folder)) == first
    assert len(read) == 4


def test_the_digest_of_a_file_that_has_just_changed_is_not_kept(large, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "_SETTLED_NS", 10**12)
    files_digest(str(large[0]))
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_pipe_in_the_folder_of_a_model_is_refused(model, tmp_path, name, make):
    (model / name).unlink()
    make(model / name)
    ended = command("run", "bbq", "--limit", "8", "--model", model, "--output", tmp_path / "run")
    assert ended.code == 2
    assert "pipe or a device" in ended.err


def test_weights_in_memory_and_baselines_are_identified_by_the_signature(tmp_path):
    baseline = RunArguments("bbq", "baseline:oracle", "Age", limit=8)
    assert run(baseline, tmp_path / "run", Machine(shows_progress=False)).model_digest == ""


def test_the_digest_of_a_run_is_part_of_what_its_answers_name(model, tmp_path):
    """So that no file of answers can be moved to a run of other weights."""
    arguments, _ = asked("causal", model)
    first = run(arguments, tmp_path / "one", FIRST)
    train(model)
    second = run(arguments, tmp_path / "two", FIRST)
    assert first.signature == second.signature
    assert first.digest != second.digest
    assert first.model_digest != second.model_digest


@pytest.mark.slow
def test_a_model_of_the_hub_whose_branch_has_moved_is_refused(model, tmp_path, monkeypatch):
    """By its commit, which the signature has; from a cache, without a network."""
    cached = tmp_path / "hub" / "models--org--tiny"
    for commit in ("a" * 40, "b" * 40):
        shutil.copytree(model, cached / "snapshots" / commit)
        train(model)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    asks = ("run", "bbq", "--config", "Age", "--limit", "8", "--no-report", "--model", "org/tiny")
    ended = []
    for shard, commit in enumerate(("a" * 40, "b" * 40)):
        monkeypatch.setattr(loading, "_configs", {})  # as in another process
        put(cached, "refs/main", commit.encode())
        ended.append(command(*asks, "--output", tmp_path / "run", "--shard", f"{shard}/2"))
    assert [one.code for one in ended] == [0, 2], ended
    assert ended[1].is_clean
    assert f"@{'a' * 7}/float32" in ended[1].err
