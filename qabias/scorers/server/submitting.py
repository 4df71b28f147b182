"""Batches at a service: request files become batches, once each, and results are downloaded. File names hold the state.

`requests-00001.jsonl` is written, `sending-DIGEST.jsonl` is under way, `submitted-ID.jsonl` is a batch, and
`results-ID.jsonl` has its answers.
"""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

from qabias.errors import QabiasError, arg
from qabias.scorers.server.apis import ANTHROPIC, APIS, Api
from qabias.scorers.server.client import Client, UnsureError
from qabias.support.files import sha256_of, sync_folder, write_atomically

_SENDING, SUBMITTED, RESULTS = "sending-", "submitted-", "results-"
_MARK = "qabias"  # field of a batch's metadata with the digest of its requests
_NAME = re.compile(rb'^\{"custom_id": "([0-9a-f]{64})"', re.MULTILINE)
_GOOD, _ENDED = ("ended", "completed"), ("ended", "completed", "failed", "expired", "cancelled")


def running(folder: Path) -> dict[str, set[str]]:
    """Names of the requests of every batch without results, by its id."""
    ids = {path: path.stem.removeprefix(SUBMITTED) for path in sorted(folder.glob(f"{SUBMITTED}*"))}
    left = {path: name for path, name in ids.items() if not (folder / f"{RESULTS}{name}.jsonl").exists()}
    return {name: {found.decode() for found in _NAME.findall(path.read_bytes())} for path, name in left.items()}


class Service:
    """The batches of an account."""

    def __init__(self, client: Client, api: Api, folder: Path) -> None:
        self._client, self._api, self._folder = client, api, folder
        self._is_anthropic = api is APIS[ANTHROPIC]
        self._path = "v1/messages/batches" if self._is_anthropic else "batches"

    def settle(self) -> None:
        """Find out what became of a file whose batch was never confirmed, because the command ended before."""
        for path in sorted(self._folder.glob(f"{_SENDING}*")):
            if self._is_anthropic:  # whose batches have no mark
                raise QabiasError(
                    f"{path} may be a batch already: the command ended before the service confirmed it.",
                    f"If your account has its batch, rename it to {SUBMITTED}ID.json, else remove it.",
                )
            for batch in self._ask("GET", self._path)["data"]:
                if (batch.get("metadata") or {}).get(_MARK) == sha256_of(path):
                    self._rename(path, f"{SUBMITTED}{_id_of(batch)}")
            path.unlink(missing_ok=True)  # without a batch its requests are written again

    def submit(self, path: Path) -> str:
        """Create the batch of a request file; its id."""
        content: dict[str, Any] = {"content": path.read_bytes(), "headers": {"Content-Type": "application/json"}}
        if not self._is_anthropic:
            file = {"file": (path.name, content["content"], "application/jsonl")}
            file_id = _id_of(self._ask("POST", "files", files=file, data={"purpose": "batch"}))
            wish = {"input_file_id": file_id, "endpoint": f"/v1/{self._api.path}", "completion_window": "24h"}
            content = {"json": {**wish, "metadata": {_MARK: sha256_of(path)}}}
        sending = self._rename(path, f"{_SENDING}{sha256_of(path)[:16]}")
        try:
            name = _id_of(self._ask("POST", self._path, can_repeat=False, **content))
        except UnsureError as error:
            raise QabiasError(error.args[0], f"Rerun the command: {arg('option')} batch=submit finds out.") from None
        except QabiasError:
            self._rename(sending, path.stem)
            raise
        self._rename(sending, f"{SUBMITTED}{name}")
        return name

    def fetch(self) -> list[str]:
        """Download the results of ended batches; a line about every other one."""
        lines = []
        for name in running(self._folder):
            batch = self._ask("GET", f"{self._path}/{name}")
            state = str(batch.get("processing_status") or batch.get("status"))
            if state not in _GOOD:
                lines.append(f"  {name}: {self._client.cleaned_text(f'{state} {_errors(batch)}')}")
            if state in _ENDED:
                ids = (batch.get("output_file_id"), batch.get("error_file_id"))
                places = [f"files/{one}/content" for one in ids if one]
                places = [f"{self._path}/{name}/results"] if self._is_anthropic else places
                content = b"".join(self._client.cleaned(self._client.transfer("GET", place)) for place in places)
                write_atomically(self._folder / f"{RESULTS}{name}.jsonl", partial(Path.write_bytes, data=content))
        return lines

    def _ask(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        try:
            answer = json.loads(self._client.transfer(method, path, **content))
        except json.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            raise QabiasError(f"server: the answer to {path} is no JSON object.", f"Check {arg('base_url')}.")
        return answer

    def _rename(self, path: Path, stem: str) -> Path:
        """Rename a file for good."""
        renamed = path.replace(path.with_name(f"{stem}{path.suffix}"))
        sync_folder(path.parent)
        return renamed


def _id_of(answer: dict[str, Any]) -> str:
    name = str(answer.get("id"))
    if not re.fullmatch(r"[\w-]{1,100}", name):
        raise UnsureError("server: the service gave no valid id.", f"Check {arg('base_url')}.")
    return name


def _errors(batch: dict[str, Any]) -> str:
    errors = (batch.get("errors") or {}).get("data") or []
    return " ".join(str(error.get("message")) for error in errors[:1] if isinstance(error, dict))
