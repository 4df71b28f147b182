"""The scores of a run under the names and signs that the set's own paper gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from qabias.benchmarks import locate
from qabias.benchmarks.bbq import NAME as BBQ
from qabias.benchmarks.bbq.facts import MEASURES
from qabias.benchmarks.facts import Measure, Scores, tiles
from qabias.benchmarks.ranges import ends_in_words, with_ranges
from qabias.benchmarks.scoring import Rules
from qabias.tables.formatting import show, show_interval
from qabias.tables.model import Column, Figure, Table, values

PAPER_NAMES = "paper_names"
"""Name of the table of these scores."""

_READ = (
    "The scores of this run as the authors of the set call them, with their signs, so that they can be put beside "
    "what they published."
)


def with_names(rules: Rules, names: str) -> Rules:
    """The rules of the metric with its option `names`, where answers are counted as the papers count them."""
    return {**rules, "names": names} if names and rules.get("unparsed", "exclude") == "exclude" else rules


def names_table(groups: Mapping[str, Scores], names: str) -> Table:
    """The scores under the names of the paper: groups by scores."""
    named = measures_of(names)
    columns = [Column(measure.name, measure.title, measure.kind) for measure in named]
    rows = tuple((group, *values(of, columns)) for group, of in groups.items())
    table = Table(
        PAPER_NAMES,
        "In the names of the set's paper",
        "",
        f"{_READ} {' '.join(f'{measure.title}: {measure.note}.' for measure in named)} With 95 % intervals over "
        "templates; bounds have none.",
        (Column("group", "Category", "text"), *columns),
        rows,
        Figure("intervals", "group", tuple(measure.name for measure in named if measure.kind == "signed")),
        "Bias",
    )
    return with_ranges(table, list(groups.values()), named)


def in_names(scores: Scores, names: str) -> str:
    """The same of all examples in one line; "" of scores without them."""
    found = tiles([one for one in measures_of(names) if one.name in scores], scores)
    texts = []
    for tile in found:
        ends = f"({ends_in_words(tile.possible, tile.kind)} with the missing answers)" if tile.possible else ""
        value = show(tile.value, tile.kind)
        texts.append(f"{tile.title} {value} {ends or show_interval(tile.value, tile.kind)}".strip())
    return f"in the names of the set's paper: {'; '.join(texts)}" if texts else ""


def measures_of(names: str) -> list[Measure]:
    """The scores of a paper: what they are here is their note."""
    ours = {measure.name: measure for measure in MEASURES}
    found = []
    for name in locate.metric_module(BBQ, "engine").NAMES[names]:
        of = ours[name.ours]
        note = f"{'minus ' if name.sign < 0 else ''}{of.title} ({of.name}) here"
        if name.is_bound:
            note = f"the largest bias that {of.title} ({of.name}) allows"
        found.append(replace(of, name=name.name, title=name.name, tile=name.name, note=note, source="", bound=""))
    return found
