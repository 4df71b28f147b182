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
_FIELDS_OF_PROMPTS = re.compile(r"messages|prompt|input")
# Codes of a quota that no waiting fills.
_QUOTA = re.compile(r"insufficient.?(quota|balance|credit|fund)|billing|quota_exceeded", re.IGNORECASE)


class Failure(NamedTuple):
    """The error in an answer."""

    message: str
    code: str = ""
    type: str = ""
    param: str = ""

    @property
    def status(self) -> int:
        """The HTTP status that a gateway writes into the error; 0 without one."""
        return int(self.code) if re.fullmatch("[1-5][0-9]{2}", self.code) else 0

    def rejects_prompt(self, status: int) -> str:
        """The finish reason if the prompt is the cause, whatever the request's form; "" if every prompt may fail."""
        status, said = self.status or status, f"{self.code} {self.type} {self.message}"[:_READ]
        if status not in (0, 200, 400, 403, 413, 422):
            return ""
        names_field = self.param and not _FIELDS_OF_PROMPTS.match(self.param) and "context" not in said
        if self.is_filtered or (_FILTER.search(said) and not names_field):
            return FILTERED_FINISH
        return TOO_LONG if status == 413 or (status != 403 and _LENGTH.search(said) and not names_field) else ""

    @property
    def is_filtered(self) -> bool:
        """Whether its code is one of a filter, which needs no other sign."""
        return _FILTER.search(f"{self.code} {self.type}") is not None

    def ends_quota(self, status: int) -> bool:
        """Whether the quota or the balance of the key is used up."""
        return status == 402 or _QUOTA.search(f"{self.code} {self.type}") is not None


def failure(content: Any) -> Failure:
    """Read a failure from the body of an answer, as JSON."""
    error = content.get("error") or content if isinstance(content, dict) else content
    if not isinstance(error, dict):
        return Failure(str(error))
    code, kind, param = (str(error.get(name) or "") for name in ("code", "type", "param"))
    message = str(error.get("message", "its finish reason is an error" if "choices" in error else error))
    return Failure(message, code, kind, param)


def is_failure(answer: Mapping[str, Any]) -> bool:
    """Return whether an answer of status 200 is a failure: some gateways wrap their server's failures so."""
    choices = in_order(answer.get("choices"))
    first = choices[0] if isinstance(choices, list) and choices else None
    return bool(answer.get("error")) or (isinstance(first, dict) and first.get("finish_reason") in FAILED)


def in_order(choices: Any) -> Any:
    """Sort choices by their index, which servers need not follow."""
    try:
        return sorted(choices, key=lambda choice: int(choice["index"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        return choices
