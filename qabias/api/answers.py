"""`qabias.score`: collected answers, or a run under other rules, as a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from qabias.api.calls import OptionValue, option_texts, run_folder, takes_mirror, warn_caller
from qabias.api.result import Result
from qabias.api.rows import ORIGIN, Rows, is_table, origin_of, to_table
from qabias.errors import QabiasError, arg

if TYPE_CHECKING:
    import pyarrow

    from qabias.benchmarks import Benchmark
    from qabias.benchmarks.base import ExternalAnswers
    from qabias.runs.collected import Collected

Predictions: TypeAlias = "Result | str | Path | Rows | Iterable[int | float | str | None]"


@takes_mirror
def score(
    predictions: Predictions,
    references: Rows | None = None,
    *,
    benchmark: str | None = None,
    config: str | None = None,
    source: str | None = None,
    fixes: bool | None = None,
    seed: int | None = None,
    option: Mapping[str, OptionValue] | None = None,
    format: str | None = None,
    parser: str | None = None,
    rules: Mapping[str, str] | None = None,
    answers: str | None = None,
    model: str | None = None,
    output: str | Path | None = None,
    mirror: str | Path | None = None,
) -> Result:
    """Score collected answers, or an existing run; the arguments mean the same as for `qabias score`.

        rows = qabias.load("bbq", "Age", limit=400)
        result = qabias.score([ask(row["context"], row["question"]) for row in rows], rows)

    Args:
        predictions: One of

            - a sequence of answers parallel to `references`: option indices (-1, None, NaN: missing) or texts;
            - a table (dataset, data frame, Arrow table, columns by name, list of rows) or a CSV, JSON or Parquet
              file with the benchmark's key and answer columns (BBQ: `category`, `example_id`, `prediction`), or without
              the keys and parallel to `references`;
            - the log of another tool (inspect, lm-evaluation-harness, an OpenAI batch), or a folder with one;
            - a run (a result or its folder), scored again, or by other `rules` into `output`.
        references: The examples that were asked: rows of `qabias.load`, or a table with the key columns. Columns shared
            with the benchmark must hold the same values.
        benchmark: Name of the benchmark; None: from the references, else the first of `qabias list`.
        config: Dataset config; None: from the references, else all examples.
        source: Source of the texts; None: from the references, else the first.
        fixes: Whether known defects of published texts were corrected; None: from the references, else not.
        seed: Seed of generation; None: from the references, else 0.
        option: The benchmark's own options, such as `{"answers": "released"}`; None: from the references.
        format: Prompt format of the questions, such as a question-only one.
        parser: How written answers are read: default or released.
        rules: Scoring rules by name, such as `{"delta": "released"}`.
        answers: Which model's answers to score, if an authors' table contains several.
        model: Name of the answering model; None: from the file, or "predictions".
        output: Run folder to write; None: a temporary folder, deleted with the result.
        mirror: Local mirror of the published files; None: the environment variable `QABIAS_UPSTREAM`.

    Returns:
        Result for the answered examples. Printing it shows their share.

    Raises:
        QabiasError: If an argument is wrong, answers and references do not match, an example is unknown or answered
            twice, no answer can be read, or the metric refuses an answer.
    """
    options = None if option is None else option_texts(option)
    asked: dict[str, Any] = {"benchmark": benchmark, "config": config, "source": source, "fixes": fixes, "seed": seed}
    asked |= {"options": options, "format": format, "parser": parser, "answers": answers, "model": model}
    asked |= {"references": references}
    said = {name: value for name, value in asked.items() if value is not None}
    from qabias.runs.collected import score_otherwise, write_collected
    from qabias.runs.run import score_run

    run = predictions.folder if isinstance(predictions, Result) else _run_in(predictions)
    if run is None:
        answered = collected(predictions, said, rules or {})
        folder, scratch = run_folder(output)
        finished = write_collected(answered, folder)
    else:
        _refuse(said, "collected answers, and a run folder records its own")
        if rules:
            folder, scratch = run_folder(output)
            finished = score_otherwise(run, rules, folder)
        elif output is None:
            folder, scratch = run, predictions.scratch if isinstance(predictions, Result) else None
            finished = score_run(run)
        else:
            raise QabiasError(f"{run}: a run is scored in its own folder unless rules change.", "Remove output=...")
    warn_caller(finished.warned)
    return Result(folder, scratch=scratch)


def collected(predictions: Any, said: Mapping[str, Any], rules: Mapping[str, str]) -> Collected:
    """Answers of any kind with their examples; `said` are the arguments that the caller gave."""
    from qabias.answers.likelihoods import NORMS
    from qabias.benchmarks import load_benchmark
    from qabias.benchmarks.registry import default_name
    from qabias.logs import Log, openai_batch
    from qabias.models.loading import check_name
    from qabias.runs.arguments import RunArguments, norm_arguments, norm_of
    from qabias.runs.collected import collect
    from qabias.runs.logged import collect_log, log_at

    model, norm = said.get("model"), norm_of(said["parser"]) if "parser" in said else None
    if model is not None:
        check_name(model, "model")
    log = log_at(Path(predictions)) if isinstance(predictions, str | Path) else predictions
    if isinstance(log, Log):
        # The results of a batch do not record which texts were drawn.
        drawn = () if log.tool == openai_batch.TOOL else ("fixes", "seed", "options")
        names = [name for name in ("answers", "references", *drawn) if name in said]
        _refuse(names, "a table of answers, and a log records its own")
        hints = {name: str(said[name]) for name in ("benchmark", "config", "source", "format", "seed") if name in said}
        hints |= {"norm": norm} if norm else {}
        hints |= {"fixes": "yes"} if said.get("fixes") else {}
        hints |= {f"option.{name}": value for name, value in said.get("options", {}).items()}
        return collect_log(log, model=model, rules=rules, hints=hints)
    # Rows of `load` with a column of answers are their own references.
    references = said.get("references", predictions if origin_of(predictions) else None)
    known = _known({name: said[name] for name in ORIGIN if name in said}, origin_of(references))
    rows = None if references is None else to_table(references, "references")
    benchmark = known.pop("benchmark", default_name())
    chosen = load_benchmark(benchmark)
    external, where = _given(predictions, rows, chosen, said.get("answers"))
    known = {"config": chosen.configs[-1], "source": external.source or chosen.sources[0], **known}
    arguments = RunArguments(
        benchmark,
        model=model or external.model or Path(where).stem,
        format=said.get("format"),
        **norm_arguments(norm or external.norm or NORMS[0]),
        rules=rules,
        **known,
    )
    return collect(external, arguments, where, rows)


def _run_in(predictions: object) -> Path | None:
    from qabias.runs.folder import is_run
    from qabias.runs.logged import log_at

    if not isinstance(predictions, str | Path) or not Path(predictions).is_dir():
        return None
    folder = Path(predictions)
    return None if not is_run(folder) and log_at(folder) is not None else folder


def _refuse(names: Iterable[str], why: str) -> None:
    for name in map(_called, names):
        raise QabiasError(f"{arg(name)} is for {why}.", f"Remove {arg(name)}.")


def _known(asked: Mapping[str, object], origins: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the caller and the references state about the texts."""
    known = dict(asked)
    for name in dict.fromkeys(name for origin in origins for name in origin):
        called = _called(name)
        said = list({str(origin.get(name)): origin.get(name) for origin in origins}.values())
        if len(said) == 1:
            value = known.setdefault(name, said[0])
            if value != said[0]:
                raise QabiasError(
                    f"{called} is {value!r}, but the references were loaded with {called} {said[0]!r}.",
                    f"Remove {called}, or load the rows that were asked.",
                )
        elif name not in known:
            both = " and ".join(map(repr, said))
            raise QabiasError(f"the references were loaded with {called} {both}.", f"Name {called}=.")
    return known


def _called(name: str) -> str:
    return "option" if name == "options" else name


def _given(
    predictions: Any, rows: pyarrow.Table | None, benchmark: Benchmark, name: str | None
) -> tuple[ExternalAnswers, str]:
    """The answers, and their name in messages and in the signature."""
    from qabias.runs.collected import choose_from_table
    from qabias.support.table_files import read_table

    is_file = isinstance(predictions, str | Path)
    where = str(predictions) if is_file else "predictions"
    if is_file:
        table = read_table(Path(predictions))
    elif is_table(predictions):
        table = to_table(predictions, where)
    elif rows is None:
        raise QabiasError(
            "a sequence of answers does not name its questions.",
            "Give the rows as references, such as "
            f"qabias.load({benchmark.name!r}, ...), or a table with {', '.join(benchmark.key)}.",
        )
    elif len(benchmark.answer_columns) > 1:
        raise QabiasError(
            f"an answer to {benchmark.name} is several numbers.",
            f"Give a table with {', '.join(benchmark.answer_columns)}.",
        )
    else:
        table = to_table({benchmark.answer_columns[0]: predictions}, where)
    if rows is not None:
        has_keys = any(key in table.column_names for key in benchmark.key)
        table = _among(rows, table, benchmark, where) if has_keys else _beside(rows, table, benchmark)
    return choose_from_table(benchmark, table, name, where), where


def _beside(rows: pyarrow.Table, answers: pyarrow.Table, benchmark: Benchmark) -> pyarrow.Table:
    """Answers with the keys of the references, which are parallel to them."""
    if answers.num_rows != rows.num_rows:
        raise QabiasError(f"{answers.num_rows:,} predictions and {rows.num_rows:,} references.", "Give one for each.")
    keys = [name for name in benchmark.key if name in rows.column_names]
    for place, name in enumerate(keys):
        answers = answers.add_column(place, name, rows[name])
    return answers


def _among(rows: pyarrow.Table, answers: pyarrow.Table, benchmark: Benchmark, where: str) -> pyarrow.Table:
    """Answers with their own keys, if the references have all of them."""
    from qabias.runs.collected import keys_of, spelled

    keys = [name for name in benchmark.key if name in rows.column_names and name in answers.column_names]
    asked = {*keys_of(keys, rows)}
    for row, key in enumerate(keys_of(keys, answers), start=1):
        if key not in asked:
            problem = f"{where}: row {row}: the references have no {spelled(keys, key)}."
            raise QabiasError(problem, "Remove the row, or add its example.")
    return answers
