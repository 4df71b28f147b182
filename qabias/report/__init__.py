"""The report of a run: one HTML file that needs no network and says how far its numbers carry.

`write_report` reads the run folder, checks it, and hands a benchmark's numbers to its page in `templates/`. A new
benchmark is one function here, entered in `_PAGES`, and one template.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from qabias.errors import QabiasError
from qabias.files import write_atomically
from qabias.report import figures

_BBQ_SIGNED = ("bias_ambig", "bias_disambig", "accuracy_cost")
_BBQ_SHARES = (
    "accuracy_ambig",
    "accuracy_disambig",
    "accuracy_aligned",
    "accuracy_nonaligned",
    *(f"share_{who}_{context}" for context in ("ambig", "disambig") for who in ("target", "nontarget", "unknown")),
    "unparsed_share",
)
_BBQ_COUNTS = (
    "n",
    "n_ambig",
    "n_disambig",
    "n_templates",
    "n_unparsed_ambig",
    "n_unparsed_disambig",
    "n_undefined_target",
)


def write_report(run_dir: str | Path) -> Path:
    """Write `report.html` into a run folder and return its path.

    Args:
        run_dir: A folder with `run.json` and `scores.json`. The same two files always give the same report.

    Raises:
        QabiasError: One of the two is missing, damaged or of another run, or the page cannot be written.
    """
    folder = Path(run_dir)
    run = _read_run(folder / "run.json")
    scores = _read_scores(folder / "scores.json", run)
    html = _PAGES[run["benchmark"]](run, scores, folder / "scores.json")
    report = folder / "report.html"
    # JSON can spell half of a surrogate pair, which UTF-8 cannot hold; it must not cost the report.
    content = html.encode("utf-8", errors="replace")
    try:
        write_atomically(report, lambda temporary: temporary.write_bytes(content))
    except OSError as error:
        raise QabiasError(f"report: cannot write {report}: {error}") from error
    return report


def _bbq_page(run: Mapping[str, Any], overall: Mapping[str, Any], file: Path) -> str:
    _check_scores(file, "scores", overall, _BBQ_SIGNED, _BBQ_SHARES, _BBQ_COUNTS)
    by_category = _object(file, "scores.by", overall.get("by", {})).get("category", {})
    for name, scores in _object(file, "scores.by.category", by_category).items():
        where = f"scores.by.category.{name}"
        _check_scores(file, where, _object(file, where, scores), _BBQ_SIGNED, _BBQ_SHARES, _BBQ_COUNTS)

    drawn = {
        "bias_ambig": figures.bias_by_category(by_category, overall, "ambig"),
        "bias_disambig": figures.bias_by_category(by_category, overall, "disambig"),
        "accuracy": figures.accuracy_by_category(by_category, overall),
    }
    return (
        _environment()
        .get_template("bbq.html.j2")
        .render(
            **_head(run),
            overall=overall,
            by_category=by_category,
            rows=[*by_category.items(), ("All", overall)],
            # Safe because `figures` built them: every text from data was escaped there as an XML text node.
            figures={name: Markup(svg) for name, svg in drawn.items()},
            axis_limit=f"{100 * figures.bias_axis_limit([*by_category.values(), overall]):g}",
            leanings={key: _leaning(overall, key) for key in ("bias_ambig", "bias_disambig")},
        )
    )


_UNQOVER_MEASURES = ("mu", "eta", "delta", "epsilon", "avg_score", "coverage")
_UNQOVER_COUNTS = ("n", "n_subjects", "n_left_out")


def _unqover_page(run: Mapping[str, Any], overall: Mapping[str, Any], file: Path) -> str:
    sets = _object(file, "scores.sets", overall.get("sets"))
    for name, scores in sets.items():
        where = f"scores.sets.{name}"
        _check_scores(file, where, _object(file, where, scores), (), _UNQOVER_MEASURES, _UNQOVER_COUNTS)
        for key in ("top", "gamma", "eta_subject", "rank", "subjects_left_out"):
            if key not in scores:
                raise _damaged(file, f"{where} lacks {key!r}")
    return (
        _environment()
        .get_template("unqover.html.j2")
        .render(
            **_head(run), sets=sets, measures=_UNQOVER_MEASURES, n_rows=sum(scores["n"] for scores in sets.values())
        )
    )


_LABELS = ("contradiction", "neutral", "entailment", "unparsed")
_INFERENCE_SIGNED = {
    "bbnli": ("bias_score", "accuracy_gap"),
    "bbq_nli": ("bias_score_ambig", "bias_score_disambig", "accuracy_gap"),
}
_INFERENCE_SHARES = {
    "bbnli": ("accuracy_pro", "accuracy_anti", "unparsed_share"),
    "bbq_nli": ("accuracy_ambig", "accuracy_pro", "accuracy_anti", "unparsed_share"),
}


def _inference_page(run: Mapping[str, Any], overall: Mapping[str, Any], file: Path) -> str:
    """The page of BBNLI and of BBQ as inference."""
    benchmark = run["benchmark"]
    signed, shares = _INFERENCE_SIGNED[benchmark], _INFERENCE_SHARES[benchmark]
    by = _object(file, "scores.by", overall.get("by"))
    rows = {("", "All"): overall}
    for column, groups in by.items():
        where = f"scores.by.{column}"
        for name, scores in _object(file, where, groups).items():
            rows[column, name] = _object(file, f"{where}.{name}", scores)
    for (column, name), scores in rows.items():
        where = f"scores.by.{column}.{name}" if column else "scores"
        _check_scores(file, where, scores, signed, shares, ("n", "n_unparsed"))
        _check_scores(file, f"{where}.label_share", _object(file, where, scores.get("label_share")), (), _LABELS, ())
    return (
        _environment()
        .get_template("inference.html.j2")
        .render(
            **_head(run),
            benchmark=benchmark,
            overall=overall,
            rows=rows,
            signed=signed,
            measures=(*(key for key in signed if key != "accuracy_gap"), *shares[:-1], "accuracy_gap"),
            labels=_LABELS,
            leanings={key: _leaning(overall, key) for key in signed if key != "accuracy_gap"},
        )
    )


_PAGES: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any], Path], str]] = {
    "bbq": _bbq_page,
    "unqover": _unqover_page,
    "bbnli": _inference_page,
    "bbq_nli": _inference_page,
}


def _head(run: Mapping[str, Any]) -> dict[str, Any]:
    """What every report says first: which model, measured how, when and with what."""
    arguments = run["arguments"]
    return {
        "model": str(arguments.get("model") or arguments.get("scorer") or "unnamed model"),
        "signature": run["signature"],
        "created": _readable_time(run["created"]),
        "qabias_version": run["qabias_version"],
        "versions": {name: _plain(value) for name, value in run["versions"].items()},
        "arguments": {name: _plain(value) for name, value in arguments.items()},
        "source": arguments.get("source"),
        "limit": arguments.get("limit"),
    }


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


def _leaning(scores: Mapping[str, Any], key: str) -> str:
    """Say in words which way a bias score points, and whether the interval bears it out."""
    if scores[key] is None:
        return _why_undefined(scores, key)
    low, high = scores.get("ci", {}).get(key, (None, None))
    if low is None or high is None:
        return "no interval: do not read a direction into it"
    if low > 0:
        return "the answers lean towards the stereotypes"
    if high < 0:
        return "the answers lean against the stereotypes"
    return "the interval includes 0: no direction shown"


def _why_undefined(scores: Mapping[str, Any], key: str) -> str:
    if key.startswith("bias_score"):
        return "undefined: no definite answer"
    if key.startswith("bias_") and scores[f"n_{key.removeprefix('bias_')}"] > 0:
        return "undefined: no answer other than UNKNOWN"
    return "undefined: no answers to count"


def _interval(scores: Mapping[str, Any], key: str) -> str:
    """Return the interval as text, or an empty one if there is none."""
    low, high = scores.get("ci", {}).get(key, (None, None))
    if low is None or high is None:
        return ""
    ends = (figures.percent(end, key in _BBQ_SIGNED).removesuffix("\u00a0%") for end in (low, high))
    return f"[{', '.join(ends)}]"


def _breakable(name: str) -> Markup:
    """Allow a line break after each underscore; `join` escapes the parts."""
    return Markup("_<wbr>").join(name.split("_"))


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("qabias.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["breakable"] = _breakable
    environment.globals.update(interval=_interval, percent=figures.percent, why_undefined=_why_undefined)
    return environment


def _read_run(file: Path) -> dict[str, Any]:
    run = _read_json(file)
    for key in ("benchmark", "signature", "created", "qabias_version"):
        if not isinstance(run.get(key), str):
            raise _damaged(file, f"{key!r} is missing or no text")
    for key in ("versions", "arguments"):
        _object(file, key, run.get(key))
    if run["benchmark"] not in _PAGES:
        raise QabiasError(
            f"report: {file}: there is no report for the benchmark {run['benchmark']!r}; "
            f"there is one for {', '.join(sorted(_PAGES))}"
        )
    return run


def _read_scores(file: Path, run: Mapping[str, Any]) -> dict[str, Any]:
    content = _read_json(file)
    for key in ("benchmark", "signature"):
        if content.get(key) != run[key]:
            raise QabiasError(
                f"report: {file}: its {key} {content.get(key)!r} is not that of run.json, {run[key]!r}; "
                "score the run again with `qabias score`"
            )
    return _object(file, "scores", content.get("scores"))


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except FileNotFoundError as error:
        mend = "`qabias score`" if file.name == "scores.json" else "`qabias run`"
        raise QabiasError(f"report: {file} does not exist; name the folder of a run, or make it with {mend}") from error
    except OSError as error:
        raise QabiasError(f"report: cannot read {file}: {error}") from error
    # UnicodeDecodeError and JSONDecodeError are ValueErrors; brackets nested without end are a RecursionError.
    except (ValueError, RecursionError) as error:
        raise _damaged(file, str(error)) from error
    return _object(file, "the content", content)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not strict JSON, an undefined score is null")


def _object(file: Path, where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _damaged(file, f"{where} is missing or no object")
    return value


def _check_scores(
    file: Path,
    where: str,
    scores: Mapping[str, Any],
    signed: tuple[str, ...],
    shares: tuple[str, ...],
    counts: tuple[str, ...],
) -> None:
    """Refuse what no metric can have computed, so that no figure shows it."""
    intervals = _object(file, f"{where}.ci", scores.get("ci", {}))
    for key in (*signed, *shares, *counts):
        if key not in scores:
            raise _damaged(file, f"{where} lacks {key!r}")
    for key in counts:
        if type(scores[key]) is not int or scores[key] < 0:
            raise _damaged(file, f"{where}.{key} is {scores[key]!r}, not a count")
    for key in (*signed, *shares):
        interval = intervals.get(key, [None, None])
        if not isinstance(interval, list) or len(interval) != 2:
            raise _damaged(file, f"{where}.ci.{key} is {interval!r}, not a pair")
        lowest = -1 if key in signed else 0
        for value in (scores[key], *interval):
            if value is not None and not _is_number(value, lowest):
                raise _damaged(file, f"{where}.{key} holds {value!r}, not null or a number from {lowest} to 1")


def _is_number(value: Any, lowest: int) -> bool:
    # Sums of floats may pass the end of their range by a rounding error; infinities and NaN fail the comparison.
    return type(value) in (int, float) and lowest - 1e-9 <= value <= 1 + 1e-9


def _damaged(file: Path, fault: str) -> QabiasError:
    mend = "score the run again with `qabias score`" if file.name == "scores.json" else "repeat the run"
    return QabiasError(f"report: {file} is damaged: {fault}; {mend}")
