"""Results of batch services, in the form of OpenAI or Anthropic: JSON lines with one answer each, in any order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from qabias.answers.outcomes import failure, in_order, message_parts, status_and_body
from qabias.answers.services import as_chat
from qabias.errors import QabiasError
from qabias.logs import NOT_AS_WRITTEN, Log, Sample

TOOL = "openai-batch"

_MOST_OF_A_LINE = 1 << 24


def read(path: Path) -> Log | None:
    """Read the answers of a file of results; None for other files."""
    with path.open("rb") as file:
        try:
            first = json.loads(file.readline(_MOST_OF_A_LINE))
        except (ValueError, RecursionError):
            return None
    if not isinstance(first, dict) or "custom_id" not in first:
        return None
    if "method" in first and "body" in first:
        raise QabiasError(f"{path}: requests of a batch, without answers.", "Score the service's output file instead.")
    if not first.keys() & {"response", "error", "result"}:
        return None
    bodies = (body for _, _, _, body in _lines(path))
    task = next(bodies).get("object")
    return Log(
        path=path,
        tool=TOOL,
        version="",
        task=str(task or "batch"),
        model=next((str(body["model"]) for _, _, _, body in _lines(path) if body.get("model")), ""),
        settings={},
        samples=partial(_samples, path),
    )


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any], int, Mapping[str, Any]]]:
    """Place, content, status and body of every line."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                entry["custom_id"]
                status, body = status_and_body(entry)
            except NOT_AS_WRITTEN as error:
                raise QabiasError(
                    f"{path}: line {number} is not a result of a batch.", "Fetch the file again, or remove the line."
                ) from error
            yield f"line {number}", entry, status, body if isinstance(body, dict) else {}


def _samples(path: Path) -> Iterator[Sample]:
    for where, entry, status, body in _lines(path):
        asked = {"custom_id": str(entry["custom_id"])}
        failed = entry.get("error") or body.get("error")
        if failed or not 200 <= status < 300:
            said = failure(failed or "no message", status)
            message = " ".join(said.message.split()) or "no message"
            # A prompt that the service rejects counts as an answer.
            text, error = ("", "") if said.finish else (None, f"status {status}: {message}" if status else message)
            yield Sample(where, asked, text=text, finish=said.finish, error=error)
            continue
        try:
            answers = _answers(body)
        except NOT_AS_WRITTEN:
            answers = []
        if not answers:
            yield Sample(where, asked, error="the body is not an answer of chat/completions, completions or responses")
        for run, (text, finish, thinking) in enumerate(answers, start=1):
            yield Sample(where, asked, text=text, finish=finish, run=run, thinking=thinking)


def _answers(body: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    answers = []
    for choice in in_order(as_chat(dict(body))["choices"]):
        if "message" in choice:
            text, thinking = message_parts(choice["message"])
        elif isinstance(choice["text"], str):
            text, thinking = choice["text"], ""
        else:
            raise TypeError(f"{choice['text']!r} for a text")
        answers.append((text, str(choice.get("finish_reason") or ""), thinking))
    return answers
