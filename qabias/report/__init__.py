"""The report of a run, or of several: one HTML file that needs no network and says how far its numbers carry.

`run.json`, `scores.json` and `analysis.json` of a run are read and checked (`checks`); `heads` says what comes first,
`prompts` what the model read; `page` makes the HTML, with the figures of `plots`.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qabias.errors import QabiasError
from qabias.support.files import write_atomically
from qabias.report.reading import read_run, read_scores, read_tables
from qabias.report.headline import BENCHMARKS, make_head, revision
from qabias.report.page import Chapter, render_chapters
from qabias.report.prompts import with_prompts

_TITLES = {
    "bbq": "Bias Benchmark for Question Answering (BBQ)",
    "unqover": "UnQover: stereotyping biases via underspecified questions",
    "bbnli": "BBNLI: Bias Benchmark for Natural Language Inference",
    "bbq_nli": "BBQ as inference: premise and hypothesis",
}


def write_report(run_dir: str | Path, output: Path | None = None) -> Path:
    """Write the report of a run and return its path.

    Args:
        run_dir: A folder with `run.json`, `scores.json` and `analysis.json`. The same three files always give the same
            report.
        output: File to write; by default `report.html` in the folder.

    Raises:
        QabiasError: One of them is missing, damaged or of another run, or the page cannot be written.
    """
    chapter = _chapter(Path(run_dir))
    return _write(render_chapters(chapter.title, [chapter]), output or Path(run_dir) / "report.html")


def write_combined_report(run_dirs: Sequence[str | Path], output: Path) -> Path:
    """Write one report of several runs, with a list of contents, and return its path.

    Args:
        run_dirs: Folders of runs, in the order of the report.
        output: File to write.

    Raises:
        QabiasError: As `write_report`.
    """
    chapters = [_chapter(Path(run_dir)) for run_dir in run_dirs]
    return _write(render_chapters(f"Report of {len(chapters)} runs", chapters), output)


def _chapter(folder: Path) -> Chapter:
    run = read_run(folder / "run.json")
    benchmark, arguments = run["benchmark"], run["arguments"]
    if benchmark not in BENCHMARKS:
        raise QabiasError(
            f"report: {folder / 'run.json'}: there is no report for the benchmark {benchmark!r}; "
            f"there is one for {', '.join(BENCHMARKS)}"
        )
    scores_file, tables_file = folder / "scores.json", folder / "analysis.json"
    facts, tiles = make_head(run, read_scores(scores_file, run), scores_file)
    versions = {name: _plain(value) for name, value in run["versions"].items()}
    pinned = {"Revision": revision(run)} if revision(run) else {}
    made = {
        **pinned,
        "Measured": f"{_readable_time(run['created'])}, with qabias {run['qabias_version']}",
        "Libraries": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
    return Chapter(
        title=str(arguments.get("model") or arguments.get("scorer") or "unnamed model"),
        head={**made, **facts},
        intro=benchmark,
        analysis=with_prompts(read_tables(tables_file), run, tables_file),
        kicker=_TITLES[benchmark],
        signature=run["signature"],
        tiles=tiles,
        appendix={
            "Arguments": {name: _plain(value) for name, value in arguments.items()},
            "Versions": {"qabias": run["qabias_version"], **versions},
        },
        bundled=arguments.get("source") == "bundled",
    )


def _write(html: str, report: Path) -> Path:
    # JSON can spell half of a surrogate pair, which UTF-8 cannot hold; it must not cost the report.
    content = html.encode("utf-8", errors="replace")
    try:
        write_atomically(report, lambda temporary: temporary.write_bytes(content))
    except OSError as error:
        raise QabiasError(f"report: cannot write {report}: {error}") from error
    return report


def _readable_time(text: str) -> str:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
    # Without a time zone there is nothing to convert from.
    if moment.tzinfo is None:
        return moment.strftime("%Y-%m-%d %H:%M")
    return moment.astimezone(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
