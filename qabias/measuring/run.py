"""A run: a model measured on a benchmark, as a folder that can be resumed, shared and scored again.

    run.json                      what is measured: signature, arguments, versions
    predictions/part-00000.parquet  answers and log-likelihoods, written whole or not at all
    scores.json                   the metric's result, and why what is undefined is so
    analysis.json                 the tables and examples of the report
    report.html                   the same for people

The parts of a run are fixed by its arguments, and each is computed by itself; so a run that was killed, or that several
machines share out by `--shard`, ends with the same bytes as one that was not.
"""

import datetime
import importlib.metadata
import itertools
import json
import platform
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from qabias import __version__
from qabias.tables.model import write_analysis
from qabias.benchmarks import Benchmark, Origin, load_benchmark
from qabias.runs.distributed import launched_processes
from qabias.errors import QabiasError
from qabias.support.files import remove_leftovers, write_atomically, write_json
from qabias.benchmarks.prompt_format import choose
from qabias.benchmarks.undefined import reasons
from qabias.runs.sampling import sample
from qabias.scorers import lasting_options, load_scorer
from qabias.scorers.base import Scorer

_VERSIONED = ("datasets", "evaluate", "numpy", "pyarrow", "tokenizers", "torch", "transformers")


@dataclass(frozen=True)
class RunArguments:
    """What determines the answers of a run.

    Attributes:
        benchmark: Name of the benchmark.
        model: `smollm2`, `baseline:KIND`, a folder or a Hub id.
        config: Configuration of the benchmark's dataset.
        source: Source of its texts.
        fixes: Mend the known defects of published texts.
        format: Prompt format; None for the one that fits benchmark and scorer.
        scorer: Way of asking the model; None for the model's default.
        norm: How an option's log-likelihood becomes a score, one of the benchmark's `norms`.
        limit: Measure at most this many examples, drawn as whole sets and spread over all templates; None for all.
        seed: Seed of generation, sampling and random answers.
        options: Options of the scorer, by name.
        revision: Branch, tag or commit of a Hub model.
        dtype: Precision of the model: auto, float32, bfloat16 or float16.
    """

    benchmark: str
    model: str = "smollm2"
    config: str = "all"
    source: str = "bundled"
    fixes: bool = False
    format: str | None = None
    scorer: str | None = None
    norm: str = "none"
    limit: int | None = None
    seed: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    revision: str | None = None
    dtype: str = "auto"


@dataclass(frozen=True)
class Machine:
    """Where and how fast a run is computed; beyond float rounding it does not change the answers.

    Attributes:
        device: auto, cpu, cuda, ...
        token_budget: Tokens per batch; None for the scorer's default.
        shard: (i, n): compute only every n-th part, beginning with part i.
        upstream_dir: Local mirror of the published files (which are verified wherever they come from).
    """

    device: str = "auto"
    token_budget: int | None = None
    shard: tuple[int, int] = (0, 1)
    upstream_dir: str | None = None


@dataclass(frozen=True)
class RunResult:
    """Where a run stands.

    Attributes:
        folder: The run folder.
        benchmark: Name of the benchmark.
        signature: What was measured, in one line.
        scores: The metric's result; None while parts of other shards are missing.
        n_missing_parts: Parts that no process has written yet.
    """

    folder: Path
    benchmark: str
    signature: str
    scores: dict[str, Any] | None
    n_missing_parts: int


def run(arguments: RunArguments, output: Path | None = None, machine: Machine = Machine()) -> RunResult:
    """Measure a model: ask what has not been asked yet, then score and report when all parts are there.

    Args:
        arguments: What to measure.
        output: Run folder; by default `runs/<name>` with a name made from the arguments, so that the same
            command continues the same run.
        machine: Where to compute it.

    Raises:
        QabiasError: If an argument is wrong, the folder holds another run, or a file cannot be read.
        OSError: If the folder cannot be written.
    """
    processes = launched_processes()
    with processes.together():
        benchmark = load_benchmark(arguments.benchmark)
        check_arguments(benchmark, arguments, machine)
        table = load_examples(benchmark, arguments, machine.upstream_dir)
        options = arguments.options
        arguments = replace(arguments, options=lasting_options(arguments.scorer, options))
        folder = output or default_folder(arguments)
        scorer = load_scorer(
            arguments.scorer,
            arguments.model,
            seed=arguments.seed,
            revision=arguments.revision,
            dtype=arguments.dtype,
            device=(machine.device == "auto" and processes.device) or machine.device,
            token_budget=machine.token_budget,
            scorer_options=options,
            journal=folder / "requests.jsonl",
        )
        if scorer.name not in benchmark.scorers:
            raise QabiasError(
                f"{arguments.benchmark} cannot be asked by the scorer {scorer.name}; choose one of "
                f"{', '.join(benchmark.scorers)} and a model that it can load"
            )
        prompt_format = choose(benchmark.formats, arguments.format or benchmark.default_format(scorer))
        signature = make_signature(benchmark, arguments, scorer)
        units_per_part = benchmark.units_per_part(scorer.name)
        parts = list(cut_parts(benchmark, table, units_per_part))
    processes.on_first(partial(_claim, folder, arguments, signature, units_per_part, alone=machine.shard[1] == 1))
    share, n_shares = processes.share(*machine.shard)
    mine = range(share, len(parts), n_shares)
    with processes.together():
        missing = [number for number in mine if not is_complete(part_path(folder, number), benchmark, parts[number])]
    n_mine, n_missing = (sum(parts[number].num_rows for number in numbers) for numbers in (mine, missing))
    bar = tqdm(
        total=n_mine, initial=n_mine - n_missing, unit="example", desc=arguments.benchmark, disable=processes.rank > 0
    )
    with processes.apart(), bar:
        for number in missing:
            part = parts[number]
            keys = {name: part[name] for name in benchmark.key}
            answers = pa.table({**keys, **benchmark.answer(part, scorer, prompt_format, arguments.norm)})
            # A part has one writer; whatever a killed predecessor left of it is rubbish.
            remove_leftovers(part_path(folder, number))
            write_atomically(part_path(folder, number), partial(_write_parquet, answers))
            bar.update(part.num_rows)
    return processes.on_first(partial(score_run, folder, machine.upstream_dir))


def score_run(folder: Path, upstream_dir: str | None = None) -> RunResult:
    """Score the predictions of a run folder and write `scores.json`, `analysis.json` and `report.html`.

    Args:
        folder: A folder that `run` wrote.
        upstream_dir: Local mirror of the published files.

    Raises:
        QabiasError: If the folder holds no run or a damaged one.
    """
    run_file = read_run(folder)
    arguments = RunArguments(**run_file["arguments"])
    benchmark = load_benchmark(arguments.benchmark)
    table = load_examples(benchmark, arguments, upstream_dir)
    answers, n_missing = read_answers(folder, benchmark, table, run_file["units_per_part"])
    if n_missing:
        return RunResult(folder, arguments.benchmark, run_file["signature"], None, n_missing)
    scores = benchmark.score(table, answers)
    write_json(
        folder / "scores.json",
        {
            "benchmark": arguments.benchmark,
            "signature": run_file["signature"],
            "scores": scores,
            "reasons": reasons(arguments.benchmark, scores),
        },
    )
    from qabias.report import write_report

    analysis = benchmark.analyse(table, answers, scores, arguments.format)
    write_analysis(analysis, folder / "analysis.json")
    write_report(folder)
    return RunResult(folder, arguments.benchmark, run_file["signature"], scores, 0)


def load_examples(benchmark: Benchmark, arguments: RunArguments, upstream_dir: str | None = None) -> pa.Table:
    """The examples that the arguments name, sampled."""
    table = benchmark.load(arguments.config, _origin(benchmark, arguments, upstream_dir))
    return sample(benchmark, table, arguments.limit, arguments.seed)


def _origin(benchmark: Benchmark, arguments: RunArguments, upstream_dir: str | None = None) -> Origin:
    # The bundled examples are one fixed set; the seed then only draws the sample and random answers.
    seed = 0 if arguments.source == "bundled" else arguments.seed
    return benchmark.origin(arguments.source, seed, arguments.fixes, upstream_dir)


def make_signature(benchmark: Benchmark, arguments: RunArguments, scorer: Scorer) -> str:
    """One line that pins what was measured; two scores may be compared where it says so."""
    fields = {
        "source": _origin(benchmark, arguments).version,
        "config": arguments.config,
        "format": choose(benchmark.formats, arguments.format or benchmark.default_format(scorer)).signature,
        "model": "@".join(filter(None, (arguments.model, scorer.model_signature))),
        "scorer": scorer.name + "".join(f"+{name}={arguments.options[name]}" for name in sorted(arguments.options)),
        "norm": arguments.norm,
        "limit": arguments.limit or "none",
        "seed": arguments.seed,
        "qabias": __version__,
    }
    return "|".join([arguments.benchmark, *(f"{name}:{value}" for name, value in fields.items())])


def default_folder(arguments: RunArguments) -> Path:
    """`runs/<benchmark>-<config>-<model>-<hash of the arguments>` in the working directory."""
    digest = zlib.crc32(json.dumps(asdict(arguments), sort_keys=True).encode())
    model = re.sub(r"[^A-Za-z0-9.]+", "-", Path(arguments.model).name if "/" in arguments.model else arguments.model)
    return Path("runs") / f"{arguments.benchmark}-{arguments.config}-{model.strip('-')}-{digest:08x}"


def read_run(folder: Path) -> dict[str, Any]:
    """Read and check `run.json`.

    Raises:
        QabiasError: If there is none, or it is damaged or from another version.
    """
    path = folder / "run.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        RunArguments(**content["arguments"])
        return {**content, "signature": str(content["signature"]), "units_per_part": int(content["units_per_part"])}
    except FileNotFoundError as error:
        raise QabiasError(f"{folder}: holds no run (no run.json); name a folder that `qabias run` wrote") from error
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise QabiasError(f"{path}: not a run file of qabias {__version__}: {error!r}") from error


def check_arguments(benchmark: Benchmark, arguments: RunArguments, machine: Machine = Machine()) -> None:
    """Refuse what no run can do, before anything heavy is loaded.

    Raises:
        QabiasError: If format or norm are unknown, or limit, token budget or shard out of range.
    """
    if arguments.format is not None:
        choose(benchmark.formats, arguments.format)
    if arguments.norm not in benchmark.norms:
        raise QabiasError(f"unknown norm {arguments.norm!r}: {benchmark.name} has {', '.join(benchmark.norms)}")
    if arguments.limit is not None and arguments.limit < 1:
        raise QabiasError(f"limit is {arguments.limit}; it must be at least 1")
    if machine.token_budget is not None and machine.token_budget < 1:
        raise QabiasError(f"token budget is {machine.token_budget}; it must be at least 1")
    shard, n_shards = machine.shard
    if not 0 <= shard < n_shards:
        raise QabiasError(
            f"shard {shard}/{n_shards} does not exist: count from 0/{n_shards} to {n_shards - 1}/{n_shards}"
        )


def _claim(folder: Path, arguments: RunArguments, signature: str, units_per_part: int, *, alone: bool) -> None:
    """Write `run.json`, or check that the folder holds this very run; alone in it, remove what a killed run left."""
    run_file = folder / "run.json"
    if not run_file.exists():
        try:
            check_free(folder)
            _write_run(folder, arguments, signature, units_per_part)
        except QabiasError:
            if not run_file.exists():  # else another shard has begun meanwhile
                raise
    found = read_run(folder)
    ours = asdict(arguments)
    different = [name for name in ours if found["arguments"][name] != ours[name]]
    if different or found["signature"] != signature:
        what = ", ".join(f"{name} {found['arguments'][name]!r} there, {ours[name]!r} here" for name in different)
        raise QabiasError(
            f"{folder}: holds another run ({what or found['signature']}); choose another --output or remove the folder"
        )
    if alone:
        for name in ("run.json", "scores.json", "analysis.json", "report.html"):
            remove_leftovers(folder / name)


def check_free(folder: Path) -> None:
    """Refuse a folder that holds something else than a run.

    Raises:
        QabiasError: If the folder is a file or not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(path.name[:1] != "." for path in folder.iterdir())):
        raise QabiasError(f"{folder}: exists and holds no run; choose another --output")


def _write_run(folder: Path, arguments: RunArguments, signature: str, units_per_part: int) -> None:
    write_json(
        folder / "run.json",
        {
            "benchmark": arguments.benchmark,
            "signature": signature,
            "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "qabias_version": __version__,
            "versions": {"python": platform.python_version(), **_versions()},
            "arguments": asdict(arguments),
            "units_per_part": units_per_part,
        },
    )


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in _VERSIONED}


def cut_parts(benchmark: Benchmark, table: pa.Table, units_per_part: int) -> Iterator[pa.Table]:
    """Cut the examples into parts of whole units."""
    unit_of, _ = benchmark.units(table)
    starts = np.flatnonzero(np.diff(unit_of, prepend=-1))
    bounds = [*starts[::units_per_part].tolist(), table.num_rows]
    for begin, end in itertools.pairwise(bounds):
        yield table.slice(begin, end - begin)


def part_path(folder: Path, number: int) -> Path:
    """File of a part of a run."""
    return folder / "predictions" / f"part-{number:05d}.parquet"


def is_complete(path: Path, benchmark: Benchmark, part: pa.Table) -> bool:
    """Whether a part has been written for exactly these examples.

    Raises:
        QabiasError: If the file is damaged.
    """
    if not path.exists():
        return False
    try:
        written = pq.read_table(path)
        return written.select(list(benchmark.key)).equals(part.select(list(benchmark.key)))
    except (pa.ArrowInvalid, KeyError, OSError) as error:
        raise QabiasError(f"{path}: damaged ({error}); remove the file and run the same command again") from error


def _write_parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd")


def read_answers(folder: Path, benchmark: Benchmark, table: pa.Table, units_per_part: int) -> tuple[pa.Table, int]:
    """The answers of a run in the order of its examples, and the number of parts that are missing.

    Raises:
        QabiasError: If a part is damaged or belongs to other examples.
    """
    answers = []
    n_missing = 0
    for number, part in enumerate(cut_parts(benchmark, table, units_per_part)):
        path = part_path(folder, number)
        if not path.exists():
            n_missing += 1
        elif not is_complete(path, benchmark, part):
            raise QabiasError(f"{path}: holds other examples; remove the file and run the same command again")
        else:
            answers.append(pq.read_table(path))
    return pa.concat_tables(answers) if answers else pa.table({}), n_missing
