"""What a server or a batch gives for an answer that failed, and which rejections are about one prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

FILTERED_FINISH, TOO_LONG = "content_filter", "context_length_exceeded"

FAILED = ("error", "abort", "failed", "cancelled")
"""Finish reasons of answers that the server could not complete."""

# Codes and messages about one prompt: a service's filter, or a length that the model cannot read.
_FILTER = re.compile(
    r"content.?(filter|policy|management)|moderation|flagged|data_inspection|invalid_prompt|safety|exists risk",
    re.IGNORECASE,
)
_LENGTH = re.compile(
    r"context.?(length|window|size)|input.?length|string_above_max_length|(less than|reduce) .*\b(length|tokens)\b|"
    r"\b(prompt|inputs?|question|messages?|tokens)\b.{0,80}(too (long|large)|exceed|longer than|must be <=)",
    re.IGNORECASE,
)
_READ = 1000  # characters of a message that are searched
# Codes of a quota that no waiting fills.
_QUOTA = re.compile(r"insufficient.?(quota|balance|credit|fund)|billing|quota_exceeded", re.IGNORECASE)


class Failure(NamedTuple):
    """The error in an answer."""

    message: str
    status: int  # the one that a gateway writes into the error, else that of HTTP
    finish: str  # finish reason if the prompt is the cause, whatever the request's form; "" if every prompt may fail
    is_filtered: bool  # whether its code is one of a filter, which needs no other sign
    ends_quota: bool  # whether the quota or the balance of the key is used up


def failure(content: Any, status: int = 200) -> Failure:
    """Read a failure from the body of an answer, as JSON, and its HTTP status."""
    error = content.get("error") or content if isinstance(content, dict) else content
    if not isinstance(error, dict):
        error = {"message": str(error)}
    code, kind, param = (str(error.get(name) or "") for name in ("code", "type", "param"))
    message = error.get("message") or code or ("its finish reason is an error" if "choices" in error else error)
    status = int(code) if re.fullmatch("[45][0-9]{2}", code) else status
    codes, said = f"{code} {kind}", f"{code} {kind} {message}"[:_READ]
    if param and not re.match("messages|prompt|input", param) and "context" not in said:
        said = codes
    finish = ""
    if status in (0, 200, 400, 403, 413, 422) and _FILTER.search(said):
        finish = FILTERED_FINISH
    elif status == 413 or (status in (0, 200, 400, 422) and _LENGTH.search(said)):
        finish = TOO_LONG
    is_filtered, ends_quota = (pattern.search(codes) is not None for pattern in (_FILTER, _QUOTA))
    return Failure(str(message), status, finish, is_filtered, ends_quota or status == 402 or "credit balance" in said)


def status_and_body(entry: Mapping[str, Any]) -> tuple[int, Any]:
    """HTTP status of a batch's result (0 if the request was not sent), and the body of its answer."""
    response = entry.get("response")
    if not response:
        return 0, None
    # Some programs that take such files leave status and body out and write the answer itself.
    status = response.get("status_code")
    return (200, response) if status is None else (int(status), response.get("body"))


def is_failure(answer: Mapping[str, Any]) -> bool:
    """Return whether an answer of status 200 is a failure: some gateways wrap their server's failures so."""
    choices = answer.get("choices")
    finishes = [one.get("finish_reason") for one in choices if isinstance(one, dict)] if type(choices) is list else []
    return bool(answer.get("error")) or any(finish in FAILED for finish in finishes)


def in_order(choices: Any) -> Any:
    """Sort choices by their index, which servers need not follow."""
    try:
        return sorted(choices, key=lambda choice: choice["index"])
    except (KeyError, TypeError):
        return choices
