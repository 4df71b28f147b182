"""The report of one run, several, or a comparison: one HTML file that works offline."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from qabias.benchmarks.base import short_title
from qabias.benchmarks.headline import headline, headline_tiles
from qabias.building.origin import BUNDLED
from qabias.comparison import Comparison
from qabias.comparison.comparable import run_names
from qabias.comparison.texts import names_by_language
from qabias.errors import QabiasError
from qabias.pooling import Pool, pool_content
from qabias.report.content import (
    bias_figure,
    card_text,
    comparison_figure,
    comparison_headlines,
    comparison_tiles,
    headline_table,
    make_head,
)
from qabias.report.explorer import differing_examples, run_examples, telling
from qabias.report.page import SIGNATURES, Chapter, Lead, comparison_intro, is_page_of, render_chapters, run_intro
from qabias.runs.folder import ANALYSIS_FILE, COMPARISON_FILE, POOL_FILE, REPORT_FILE, SCORES_FILE
from qabias.runs.opened import Run
from qabias.runs.scored import scores_content
from qabias.runs.signature import signature_fields
from qabias.scores.formatting import show
from qabias.support.files import strict, write_atomically, write_json
from qabias.support.outputs import IsOwnFile, check_file, check_folder, json_with, none_is_own
from qabias.support.progress import collector_paused
from qabias.support.stored import write_stored
from qabias.tables.model import Table, as_read, write_analysis

POOL_PAGE = "pool.html"
_MADE = ("Revision", "Measured")  # of the model and the runs of an audit


def write_report(run: Run, output: Path | None = None) -> Path:
    """Write the report of a run and return its path."""
    if output is not None:
        check_file(output, is_page_of([run.signature]))
    with collector_paused():
        chapter = _chapter(run)
        return _write(render_chapters(chapter.name, [chapter]), output or run.folder / REPORT_FILE)


def write_report_of(folder: Path, output: Path | None = None) -> Path:
    """Write the report of a run folder and return its path."""
    return write_report(Run.scored(folder), output)


def write_combined_report(opened: Sequence[Path | Run], output: Path, lead: Lead | None = None) -> Path:
    """Write one report of several runs with a table of contents, or with answers first, and return its path."""
    runs = [run if isinstance(run, Run) else Run.scored(run) for run in opened]
    check_file(output, is_page_of([run.signature for run in runs]))
    chapters = [_chapter(run) for run in runs]
    if lead is None:
        named = [replace(one, name=_plain_name(run, one.name)) for run, one in zip(runs, chapters, strict=True)]
        return _write(render_chapters(f"Report of {len(chapters)} runs", named, _overview(runs, chapters)), output)
    named = [_answering(run, one, lead) for run, one in zip(runs, chapters, strict=True)]
    names = Counter(one.name for one in named)
    for place, one in enumerate(named):
        scores = " and ".join(title[:1].lower() + title[1:] for title, *_ in one.tiles)
        named[place] = replace(one, name=f"{one.name}: {scores}") if names[one.name] > 1 else one
    made = " · ".join([chapters[0].title, *(text for key in _MADE if (text := chapters[0].head.get(key)))])
    return _write(render_chapters(lead.title, named, (), lead._replace(made=made)), output)


def _plain_name(run: Run, name: str, more: str | None = None) -> str:
    """A name with the config, unless that is the whole benchmark, and more words, by default the prompt format."""
    config, asked = run.arguments.config, signature_fields(run.signature).get("format", "").partition("@")[0]
    return ", ".join(filter(None, (name, "" if config.startswith("all") else config, asked if more is None else more)))


def _answering(run: Run, chapter: Chapter, lead: Lead) -> Chapter:
    """A run of an audit: its question, and only the scores that answer it; its headline and card are not adjusted."""
    rules, is_check, figure = run.benchmark.facts.headline, run.arguments.scores, chapter.figure
    decided = {verdict.condition.name for verdict in run.outcome.verdicts} if run.outcome else set()
    wanted = {*is_check.split(","), *decided, *([rules.excess] if rules else [])}
    tiles = [
        (title, score, f"{note}. {score.measure.note}".removeprefix(". "))
        for title, score, note in chapter.tiles
        if score.measure.name in wanted
    ]
    folder, ask = run.folder.name, run.folder.name.partition(f"{run.benchmark.name}-")[2]  # names a second check
    name = _plain_name(run, short_title(run.benchmark), f"task check, {ask}".removesuffix(", ") if is_check else "")
    asked = [one for questions, *_, folders in lead.answers if folder in folders for one in questions]
    asked = [f"Can it do the task of {short_title(run.benchmark)}?"] if is_check else asked
    shown = [f"{title}: {show(score, score.kind)}, {score.interval}".removesuffix(", ") for title, score, _ in tiles]
    figure = figure if figure and len(figure.rows) > 1 and figure.columns[1].name in wanted else None
    if is_check:  # too few questions for tables
        chapter = replace(chapter, analysis=replace(chapter.analysis, tables=()))
    chapter = replace(chapter, name=name, run=folder, tiles=tiles or chapter.tiles, figure=figure)
    return replace(chapter, brief=" ".join([*asked, *(f"{text}." for text in shown)]), headline=None, card="")


def _overview(runs: Sequence[Run], chapters: Sequence[Chapter]) -> list[Table]:
    places: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        places.setdefault(run.benchmark.family or run.benchmark.name, []).append(place)
    tables = []
    for own in places.values():
        shown = [runs[place] for place in own]
        benchmark = shown[0].benchmark
        tiles = [chapters[place].tiles for place in own]
        languages = dict.fromkeys(run.benchmark.language(run.arguments.config) for run in shown)
        by_language = len(languages) > 1
        names = names_by_language(shown) if by_language else run_names(shown)
        title = f"By language: {', '.join(languages)}" if by_language else benchmark.title
        tables.append(headline_table(title, benchmark.facts.clusters[0], names, tiles))
    return tables


def check_comparison_output(folder: Path, runs: Sequence[Run]) -> None:
    """Refuse to write a comparison over other files."""
    page = folder / COMPARISON_FILE
    own = is_page_of([run.signature for run in runs])
    _check_pages(folder, page, own, (ANALYSIS_FILE,))


def check_pool_output(folder: Path, pool: Pool) -> None:
    """Refuse to write an average over other files."""
    own = json_with("runs", signature=pool.signature)
    _check_pages(folder, folder / POOL_FILE, own, (SCORES_FILE, ANALYSIS_FILE, POOL_PAGE))


def _check_pages(folder: Path, mark: Path, is_own: IsOwnFile, others: Sequence[str]) -> None:
    """Refuse several files; the first shows their owner."""
    check_folder(folder)
    is_theirs = mark.exists() and is_own(mark)
    check_file(mark, is_own)
    for name in others:
        check_file(folder / name, (lambda _: True) if is_theirs else none_is_own)


def write_comparison(comparison: Comparison, folder: Path) -> Path:
    """Write `analysis.json` and `compare.html`; returns the page's path."""
    check_comparison_output(folder, comparison.runs)
    runs, title = comparison.runs, comparison.title
    head = {f"Run {number}": name for number, name in enumerate(comparison.names, start=1)}
    mixed = comparison.mixed
    if not comparison.view.has_columns:
        head = {"Runs": f"{len(runs):,}"}
        mixed = {name: list(dict.fromkeys(values)) for name, values in mixed.items()}
    marked = {f"Differs: {name}": ", ".join(values) for name, values in mixed.items()}
    differing, figure = differing_examples(comparison), comparison_figure(comparison)
    chapter = Chapter(
        title=title,
        name=f"Comparison of {title}",
        head={**head, **marked},
        intro=comparison_intro(comparison),
        analysis=as_read(comparison.analysis),
        headline=comparison.headline,
        by_run=comparison.by_run,
        tiles=comparison_tiles(comparison),
        examples=differing,
        one=telling(differing, (), figure),
        figure=figure,
        headlines=[comparison_headlines(comparison)] if comparison.view.has_columns else [],  # in the tables by run
        appendix={SIGNATURES: dict(zip(comparison.names, (run.signature for run in runs), strict=True))},
    )
    # The page first: it shows whose the tables are, also after a kill between the two.
    page = _write(render_chapters(title, [chapter]), folder / COMPARISON_FILE)
    write_analysis(comparison.analysis, folder / ANALYSIS_FILE)
    return page


def write_pool(pool: Pool, folder: Path) -> Path:
    """Write the scores, tables, runs and page of an average; returns the page's path."""
    check_pool_output(folder, pool)
    write_json(folder / POOL_FILE, pool_content(pool))
    write_stored(folder / SCORES_FILE, scores_content(pool.benchmark, pool.signature, pool.scores))
    title = f"Mean of {len(pool.runs)} runs of {pool.benchmark.name}"
    head = {f"Run {number}": name for number, name in enumerate(pool.names, start=1)}
    write_analysis(pool.analysis, folder / ANALYSIS_FILE)
    marked = {f"Differs: {name}": ", ".join(values) for name, values in pool.mixed.items()}
    chapter = Chapter(
        title=title,
        name=title,
        head={
            **({"Answers to": pool.claim} if pool.claim else {}),
            **head,
            **marked,
            **pool.benchmark.sample_facts(strict(pool.scores)),
        },
        intro=run_intro(pool.benchmark),
        analysis=as_read(pool.analysis),
        signature=pool.signature,
        tiles=headline_tiles(pool.benchmark, strict(pool.scores), pool.is_question_only),
        headline=headline(pool.benchmark, pool.scores, "", pool.is_question_only),
        appendix={SIGNATURES: dict(zip(pool.names, (run.signature for run in pool.runs), strict=True))},
        bundled=pool.runs[0].arguments.source == BUNDLED,
    )
    return _write(render_chapters(title, [chapter]), folder / POOL_PAGE)


def _chapter(run: Run) -> Chapter:
    facts, tiles, result, revision = make_head(run)
    arguments = asdict(run.arguments)
    versions = {name: _plain(value) for name, value in run.versions.items()}
    made = {
        **({"Revision": revision} if revision else {}),
        "Measured": f"{_readable_time(run.created)}, with qabias {run.qabias_version}",
        "Libraries": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
    model = run.arguments.model or "unnamed model"
    name = f"{model} on {short_title(run.benchmark)}"
    examples = run_examples(run)
    figure = bias_figure(run.benchmark, run.scores, name, run.is_question_only)
    rules, is_found = run.benchmark.facts.headline, result is not None and result.verdict in ("detected", "fail")
    sign = rules.biases.get(figure.columns[1].name, 1) if rules and figure else 1
    both = [replace(table, section=run.analysis.tables[0].section) for table in examples.tables if run.analysis.tables]
    return Chapter(
        title=model,
        name=name,
        figure=figure,
        one=telling(examples, run.analysis.tables, figure if is_found else None, sign),
        card=card_text(name, facts.get("Sample", ""), result, tiles, run.signature),
        head={**made, **facts},
        intro=run_intro(run.benchmark),
        analysis=replace(run.analysis, tables=(*run.analysis.tables, *both)),
        examples=examples._replace(tables=()),
        signature=run.signature,
        tiles=tiles,
        headline=result,
        appendix={
            "Arguments": {name: _plain(value) for name, value in arguments.items()},
            "Versions": {"qabias": run.qabias_version, **versions},
        },
        bundled=run.arguments.source == BUNDLED,
    )


def _write(html: str, report: Path) -> Path:
    # JSON can spell half of a surrogate pair, which UTF-8 cannot hold; it must not cost the report.
    content = html.encode("utf-8", errors="replace")
    try:
        write_atomically(report, lambda temporary: temporary.write_bytes(content))
    except OSError as error:
        raise QabiasError(f"cannot write {report}: {error}.", "Choose another path.") from error
    return report


def _readable_time(text: str) -> str:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
    return moment.astimezone(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
