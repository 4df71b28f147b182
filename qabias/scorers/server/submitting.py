"""Batches at a service: request files become batches, once each, and results are downloaded. File names hold the state.

`requests-00001.jsonl` is written, `sending-DIGEST.jsonl` is under way, `submitted-ID.jsonl` is a batch, and
`results-ID.jsonl` has its answers.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from qabias.errors import QabiasError, arg
from qabias.scorers.server.apis import ANTHROPIC, APIS
from qabias.scorers.server.asking import redacted_answer
from qabias.scorers.server.client import Client, RepeatedError
from qabias.support.files import MOST_LOG_BYTES, sha256_of, sync_folder, write_atomically

_SENDING, _SUBMITTED, RESULTS = "sending-", "submitted-", "results-"
_MARK = "qabias"  # field of a batch's metadata with the digest of its requests
_NAME = re.compile(rb'^\{"custom_id": "([0-9a-f]{64})"', re.MULTILINE)
_GOOD, _BAD = ("ended", "completed"), ("failed", "expired", "cancelled")
_BUSY = ("status 429", "status 503", "status 529")  # replies after which no batch exists


def running(folder: Path) -> dict[str, set[str]]:
    """Names of the requests of every batch without results, by its id."""
    ids = {path.stem.removeprefix(_SUBMITTED): path for path in sorted(folder.glob(f"{_SUBMITTED}*"))}
    left = {name: path for name, path in ids.items() if not (folder / f"{RESULTS}{name}.jsonl").exists()}
    return {name: {one.decode() for one in _NAME.findall(path.read_bytes())} for name, path in left.items()}


class Service(Client):
    """The batches of an account."""

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, **options)
        self._bounds = self._bounds._replace(most_bytes=MOST_LOG_BYTES)
        self._is_anthropic = self._api is APIS[ANTHROPIC]
        self._path = "v1/messages/batches" if self._is_anthropic else "batches"

    def submit(self, path: Path) -> str:
        """Create the batch of a request file, never twice; its id."""
        content: dict[str, Any] = {"content": path.read_bytes(), "headers": {"Content-Type": "application/json"}}
        if self._is_anthropic:
            self._ask("GET", self._path, needs="data")  # fails before anything is in doubt
        else:
            file = {"file": (path.name, content["content"], "application/jsonl")}
            file_id = self._ask("POST", "files", files=file, data={"purpose": "batch"})["id"]
            wish = {"input_file_id": file_id, "endpoint": f"/v1/{self._api.path}", "completion_window": "24h"}
            content = {"json": {**wish, "metadata": {_MARK: sha256_of(path)}}}
        sending = _rename(path, f"{_SENDING}{sha256_of(path)[:16]}")
        try:
            reply = self._transfer("POST", self._path, once=True, **content)
        except QabiasError:
            _rename(sending, path.stem)
            raise
        except RepeatedError as error:
            if is_busy := str(error).startswith(_BUSY):
                _rename(sending, path.stem)
            doubt = "" if is_busy else "; the batch may exist"
            raise QabiasError(f"server: {error}{doubt}.", "Rerun the command: it never submits twice.") from None
        name = _id_of(_json(reply))
        _rename(sending, f"{_SUBMITTED}{name}")
        return name

    def look(self, folder: Path, *, fetches: bool) -> list[str]:
        """Settle what a killed command left, and download results of ended batches; a line about every failed one."""
        for path in sorted(folder.glob(f"{_SENDING}*")):
            if self._is_anthropic:  # whose batches have no mark
                raise QabiasError(
                    f"{path} may be a batch already: the command ended before the service confirmed it.",
                    f"If your account has its batch, rename it to {_SUBMITTED}ID.json, else remove it.",
                )
            for batch in self._ask("GET", self._path, needs="data")["data"]:
                name, is_ours = _id_of(batch), (batch.get("metadata") or {}).get(_MARK) == sha256_of(path)
                if is_ours and not path.with_name(f"{_SUBMITTED}{name}{path.suffix}").exists():
                    _rename(path, f"{_SUBMITTED}{name}")
                    break
            else:
                path.unlink()  # its requests are written again
        return [line for name in running(folder) if fetches and (line := self._fetch(folder, name))]

    def _fetch(self, folder: Path, name: str) -> str:
        batch = self._ask("GET", f"{self._path}/{name}")
        state = batch.get("processing_status") or batch.get("status")
        if state not in (*_GOOD, *_BAD):
            return ""
        ids = (batch.get("output_file_id"), batch.get("error_file_id"))
        places = [f"files/{one}/content" for one in ids if one]
        places = [f"{self._path}/{name}/results"] if self._is_anthropic else places
        lines = [_json(line) for place in places for line in self._transfer("GET", place).splitlines()]
        text = "".join(json.dumps(redacted_answer(line, *self._secrets)) + "\n" for line in lines if line)
        write_atomically(folder / f"{RESULTS}{name}.jsonl", partial(Path.write_text, data=text))
        return "" if state in _GOOD else self._clean(f"{name} {state}: {json.dumps(batch.get('errors'))}")

    def _ask(self, method: str, path: str, *, needs: str = "id", **content: Any) -> dict[str, Any]:
        answer = _json(self._transfer(method, path, **content))
        if not isinstance(answer, dict) or needs not in answer:
            raise QabiasError(f"server: the answer to {path} has no {needs}.", f"Check {arg('base_url')}.")
        return answer

    def _transfer(self, method: str, path: str, *, once: bool = False, **content: Any) -> bytes:
        """The content of the reply to a request; unless sent `once`, it is repeated after temporary failures."""

        def attempt(_: bool) -> bytes:
            assert self._http is not None
            with self._named_failures():
                reply = self._http.send(method, self._api.url(self._url, path), **content)
            if reply.status >= 300:
                raise self._failed(reply, _json(reply.content))
            return reply.content

        with self._connected():
            return attempt(False) if once else self._repeated(attempt)


def _id_of(batch: Any) -> str:
    """The id of a batch, which is safe in a file name."""
    name = str(batch.get("id")) if isinstance(batch, dict) else ""
    if not re.fullmatch(r"[\w-]{1,100}", name):
        raise QabiasError("server: a batch has no id.", f"Check {arg('base_url')} and the batches of your account.")
    return name


def _json(content: bytes) -> Any:
    """The content of JSON; None if it is none."""
    with suppress(ValueError, RecursionError):
        return json.loads(content)
    return None


def _rename(path: Path, stem: str) -> Path:
    """Rename a file for good."""
    renamed = path.replace(path.with_name(f"{stem}{path.suffix}"))
    sync_folder(path.parent)
    return renamed
