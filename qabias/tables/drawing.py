"""Figures as SVG shapes, for a page (which sets colors and font) or a file."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from qabias.errors import QabiasError
from qabias.support.suggest import install

# After Okabe and Ito: distinct for all kinds of color vision. Pages have variables of these names.
LIGHT = {
    **{"paper": "#ffffff", "panel": "#f4f6f8", "ink": "#1c2024", "muted": "#5d666f", "grid": "#d5dade"},
    **{"link": "#005b8f", "series-0": "#0072b2", "series-1": "#c45100", "series-2": "#007a5e"},
    **{"series-3": "#a3528a", "series-4": "#7a6a00", "series-5": "#46525e"},
}
SERIES = tuple(name for name in LIGHT if name.startswith("series"))
LETTER = 6.3  # width of an average letter of a label
_SIZE = 10.5  # of texts
_LEGEND_ROW = 17.3
_ZOOM = 4  # pixels of a PNG to a point: 288 dpi
_HATCH = (
    '<pattern id="{}" width="7" height="7" patternUnits="userSpaceOnUse"><path d="M0 7L7 0" stroke="{}"/></pattern>'
)
_SHAPES = {
    "circle": "M-1 0A1 1 0 1 1 1 0A1 1 0 1 1 -1 0Z",
    "square": "M-1 -1H1V1H-1Z",
    "triangle": "M0 -1L1 1H-1Z",
    "diamond": "M0 -1.3L1.3 0L0 1.3L-1.3 0Z",
    "down": "M-1 -1H1L0 1Z",
    "plus": "M-1 -.4H-.4V-1H.4V-.4H1V.4H.4V1H-.4V.4H-1Z",
    "cross": "M-1 -1L1 1M1 -1L-1 1",
}
MARKERS = tuple(_SHAPES)[:-1]
Key = Callable[[float, float], None]  # draws an entry's symbol in a legend, at a position


class Drawing:
    """A figure, with sizes in points: shown as a notebook cell's value, written by `save`."""

    def __init__(self, title: str, width: float, height: float) -> None:
        self.title, self.width, self.height = title, width, height
        self._shapes: list[tuple[str, dict[str, str | float], str]] = []

    def add(self, tag: str, text: str = "", /, **attributes: str | float) -> None:
        """Add an element; colors are names of `LIGHT`, "none" or "hatch", and `part` names its meaning."""
        self._shapes.append((tag, attributes, text))

    def line(self, points: Sequence[tuple[float, float]], color: str, width: float = 1, **more: str | float) -> None:
        """Add a line through points."""
        path = "L".join(f"{_rounded(x)} {_rounded(y)}" for x, y in points)
        self.add("path", d=f"M{path}", fill="none", stroke=color, stroke_width=width, **more)

    def rect(self, x: float, y: float, width: float, height: float, fill: str, **more: str | float) -> None:
        """Add a rectangle by its upper left corner."""
        self.add("rect", x=x, y=y, width=width, height=height, fill=fill, **more)

    def mark(
        self, x: float, y: float, shape: str, color: str, part: str = "", size: float = 7, **more: str | float
    ) -> None:
        """Add a marker around a point, with a paper-colored edge."""
        look: dict[str, str | float] = {"fill": color, "stroke": "paper", "stroke_width": 2 / size}
        if shape == "cross":
            look = {"fill": "none", "stroke": color, "stroke_width": 3 / size}
        place = f"translate({_rounded(x)} {_rounded(y)}) scale({_rounded(size / 2)})"
        self.add("path", transform=place, d=_SHAPES[shape], **{**look, "part": part, **more})

    def text(
        self,
        x: float,
        y: float,
        text: str,
        anchor: str = "start",
        *,
        size: float = _SIZE,
        color: str = "ink",
        upwards: bool = False,
        **more: str | float,
    ) -> None:
        """Add lines of text, vertically centered at `y`; upward text begins at `y`, centered at `x`."""
        lines = text.split("\n")
        for number, line in enumerate(lines):
            shift = 1.1 * size * (number - (len(lines) - 1) / 2) + 0.35 * size
            place: dict[str, str | float] = {"x": x, "y": y + shift}
            if upwards:
                place = {"transform": f"translate({_rounded(x + shift)} {_rounded(y)}) rotate(-90)"}
            if line:
                self.add("text", line, **place, fill=color, font_size=size, text_anchor=anchor, **more)

    def legend(self, entries: Sequence[tuple[str, Key]], columns: int, top: float = 10) -> None:
        """Add entries row by row, the first at that height."""
        places = [3.0]
        for column in range(columns):
            longest = max((len(title) for title, _ in entries[column::columns]), default=0)
            places.append(places[-1] + 34 + 0.9 * LETTER * longest)
        for number, (title, key) in enumerate(entries):
            x, y = places[number % columns], top + _LEGEND_ROW * (number // columns)
            key(x + 8, y)
            self.text(x + 20, y, title, size=10)

    def inline(self, name: str, numbers: str) -> str:
        """The figure for a page, which sets its colors; every id begins with the name."""
        # Wide figures scroll; shrinking would make them unreadable.
        style = f"min-width: {round(0.9 * self.width)}px; max-width: {round(1.5 * self.width)}px"
        return self._element(name, f"{self.title}; {numbers}", f'style="{style}"', lambda color: f"var(--{color})", "")

    def svg(self) -> str:
        """The figure as an SVG file on white."""
        head = 'xmlns="http://www.w3.org/2000/svg" font-family="\'DejaVu Sans\', Arial, sans-serif"'
        ground = f'<rect width="100%" height="100%" fill="{LIGHT["paper"]}"/>'
        return self._element("figure", self.title, head, LIGHT.__getitem__, ground)

    def _element(self, name: str, title: str, head: str, paint: Callable[[str], str], ground: str) -> str:
        width, height = math.ceil(self.width), math.ceil(self.height)
        shapes = []
        for tag, attributes, text in self._shapes:
            written = "".join(
                f' {_NAMES.get(key, key.replace("_", "-"))}="{_value(key, value, name, paint)}"'
                for key, value in attributes.items()
                if value != ""
            )
            shapes.append(f"<{tag}{written}>{_written(text)}</{tag}>" if text else f"<{tag}{written}/>")
        hatch = ""
        if any(attributes.get("fill") == "hatch" for _, attributes, _ in self._shapes):
            hatch = f"<defs>{_HATCH.format(f'{name}-hatch', paint('muted'))}</defs>"
        return (
            f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
            f'aria-labelledby="{name}-title" {head}><title id="{name}-title">{_written(title)}</title>'
            f"{hatch}{ground}{''.join(shapes)}</svg>"
        )

    def __repr__(self) -> str:
        return f"Drawing({self.title!r})"

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: str | Path) -> None:
        """Write the figure as .svg, .pdf or .png, by the file's ending.

        Raises:
            QabiasError: If the ending is another, PNG lacks the extra `figures`, or PDF the extra `pdf`.
        """
        path = Path(path)
        path.write_bytes(self.file(path.suffix.removeprefix(".").lower()))

    def file(self, kind: str) -> bytes:
        """The file's bytes in a format; equal on every call."""
        if kind == "svg":
            return f'<?xml version="1.0" encoding="UTF-8"?>\n{self.svg()}\n'.encode()
        if kind not in ("pdf", "png"):
            raise QabiasError(f"unknown kind of figure {kind!r}.", "Use svg, pdf or png.")
        try:
            if kind == "pdf":
                import vl_convert

                return bytes(vl_convert.svg_to_pdf(self.svg()))
            import resvg_py

            return resvg_py.svg_to_bytes(svg_string=self.svg(), zoom=_ZOOM)
        except ImportError as error:
            extra = "pdf" if kind == "pdf" else "figures"
            raise QabiasError(f"{kind} files need {error.name}.", f"{install(extra)} Or write svg.") from error


_NAMES = {"d": "d", "part": "data-part"}


def _value(key: str, value: str | float, name: str, paint: Callable[[str], str]) -> str:
    if not isinstance(value, str):
        return _rounded(value)
    if key in ("fill", "stroke") and value != "none":
        return f"url(#{name}-hatch)" if value == "hatch" else paint(value)
    return _written(value)


def _rounded(number: float) -> str:
    return f"{round(number, 2) + 0:.8g}"  # never -0


def _written(text: str) -> str:
    """The escaped text without characters that XML forbids or that reorder the line."""
    return html.escape("".join(c if c.isprintable() or c == "\u00a0" else "\ufffd" for c in text))


def ticks(low: float, high: float, whole: bool = False) -> list[float]:
    """About five round numbers that enclose a range."""
    step = max((high - low) / 5, 1e-12)
    power = 10 ** math.floor(math.log10(step))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= 0.999 * step)
    if whole:
        step = math.ceil(step)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * number, 12) for number in range(first, last + 1)]
