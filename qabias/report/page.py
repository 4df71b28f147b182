"""One self-contained HTML page from one or several analyses; it loads nothing and works from disk.

`render_page` is what the report of a run and the page of a comparison have in common: head, what the scores mean, the
tables by section with their figures, and the examples. `templates/page.html.j2` is the page; what is particular to a
benchmark is in `templates/intro_*.html.j2`.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import jinja2
from markupsafe import Markup

from qabias.tables.model import Analysis, Column, Estimate, Table, Value
from qabias.report import examples, plots
from qabias.report.svg import inline_svg
from qabias.tables.formatting import UNDEFINED, as_estimate, show, show_interval

FOLDED = 30
"""Tables with more rows are folded."""


@dataclass(frozen=True)
class Tile:
    """A headline score.

    Attributes:
        title: What it is.
        value: The score with its interval.
        kind: Kind of its column.
        note: What it says, in a few words.
    """

    title: str
    value: Estimate
    kind: str
    note: str


@dataclass(frozen=True)
class Chapter:
    """A run, or a comparison, as it stands in a page.

    Attributes:
        title: Heading: the model.
        kicker: Small line above it: the benchmark.
        head: Facts that are said first: label -> text.
        intro: Name of the text on what the scores mean: `templates/intro_<name>.html.j2`.
        analysis: Tables and examples.
        signature: One line that pins what was measured; "" for none.
        tiles: Headline scores.
        appendix: How it was made: heading -> label -> text.
        bundled: Whether the texts are qabias' own.
    """

    title: str
    head: Mapping[str, str]
    intro: str
    analysis: Analysis
    kicker: str = ""
    signature: str = ""
    tiles: Sequence[Tile] = ()
    appendix: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    bundled: bool = False


def render_page(
    title: str,
    head: Mapping[str, str],
    intro: str,
    analysis: Analysis,
    *,
    kicker: str = "",
    appendix: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """The HTML of one analysis.

    Args:
        title: Heading and title of the page.
        head: Facts that are said first: label -> text.
        intro: Name of the text on what the scores mean, e.g. "comparison" for `templates/intro_comparison.html.j2`.
        analysis: Tables and examples.
        kicker: Small line above the title.
        appendix: How it was made: heading -> label -> text.
    """
    return render_chapters(title, [Chapter(title, head, intro, analysis, kicker, appendix=appendix or {})])


def render_chapters(title: str, chapters: Sequence[Chapter]) -> str:
    """The HTML of several analyses in one page, with a list of contents; one alone is the whole page.

    Args:
        title: Title of the page, and its heading where there are several chapters.
        chapters: What it holds.
    """
    environment = _environment()
    script = _read("page.js")
    return environment.get_template("page.html.j2").render(
        title=title,
        style=Markup(_read("page.css")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        chapters=[_chapter(chapter, f"c{number}") for number, chapter in enumerate(chapters, start=1)],
    )


def _chapter(chapter: Chapter, name: str) -> dict[str, object]:
    sections = [
        {
            "id": f"{name}-s{number}",
            "title": title or "Tables",
            "tables": [_table(table, f"{name}-s{number}-{place}") for place, table in enumerate(tables, start=1)],
        }
        for number, (title, tables) in enumerate(_by_section(chapter.analysis.tables), start=1)
    ]
    return {
        "id": name,
        "about": chapter,
        "sections": sections,
        "examples": examples.lay_out(chapter.analysis.examples),
    }


def _by_section(tables: Sequence[Table]) -> list[tuple[str, list[Table]]]:
    """Tables by section, sections in the order in which they first come."""
    order = list(dict.fromkeys(table.section for table in tables))
    by_order = sorted(tables, key=lambda table: order.index(table.section))
    return [(section, list(group)) for section, group in groupby(by_order, lambda table: table.section)]


def _table(table: Table, name: str) -> dict[str, object]:
    return {
        "id": name,
        "about": table,
        "figure": inline_svg(table, name) if table.figure and table.rows else None,
        "hidden": plots.hidden_rows(table),
        "deepest": plots.deepest(table) if table.figure and table.figure.kind == "heatmap" else "",
        "folded": len(table.rows) > FOLDED,
        "columns": [
            {"about": column, "ends": any(as_estimate(row[place]).low is not None for row in table.rows)}
            for place, column in enumerate(table.columns)
        ],
        "rows": [
            {
                "overall": row[0] == "All",
                "cells": [_cell(value, column) for value, column in zip(row, table.columns, strict=True)],
            }
            for row in table.rows
        ],
    }


def _cell(value: Value, column: Column) -> dict[str, str]:
    """What is shown of a value, and its numbers for sorting and copying."""
    if isinstance(value, str):
        return {"text": value}
    numbers = dict(zip(("v", "l", "h"), map(_plain, as_estimate(value)), strict=True))
    return {"text": show(value, column.kind), "interval": show_interval(value, column.kind), **numbers}


def _plain(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}" if isinstance(number, float) else str(number)


def _breakable(name: str) -> Markup:
    """Allow a line break after each underscore; `join` escapes the parts."""
    return Markup("_<wbr>").join(name.split("_"))


def _unbroken(text: str) -> str:
    """Keep the sign for percent on the line of its number."""
    return re.sub(r"(?<=\d) %", "\u00a0%", text)


def _read(name: str) -> str:
    return (importlib.resources.files("qabias.report") / "templates" / name).read_text(encoding="utf-8")


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("qabias.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(breakable=_breakable, unbroken=_unbroken)
    environment.globals.update(show=show, show_interval=show_interval, UNDEFINED=UNDEFINED)
    return environment
