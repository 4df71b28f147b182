"""`Result`: a run with its scores, tables, figures and answers."""

from __future__ import annotations

import io
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from qabias.api.calls import Scratch, in_python_words
from qabias.benchmarks.caveats import reasons
from qabias.benchmarks.headline import Headline, headline
from qabias.errors import QabiasError
from qabias.runs.outcomes import outcomes_of
from qabias.runs.scored import ScoredRun, read_scored, read_tables
from qabias.runs.signature import coverage_of
from qabias.tables.model import Analysis, Column, Estimate, Table, find

if TYPE_CHECKING:
    import datasets
    import pandas
    import pyarrow

    from qabias.tables.drawing import Drawing
    from qabias.tables.terminal import Console


class Tabled(ABC):
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
            raise QabiasError(f"a table is given as pandas or arrow, not as {format!r}")
        return makers[format](find(self._analysis.tables, name))

    def figure(self, name: str) -> Drawing:
        """The figure of a table, as in the report; `save` writes it as SVG, PDF or PNG."""
        from qabias.tables.figures import draw

        table = find(self._analysis.tables, name)
        if table.figure is None or not table.rows:
            drawn = [other.name for other in self._analysis.tables if other.figure is not None and other.rows]
            raise QabiasError(f"table {name!r} has no figure.", f"There is one of {', '.join(drawn)}.")
        return draw(table)

    def __str__(self) -> str:
        from qabias.tables.terminal import Console

        text = io.StringIO()
        # In a notebook rich would show the tables itself and leave the text empty, and a kernel asks for colours.
        self._print(Console(file=text, width=100, force_jupyter=False, force_terminal=False, color_system=None))
        return text.getvalue().rstrip("\n")


class Result(Tabled):
    """A run with its scores, tables, figures and answers; what `qabias.run`, `score` and `read` return.

    `print` shows what the command line prints, a notebook the headline scores, what was found, and a figure.

    Args:
        folder: A run folder with scores.
        mirror: Local mirror of the published files, for what reads examples again.
        scratch: What holds the temporary folder of the run; None for a folder that stays.

    Attributes:
        folder: The run folder.

    Raises:
        QabiasError: If the folder holds no scored run, or a damaged one.
    """

    def __init__(self, folder: str | Path, *, mirror: str | None = None, scratch: Scratch | None = None) -> None:
        self.folder, self.mirror, self.scratch = Path(folder), mirror, scratch
        self._run: ScoredRun = read_scored(self.folder)

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
        """What the benchmark's metric returned, as in `scores.json`; undefined scores are NaN, never 0."""
        return _with_nan(self._run.scores)

    @cached_property
    def _analysis(self) -> Analysis:
        return read_tables(self._run)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """What was measured, by the names of `run.json`."""
        return asdict(self._run.arguments)

    @cached_property
    def sample(self) -> Mapping[str, str]:
        """The size of the sample and what is missing from it, in words, as the report says it first: label to text."""
        run = self._run
        facts = run.benchmark.sample_facts(run.scores)
        covered = coverage_of(run.arguments)
        return {**facts, "Answered": covered} if covered else facts

    @property
    def outcomes(self) -> Mapping[str, int]:
        """The number of answered, refused, truncated, filtered and unread texts; empty if the model wrote nothing."""
        return outcomes_of(self._run.scores)

    @cached_property
    def headline(self) -> str:
        """What the run found, in one sentence from a fixed list (see `qabias.benchmarks.headline`)."""
        return "" if self._found is None else self._found.text

    @cached_property
    def verdict(self) -> str:
        """The same as "detected", "not detected", "inconclusive" or "not interpretable"; "" without rules for it."""
        return "" if self._found is None else self._found.verdict

    @cached_property
    def _found(self) -> Headline | None:
        run = self._run
        return headline(run.benchmark, run.scores, run.arguments.model, run.is_question_only)

    @cached_property
    def reasons(self) -> Mapping[str, str]:
        """Why what is undefined in `scores` is so, by its JSON pointer, such as "/ci/bias_disambig"."""
        return reasons(self._run.benchmark.facts, self._run.scores)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before any number is read."""
        return tuple(self._analysis.notes)

    def examples(self) -> pandas.DataFrame:
        """The items that the report shows, with their texts, options, answer and prompt: a row for each.

        Several options, probabilities or prompts are a list in a cell. `attrs["how_chosen"]` tells the choice of items.
        """
        import pandas as pd

        from qabias.report.content import with_prompts

        analysis = with_prompts(self._analysis, self._run)
        frame = pd.DataFrame.from_records([dict(row) for row in analysis.examples])
        frame.attrs["how_chosen"] = analysis.how_chosen
        return frame

    def predictions(self) -> datasets.Dataset:
        """The examples that were asked, with the answers to them, one row each.

        Returns:
            The columns of `qabias.load`, then those of the answers, such as `prediction` (-1 is no answer),
            `loglikelihoods`, `generated` and `outcome`. With a set of wordings there is a row for each, named by `run`.

        Raises:
            QabiasError: If the texts of the examples or the answers to them cannot be had.
        """
        from qabias.api.rows import as_dataset
        from qabias.runs.folder import read_all_answers
        from qabias.runs.question import load_examples_of

        run = self._run
        table = load_examples_of(run.file, self.mirror).table
        answers = read_all_answers(run.file, run.benchmark, table)
        for name in answers.column_names:
            if name not in run.benchmark.key:
                table = table.append_column(name, answers[name])
        return as_dataset(table, run.benchmark, run.arguments)

    def save(self, folder: str | Path) -> Result:
        """Copy the run to a new folder that stays, and return the result there."""
        target = Path(folder)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise QabiasError(f"{target}: exists already.", "Choose another folder.")
        shutil.copytree(self.folder, target, dirs_exist_ok=True)
        return Result(target, mirror=self.mirror)

    @in_python_words()
    def report(self, path: str | Path | None = None, *, overwrite: bool = False) -> Path:
        """Write the report, one HTML page that needs no network, and return its path.

        Args:
            path: File to write; by default `report.html` in the run folder, which must not be a temporary one.
            overwrite: Replace a file that is no report of this run too.

        Raises:
            QabiasError: If the page cannot be written, would replace something else, or be removed with the result.
        """
        from qabias.report.writing import write_report

        if path is None and self.scratch is not None:
            raise QabiasError(
                "the run is in a temporary folder, which is removed with the result.",
                "Say where the report is to stay: result.report('report.html').",
            )
        output = None if path is None else Path(path)
        return write_report(self._run, self._analysis, output, overwrite=overwrite)

    def push(
        self, to: str, dataset: str, *, sample: bool = False, create_pr: bool = True, dry_run: bool = False
    ) -> str:
        """Push the scores into the repository of the model on the Hub, as `qabias push results` does.

        This sends at once. Look at the plan first, by `print(result.push(..., dry_run=True))`.

        Args:
            to: Model that was measured, ORG/NAME.
            dataset: Dataset on the Hub that was asked, ORG/NAME.
            sample: Push the scores of a sample of the examples too.
            create_pr: Open a pull request, or commit to main.
            dry_run: Only make the plan; the Hub is asked nothing and sent nothing.

        Returns:
            The address of the pull request, commit or repository that holds the files; on a dry run the plan.

        Raises:
            QabiasError: If the run is of a sample, a name is wrong, or the login may not write there.
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
        from qabias.report.card import run_card

        return run_card(self._run, self._analysis, coverage_of(self._run.arguments))

    def _print(self, console: Console) -> None:
        from qabias.report.terminal import print_summary

        print_summary(self._run, console)

    def __repr__(self) -> str:
        where = self.folder if self.scratch is None else "a temporary folder"
        return f"<qabias.Result of {self.model} on {self.benchmark} in {where}>"


def _with_nan(content: Any) -> Any:
    """Scores as they are in memory: NaN for what a file holds as null."""
    if isinstance(content, Mapping):
        return {name: _with_nan(value) for name, value in content.items()}
    if isinstance(content, list):
        return list(map(_with_nan, content))
    return float("nan") if content is None else content


def to_arrow(table: Table) -> pyarrow.Table:
    """A table as an Arrow table."""
    import pyarrow as pa

    columns = {}
    for place, column in enumerate(table.columns):
        values = [row[place] for row in table.rows]
        if any(isinstance(value, Estimate) for value in values):
            ends = [value if isinstance(value, Estimate) else Estimate(None) for value in values]
            columns[column.name] = pa.array([value.value for value in ends], pa.float64())
            columns[f"{column.name}_low"] = pa.array([value.low for value in ends], pa.float64())
            columns[f"{column.name}_high"] = pa.array([value.high for value in ends], pa.float64())
        else:
            columns[column.name] = pa.array(values, _type(column))
    return pa.table(columns).replace_schema_metadata(_about(table))


def to_pandas(table: Table) -> pandas.DataFrame:
    """A table as a data frame, with the columns of `to_arrow`; title, source and note stand in its `attrs`."""
    frame = to_arrow(table).replace_schema_metadata(None).to_pandas()
    frame.attrs.update(_about(table))
    return frame


def _about(table: Table) -> dict[str, str]:
    return {"title": table.title, "source": table.source, "note": table.note}


def _type(column: Column) -> pyarrow.DataType:
    import pyarrow as pa

    return {"text": pa.string(), "count": pa.int64()}.get(column.kind, pa.float64())
