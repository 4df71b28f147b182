"""The tables of an analysis as files: CSV with every digit, Markdown, LaTeX, and figures as SVG, PDF and PNG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from qabias.errors import QabiasError
from qabias.scores.score import Score
from qabias.support.files import write_atomically
from qabias.support.outputs import check_file, check_folder, same_bytes
from qabias.support.printable import printable
from qabias.support.suggest import missing, unknown
from qabias.tables.figures import draw
from qabias.tables.model import Analysis, Table, cells, find, flat, read_analysis

TEXTS = ("csv", "md", "latex")
DRAWINGS = ("svg", "pdf", "png")
FORMATS = (*TEXTS, *DRAWINGS)
ALL, ALL_KINDS = "all", (*TEXTS, "svg")  # PDF and PNG need other libraries
OWN_FOLDER = "export"  # the exports' own folder inside a run, a comparison or an average
_SUFFIX = {"latex": "tex"}
_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",  # a line break takes a bracket that follows it for its argument
    "]": "{]}",
    '"': r"\textquotedbl{}",
    "\u00a0": "~",
    "−": "$-$",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "\n": " ",
    "\t": " ",
}

# A formula for spreadsheets: its first character may follow spaces and quotes, or be a wide one.
_FORMULA = re.compile("\t|[\\s\"']*[=+\\-@＝＋－＠]")
_NUMBER = re.compile(r"\s*[+-]?[\d.,]+(?:[eE][+-]?\d+)?\s*%?\s*")
# In unquoted cells some spreadsheets end the cell at these, and some drop outer spaces.
_QUOTED = re.compile('[,;"\t\n]|^\\s|\\s$')


def export(folder: Path, output: Path | None = None, kind: str = ALL, name: str | None = None) -> list[Path]:
    """Write the tables and figures of a run or a comparison as files."""
    if kind not in (*FORMATS, ALL):
        raise unknown("format", kind, (*FORMATS, ALL))
    analysis = read_folder(folder)
    tables = analysis.tables if name is None else (find(analysis.tables, name),)
    kinds = ALL_KINDS if kind == ALL else (kind,)
    if name is not None and kind in DRAWINGS and tables[0].figure is None:
        raise QabiasError(f"table {name} has no figure.", f"Export it as {', '.join(TEXTS)}.")
    target = output or folder / OWN_FOLDER
    check_folder(target)
    files = {path: content for table in tables for path, content in files_of(table, target, kinds)}
    for path, content in files.items():
        if output is not None:
            check_file(path, same_bytes(content))
    for path, content in files.items():
        write_atomically(path, partial(Path.write_bytes, data=content))
    return list(files)


def read_folder(folder: Path) -> Analysis:
    """The analysis of a run folder or a comparison."""
    if folder.is_file():
        raise QabiasError(f"{folder}: is a file.", "Give its folder.")
    if not folder.exists():
        raise missing(folder)
    return read_analysis(folder / "analysis.json")


def files_of(
    table: Table, output: Path, kinds: Sequence[str], only: Path | None = None
) -> Iterator[tuple[Path, bytes]]:
    """The files of a table, or only one of them, by path."""
    for kind in kinds:
        path = output / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', table.name)}.{_SUFFIX.get(kind, kind)}"
        if only not in (None, path):
            continue
        if kind in TEXTS:
            yield path, _TEXT[kind](flat(table)).encode()
        elif table.figure is not None and table.rows:
            yield path, draw(flat(table)).file(kind)


def to_csv(table: Table) -> str:
    """A table as CSV: every digit, undefined values empty, interval ends in columns NAME_low and NAME_high."""
    places = [any(isinstance(row[place], Score) for row in table.rows) for place in range(len(table.columns))]
    names = [
        name
        for column, ends in zip(table.columns, places, strict=True)
        for name in ((column.name, f"{column.name}_low", f"{column.name}_high") if ends else (column.name,))
    ]
    rows = (
        [
            cell
            for value, ends in zip(row, places, strict=True)
            for cell in (value[:3] if isinstance(value, Score) else (value, None, None) if ends else (value,))
        ]
        for row in table.rows
    )
    lines: list[Sequence[object]] = [names, *rows]
    return "".join(f"{','.join(map(_csv_cell, line))}\n" for line in lines)


def _csv_cell(value: object) -> str:
    if not isinstance(value, str):
        return "" if value is None else str(value)
    text = printable(value)
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        text = f"'{text}"
    return '"{}"'.format(text.replace('"', '""')) if _QUOTED.search(text) else text


def to_markdown(table: Table) -> str:
    """A table as Markdown with title, source and note, rounded as in the report."""
    head = [f"**{_markdown(table.title)}**{f' ({_markdown(table.source)})' if table.source else ''}", ""]
    lines = [
        _markdown_row([column.title for column in table.columns]),
        _markdown_row([":--" if column.kind == "text" else "--:" for column in table.columns]),
        *(_markdown_row(cells(table, row)) for row in table.rows),
    ]
    return "\n".join([*head, *lines, "", _markdown(table.note), ""])


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", re.sub(r"[\n\t]", " ", printable(text)))


def _markdown_row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(text if re.fullmatch(':?--:?', text) else _markdown(text) for text in texts)} |"


MOST_COLUMNS, MOST_ROWS = 8, 30  # maximum columns of a LaTeX table, and rows on a page before it becomes a `longtable`
LINE, CHARACTER, BETWEEN = 345.0, 4.7, 6.0
"""Points: a line of the class `article`, a `footnotesize` character, and the gap around a column."""


def to_latex(table: Table) -> str:
    """A LaTeX table for `article` with booktabs, rounded, as a `longtable` if it is long.

    Its note and the names of omitted columns are comments.
    """
    rows = [[column.title for column in table.columns], *(cells(table, row) for row in table.rows)]
    widths = column_widths(rows)
    columns = "".join(
        rf">{{\{'raggedright' if column.kind == 'text' else 'raggedleft'}\arraybackslash}}p{{{width:.1f}pt}}"
        for column, width in zip(table.columns, widths, strict=False)
    )
    head, *body = (rf"{' & '.join(map(latex, row[: len(widths)]))} \\" for row in rows)
    source = f" ({table.source})" if table.source else ""
    label = rf"\label{{tab:{re.sub('[^A-Za-z0-9:-]+', '-', table.name)}}}"
    caption = rf"\caption{{{latex(f'{table.title}{source}.')}}}{label}"
    others = "; ".join(rows[0][len(widths) :])
    notes = [
        r"needs \usepackage{array,booktabs,longtable} and \usepackage[T1]{fontenc}",
        *filter(None, [table.note, others and f"Columns that do not fit: {others}"]),
    ]
    small = rf"\footnotesize\setlength{{\tabcolsep}}{{{BETWEEN / 2}pt}}"
    rules = (r"\toprule", head, r"\midrule")
    if len(body) > MOST_ROWS:
        begin: Sequence[str] = (
            f"{{{small}",
            rf"\begin{{longtable}}{{{columns}}}",
            rf"{caption}\\",
            *rules,
            r"\endhead",
        )
        end: Sequence[str] = (r"\end{longtable}", "}")
    else:
        # A float starts in the size of the page, so its size is set inside.
        begin = (r"\begin{table}", rf"\centering{small}", rf"\begin{{tabular}}{{{columns}}}", *rules)
        end = (r"\end{tabular}", caption, r"\end{table}")
    comments = (f"% {printable(text)}".replace("\n", " ") for text in notes)
    return "\n".join([*comments, *begin, *body, r"\bottomrule", *end, ""])


def column_widths(rows: Sequence[Sequence[str]]) -> list[float]:
    """Column widths in points that fit a line: room for the longest word, and a share of the rest."""
    columns = list(zip(*rows, strict=True))[:MOST_COLUMNS]
    words = [CHARACTER * max(len(word) for text in column for word in text.split() or [""]) for column in columns]
    while len(words) > 1 and sum(words) + BETWEEN * len(words) > LINE:
        words.pop()
    texts = [CHARACTER * max(map(len, column)) for column in columns[: len(words)]]
    room = LINE - sum(words) - BETWEEN * len(words)
    share = min(1.0, max(room, 0.0) / max(sum(texts) - sum(words), 1.0))
    return [word + share * (text - word) for word, text in zip(words, texts, strict=True)]


def latex(text: str) -> str:
    """Text with LaTeX's special characters and control characters escaped."""
    return "".join(_LATEX.get(character, character) for character in printable(text))


_TEXT = {"csv": to_csv, "md": to_markdown, "latex": to_latex}
