"""One self-contained HTML page of one or several analyses; it works offline."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup, escape

from qabias.benchmarks import Benchmark
from qabias.benchmarks.facts import Tile
from qabias.benchmarks.headline import Headline
from qabias.comparison import Comparison
from qabias.support.outputs import Own
from qabias.tables.drawing import LIGHT
from qabias.tables.figures import deepest, draw, hidden_rows
from qabias.tables.formatting import UNDEFINED, as_estimate, show, show_interval
from qabias.tables.model import ALL, Analysis, Table, Value

_TEMPLATES = Path(__file__).parent / "templates"

FOLDED = 30
SHORT_NOTE = 20  # words of a note that are shown; the rest is folded
_SENTENCES = re.compile(r"(?<=[.!?])(?<!\b[A-Za-z]\.)(?<!\bal\.) ")

_NUMBERS = "the table below has its numbers"
_SHORT, _SHORT_CHOICE = 60, 40  # characters
_MOST_CHOICES = 40
# Long texts that repeat what the other columns show are folded.
_FOLDED = ("prompt",)
_DARK = {
    **{"paper": "#15191d", "panel": "#1e2429", "ink": "#e6e9ec", "muted": "#a3adb6", "grid": "#3b444c"},
    **{"link": "#7cc4f0", "series-0": "#56b4e9", "series-1": "#f0a132", "series-2": "#3fc79b"},
    **{"series-3": "#e39cc8", "series-4": "#bcae2e", "series-5": "#9ba6b0"},
}
# How notebooks mark a dark theme: JupyterLab, VS Code, Colab, and Material for MkDocs.
_DARK_NOTEBOOKS = (
    'body[data-jp-theme-light="false"]',
    "body.vscode-dark",
    'html[theme="dark"]',
    '[data-md-color-scheme="slate"]',
)

SIGNATURES = "Signatures"  # heading of the appendix with the runs of a chapter


class Intro(NamedTuple):
    """A page's introduction before its scores."""

    template: Path
    clusters: str
    citations: Sequence[str]


def run_intro(benchmark: Benchmark) -> Intro:
    """The introduction of a benchmark's run report."""
    facts = benchmark.facts
    return Intro(facts.intro, facts.clusters[0], facts.citations)


def comparison_intro(comparison: Comparison) -> Intro:
    """The introduction of a comparison."""
    facts, are_forms = comparison.benchmark.facts, comparison.are_forms
    benchmarks = (comparison.benchmark, *(run.benchmark for run in comparison.runs))
    citations = dict.fromkeys(text for benchmark in benchmarks for text in benchmark.facts.citations)
    name = "forms" if are_forms else "languages" if comparison.is_by_language else "comparison"
    clusters = "stereotypes" if are_forms else facts.clusters[0]
    return Intro(_TEMPLATES / f"intro_{name}.html.j2", clusters, tuple(citations))


@dataclass(frozen=True)
class Chapter:
    """A run or a comparison within a page."""

    title: str
    name: str
    head: Mapping[str, str]
    intro: Intro
    analysis: Analysis
    signature: str = ""
    tiles: Sequence[Tile] = ()
    headline: Headline | None = None
    headlines: Sequence[Table] = ()
    figure: Table | None = None
    card: str = ""
    by_run: Sequence[str] = ()
    appendix: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    bundled: bool = False

    @property
    def made_of(self) -> tuple[str, ...]:
        """The signatures of its runs."""
        return (self.signature,) if self.signature else tuple(self.appendix.get(SIGNATURES, {}).values())


def is_page_of(signatures: Sequence[str]) -> Own:
    """Own pages: made of runs with these signatures."""
    mark = f'name="generator" content="{_mark(signatures)}"'

    def is_own(path: Path) -> bool:
        try:
            return mark in path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return False

    return is_own


def _mark(signatures: Sequence[str]) -> str:
    """The mark in a page's head for its runs, in any order."""
    digest = hashlib.sha256("\n".join(sorted(signatures)).encode(errors="replace")).hexdigest()
    return f"qabias {digest[:16]}"


def render_chapters(title: str, chapters: Sequence[Chapter], overview: Sequence[Table] = ()) -> str:
    """The HTML of several analyses with a table of contents; a single one fills the page."""
    script, style = read_template("page.js"), page_palette() + read_template("page.css")
    printed: set[str] = set()
    guides: dict[Path, str] = {}
    for number, chapter in enumerate(chapters, start=1):
        guides.setdefault(chapter.intro.template, f"c{number}")
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            mark=_mark([signature for chapter in chapters for signature in chapter.made_of]),
            style=Markup(style),
            style_hash=_hash(style),
            script=Markup(script),
            script_hash=_hash(script),
            overview=[lay_out(table, f"headline-{place}", printed) for place, table in enumerate(overview)],
            chapters=[
                {**_chapter(chapter, f"c{number}", printed), "guide": guides[chapter.intro.template]}
                for number, chapter in enumerate(chapters, start=1)
            ],
        )
    )


def _hash(text: str) -> str:
    """The SHA-256 of a style or script, for a Content Security Policy."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _chapter(chapter: Chapter, name: str, printed: set[str]) -> dict[str, object]:
    headlines = _numbered(chapter.headlines, f"{name}-headline", printed, chapter.name)
    sections = [
        {
            "id": f"{name}-s{number}",
            "title": title or "Tables",
            "tables": _numbered(tables, f"{name}-s{number}", printed, chapter.name),
            "open": number == 1 and any(as_estimate(v).low is not None for t in tables for row in t.rows for v in row),
        }
        for number, (title, tables) in enumerate(_by_section(chapter.analysis.tables), start=1)
    ]
    return {
        "id": name,
        "content": chapter,
        "figure": None if chapter.figure is None else lay_out(chapter.figure, f"{name}-figure", printed),
        "headlines": headlines,
        "sections": sections,
        "examples": lay_out_examples(chapter.analysis.examples),
    }


def _numbered(tables: Sequence[Table], name: str, printed: set[str], of_what: str) -> list[dict[str, object]]:
    return [lay_out(table, f"{name}-{place}", printed, of_what) for place, table in enumerate(tables, start=1)]


def _by_section(tables: Sequence[Table]) -> list[tuple[str, list[Table]]]:
    """Tables by section, in order of first use."""
    order = list(dict.fromkeys(table.section for table in tables))
    by_order = sorted(tables, key=lambda table: order.index(table.section))
    return [(section, list(group)) for section, group in groupby(by_order, lambda table: table.section)]


def lay_out(table: Table, name: str, printed: set[str], of_what: str = "") -> dict[str, object]:
    """A table as templates take it. `name` is unique in the page; `printed` collects its sentences."""
    note, more = _split(table.note, printed)
    titled = replace(table, title=f"{table.title}: {of_what}") if of_what and of_what not in table.title else table
    return {
        "id": name,
        "content": table,
        "note": note,
        "more": more,
        "figure": Markup(draw(titled).inline(name, _NUMBERS)) if table.figure and table.rows else None,
        "hidden": hidden_rows(table),
        "deepest": deepest(table) if table.figure and table.figure.kind == "heatmap" else "",
        "folded": len(table.rows) > FOLDED,
        "columns": [
            {"content": column, "ends": any(as_estimate(row[place]).low is not None for row in table.rows)}
            for place, column in enumerate(table.columns)
        ],
        "body": Markup("\n".join(_row(table, row) for row in table.rows)),
    }


def _split(note: str, printed: set[str]) -> tuple[str, str]:
    """The new sentences of a note: those within `SHORT_NOTE` words, and the rest."""
    new = [one for one in dict.fromkeys(_SENTENCES.split(note)) if one and one not in printed]
    printed.update(new)
    ends = list(itertools.accumulate(len(one.split()) for one in new))
    n_shown = sum(end <= SHORT_NOTE for end in ends)
    return " ".join(new[:n_shown]), " ".join(new[n_shown:])


def _row(table: Table, row: Sequence[Value]) -> str:
    """A row as HTML: shown values, and numbers for sorting and copying."""
    cells = []
    for place, (value, column) in enumerate(zip(row, table.columns, strict=True)):
        tag = 'th class="text" scope="row"' if not place else "td"
        if column.kind == "text" or isinstance(value, str):
            text = _breakable(show(value, "text") if value is not None else UNDEFINED)
            cells.append(f"<{tag}>{text}</th>" if not place else f'<td class="text">{text}</td>')
            continue
        number, low, high = as_estimate(value)
        if number is None:
            cells.append(f'<td><abbr title="undefined, not 0">{UNDEFINED}</abbr></td>')
            continue
        ends = "".join(f' data-{key}="{_plain(end)}"' for key, end in (("l", low), ("h", high)) if end is not None)
        interval = show_interval(value, column.kind)
        small = f"<small>{interval}</small>" if interval else ""
        cells.append(f'<td data-v="{_plain(number)}"{ends}>{escape(show(value, column.kind))}{small}</td>')
    return f"<tr{' class=overall' if row[0] == ALL else ''}>{''.join(cells)}</tr>"


def _plain(number: float) -> str:
    return f"{number:.6g}" if isinstance(number, float) else str(number)


@dataclass(frozen=True)
class Field:
    """A column of the examples."""

    title: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Examples:
    """Examples, laid out."""

    labels: Mapping[str, str]
    folds: Mapping[str, str]
    fields: Sequence[Field]
    filters: Mapping[str, Sequence[str]]
    rows: Sequence[Mapping[str, Any]]


def lay_out_examples(examples: Sequence[Mapping[str, Any]]) -> Examples:
    """Lay out the columns of the examples, with values as texts."""
    names = dict.fromkeys(name for row in examples for name in row)
    present = [name for name in names if any(row.get(name) is not None for row in examples)]
    folds = [name for name in present if name in _FOLDED]
    shown = [name for name in present if name not in _FOLDED]
    labels = list(itertools.takewhile(lambda name: all(_is_short(name, row.get(name)) for row in examples), shown))
    fields = _fields(examples, shown[len(labels) :])
    filters = {name: values for name in shown for values in [_choices(examples, name)] if len(values) > 1}
    rows = [
        {
            "labels": [_text(name, row.get(name)) for name in labels],
            "folds": [
                [_text(name, one) for one in (value if isinstance(value, list) else [value])]
                for name in folds
                for value in [row.get(name)]
            ],
            "cells": [_example_cell(row, one.names) for one in fields],
            "filters": [_text(name, row.get(name)) for name in filters],
        }
        for row in examples
    ]
    titles, fold_titles = ({name: _title(name) for name in some} for some in (labels, folds))
    return Examples(titles, fold_titles, fields, filters, rows)


def _is_short(name: str, value: Any) -> bool:
    return not isinstance(value, (list, dict)) and len(_text(name, value)) <= _SHORT


def _fields(examples: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[Field]:
    fields: list[Field] = []
    for name in names:
        if fields and _parallel(examples, fields[-1].names[0], name):
            fields[-1] = Field(f"{fields[-1].title} · {name.replace('_', ' ')}", (*fields[-1].names, name))
        else:
            fields.append(Field(_title(name), (name,)))
    return fields


def _parallel(examples: Sequence[Mapping[str, Any]], first: str, name: str) -> bool:
    pairs = [(row.get(first), row.get(name)) for row in examples if row.get(name) is not None]
    return all(isinstance(one, list) and isinstance(other, list) and len(one) == len(other) for one, other in pairs)


def _choices(examples: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    """The values of a key with few distinct texts, in order; none for numbers and long texts."""
    values = {row.get(name) for row in examples if not isinstance(row.get(name), (list, dict))}
    texts = sorted(value for value in values if isinstance(value, str))
    if len(texts) != len(values - {None}) or len(texts) > min(_MOST_CHOICES, len(examples) / 2):
        return []
    return texts if all(len(text) <= _SHORT_CHOICE for text in texts) else []


def _example_cell(row: Mapping[str, Any], names: Sequence[str]) -> str | list[str]:
    first = row.get(names[0])
    if not isinstance(first, list):
        return _text(names[0], first)
    columns = [[_text(name, value) for value in row[name]] for name in names if row.get(name) is not None]
    return [" · ".join(parts) for parts in zip(*columns, strict=True)]


def _text(name: str, value: Any) -> str:
    if value is None:
        return UNDEFINED
    if isinstance(value, float):
        return show(value, "share" if name.startswith("probabilit") else "number")
    if isinstance(value, dict):
        return ", ".join(f"{_title(key)}: {_text(key, inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(_text(name, inner) for inner in value)
    return str(value)


def _title(name: str) -> str:
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:]


def _breakable(name: str) -> Markup:
    """Allow a line break after each underscore; `join` escapes the parts."""
    return Markup("_<wbr>").join(name.split("_"))


def read_template(name: str) -> str:
    """The text of a template file."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _read_template(path: str) -> str | None:
    return Path(path).read_text(encoding="utf-8") if Path(path).is_absolute() else None


class _Environment(jinja2.Environment):
    """Templates that may import others of their folder."""

    def join_path(self, template: str, parent: str) -> str:
        sibling = Path(parent).parent / template
        return str(sibling) if sibling.is_absolute() and sibling.is_file() else template


def environment() -> jinja2.Environment:
    """The renderer of page and card templates."""
    made = _Environment(
        # A benchmark's template is named by its path in the benchmark's folder.
        loader=jinja2.ChoiceLoader([jinja2.FileSystemLoader(_TEMPLATES), jinja2.FunctionLoader(_read_template)]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(breakable=_breakable, unbroken=partial(re.sub, r"(?<=\d) %", "\u00a0%"))
    made.globals.update(show=show, show_interval=show_interval, UNDEFINED=UNDEFINED)
    return made


def page_palette() -> str:
    """The colors of a full page: dark if the reader's system is."""
    dark = _variables(":root", _DARK)
    return f"{_variables(':root', LIGHT)}@media screen and (prefers-color-scheme: dark) {{\n{dark}}}\n"


def card_palette(selector: str) -> str:
    """The colors of an element in another page: dark if that notebook is."""
    dark = ",\n".join(f"{notebook} {selector}" for notebook in _DARK_NOTEBOOKS)
    return _variables(selector, LIGHT) + _variables(dark, _DARK)


def _variables(selector: str, colors: Mapping[str, str]) -> str:
    return f"{selector} {{ {' '.join(f'--{name}: {color};' for name, color in colors.items())} }}\n"
