"""Verification: recomputes every number of a run or a document from stored answers and pinned texts."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from qabias.benchmarks import choose_format
from qabias.building.templating import read_yaml
from qabias.errors import QabiasError
from qabias.evidence.content import DIGITS, TO_COMPLETE, Evidence
from qabias.evidence.writing import FORMS, WITH_DATASET, documents
from qabias.runs.folder import (
    ANALYSIS_FILE,
    RUN_FILE,
    SCORES_FILE,
    RunFile,
    is_run,
    matches_part,
    no_run,
    part_path,
    read_part,
    read_run,
)
from qabias.runs.looks import VERDICT_FILE, outcome_content
from qabias.runs.opened import Run
from qabias.runs.question import Question, read_question
from qabias.runs.run import at_verdict, compute, stopping_rule
from qabias.runs.scored import LOG_FILE, scores_content
from qabias.runs.signature import collected_signature, format_name, rules_text, signature_fields, until_field
from qabias.support.files import MOST_BYTES, read_json, require_regular_file, strict
from qabias.support.stored import read_fields
from qabias.support.suggest import missing
from qabias.tables.export import ALL_KINDS, files_of
from qabias.tables.model import content_of

RELATIVE = 1e-9
"""Largest relative difference of equal numbers: another processor rounds otherwise. Checksums guard the last digits."""

MOST_LINES = 5000
"""Longest document whose lines are aligned after a line was added or removed."""

CANNOT_PROVE = "This cannot prove that the model gave these answers, only that the numbers follow from them."

_DRAWN = (".pdf", ".png")
_FORM = re.compile(r"qabias export --as ([a-z-]+)")
_COMMAND = re.compile(r"qabias verify .* --run RUN")  # names the document, which may have another name since
_NUMBER = re.compile(r"[+−-]?\d[\d,]*(?:\.\d+)?")


class Difference(NamedTuple):
    """What differs, and where."""

    place: str
    what: str


class Verification(NamedTuple):
    """The result: differences, the number of compared numbers, and notes on what was not verified."""

    differences: tuple[Difference, ...]
    n_numbers: int
    notes: tuple[str, ...] = ()


def verify(path: Path, run: Path | None = None) -> Verification:
    """Verify a run folder, or what `qabias export` wrote (a file, or all files of a folder) against its run."""
    if not path.exists():
        raise missing(path)
    if path.is_dir() and is_run(path):
        if run is not None:
            raise QabiasError("--run is for a document, and this is a run.", "Remove --run.")
        differing, n, _ = _verify_run(path)
        return Verification(tuple(differing), n)
    if path.name in (RUN_FILE, SCORES_FILE, ANALYSIS_FILE) and is_run(path.parent):
        raise no_run(path)
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    if not files or {RUN_FILE, ANALYSIS_FILE} & {file.name for file in files}:
        raise no_run(path)
    runs: dict[Path, Evidence | None] = {}
    wrong: list[Difference] = []
    notes: list[str] = []
    n = 0
    for file in files:
        if path.is_dir() and file.suffix in _DRAWN:
            notes.append(f"{file.name} is a picture, not verified.")
            continue
        text = _text_of(file)
        folder = run or _run_of(file, text, path)
        if not is_run(folder):
            raise no_run(folder)
        if folder not in runs:
            of_run, n_of_run, runs[folder] = _verify_run(folder)
            wrong, n = [*wrong, *of_run], n + n_of_run
        if (evidence := runs[folder]) is not None:
            own, n_lines, of_file = _verify_text(file, text, evidence)
            wrong, n = [*wrong, *own], n + n_lines
            notes += of_file
    return Verification(tuple(wrong), n, tuple(notes))


def _verify_run(folder: Path) -> tuple[list[Difference], int, Evidence | None]:
    """Differences of a run, the number of compared numbers, and its evidence with recomputed scores."""
    place = RUN_FILE
    try:
        run = read_run(folder)
        place = "texts"
        question = read_question(run, planned=True)
        place = "answers"
        question, outcome = at_verdict(run, question, stopping_rule(question, run.arguments))
    except QabiasError as error:
        return [_refused(place, error)], 0, None
    wrong = list(_signature_differences(run, question))
    parts: list[pa.Table] = []
    for number, part in question.parts.items():
        place = part_path(folder, number).relative_to(folder).as_posix()
        try:
            answers = read_part(run, number)
        except QabiasError as error:
            wrong.append(_refused(place, error))
            continue
        if answers is None:
            wrong.append(Difference(place, "missing"))
        elif not matches_part(answers, question.benchmark, part):
            wrong.append(Difference(place, "holds answers to other examples"))
        else:
            parts.append(answers)
    known = {part_path(folder, number) for number in question.parts}
    extra = set(part_path(folder, 0).parent.glob("part-*")) - known
    wrong += [Difference(path.relative_to(folder).as_posix(), "no part of this run") for path in sorted(extra)]
    if len(parts) < len(question.parts):
        return wrong, 0, None
    answers = pa.concat_tables(parts, promote_options="default")
    try:
        scores, analysis, _ = compute(run, question, answers, outcome)
    except QabiasError as error:
        return [*wrong, _refused(LOG_FILE if (folder / LOG_FILE).exists() else "answers", error)], 0, None
    expected = {
        SCORES_FILE: scores_content(question.benchmark, run.signature, scores),
        ANALYSIS_FILE: content_of(analysis),
        **({VERDICT_FILE: outcome_content(outcome)} if outcome else {}),
    }
    for name, content in expected.items():
        try:
            stored = read_fields(folder / name, "Score the run again")
        except FileNotFoundError:
            wrong.append(Difference(name, "missing"))
        except QabiasError as error:
            wrong.append(_refused(name, error))
            wrong += _differences_of_damaged(folder / name, strict(content))
        else:
            wrong += _differences(stored, strict(content), name)
    n_numbers = sum(_count_numbers(strict(content)) for content in expected.values())
    read = {"scores": strict(scores), "question": question, "answers": answers, "outcome": outcome}
    return wrong, n_numbers, Evidence(Run.from_file(run, read))


def _refused(place: str, error: QabiasError) -> Difference:
    return Difference(place, str(error.args[0]))


def _signature_differences(run: RunFile, question: Question) -> Iterator[Difference]:
    """Fields of the signature that do not follow from the arguments."""
    arguments, benchmark, fields = run.arguments, question.benchmark, signature_fields(run.signature)
    name = format_name(run.signature)
    form = choose_format(benchmark.formats, name) if name in benchmark.formats else None
    form = form.in_orders(arguments.permutations) if form is not None else None
    if arguments.answers:
        origin = question.examples.origin
        expected = signature_fields(collected_signature(arguments, origin, form))
    else:
        expected = {
            "source": question.examples.origin.version,
            "config": arguments.config,
            "format": form.signature if form is not None else name,
            "norm": arguments.norm,
            "score": rules_text(arguments.rules),
            "limit": str(arguments.limit or "none"),
            "until": until_field(arguments),
            "seed": str(arguments.seed),
        }
        model, backend = fields.get("model", ""), fields.get("scorer", "").partition("+")[0]
        if model != arguments.model and not model.startswith(f"{arguments.model}@"):
            yield Difference(f"{RUN_FILE}/signature/model", f"{model}, arguments {arguments.model}")
        if arguments.backend and arguments.backend != backend:
            yield Difference(f"{RUN_FILE}/signature/scorer", f"{backend}, arguments {arguments.backend}")
        settings = dict(part.partition("=")[::2] for part in fields.get("scorer", "").split("+")[1:])
        for option, value in arguments.scorer_options.items():
            if settings.get(option, value) != value:
                yield Difference(f"{RUN_FILE}/signature/scorer/{option}", f"{settings[option]}, arguments {value}")
    if arguments.format is not None and name and arguments.format != name:
        yield Difference(f"{RUN_FILE}/signature/format", f"{name}, arguments {arguments.format}")
    if run.signature.partition("|")[0] != benchmark.name:
        yield Difference(f"{RUN_FILE}/signature", f"{run.signature.partition('|')[0]}, arguments {benchmark.name}")
    for field, value in expected.items():
        if fields.get(field, "") != value:
            yield Difference(f"{RUN_FILE}/signature/{field}", f"{fields.get(field, 'none')}, recomputed {value}")


def _differences_of_damaged(path: Path, expected: Mapping[str, Any]) -> Iterator[Difference]:
    """The numbers that differ in a file without a valid checksum, if it can be read at all."""
    try:
        stored = read_json(path)
    except (OSError, ValueError):
        return
    if isinstance(stored, dict):
        stored.pop("sha256", None)
        yield from _differences(stored, expected, path.name)


def _differences(stored: Any, expected: Any, place: str) -> Iterator[Difference]:
    """Every value that differs, by its path."""
    if isinstance(stored, dict) and isinstance(expected, dict):
        for key in {**expected, **stored}:
            inside = f"{place}/{key}"
            if key not in stored:
                yield Difference(inside, f"missing, recomputed {_short(expected[key])}")
            elif key not in expected:
                yield Difference(inside, f"{_short(stored[key])}, recomputed nothing")
            else:
                yield from _differences(stored[key], expected[key], inside)
    elif isinstance(stored, list) and isinstance(expected, list) and len(stored) == len(expected):
        for number, (one, other) in enumerate(zip(stored, expected, strict=True)):
            yield from _differences(one, other, f"{place}/{number}")
    elif not _equal(stored, expected):
        yield Difference(place, f"{_short(stored)}, recomputed {_short(expected)}")


def _equal(stored: Any, expected: Any) -> bool:
    if isinstance(stored, float) and isinstance(expected, int | float) and not isinstance(expected, bool):
        return math.isclose(stored, expected, rel_tol=RELATIVE, abs_tol=RELATIVE)
    return type(stored) is type(expected) and bool(stored == expected)


def _count_numbers(content: Any) -> int:
    if isinstance(content, dict | list):
        return sum(map(_count_numbers, content.values() if isinstance(content, dict) else content))
    return int(isinstance(content, int | float) and not isinstance(content, bool))


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _text_of(path: Path) -> str:
    try:
        return require_regular_file(path, MOST_BYTES).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise QabiasError(f"{path} is not UTF-8.", "Use a document of `qabias export`.") from error


def _run_of(path: Path, text: str, beside: Path) -> Path:
    """The run folder of a document: one above it, next to what was named, or in `runs` here, that its text names."""
    above = [folder for folder in path.resolve().parents if is_run(folder)]
    around = (*sorted(Path("runs").glob("*")), *beside.resolve().parent.iterdir())
    near = [folder for folder in around if is_run(folder)]
    for folder in (*above, *near):
        try:
            if read_run(folder).digest[:DIGITS] in text:
                return folder
        except QabiasError:
            continue
    if above:
        return above[0]
    raise QabiasError(f"{path}: no run folder nearby has its digest.", "Add --run FOLDER.")


def _form_of(path: Path, text: str) -> tuple[str, str]:
    """The form of a document, and the dataset of a results file."""
    if path.suffix in (".yaml", ".yml"):
        try:
            return WITH_DATASET, str(read_yaml(path)[0]["dataset"]["id"])
        except (QabiasError, OSError, LookupError, TypeError):
            return "", ""
    if path.suffix in (".json", ".jsonl"):
        return next(iter(FORMS)), ""
    named = _FORM.search(text)
    return (named[1] if named is not None and named[1] in FORMS else ""), ""


def _verify_text(path: Path, text: str, evidence: Evidence) -> tuple[list[Difference], int, tuple[str, ...]]:
    """Differences of a document from the one that its run gives, line by line."""
    form, dataset = _form_of(path, text)
    try:
        if form:
            files = documents(evidence, form, dataset)
            same = [content for name, content in files.items() if Path(name).suffix == path.suffix]
        else:
            tables = evidence.run.analysis.tables
            same = [content for one in tables for _, content in files_of(one, path.parent, ALL_KINDS, path)]
    except QabiasError as error:
        return [_refused(path.name, error)], 0, ()
    if not same:
        why = f"--as {form} writes no such file" if form else "names no form of `qabias export`"
        return [Difference(path.name, why)], 0, ()
    expected = same[0].decode("utf-8")
    lines, ours = (_COMMAND.sub("", one).splitlines() for one in (text, expected))
    n_numbers = len(_NUMBER.findall(expected))
    if lines == ours:
        return [], n_numbers, ()
    if len(lines) != len(ours) and len(ours) > MOST_LINES:
        return [Difference(path.name, f"{len(lines):,} lines, recomputed {len(ours):,}")], n_numbers, ()
    wrong, added = [], []
    for begin, end, first, last in _changed(ours, lines):
        theirs = dict(enumerate(lines[first:last], start=first + 1))
        for line in ours[begin:end]:
            if TO_COMPLETE in line or not line.strip():
                continue
            close = difflib.get_close_matches(line, list(theirs.values()), 1, 0.5)
            number = next((number for number, other in theirs.items() if [other] == close), first + 1)
            other = theirs.pop(number, "") if close else ""
            wrong.append(Difference(f"{path.name}:{number}", _numbers_that_differ(line, other)))
        added += [number for number, line in theirs.items() if line.strip()]
    notes = (f"Lines written by a person, not verified: {', '.join(map(str, added))}.",) if added else ()
    return wrong, n_numbers, notes


def _changed(ours: list[str], lines: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """The runs of lines that differ; without a search if both have equally many, as long files have."""
    if len(ours) == len(lines):
        for number, (one, other) in enumerate(zip(ours, lines, strict=True)):
            if one != other:
                yield number, number + 1, number, number + 1
        return
    for kind, begin, end, first, last in difflib.SequenceMatcher(None, ours, lines, autojunk=False).get_opcodes():
        if kind != "equal":
            yield begin, end, first, last


def _numbers_that_differ(line: str, other: str) -> str:
    """The numbers of a line that differ from the recomputed ones; its text if no number does."""
    if not other:
        return f"missing: {_short(line)}"
    ours, theirs = _NUMBER.findall(line), _NUMBER.findall(other)
    pairs = [f"{b}, recomputed {a}" for a, b in zip(ours, theirs, strict=False) if a != b]
    if pairs and len(ours) == len(theirs):
        return "; ".join(pairs[:8])
    begin = next((i for i, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), min(len(line), len(other)))
    begin = max(0, begin - 20)
    return f"{_short(other[begin : begin + 60])}, recomputed {_short(line[begin : begin + 60])}"
