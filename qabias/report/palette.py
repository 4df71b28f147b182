"""The colours of pages and cards, as CSS variables; those of the series are `qabias.tables.figures.SERIES`."""

_LIGHT = """\
  --paper: #ffffff; --panel: #f4f6f8; --ink: #1c2024; --muted: #5d666f; --grid: #d5dade; --link: #005b8f;
  --series-0: #0072b2; --series-1: #c45100; --series-2: #007a5e; --series-3: #a3528a;
  --series-4: #7a6a00; --series-5: #46525e;
"""
_DARK = """\
  --paper: #15191d; --panel: #1e2429; --ink: #e6e9ec; --muted: #a3adb6; --grid: #3b444c; --link: #7cc4f0;
  --series-0: #56b4e9; --series-1: #f0a132; --series-2: #3fc79b; --series-3: #e39cc8;
  --series-4: #bcae2e; --series-5: #9ba6b0;
"""
# How notebooks say that they are dark: JupyterLab, VS Code, Colab, and the pages of Material for MkDocs.
_DARK_NOTEBOOKS = (
    'body[data-jp-theme-light="false"]',
    "body.vscode-dark",
    'html[theme="dark"]',
    '[data-md-color-scheme="slate"]',
)


def page_palette() -> str:
    """The colours of a page of its own: dark where the reader's system is."""
    return f":root {{\n{_LIGHT}}}\n@media screen and (prefers-color-scheme: dark) {{\n:root {{\n{_DARK}}}\n}}\n"


def card_palette(selector: str) -> str:
    """The colours of an element in somebody's page: dark where that notebook is."""
    dark = ",\n".join(f"{notebook} {selector}" for notebook in _DARK_NOTEBOOKS)
    return f"{selector} {{\n{_LIGHT}}}\n{dark} {{\n{_DARK}}}\n"
