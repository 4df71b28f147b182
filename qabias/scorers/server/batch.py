"""Batches: requests in files, and answers from files, without a server."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from qabias.answers.outcomes import failure, is_failure, status_and_body
from qabias.answers.services import as_chat
from qabias.errors import QabiasError, arg
from qabias.scorers.journal import Journal, request_hash
from qabias.scorers.server.apis import APIS, CHAT_API, Api, Body
from qabias.scorers.server.asking import Asker, RefusedError, printable, with_usage
from qabias.scorers.server.options import FETCH, READ, SUBMIT, WRITE
from qabias.scorers.server.submitting import RESULTS, Service, running
from qabias.support.files import MOST_LOG_BYTES, require_regular_file, write_atomically

FOLDER = "batch"  # folder of request files in a run folder

MOST_REQUESTS = 50_000  # maximum requests of a file for OpenAI's service

MOST_BYTES = 200_000_000  # maximum bytes of a file for OpenAI's service

_NAMED = 5  # names in a message


class _NotThereError(Exception):
    """No file has an answer to a request."""


class Reply(NamedTuple):
    """A batch's answer to a request."""

    status: int
    content: Any

    @property
    def is_answer(self) -> bool:
        """Whether it is an answer, not a failure."""
        return 200 <= self.status < 300 and isinstance(self.content, dict) and not is_failure(self.content)


class Results(NamedTuple):
    """Content of result files."""

    replies: dict[str, Reply]
    unreadable: list[str]


def read_results(paths: Iterable[Path]) -> Results:
    """Read result and error files, in any order of files and lines."""
    results = Results({}, [])
    for path in paths:
        try:
            lines = require_regular_file(path, MOST_LOG_BYTES).read_bytes().splitlines()
        except OSError as error:
            raise QabiasError(f"{path} cannot be read: {error}.", "Make it readable.") from error
        for number, line in enumerate(lines, start=1):
            try:
                entry = json.loads(line)
                name, (status, body) = str(entry["custom_id"]), status_and_body(entry)
                reply = Reply(status, (as_chat(body) if isinstance(body, dict) else body) or entry["error"])
            except (ValueError, LookupError, TypeError, AttributeError):
                if line.strip():
                    results.unreadable.append(f"{path.name}:{number}")
                continue
            if not (name in results.replies and results.replies[name].is_answer):
                results.replies[name] = reply
    return results


class RequestFiles:
    """Writes requests into numbered files within a service's limits, each file atomically."""

    def __init__(self, folder: Path, stem: str, api: Api = APIS[CHAT_API]) -> None:
        self._folder = folder
        self._stem = stem
        self._api = api
        self._lines: list[bytes] = []
        self._n_bytes = 0
        self._written: list[tuple[Path, int]] = []

    def add(self, name: str, body: Body) -> None:
        """Add a request."""
        request = self._api.line(name, self._api.request(body))
        line = json.dumps(request, ensure_ascii=False, allow_nan=False).encode()
        n_bytes = len(line) + len(self._api.frame[1])
        if self._lines and (len(self._lines) == MOST_REQUESTS or self._n_bytes + n_bytes > MOST_BYTES):
            self._write()
        self._lines.append(line)
        self._n_bytes += n_bytes

    def close(self) -> list[tuple[Path, int]]:
        """Write the last file; return every file with the number of its requests."""
        if self._lines or not self._written:
            self._write()
        return self._written

    def _write(self) -> None:
        if not self._written:
            for path in self._folder.glob(f"{self._stem}-*.json*"):  # of the command before
                path.unlink()
        lines, self._lines, self._n_bytes = self._lines, [], 0
        if lines:
            begin, between, end = self._api.frame
            path = self._folder / f"{self._stem}-{len(self._written) + 1:05d}.json{'' if begin else 'l'}"
            content = begin + between.join(lines) + end
            write_atomically(path, lambda temporary: temporary.write_bytes(content))
            self._written.append((path, len(lines)))


class BatchClient(Asker):
    """Takes answers from the journal and from result files, and writes unanswered requests into files."""

    needs_single_process = True

    def __init__(
        self,
        journal: Path | None,
        what: str = WRITE,
        results: Sequence[Path] = (),
        *,
        api: Api = APIS[CHAT_API],
        service: Service | None = None,
    ) -> None:
        if journal is None:
            raise QabiasError("server: a batch needs a run folder.", "Use qabias run.")
        self._journal = Journal(journal)
        self._what, self._service, self._folder = what, service, journal.parent / FOLDER
        self._running, self._states = dict[str, set[str]](), list[str]()
        self._read(results)
        self._requests = RequestFiles(self._folder, "requests" if service or what == WRITE else "missing", api)
        self._is_waiting = False
        self._asked: set[str] = set()
        self._n_taken = 0
        self._failed: dict[str, str] = {}
        self._absent: list[str] = []

    def ask(self, bodies: Sequence[Body], ask_one: Callable[[Body], Any]) -> list[Any]:
        """Return answers in order; None for missing ones, which go into a request file."""
        if self._service and not self._asked:
            self._states = self._service.look(self._folder, fetches=self._what == FETCH)
            self._running = running(self._folder)
            self._read(sorted(self._folder.glob(f"{RESULTS}*")))
        names, waiting = [request_hash(body) for body in bodies], set[str]().union(*self._running.values())
        for name, body in zip(names, bodies, strict=True):
            if name not in self._asked and name not in self._journal and name not in waiting:
                self._take(name, body, ask_one)
            self._asked.add(name)
        self._journal.close()
        self._is_waiting |= any(name not in self._journal for name in names)
        return [self._journal.get(name) for name in names]

    def _read(self, results: Sequence[Path]) -> None:
        self._results, self._n_files = read_results(results), len(results)
        self.has_answered = any(reply.is_answer for reply in self._results.replies.values())

    def _take(self, name: str, body: Body, ask_one: Callable[[Body], Any]) -> None:
        try:
            self._journal.add(name, *with_usage(ask_one, body))
            self._n_taken += 1
            return
        except _NotThereError:
            self._absent.append(name)
        except QabiasError as error:
            self._failed[name] = str(error)
        self._requests.add(name, body)

    def post(self, path: str, body: Body, doubtful: int | None = None) -> dict[str, Any]:
        """Return the answer that a file has for a request."""
        reply = self._results.replies.get(request_hash(body))
        if reply is None:
            raise _NotThereError
        if reply.is_answer:
            return self._of_one_model(reply.content)
        failed = failure(reply.content, reply.status)
        message = printable(failed.message, "")
        raise RefusedError(f"status {reply.status}: {message}" if reply.status else message, failed)

    def is_waiting(self) -> bool:
        """Return whether a request since the last call has no answer yet."""
        was_waiting, self._is_waiting = self._is_waiting, False
        return was_waiting

    def write_requests(self) -> str:
        """Write the last request file, and report what was read, what is missing and what to do."""
        files = self._requests.close()
        lines = [f"  {path} ({n:,} requests, {path.stat().st_size / 1e6:.1f} MB)" for path, n in files]
        n_missing = sum(n for _, n in files)
        if self._service and self._what == SUBMIT:
            ids = [f"  {self._service.submit(path)} ({n:,} requests)" for path, n in files]
            how = f"To read the answers, use {arg('option')} batch={FETCH}."
            return "\n".join([f"batch: {n_missing:,} requests are submitted", *ids, *self._about_running(), how])
        if self._what == WRITE:
            if not lines:
                return "batch: every request has its answer; there is nothing to write"
            to_do = (
                "Give each file to the service's batch endpoint. When it is done, run the same command with\n"
                f"  {arg('option')} batch={READ}FILE,FILE,...\nwith all returned files, error files included."
            )
            return "\n".join([f"batch: {n_missing:,} requests without an answer are written to", *lines, to_do])
        files_read = f"{self._n_files} file{'s' * (self._n_files != 1)}"
        note = [f"batch: {self._n_taken:,} answers taken from {files_read}", *self._oddities(), *self._about_running()]
        if self._service and lines:
            note.append(f"{n_missing:,} requests have no answer and no batch. To send them, use batch={SUBMIT}.")
        elif lines:
            note += [
                f"{n_missing:,} requests are still without an answer; they are written to",
                *lines,
                f"Send these to the service unless they are in a running batch, then add {arg('option')} "
                f"batch={READ}FILE,... Or use {arg('base_url')} instead of batch to ask a server.",
            ]
        return "\n".join(note)

    def _about_running(self) -> list[str]:
        n, n_requests = len(self._running), sum(map(len, self._running.values()))
        text = f"{n:,} batch{'es' * (n > 1)} with {n_requests:,} requests still running."
        text += " Rerun the command later." * (self._what == FETCH)
        return [*self._states, *([text] if n else [])]

    def _oddities(self) -> list[str]:
        strangers = [name for name in self._results.replies if name not in self._asked and name not in self._journal]
        rows: list[tuple[Collection[str], str]] = [
            (self._failed, "failed"),
            (self._absent, "are missing in all files"),
            (strangers, "results belong to another run (model, prompt, option or shard)"),
            (self._results.unreadable, "lines are unreadable"),
        ]
        note = [
            f"  {len(names):,} {what}: {', '.join(list(names)[:_NAMED])}{', ...' * (len(names) > _NAMED)}"
            for names, what in rows
            if names
        ]
        counts = Counter(self._failed.values()).most_common(_NAMED)
        note[1:1] = [f"    {n:,} times: {message}" for message, n in counts]
        return note
