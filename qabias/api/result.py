"""`Result`: a run with its scores, tables, figures and answers."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, overload

from qabias.building.sources import using_mirror
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.opened import Run
from qabias.runs.scored import outcomes_of
from qabias.runs.signature import coverage_of
from qabias.scores.score import Score, reasons
from qabias.support.outputs import TEMPORARY, overwriting
from qabias.tables.model import Analysis, Column, Table, find, flat

if TYPE_CHECKING:
    import datasets
    import pandas
    import pyarrow

    from qabias.benchmarks import Benchmark
    from qabias.tables.drawing import Drawing
    from qabias.tables.terminal import Console


class Scratch:
    """A temporary folder, removed with the last object that needs it, at the latest when Python ends."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=TEMPORARY))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def __deepcopy__(self, memo: dict[int, object]) -> Scratch:
        """Share the folder with the copy."""
        return self

    def __reduce__(self) -> NoReturn:
        raise QabiasError(
            "a result in a temporary folder cannot be pickled.",
            "Save the result first: result.save(FOLDER).",
        )


class HasTables(ABC):
    """Tables and figures by name, and how they print."""

    @property
    @abstractmethod
    def _analysis(self) -> Analysis:
        """The tables, with their meaning."""

    @abstractmethod
    def _print(self, console: Console) -> None:
        """Print what the command line prints."""

    @property
    def tables(self) -> dict[str, pandas.DataFrame]:
        """All tables by name, as data frames; see `table`."""
        return {table.name: to_pandas(table) for table in self._analysis.tables}

    @overload
    def table(self, name: str, format: Literal["pandas"] = "pandas") -> pandas.DataFrame: ...

    @overload
    def table(self, name: str, format: Literal["arrow"]) -> pyarrow.Table: ...

    def table(self, name: str, format: Literal["pandas", "arrow"] = "pandas") -> pandas.DataFrame | pyarrow.Table:
        """A table with every digit: shares and biases as fractions, interval ends in columns NAME_low and NAME_high."""
        makers = {"pandas": to_pandas, "arrow": to_arrow}
        if format not in makers:
            raise QabiasError(f"unknown format {format!r}.", "Use format='pandas' or 'arrow'.")
        return makers[format](find(self._analysis.tables, name))

    def figure(self, name: str) -> Drawing:
        """The figure of a table, as in the report; `save` writes it as SVG, PDF or PNG."""
        from qabias.tables.figures import draw

        table = find(self._analysis.tables, name)
        if table.figure is None or not table.rows:
            drawn = [other.name for other in self._analysis.tables if other.figure is not None and other.rows]
            raise QabiasError(f"table {name!r} has no figure.", f"Use one of {', '.join(drawn)}.")
        return draw(table)

    def __str__(self) -> str:
        from qabias.tables.terminal import Console

        text = io.StringIO()
        # In a notebook rich would show the tables itself, and a kernel asks for colors.
        self._print(Console(file=text, width=100, force_jupyter=False, force_terminal=False, color_system=None))
        return text.getvalue().rstrip("\n")


class Result(HasTables):
    """A run with its scores, tables, figures and answers, from `qabias.run`, `score` or `read`.

    `print` shows the command line's output; a notebook shows headline scores, headline and a figure.

    Args:
        folder: A run folder with scores.
        scratch: Owner of a temporary run folder; None: the folder is permanent.

    Attributes:
        folder: The run folder.

    Raises:
        QabiasError: If the folder contains no scored run, or a damaged one.
    """

    def __init__(self, folder: str | Path, *, scratch: Scratch | None = None) -> None:
        self.folder, self.scratch = Path(folder), scratch
        self._run = Run.scored(self.folder)

    @property
    def mirror(self) -> Path | None:
        """Local mirror of the published files when the result was made, to read examples again."""
        return self._run.mirror

    @property
    def benchmark(self) -> str:
        """Name of the benchmark."""
        return self._run.benchmark.name

    @property
    def model(self) -> str:
        """Name of the model."""
        return self._run.arguments.model

    @property
    def signature(self) -> str:
        """What was measured, in one line."""
        return self._run.signature

    @cached_property
    def scores(self) -> Mapping[str, Any]:
        """The metric's result, as in `scores.json`; undefined scores are NaN, never 0."""
        return _with_nan(self._run.scores)

    @property
    def _analysis(self) -> Analysis:
        return self._run.analysis

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The run's arguments, by their names in `run.json`."""
        return asdict(self._run.arguments)

    @cached_property
    def sample(self) -> Mapping[str, str]:
        """Sample size and missing answers, as in the report: label to text."""
        run = self._run
        facts = run.benchmark.sample_facts(run.scores)
        covered = coverage_of(run.arguments)
        return {**facts, "Answered": covered} if covered else facts

    @property
    def outcomes(self) -> Mapping[str, int]:
        """Number of answered, refused, truncated, filtered and unparseable texts; empty if the model wrote none."""
        return outcomes_of(self._run.scores)

    @cached_property
    def headline(self) -> str:
        """The verdict of `until`, or one sentence from a fixed list (see `qabias.benchmarks.headline`)."""
        return "" if self._run.headline is None else self._run.headline.text

    @cached_property
    def verdict(self) -> str:
        """Detected, not detected, inconclusive, not interpretable; with `until` pass, fail, inconclusive; or ""."""
        return "" if self._run.headline is None else self._run.headline.verdict

    @cached_property
    def reasons(self) -> Mapping[str, str]:
        """Why values of `scores` are undefined, by JSON pointer, such as "/ci/bias_disambig"."""
        return reasons(self._run.benchmark.facts, self._run.scores)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings to read before the scores."""
        return tuple(self._run.analysis.notes)

    def examples(self) -> pandas.DataFrame:
        """The report's examples, one per row, with texts, options, answer and prompt.

        Several options, probabilities or prompts are a list in a cell. `attrs["how_chosen"]` explains the choice.
        """
        import pandas as pd

        from qabias.report.content import with_prompts

        with using_mirror(self.mirror):
            analysis = with_prompts(self._run)
        frame = pd.DataFrame.from_records([dict(row) for row in analysis.examples])
        frame.attrs["how_chosen"] = analysis.how_chosen
        return frame

    def predictions(self) -> datasets.Dataset:
        """The asked examples with their answers, one per row.

        Returns:
            The columns of `qabias.load`, then the answers': `prediction` (-1: missing), `loglikelihoods`, `generated`,
            `outcome` and others. Prompt variants have a row each, named by `run`.

        Raises:
            QabiasError: If the texts or the answers are unavailable.
        """
        run = self._run
        table, answers = run.question.table, run.answers
        for name in answers.column_names:
            if name not in run.benchmark.key:
                table = table.append_column(name, answers[name])
        return as_dataset(table, run.benchmark, run.arguments)

    def save(self, folder: str | Path) -> Result:
        """Copy the run to a new permanent folder, and return the result there."""
        target = Path(folder)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise QabiasError(f"{target}: exists already.", "Choose another folder.")
        shutil.copytree(self.folder, target, dirs_exist_ok=True)
        return Result(target)

    def report(self, path: str | Path | None = None, *, overwrite: bool = False) -> Path:
        """Write the report, one HTML page that works offline, and return its path.

        Args:
            path: Target file; None: `report.html` in the run folder, unless that is temporary.
            overwrite: Also replace a file other than this run's report.

        Raises:
            QabiasError: If the page cannot be written, or would replace another file.
        """
        from qabias.report.writing import write_report

        if path is None and self.scratch is not None:
            raise QabiasError(
                "the run is in a temporary folder, deleted with the result.",
                "Give a path: result.report('report.html').",
            )
        output = None if path is None else Path(path)
        with using_mirror(self.mirror), overwriting(overwrite):
            return write_report(self._run, output)

    def push(
        self, to: str, dataset: str, *, sample: bool = False, create_pr: bool = True, dry_run: bool = False
    ) -> str:
        """Push the scores to the model's repository on the Hub, as `qabias push results` does.

        This sends at once. To see the plan first, call `print(result.push(..., dry_run=True))`.

        Args:
            to: The measured model, ORG/NAME.
            dataset: The dataset on the Hub, ORG/NAME.
            sample: Also push the scores of a sample.
            create_pr: Open a pull request; False: commit to main.
            dry_run: Only make the plan, without contacting the Hub.

        Returns:
            Address of the pull request, commit or repository; on a dry run the plan.

        Raises:
            QabiasError: If the run is of a sample, a name is wrong, or the login lacks write access.
        """
        from qabias.hub.contents import results_push
        from qabias.hub.push import Hub, plan_lines

        plan = results_push(self.folder, to, dataset, sample=sample)
        if dry_run:
            return "\n".join(plan_lines(plan, create_pr))
        hub = Hub()
        difference = hub.difference(plan, create_pr=create_pr)
        return difference.url if difference.is_empty else hub.send(plan, difference)

    def _repr_html_(self) -> str:
        from qabias.report.page import run_card

        return run_card(self._run)

    def _print(self, console: Console) -> None:
        from qabias.report.terminal import print_summary

        print_summary(self._run, console)

    def __repr__(self) -> str:
        where = self.folder if self.scratch is None else "a temporary folder"
        return f"<qabias.Result of {self.model} on {self.benchmark} in {where}>"


def _with_nan(content: Any) -> Any:
    """Scores in memory: NaN for a file's null."""
    if isinstance(content, Mapping):
        return {name: _with_nan(value) for name, value in content.items()}
    if isinstance(content, list):
        return list(map(_with_nan, content))
    return float("nan") if content is None else content


def to_arrow(table: Table) -> pyarrow.Table:
    """A table as an Arrow table."""
    import pyarrow as pa

    table, columns = flat(table), {}
    for place, column in enumerate(table.columns):
        values = [row[place] for row in table.rows]
        if any(isinstance(value, Score) for value in values):
            ends = [value if isinstance(value, Score) else Score(None) for value in values]
            columns[column.name] = pa.array([value.value for value in ends], pa.float64())
            columns[f"{column.name}_low"] = pa.array([value.low for value in ends], pa.float64())
            columns[f"{column.name}_high"] = pa.array([value.high for value in ends], pa.float64())
        else:
            columns[column.name] = pa.array(values, _type(column))
    return pa.table(columns).replace_schema_metadata(_about(table))


def to_pandas(table: Table) -> pandas.DataFrame:
    """A table as a data frame with the columns of `to_arrow`; `attrs` has title, source and note."""
    frame = to_arrow(table).replace_schema_metadata(None).to_pandas()
    frame.attrs.update(_about(table))
    return frame


def _about(table: Table) -> dict[str, str]:
    return {"title": table.title, "source": table.source, "note": table.note}


def _type(column: Column) -> pyarrow.DataType:
    import pyarrow as pa

    return {"text": pa.string(), "count": pa.int64()}.get(column.kind, pa.float64())


Rows: TypeAlias = (
    "datasets.Dataset | pandas.DataFrame | pyarrow.Table | Mapping[str, Sequence[object]] | Sequence[Mapping[str, Any]]"
)
"""A table: a dataset, a data frame, an Arrow table, columns by name, or a list of rows."""

# What determines the texts of rows, but for the sample that was drawn of them.
ORIGIN = ("benchmark", "config", "source", "fixes", "seed", "options")


def as_dataset(table: pyarrow.Table, benchmark: Benchmark, arguments: RunArguments) -> datasets.Dataset:
    """A table as a dataset with the features of the committed one."""
    import pyarrow as pa
    from datasets import ClassLabel, Dataset, DatasetInfo, Features

    from qabias.support.table_files import ORIGIN_MARK

    plain = pa.schema(
        [
            field.with_type(field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
            for field in table.schema.remove_metadata()
        ]
    )
    features = Features.from_arrow_schema(plain)
    for column, names in benchmark.class_labels.items():
        if column in features:
            features[column] = ClassLabel(names=list(names))
    origin = {name: getattr(arguments, name) for name in ORIGIN}
    info = DatasetInfo(
        description=f"{benchmark.title}\n\n{ORIGIN_MARK}{json.dumps(origin, default=dict)}",
        citation="\n".join(benchmark.facts.citations),
        dataset_name=benchmark.name,
        config_name=arguments.config,
        features=features,
    )
    return Dataset(table.cast(plain).cast(features.arrow_schema), info=info)
