"""Altered files of a run: each command refuses them in one line, or gives what it gave before."""

import itertools
import random
import re
import shutil
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.opened import Run
from qabias.runs.question import read_question
from qabias.runs.run import run
from qabias.support.files import read_json
from tests.loopback_server import serve as serve
from tests.loopback_server import surroundings as surroundings

from .helpers import SEED, chosen, command, size

QUIET = Machine(shows_progress=False)
CONFIGS = {"bbq": ("Religion", 40), "unqover": ("religion", 40), "bbnli": ("religion", 40)}
FLIPS = {"bbq": 170, "unqover": 170, "bbnli": 160}
"""Of parts."""

RESULT = ("--to", "me/model", "--dataset", "me/set", "--sample", "--model-index")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder for each benchmark with two runs of it, `one` and `other`."""
    folder = tmp_path_factory.mktemp("runs")
    for benchmark, (config, limit) in CONFIGS.items():
        for name, model in (("one", "random"), ("other", "consistent" if benchmark == "unqover" else "oracle")):
            arguments = RunArguments(benchmark, f"baseline:{model}", config, limit=limit)
            run(arguments, folder / benchmark / name, QUIET)
    return folder


class Altered:
    """The runs of a benchmark, of which one may be altered, and what every command says of it as it was."""

    def __init__(self, runs, benchmark, folder):
        self._original = runs / benchmark
        self._folder = folder
        self._benchmark = benchmark
        self._gave_before = {}
        self._template = _a_template(self._original / "one")
        self.fresh()

    @property
    def run(self):
        return self._folder / "one"

    def fresh(self):
        """Put everything back."""
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._original, self._folder)

    def part(self, number=0):
        return self.run / "predictions" / f"part-{number:05d}.parquet"

    def commands(self):
        """Commands that read a run, by their names."""
        one, other = self.run, self._folder / "other"
        written = self._folder / "written"
        return {
            "score": ("score", one),
            "compare": ("compare", one, other, "--output", written / "compared"),
            "merge": ("merge", one, "--output", written / "merged"),
            "report": ("report", one),
            "show": ("show", one),
            "template": ("show", one, "--template", self._template),
            "export": ("export", one, "--format", "csv", "--output", written / "exported"),
            "results": ("push", "results", one, *RESULT, "--write-to", written / "results"),
        }

    def outcome(self, name):
        """Refused, same, silent (the command went well and gave something else) or unclear (a traceback)."""
        if name not in self._gave_before:
            kept = self._folder.with_name("kept")
            self._folder.rename(kept)
            self.fresh()
            ended = self._ended(name)
            assert ended.code == 0, ended
            self._gave_before[name] = self._gave(name, ended)
            shutil.rmtree(self._folder)
            kept.rename(self._folder)
        ended = self._ended(name)
        if ended.code == 0:
            return "same" if self._gave(name, ended) == self._gave_before[name] else "silent"
        return "refused" if ended.is_clean else f"unclear: {name}: {ended.err.strip().splitlines()[-1:]}"

    def _ended(self, name):
        shutil.rmtree(self._folder / "written", ignore_errors=True)
        return command(*self.commands()[name])

    def _gave(self, name, ended):
        """The figures that a command printed and wrote; of `score` the scores."""
        if name == "score":
            return read_json(self.run / "scores.json")["scores"]
        written = (self._folder / "written").rglob("*")
        texts = {path: path.read_text("utf-8") for path in written if path.suffix in (".json", ".csv", ".md")}
        return _figures(ended.out), {path: _figures(text) for path, text in texts.items()}


def _figures(text):
    """The numbers with a point in a text, without those of versions and signatures."""
    return re.findall(r"(?<![\w.:@])\d+\.\d+(?:e[-+]?\d+)?(?![\w.]*\w)", text)


def _a_template(folder):
    """A template of a run, by which `show --template` finds it."""
    question = read_question(Run.open(folder))
    return str(question.benchmark.facts.view.template(question.table)[0].as_py())


@pytest.fixture(scope="module")
def altered(runs, tmp_path_factory):
    """The runs of a benchmark to be altered, always in one folder, whose name commands print."""
    folder = tmp_path_factory.mktemp("altered")
    known = {benchmark: Altered(runs, benchmark, folder / benchmark) for benchmark in CONFIGS}
    return known.__getitem__


def flip(path, place):
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes())
    content[place // 8] ^= 1 << place % 8
    path.write_bytes(content)


def places(path, seed):
    """Bits of a file, drawn again and again."""
    rng = random.Random(f"{SEED} {seed}")
    n_bits = 8 * path.stat().st_size
    return (rng.randrange(n_bits) for _ in itertools.count())


def _check(outcomes):
    """A silent change and a traceback are faults."""
    faults = [each for each in outcomes if any(outcome not in ("refused", "same") for outcome in each)]
    assert not faults, f"{len(faults)} of {len(outcomes)}: {faults[:5]}"


FILES = ("predictions/part-00000.parquet", "run.json", "scores.json", "analysis.json")


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("benchmark", FLIPS)
def test_a_flipped_bit_is_refused_or_changes_no_score(benchmark, file, altered):
    one = altered(benchmark)
    others = itertools.cycle(("compare", "merge", "template", "report", "show", "results", "export"))
    outcomes = []
    n_flips, quick = (FLIPS[benchmark], 9) if file == FILES[0] else (20, 1)
    for place in itertools.islice(places(one.run / file, f"{benchmark} {file}"), size(n_flips, quick)):
        one.fresh()
        flip(one.run / file, place)
        outcomes.append([one.outcome(next(others)), one.outcome("score")])
    _check(outcomes)


@pytest.mark.usefixtures("surroundings")
def test_a_flipped_bit_in_the_answers_of_a_server_is_refused_or_asked_again(serve, tmp_path):
    server = serve()
    options = {"base_url": server.url}
    again = partial(run, RunArguments("bbq", "m", "Religion", backend="server", limit=40, options=options))
    scores = again(tmp_path / "whole", QUIET).scores
    outcomes = []
    for place in itertools.islice(places(tmp_path / "whole" / "requests.jsonl", "journal"), size(60, quick=6)):
        folder = tmp_path / "again"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name in ("run.json", "requests.jsonl"):
            shutil.copy(tmp_path / "whole" / name, folder)
        flip(folder / "requests.jsonl", place)
        named = ("--model", "m", "--backend", "server", "--config", "Religion", "--limit", 40, "--output", folder)
        ended = command("run", "bbq", *named, "--base-url", server.url)
        if ended.code:
            outcomes.append(["refused" if ended.is_clean else f"unclear: {ended.err[-300:]}"])
        else:
            # Undefined scores are null in the file.
            same = read_json(folder / "scores.json") == read_json(tmp_path / "whole" / "scores.json")
            outcomes.append(["same" if same else "silent"])
    assert scores is not None
    _check(outcomes)


def _is_answer(name):
    """Columns of the answers themselves, in all benchmarks."""
    return name.startswith(("prediction", "s1_", "s2_"))


def _answers_as(make):
    """Answers of other values, or none where `make` gives none."""

    def alter(table):
        for place, name in reversed(list(enumerate(table.column_names))):
            if _is_answer(name):
                column = make(table[name])
                table = table.remove_column(place) if column is None else table.set_column(place, name, column)
        return table

    return alter


PARTS = (
    _answers_as(lambda column: None),
    _answers_as(lambda column: pc.cast(column, pa.string())),
    _answers_as(lambda column: pa.array([7] * len(column), column.type)),
    _answers_as(lambda column: pa.array([-1] * len(column), column.type)),
    _answers_as(lambda column: pa.nulls(len(column), column.type)),
    _answers_as(lambda column: pa.array([[1]] * len(column))),
    _answers_as(lambda column: pa.array(column.to_pylist()[::-1], column.type)),
    lambda table: table.slice(0, 0),
    lambda table: table.slice(1),
    lambda table: pa.concat_tables([table, table.slice(0, 1)]),
    lambda table: table.take(pa.array(range(table.num_rows)[::-1])),
    lambda table: table.select([]),
)


@pytest.mark.parametrize("benchmark", CONFIGS)
def test_a_part_of_something_else_is_refused_by_all_that_read_it(benchmark, altered):
    """Written with what the part says of itself, so that only its content is wrong."""
    one = altered(benchmark)
    outcomes = []
    for change in chosen(PARTS, quick=2):
        for reader in ("score", "compare", "merge", "template"):
            one.fresh()
            table = pq.read_table(one.part())
            changed = change(table).replace_schema_metadata(table.schema.metadata)
            pq.write_table(changed, one.part(), compression="zstd")
            outcomes.append([one.outcome(reader)])
    _check(outcomes)
    assert all(outcome == ["refused"] for outcome in outcomes[::4])  # by score
