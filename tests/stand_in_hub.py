"""A small Hub on loopback: the endpoints that `huggingface_hub`, `datasets` and `evaluate` use to push and to load.

What it answers follows the Hub: repositories of three kinds with commits, branches and pull requests, Parquet files as
large files that are uploaded before the commit, and error codes in the headers that the library reads.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

TOKEN = "hf_standinTOKENthatMustNotBeSeen"
USER = "tester"
ORGANIZATIONS = ("org",)

_TYPES = {"datasets": "dataset", "spaces": "space", "models": "model"}
_API = re.compile(r"/api/(datasets|spaces|models)/([^/]+/[^/]+)(?:/(.*))?")
_RESOLVE = re.compile(r"/(?:(datasets|spaces)/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
_BATCH = re.compile(r"/(?:(datasets|spaces)/)?([^/]+/[^/]+)\.git/info/lfs/objects/batch")


@dataclass
class Repository:
    """Files of every branch and pull request by path, and the commits made to it, oldest first."""

    kind: str
    name: str
    is_private: bool = False
    branches: dict[str, dict[str, bytes]] = field(default_factory=lambda: {"main": {".gitattributes": b""}})
    heads: dict[str, str] = field(default_factory=dict)
    commits: list[tuple[str, str]] = field(default_factory=list)
    history: dict[str, dict[str, bytes]] = field(default_factory=dict)
    pull_requests: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.commit("main", "initial commit")

    @property
    def files(self) -> dict[str, bytes]:
        """The files of main."""
        return self.branches["main"]

    def commit(self, branch: str, title: str) -> str:
        """Record a commit; its id is made of what it holds and of its number."""
        content = repr((branch, title, len(self.history), sorted(self.branches[branch].items())))
        oid = hashlib.sha1(content.encode()).hexdigest()
        self.heads[branch] = oid
        self.history[oid] = dict(self.branches[branch])
        self.commits.append((branch, title))
        return oid

    def at(self, revision: str) -> tuple[str, dict[str, bytes]] | None:
        """Commit id and files of a branch, pull request or commit."""
        oid = self.heads.get(revision, revision)
        return (oid, self.history[oid]) if oid in self.history else None

    def merge(self, number: int) -> None:
        """Merge a pull request into main."""
        [request] = [each for each in self.pull_requests if each["num"] == number]
        request["status"] = "merged"
        self.branches["main"] = dict(self.branches[f"refs/pr/{number}"])
        self.commit("main", request["title"])


class StandInHub:
    """The state of the server; tests read it, and plant failures."""

    def __init__(self) -> None:
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.large_files: dict[str, bytes] = {}
        self.log: list[str] = []
        self.may_write: Callable[[str], bool] = lambda name: name.partition("/")[0] in (USER, *ORGANIZATIONS)
        # Asked before and after each request is carried out; where it says yes the connection is closed without answer.
        self.cuts: Callable[[str, str], bool] = lambda moment, request: False
        self.url = ""

    def create(self, kind: str, name: str) -> Repository:
        """A new repository as the Hub makes it."""
        repository = self.repositories[kind, name] = Repository(kind, name)
        if kind == "space":
            repository.files["README.md"] = b"---\ntitle: x\nsdk: gradio\n---\n"
            repository.commit("main", "initial commit")
        return repository

    @contextmanager
    def serve(self) -> Iterator["StandInHub"]:
        """Answer on a free port of loopback."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self}))
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


class _Answer(Exception):
    """What to answer: status, body and headers."""

    def __init__(self, status: int, body: Any = None, **headers: str) -> None:
        super().__init__(status)
        self.status = status
        self.body = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


# What the Hub takes in the head of a card, as far as ours have it.
_CREATORS = {"no-annotation", "expert-generated", "crowdsourced", "machine-generated", "found", "other"}
_ALLOWED = {
    "license": {"apache-2.0", "mit", "cc-by-4.0"},
    "size_categories": {"n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M"},
    "annotations_creators": _CREATORS - {"found"},
    "language_creators": _CREATORS - {"no-annotation"},
    "source_datasets": {"original", "extended"},
    "sdk": {"gradio", "docker", "static"},
    "colorFrom": {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"},
}
_REQUIRED = {"dataset": ("license", "configs"), "space": ("sdk", "sdk_version", "app_file"), "model": ()}


def _head_errors(card: str, kind: str) -> list[str]:
    head = yaml.safe_load(card.split("---\n")[1])
    errors = [f'"{name}" is required' for name in _REQUIRED[kind] if name not in head]
    for name, allowed in _ALLOWED.items():
        given = head.get(name, [])
        wrong = set(given if isinstance(given, list) else [given]) - allowed
        errors += [f'"{name}" must not be {value}' for value in sorted(map(str, wrong))]
    return errors


def _failure(status: int, message: str, code: str = "") -> _Answer:
    return _Answer(status, {"error": message}, X_Error_Message=message, **({"X_Error_Code": code} if code else {}))


class _Handler(BaseHTTPRequestHandler):
    hub: StandInHub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keep the log of the tests quiet."""

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_POST = do_PUT = do_GET

    def _serve(self) -> None:
        request = f"{self.command} {self.path}"
        self.hub.log.append(request)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b"".join(iter(self._chunk, b""))
        if self.hub.cuts("before", request):
            self.close_connection = True
            return
        try:
            self._route(body)
            answer = _failure(404, "no such page")
        except _Answer as given:
            answer = given
        if self.hub.cuts("after", request):
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline(), 16)
        data = self.rfile.read(size)
        self.rfile.readline()
        return data

    def _route(self, body: bytes) -> None:
        """Raise the answer to a request; return where there is no such page."""
        parts = urlsplit(self.path)
        path, query = unquote(parts.path), parse_qs(parts.query)
        if match := re.fullmatch(r"/large/(\w+)", path):
            self._large_file(match[1], body)
        self._check_token(required=self.command == "POST" or path == "/api/whoami-v2")
        if path == "/api/whoami-v2":
            raise _Answer(200, {"type": "user", "name": USER, "orgs": [{"name": name} for name in ORGANIZATIONS]})
        if path == "/api/validate-yaml":
            asked = json.loads(body)
            errors = [{"message": error} for error in _head_errors(asked["content"], asked["repoType"])]
            raise _Answer(400 if errors else 200, {"errors": errors, "warnings": []})
        if path == "/api/repos/create":
            self._create(json.loads(body))
        if match := _BATCH.fullmatch(path):
            self._repository(match[1] or "models", match[2])
            self._batch(json.loads(body))
        if match := _RESOLVE.fullmatch(parts.path):
            repository = self._repository(match[1] or "models", match[2])
            self._resolve(repository, unquote(match[3]), unquote(match[4]))
        # The revision is one part of the path as it was sent, with its own slashes quoted.
        if match := _API.fullmatch(parts.path):
            repository = self._repository(match[1], match[2])
            action, _, rest = (match[3] or "").partition("/")
            revision, _, below = rest.partition("/")
            self._api(repository, action, unquote(revision) or "main", unquote(below), query, body)

    def _check_token(self, *, required: bool) -> None:
        given = self.headers.get("Authorization")
        if given != f"Bearer {TOKEN}" and (required or given):
            raise _failure(401, "Invalid credentials in Authorization header")

    def _repository(self, types: str, name: str) -> Repository:
        found = self.hub.repositories.get((_TYPES[types], name))
        if found is None:
            raise _failure(404, "Repository not found", "RepoNotFound")
        return found

    def _create(self, wanted: dict[str, Any]) -> None:
        kind, name = wanted.get("type", "model"), f"{wanted['organization'] or USER}/{wanted['name']}"
        prefix = "" if kind == "model" else f"{kind}s/"
        if (kind, name) in self.hub.repositories:
            raise _Answer(409, {"error": "You already created this repo", "url": f"{self.hub.url}/{prefix}{name}"})
        if not self.hub.may_write(name):
            raise _failure(403, f'You don\'t have the rights to create a {kind} under the namespace "{name}"')
        if kind == "space" and wanted.get("sdk") != "gradio":
            raise _failure(400, "a Space needs its sdk")
        self.hub.create(kind, name).is_private = wanted.get("visibility") == "private"
        raise _Answer(200, {"url": f"{self.hub.url}/{prefix}{name}"})

    def _batch(self, wanted: dict[str, Any]) -> None:
        objects = []
        for entry in wanted["objects"]:
            if entry["oid"] in self.hub.large_files:
                objects.append(entry)
            else:
                objects.append({**entry, "actions": {"upload": {"href": f"{self.hub.url}/large/{entry['oid']}"}}})
        raise _Answer(200, {"transfer": "basic", "objects": objects})

    def _large_file(self, oid: str, body: bytes) -> None:
        assert "Authorization" not in self.headers
        if self.command != "PUT":
            raise _Answer(200, self.hub.large_files[oid], ETag=f'"{oid}"')
        if hashlib.sha256(body).hexdigest() != oid:
            raise _failure(400, "the content is not what was announced")
        self.hub.large_files[oid] = body
        raise _Answer(200)

    def _resolve(self, repository: Repository, revision: str, path: str) -> None:
        oid, files = self._at(repository, revision)
        if path not in files:
            raise _Answer(404, None, X_Error_Code="EntryNotFound", X_Error_Message="Entry not found", X_Repo_Commit=oid)
        content = files[path]
        if _is_large(path):
            sha256 = hashlib.sha256(content).hexdigest()
            linked = {"X_Linked_ETag": f'"{sha256}"', "X_Linked_Size": str(len(content))}
            # Large files lie at another host, which the library must not show the token.
            storage = self.hub.url.replace("127.0.0.1", "localhost")
            raise _Answer(302, None, Location=f"{storage}/large/{sha256}", X_Repo_Commit=oid, **linked)
        raise _Answer(200, content, ETag=f'"{_git_blob(content)}"', X_Repo_Commit=oid)

    def _at(self, repository: Repository, revision: str) -> tuple[str, dict[str, bytes]]:
        found = repository.at(revision)
        if found is None:
            raise _failure(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return found

    def _api(
        self, repository: Repository, action: str, revision: str, below: str, query: dict[str, list[str]], body: bytes
    ) -> None:
        oid, files = self._at(repository, revision)
        if action in ("", "revision"):
            raise _Answer(200, _info(repository, oid, files))
        if action == "tree":
            entries = _tree(files, below, recursive=query.get("recursive") in (["true"], ["True"], ["1"]))
            if below and not entries:
                raise _failure(404, f"{below} does not exist", "EntryNotFound")
            raise _Answer(200, entries)
        if action == "paths-info":
            wanted = parse_qs(body.decode())["paths"]
            everything = {entry["path"]: entry for entry in _tree(files, "", recursive=True)}
            raise _Answer(200, [everything[path] for path in wanted if path in everything])
        if action == "preupload":
            raise _Answer(200, {"files": [_mode(files, each["path"]) for each in json.loads(body)["files"]]})
        if action == "discussions":
            found = [
                request
                for request in repository.pull_requests
                if request["status"] == query.get("status", [request["status"]])[0]
                and request["author"]["name"] == query.get("author", [request["author"]["name"]])[0]
            ]
            raise _Answer(200, {"count": len(found), "start": 0, "discussions": found})
        if action == "commit":
            self._commit(repository, revision, "create_pr" in query, body)

    def _commit(self, repository: Repository, branch: str, create_pr: bool, body: bytes) -> None:
        if not create_pr and not branch.startswith("refs/pr/") and not self.hub.may_write(repository.name):
            raise _failure(403, "You are not authorized to push to this repository")
        lines = [json.loads(line) for line in body.splitlines()]
        title = lines[0]["value"]["summary"]
        files = dict(repository.branches[branch])
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                if value["oid"] not in self.hub.large_files:
                    raise _failure(400, "the large file was never uploaded")
                files[value["path"]] = self.hub.large_files[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        link = ""
        if create_pr:
            number = len(repository.pull_requests) + 1
            branch = f"refs/pr/{number}"
            link = f"{self._page(repository)}/discussions/{number}"
            repository.pull_requests.append(_discussion(repository, number, title))
        repository.branches[branch] = files
        oid = repository.commit(branch, title)
        answer = {"success": True, "commitUrl": f"{self._page(repository)}/commit/{oid}", "commitOid": oid}
        raise _Answer(200, {**answer, **({"pullRequestUrl": link} if link else {})})

    def _page(self, repository: Repository) -> str:
        prefix = "" if repository.kind == "model" else f"{repository.kind}s/"
        return f"{self.hub.url}/{prefix}{repository.name}"


def _is_large(path: str) -> bool:
    return path.endswith(".parquet")


def _git_blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _entry(path: str, content: bytes) -> dict[str, Any]:
    if not _is_large(path):
        return {"type": "file", "path": path, "size": len(content), "oid": _git_blob(content)}
    sha256 = hashlib.sha256(content).hexdigest()
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n" % (sha256.encode(), len(content))
    large = {"oid": sha256, "size": len(content), "pointerSize": len(pointer)}
    return {"type": "file", "path": path, "size": len(content), "oid": _git_blob(pointer), "lfs": large}


def _tree(files: dict[str, bytes], below: str, *, recursive: bool) -> list[dict[str, Any]]:
    start = f"{below}/" if below else ""
    entries: dict[str, dict[str, Any]] = {}
    for path, content in sorted(files.items()):
        if not path.startswith(start):
            continue
        folders = path[len(start) :].split("/")[:-1]
        for depth in range(1, len(folders) + 1 if recursive else min(2, len(folders) + 1)):
            folder = start + "/".join(folders[:depth])
            entries[folder] = {
                "type": "directory",
                "path": folder,
                "size": 0,
                "oid": hashlib.sha1(folder.encode()).hexdigest(),
            }
        if recursive or not folders:
            entries[path] = _entry(path, content)
    return list(entries.values())


def _mode(files: dict[str, bytes], path: str) -> dict[str, Any]:
    mode = {"path": path, "uploadMode": "lfs" if _is_large(path) else "regular", "shouldIgnore": False}
    if path not in files:
        return mode
    entry = _entry(path, files[path])
    return {**mode, "oid": entry.get("lfs", entry)["oid"]}


def _info(repository: Repository, oid: str, files: dict[str, bytes]) -> dict[str, Any]:
    return {
        "_id": "1",
        "id": repository.name,
        "sha": oid,
        "author": repository.name.partition("/")[0],
        "private": repository.is_private,
        "gated": False,
        "disabled": False,
        "tags": [],
        "downloads": 0,
        "likes": 0,
        "lastModified": "2026-01-01T00:00:00.000Z",
        "createdAt": "2026-01-01T00:00:00.000Z",
        "siblings": [{"rfilename": path} for path in sorted(files)],
    }


def _discussion(repository: Repository, number: int, title: str) -> dict[str, Any]:
    return {
        "num": number,
        "title": title,
        "status": "open",
        "isPullRequest": True,
        "createdAt": "2026-01-01T00:00:00.000Z",
        "author": {"name": USER},
        "repo": {"name": repository.name, "type": repository.kind},
    }
