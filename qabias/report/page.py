"""One self-contained HTML page of analyses, which works offline, and notebook cards without scripts."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_plus

import jinja2
from markupsafe import Markup, escape

from qabias.benchmarks import Benchmark
from qabias.benchmarks.headline import Headline, Tile
from qabias.comparison import Comparison
from qabias.comparison.tables import RUNS_TABLE
from qabias.report.content import comparison_headlines, make_head
from qabias.report.explorer import Explored, One, choices, encode
from qabias.runs.opened import Run
from qabias.scores.facts import ALL
from qabias.scores.formatting import UNDEFINED, pluralize, show, show_interval
from qabias.scores.score import as_score
from qabias.support.files import MOST_BYTES, require_regular_file
from qabias.support.outputs import IsOwnFile
from qabias.tables.drawing import LIGHT
from qabias.tables.figures import deepest, draw, hidden_rows
from qabias.tables.model import Analysis, Table, Value, flat

_TEMPLATES = Path(__file__).parent / "templates"

FOLDED = 30
SHORT_NOTE = 20  # words of a note that are shown; the rest is folded
_SENTENCES = re.compile(r"(?<=[.!?])(?<!\b[A-Za-z]\.)(?<!\bal\.) ")

_CODE = re.compile(r"`([^`\n]+)`|(?<=: )(qabias [^\n]+)")  # in backticks, or a command up to the end of a line
_TIED = r"(?<=\d) (?=%)|(?<=\bp) (?=[=≤<])|(?<=[=≤<]) (?=\.)"  # blanks in "5 %" and "p = .002"
_FEW = 6  # values of a key by which scores are named, such as contexts
_NUMBERS = "the table below has its numbers"
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

MOST_ROWS = 10  # runs in the table of a card
_CARDS = itertools.count(1)  # numbers of cards, for unique ids in a notebook

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
    benchmarks = (comparison.benchmark, *(run.benchmark for run in comparison.runs))
    citations = dict.fromkeys(text for benchmark in benchmarks for text in benchmark.facts.citations)
    return Intro(_TEMPLATES / f"intro_{comparison.view.intro}.html.j2", comparison.clusters, tuple(citations))


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
    examples: Explored | None = None
    one: One | None = None
    card: str = ""
    by_run: Sequence[str] = ()
    appendix: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    bundled: bool = False
    run: str = ""  # its folder among others
    brief: str = ""  # its result in a few words, where it is folded

    @property
    def made_of(self) -> tuple[str, ...]:
        """The signatures of its runs."""
        return (self.signature,) if self.signature else tuple(self.appendix.get(SIGNATURES, {}).values())


class Links(NamedTuple):
    """The id of a list of examples, and the values by which it can be filtered."""

    to: str
    choices: Mapping[str, set[str]]

    def filters(self, table: Table) -> dict[str, object]:
        """Keys of examples by the columns that name their values, and by the last words of score names."""
        keys = {}
        for place, column in enumerate(table.columns):
            texts = {row[place] for row in table.rows} - {ALL, None} if column.kind == "text" else set()
            fits = [key for key, values in self.choices.items() if texts and texts <= values and key not in keys]
            if fits:
                keys[column.name if column.name in fits else fits[0]] = place
        named = {value: key for key, values in self.choices.items() if len(values) <= _FEW for value in values}
        of_scores = {
            column.name: [named[end], end]
            for column in table.columns
            for end in [column.name.rpartition("_")[2]]
            if column.kind != "text" and end in named and named[end] not in keys
        }
        place_of = [column.name for column in table.columns].index
        figure = [place_of(name) for name in (table.figure.labels, table.figure.across) if name] if table.figure else []
        rows = [[place, key] for key, place in keys.items()]
        return {"to": self.to, "rows": rows, "scores": of_scores, "figure": figure}


def is_page_of(signatures: Sequence[str]) -> IsOwnFile:
    """Own pages: made of runs with these signatures."""
    mark = f'name="generator" content="{_mark(signatures)}"'

    def is_own(path: Path) -> bool:
        try:
            return mark in require_regular_file(path, MOST_BYTES).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return False

    return is_own


def _mark(signatures: Sequence[str]) -> str:
    """The mark in a page's head for its runs, in any order."""
    digest = hashlib.sha256("\n".join(sorted(signatures)).encode(errors="replace")).hexdigest()
    return f"qabias {digest[:16]}"


class Lead(NamedTuple):
    """What a page of runs answers first: questions with answer, score, state and runs, and what holds for all."""

    title: str
    answers: Sequence[tuple[Sequence[str], str, str, str, Sequence[str]]]
    notes: Mapping[str, str]
    made: str = ""


def render_chapters(
    title: str, chapters: Sequence[Chapter], overview: Sequence[Table] = (), lead: Lead | None = None
) -> str:
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
            lead=lead,
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
    explored = chapter.examples if chapter.examples and chapter.examples.columns else None
    links = Links(f"{name}-examples", choices(explored.columns)) if explored else None
    drawn = [table for table in chapter.analysis.tables if not _is_undefined(table)]
    numbered = partial(_numbered, printed=printed, of_what=chapter.name, links=links)
    sections = [
        {
            "id": f"{name}-s{number}",
            "title": title or "Tables",
            "tables": numbered(tables, f"{name}-s{number}"),
            "open": number == 1
            and any(
                column.kind == "p" or any(as_score(row[place]).shown.low is not None for row in table.rows)
                for table in tables
                for place, column in enumerate(table.columns)
            ),
        }
        for number, (title, tables) in enumerate(_by_section(drawn), start=1)
    ]
    return {
        "id": name,
        "content": chapter,
        "figure": lay_out(chapter.figure, f"{name}-figure", printed, links=links) if chapter.figure else None,
        "headlines": numbered(chapter.headlines, f"{name}-headline"),
        "sections": sections,
        "examples": explored,
        "above": numbered(explored.tables, f"{name}-above") if explored else [],
        "data": Markup(encode(explored, links.choices)) if explored and links else "",
    }


def _is_undefined(table: Table) -> bool:
    """Whether a drawn table has no value in its figure."""
    drawn = table.figure.values if table.figure else ()
    places = [place for place, column in enumerate(table.columns) if column.name in drawn]
    return {as_score(row[place]).value for row in table.rows for place in places} == {None}


def _numbered(
    tables: Sequence[Table], name: str, printed: set[str], of_what: str, links: Links | None
) -> list[dict[str, object]]:
    return [lay_out(table, f"{name}-{place}", printed, of_what, links) for place, table in enumerate(tables, start=1)]


def _by_section(tables: Sequence[Table]) -> list[tuple[str, list[Table]]]:
    """Tables by section, in order of first use."""
    order = list(dict.fromkeys(table.section for table in tables))
    by_order = sorted(tables, key=lambda table: order.index(table.section))
    return [(section, list(group)) for section, group in groupby(by_order, lambda table: table.section)]


def lay_out(
    table: Table, name: str, printed: set[str], of_what: str = "", links: Links | None = None
) -> dict[str, object]:
    """A table as templates take it. `name` is unique in the page; `printed` collects its sentences."""
    table = flat(table)
    note, more = _split(table.note, printed)
    titled = replace(table, title=f"{table.title}: {of_what}") if of_what and of_what not in table.title else table
    figure = draw(titled) if table.figure and table.rows else None
    return {
        "id": name,
        "content": table,
        "note": note,
        "more": more,
        "figure": Markup(figure.inline(name, _NUMBERS)) if figure else None,
        "width": round(figure.width) if figure else 0,
        "hidden": hidden_rows(table),
        "deepest": deepest(table) if table.figure and table.figure.kind == "heatmap" else "",
        "folded": len(table.rows) > FOLDED,
        "columns": [
            {"content": column, "ends": any(as_score(row[place]).low is not None for row in table.rows)}
            for place, column in enumerate(table.columns)
        ],
        "body": Markup("\n".join(_row(table, row) for row in table.rows)),
        "links": json.dumps(links.filters(table)) if links else "",
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
        number, low, high, *_ = as_score(value)
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
    made.filters["coded"] = lambda text: Markup(_CODE.sub(r"<code>\1\2</code>", str(escape(text))))
    made.filters.update(address=quote_plus, breakable=_breakable, unbroken=partial(re.sub, _TIED, "\u00a0"))
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


def run_card(run: Run) -> str:
    """A run's headline scores with intervals, headline, and first interval figure."""
    facts, tiles, result, _ = make_head(run)
    return _rendered(
        "run_card.html.j2",
        run.signature,
        run.analysis.tables,
        title=run.arguments.model or "unnamed model",
        kicker=run.benchmark.title,
        facts=facts,
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
    name = f"qabias-{zlib.crc32(identity.encode(errors='replace')):08x}-{next(_CARDS)}"
    drawn = _first_figure(tables)
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


def _first_figure(tables: Sequence[Table]) -> Table | None:
    """The first table drawn with intervals, else the first drawn."""
    drawn = [table for table in tables if table.figure is not None and table.rows]
    return min(drawn, key=lambda table: table.figure is None or table.figure.kind != "intervals", default=None)
