"""Examples of a benchmark with their answers, and their tables as plain rows."""

import pyarrow as pa

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.base import Scored
from qabias.tables.model import find, flat


def load(benchmark, config, source="bundled"):
    """The examples of a config."""
    benchmark = load_benchmark(benchmark) if isinstance(benchmark, str) else benchmark
    return benchmark.load(config, benchmark.origin(source, 0, False))


def answers_of(predictions):
    """Answers by their numbers; a table is returned as it is."""
    if isinstance(predictions, pa.Table):
        return predictions
    return pa.table({"prediction": pa.array(predictions, pa.int8())})


def analysed(benchmark, table, predictions, prompt_format=None):
    """The tables of a run with these answers."""
    answers = answers_of(predictions)
    return benchmark.analyse(Scored(table, answers, benchmark.score(table, answers), prompt_format))


def rows_of(analysis, name):
    """The rows of a table of an analysis, each a dict."""
    table = flat(find(analysis.tables, name))
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def cell(table, name, group="All"):
    """The value of a column in the row of a group."""
    (row,) = (row for row in table.rows if row[0] == group)
    return row[[column.name for column in table.columns].index(name)]
