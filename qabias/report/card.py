"""Notebook cards of a run or a comparison: HTML without scripts, for a shared page."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from qabias.comparison import Comparison
from qabias.comparison.tables import RUNS_TABLE
from qabias.report.content import comparison_headlines, make_head
from qabias.report.page import card_palette, environment, lay_out, read_template
from qabias.runs.opened import Run
from qabias.runs.signature import coverage_of
from qabias.scores.formatting import pluralize
from qabias.tables.figures import draw, hidden_rows
from qabias.tables.model import Table

_HEADLINE_FIGURE = "intervals"  # kind of the card's figure, the report's first one
MOST_ROWS = 10

_numbers = itertools.count(1)


def run_card(run: Run) -> str:
    """A run's headline scores with intervals, headline, and first interval figure."""
    facts, tiles, result, _ = make_head(run)
    return _rendered(
        "run_card.html.j2",
        run.signature,
        run.analysis.tables,
        title=run.arguments.model or "unnamed model",
        kicker=run.benchmark.title,
        facts={**facts, "Answered": coverage} if (coverage := coverage_of(run.arguments)) else facts,
        tiles=tiles,
        headline=result,
        notes=run.analysis.notes,
        signature=run.signature,
    )


def comparison_card(comparison: Comparison) -> str:
    """A comparison's headline scores of all runs, headline, and first interval figure."""
    names = ", ".join(comparison.names)
    scores = comparison_headlines(comparison)
    n_more = len(scores.rows) - MOST_ROWS if not comparison.view.has_columns else 0
    if n_more > 0:
        note = (
            f"{scores.note} {pluralize(n_more, 'run')} more in table('{RUNS_TABLE}') and in the tables of the scores."
        )
        scores = replace(scores, rows=scores.rows[:MOST_ROWS], note=note)
    return _rendered(
        "comparison_card.html.j2",
        names,
        comparison.analysis.tables,
        title=names if comparison.view.has_columns else f"{len(comparison.names):,} runs",
        kicker=f"Comparison on {comparison.benchmark.title}",
        scores=scores,
        headline=comparison.headline,
        notes=comparison.analysis.notes,
        signatures=[run.signature for run in comparison.runs] if comparison.view.has_columns else [],
    )


def _rendered(
    template: str, identity: str, tables: Sequence[Table], *, scores: Table | None = None, **content: object
) -> str:
    name = f"qabias-{zlib.crc32(identity.encode(errors='replace')):08x}-{next(_numbers)}"
    drawn = first_figure(tables)
    html = (
        environment()
        .get_template(template)
        .render(
            name=name,
            style=Markup(card_palette(".qabias") + read_template("card.css")),
            table=None if scores is None else lay_out(scores, f"{name}-headline", set()),
            drawn=drawn,
            figure=None
            if drawn is None
            else Markup(draw(drawn).inline(name, f"table({drawn.name!r}) has its numbers")),
            hidden=0 if drawn is None else hidden_rows(drawn),
            **content,
        )
    )
    return html.encode("utf-8", errors="replace").decode("utf-8")


def first_figure(tables: Sequence[Table]) -> Table | None:
    """The first table drawn with intervals, else the first drawn."""
    drawn = [table for table in tables if table.figure is not None and table.rows]
    intervals = [table for table in drawn if table.figure is not None and table.figure.kind == _HEADLINE_FIGURE]
    return next(iter([*intervals, *drawn]), None)
