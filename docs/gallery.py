"""A hook of MkDocs: pages and figures of the gallery, made anew with every build; version and edit link of the site.

    python -m docs.gallery      write the figures of the gallery into docs/images

The models are made up, so they need no weights and seconds.
"""

from __future__ import annotations

import logging
import os
import random
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from qabias.support.version import __version__

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

    from qabias.scorers.base import Request

IMAGES = Path(__file__).parent / "images"
# Share of stereotyped answers to questions whose key begins so. Else the models are right, but for a few errors.
BIASES = {"made-up": {"Age": 0.6, "man_is": 0.4}, "made-up-2": {"Age": 0.1}}
ERRORS = 0.04
RUNS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bbq": ("bbq", "made-up", {"limit": 2744}),
    "bbq-2": ("bbq", "made-up-2", {"limit": 2744}),
    "bbnli": ("bbnli", "made-up", {"config": "gender", "limit": 400}),
    "unqover": ("unqover", "consistent", {"config": "religion", "limit": 200}),
}
# A figure of docs/images: its folder and table.
FIGURES = {
    "bbq": ("bbq", "bias_by_category"),
    "bbq-answers": ("bbq", "answers_ambig"),
    "bbq-stereotypes": ("bbq", "stereotypes_Age"),
    "bbnli": ("bbnli", "bias_by_subtopic"),
    "unqover": ("unqover", "classes_religion"),
    "comparison": ("comparison", "bias_ambig"),
}
PAGES = {
    **{name: f"{name}/report.html" for name in ("bbq", "unqover", "bbnli")},
    "comparison": "comparison/compare.html",
    "audit": "audit/audit.html",
}


def choose(scorer: Any, request: Request) -> int:
    """The answer of a made-up model."""
    roles, draw = request.roles, random.Random(f"{scorer.kind}/{request.key}")
    if scorer.kind not in BIASES:
        return roles[scorer.kind]
    if "gold" not in roles or draw.random() < ERRORS:
        return draw.randrange(len(request.options))
    bias = next((share for start, share in BIASES[scorer.kind].items() if request.key.startswith(start)), 0)
    return roles["biased" if roles["gold"] == roles["unknown"] and draw.random() < bias else "gold"]


def make() -> tuple[dict[str, str], dict[str, str]]:
    """Measure, compare and audit: the pages and the figures, each by name."""
    import qabias
    from qabias.scorers import baseline
    from qabias.tables.export import export

    start = Path.cwd()
    kinds = patch.object(baseline, "KINDS", (*BIASES, "consistent"))
    with tempfile.TemporaryDirectory() as folder, kinds, patch.object(baseline.BaselineScorer, "_choose", choose):
        os.chdir(folder)  # pages name folders as they were given
        try:
            results = {
                name: qabias.run(benchmark, model=f"baseline:{kind}", output=f"runs/{name}", progress=False, **sample)
                for name, (benchmark, kind, sample) in RUNS.items()
            }
            for result in results.values():
                result.report()
            qabias.audit("baseline:made-up", output="runs/audit", progress=False)
            qabias.compare([results["bbq"], results["bbq-2"]]).report("runs/comparison")
            pages = {name: Path("runs", path).read_text("utf-8") for name, path in PAGES.items()}
            figures = {
                name: export(Path("runs", source), kind="svg", name=table)[0].read_text("utf-8")
                for name, (source, table) in FIGURES.items()
            }
        finally:
            os.chdir(start)
    return pages, figures


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Show the version. In a workflow, link to the repository that builds the site."""
    config.site_name += f" {__version__}"
    if repository := os.environ.get("GITHUB_REPOSITORY"):
        config.repo_name = repository
        config.repo_url = f"{os.environ['GITHUB_SERVER_URL']}/{repository}"
        config.edit_uri = "edit/main/docs/"
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and warn of figures that are not those of today's code."""
    from mkdocs.structure.files import File

    pages, figures = make()
    for name, page in pages.items():
        files.append(File.generated(config, f"gallery/{name}.html", content=page))
    for name, figure in figures.items():
        if (IMAGES / f"{name}.svg").read_text("utf-8") != figure:
            logging.getLogger("mkdocs.hooks").warning("docs/images/%s.svg is old: python -m docs.gallery", name)
    return files


if __name__ == "__main__":
    for name, figure in make()[1].items():
        (IMAGES / f"{name}.svg").write_text(figure, "utf-8")
