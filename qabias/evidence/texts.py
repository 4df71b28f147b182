"""Renders the templates of this folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from qabias.evidence.content import TO_COMPLETE, Evidence, direction
from qabias.scores.facts import ALL

_UNSAFE = re.compile(r"([\\`*_\[\]<>|])")


def render(evidence: Evidence, template: str, form: str, **more: Any) -> dict[str, bytes]:
    """The text of a template, by the template's name without `.j2`."""
    is_page = template.endswith(".html.j2")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=is_page,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"md": markdown, "code": _code}
    text = environment.get_template(template).render(
        evidence=evidence,
        form=form,
        todo=TO_COMPLETE,
        all=ALL,
        direction=direction,
        run=evidence.run,
        benchmark=evidence.benchmark,
        **more,
    )
    return {template.removesuffix(".j2"): text.encode("utf-8", errors="backslashreplace")}


def markdown(text: object) -> str:
    """A text that Markdown shows as it is, on one line."""
    spans = re.split("(`[^`]*`)", re.sub(r"\s*\n\s*", " ", str(text)))
    return "".join(span if place % 2 else _UNSAFE.sub(r"\\\1", span) for place, span in enumerate(spans))


def _code(text: str) -> Markup:
    """HTML of a text, with its commands as code."""
    return Markup(re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(text))))
