"""Figures inside a page: the SVG of a table, made fit to stand in HTML beside others.

Colours become the page's CSS variables, so that the dark scheme applies; texts stay texts in the page's font; every id
carries the figure's name. The same table always gives the same text.
"""

from __future__ import annotations

import functools
import io
import math
import re
import warnings
from collections.abc import Mapping
from xml.etree import ElementTree

from markupsafe import Markup

from qabias.tables.model import Table

_SVG = "{http://www.w3.org/2000/svg}"
_XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
_MARKS = ("bar-", "cell", "dots-", "line-", "part-")
_FONT = "font-family: 'DejaVu Sans', sans-serif; "


def inline_svg(table: Table, name: str, numbers: str = "the table below has its numbers") -> Markup:
    """The figure of a table as an SVG element for a page."""
    from qabias.tables.figures import printable  # Matplotlib takes a while, and not all of a report needs it

    svg = ElementTree.fromstring(_as_svg(table))
    _drop_what_a_page_needs_not(svg)
    referenced = set(re.findall(r"#([\w-]+)", ElementTree.tostring(svg, encoding="unicode")))
    for element in svg.iter():
        attributes = {
            _page_name(key, value, referenced): _page_value(key, value, name) for key, value in element.items()
        }
        element.attrib = {key: value for key, value in attributes.items() if key and value}

    view_box = svg.attrib["viewBox"]
    width, height = (math.ceil(float(number)) for number in view_box.split()[2:])
    svg.attrib = {
        "viewBox": view_box,
        "width": str(width),
        "height": str(height),
        # Wide figures scroll; they do not shrink until nobody can read them.
        "style": f"min-width: {round(0.9 * width)}px; max-width: {round(1.5 * width)}px",
        "role": "img",
        "aria-labelledby": f"{name}-title",
    }
    title = ElementTree.Element("title", {"id": f"{name}-title"})
    title.text = f"{printable(table.title)}; {numbers}"
    svg.insert(0, title)
    return Markup(ElementTree.tostring(svg, encoding="unicode"))


def _as_svg(table: Table) -> bytes:
    from qabias.tables.figures import draw, style

    figure = draw(table)
    buffer = io.BytesIO()
    with style(), warnings.catch_warnings():
        # The reader's browser draws the texts, so a glyph that Matplotlib's font lacks does no harm.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _drop_what_a_page_needs_not(svg: ElementTree.Element) -> None:
    for parent in list(svg.iter()):
        parent.tag = parent.tag.removeprefix(_SVG)
        for child in list(parent):
            # A <style> element would rule the whole page.
            if child.tag in {f"{_SVG}metadata", f"{_SVG}style"}:
                parent.remove(child)
    for element in svg.iter():
        # Indentation between elements; texts have their characters in <text> alone.
        element.tail = None
        if element.tag != "text":
            element.text = None


def _page_name(key: str, value: str, referenced: set[str]) -> str:
    """The name of an attribute in the page, empty if the page does not need it."""
    if key == _XLINK_HREF:
        return "href"
    if key != "id" or value in referenced:
        return key
    # Marks of `figures`: one may stand on many elements, which an id must not.
    return "data-part" if value.startswith(_MARKS) else ""


def _page_value(key: str, value: str, name: str) -> str:
    """An attribute's value with the page's colours and with ids that are unique in the page."""
    if key == "id":
        return value if value.startswith(_MARKS) else f"{name}-{value}"
    if key == _XLINK_HREF:
        return value.replace("#", f"#{name}-", 1)
    if key in ("clip-path", "style", "fill", "stroke"):
        variables = _variables()
        value = value.replace("url(#", f"url(#{name}-").replace(_FONT, "")
        return re.sub("#[0-9a-f]{6}", lambda match: variables.get(match[0], match[0]), value)
    if key == "transform":
        value = re.sub(r" ?rotate\(-0 [^)]*\)", "", value)
    if key in ("d", "x", "y", "transform"):
        value = re.sub(r"\d+\.\d{3,}", lambda match: f"{float(match[0]):.2f}", value)
        return re.sub(" +", " ", value).strip()
    return value


@functools.cache
def _variables() -> Mapping[str, str]:
    """The page's variables by the colours of the light scheme."""
    from qabias.tables import figures

    return {
        figures.INK: "var(--ink)",
        figures.MUTED: "var(--muted)",
        figures.GRID: "var(--grid)",
        figures.PAPER: "var(--paper)",
        **{colour: f"var(--series-{number})" for number, colour in enumerate(figures.SERIES)},
    }
