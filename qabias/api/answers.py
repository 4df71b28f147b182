"""`qabias.score`: collected answers, or a run under other rules, as a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from qabias.api.calls import OptionValue, option_texts, run_folder, takes_mirror, warn_caller
from qabias.api.result import Result
from qabias.api.rows import Rows

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
    from qabias.runs.collected import collect, score_again, write_collected
    from qabias.runs.external import read_external, refuse
    from qabias.runs.folder import is_run

    result = predictions if isinstance(predictions, Result) else None
    path = result.folder if result else Path(predictions) if isinstance(predictions, str | Path) else None
    if path and (result or is_run(path)):
        refuse(said, "collected answers, and a run folder records its own")
        folder, scratch = run_folder(output) if rules else (path, result.scratch if result else None)
        finished = score_again(path, rules or {}, folder if rules else output)
    else:
        answered = collect(read_external(predictions, said), rules or {})
        folder, scratch = run_folder(output)
        finished = write_collected(answered, folder)
    warn_caller(finished.warned)
    return Result(folder, scratch=scratch)
