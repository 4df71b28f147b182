"""A Hub on loopback: what it answers over HTTP to a push, a pull request and a load, with planted errors."""

import base64
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from urllib.parse import parse_qs, unquote, urlsplit

from huggingface_hub import close_session, constants

from qabias.building.sources import git_blob_sha1

TOKEN = "hf_standinTOKENthatMustNotBeSeen"
USER = "tester"
ORGANIZATIONS = ("org",)
READING = ("whoami", "tree", "discussions", "info", "paths_info", "resolve")
TIME = "2026-01-01T00:00:00.000Z"
_ID = r"(?P<kind>model|dataset|space)s/(?P<name>[\w.-]+/[\w.-]+)"
_FILE = r"/(?:(?P<kind>dataset|space)s/)?(?P<name>[\w.-]+/[\w.-]+)"
ROUTES = (
    ("GET", "whoami", "/api/whoami-v2"),
    ("POST", "create_repo", "/api/repos/create"),
    ("POST", "validate_yaml", "/api/validate-yaml"),
    ("GET", "tree", rf"/api/{_ID}/tree/(?P<revision>[^/]+)(?:/(?P<path>.+))?"),
    ("GET", "discussions", rf"/api/{_ID}/discussions"),
    ("POST", "preupload", rf"/api/{_ID}/preupload/(?P<revision>.+)"),
    ("POST", "create_commit", rf"/api/{_ID}/commit/(?P<revision>.+)"),
    ("POST", "paths_info", rf"/api/{_ID}/paths-info/(?P<revision>[^/]+)"),
    ("GET", "info", rf"/api/{_ID}(?:/revision/(?P<revision>[^/]+))?"),
    ("POST", "lfs_batch", rf"{_FILE}\.git/info/lfs/objects/batch"),
    ("PUT", "lfs_upload", r"/lfs/(?P<oid>\w+)"),
    ("GET", "resolve", rf"{_FILE}/resolve/(?P<revision>[^/]+)/(?P<path>.+)"),
)


@dataclass
class Repository:
    """The files of each branch by path, and the commits, oldest first."""

    kind: str
    name: str
    visibility: str | None = None
    branches: dict[str, dict[str, bytes]] = field(default_factory=lambda: {"main": {".gitattributes": b""}})
    commits: list[str] = field(default_factory=list)
    pull_requests: list[SimpleNamespace] = field(default_factory=list)

    @property
    def files(self):
        """The files of main."""
        return self.branches["main"]

    def merge(self, number):
        """Merge a pull request into main."""
        self.pull_requests[number - 1].status = "merged"
        self.branches["main"] = dict(self.branches[f"refs/pr/{number}"])


class Refusal(Exception):
    """An answer with an error status, its message, the code that the library maps to an error, and the repository."""


class Hub(ThreadingHTTPServer):
    """The state, and the calls made; `breaks` has a moment, a call, and a status and message, or None to hang up."""

    daemon_threads = True

    def __init__(self, monkeypatch):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories, self.calls, self.large, self.breaks = {}, [], {}, None
        self.url = f"http://127.0.0.1:{self.server_port}"
        # The library reads its variables when it is imported. Without Xet it uploads large files by plain LFS.
        for name, value in {"ENDPOINT": self.url, "HF_HUB_OFFLINE": False, "HF_HUB_DISABLE_XET": True}.items():
            monkeypatch.setattr(constants, name, value)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        close_session()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self):
        """Stop serving."""
        close_session()
        self.shutdown()
        self.server_close()

    def create(self, kind, name):
        """A new repository as the Hub makes it."""
        repository = self.repositories[kind, name] = Repository(kind, name)
        if kind == "space":
            repository.files["README.md"] = b"---\nsdk: gradio\n---\n"
        return repository

    @property
    def writes(self):
        """The calls that change something."""
        return [call for call in self.calls if call not in READING]

    def environment(self, home):
        """Variables of a process that loads from this Hub, with its caches in a folder."""
        on = {"HF_ENDPOINT": self.url, "HF_HUB_OFFLINE": "0", "HF_DATASETS_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
        return {**on, "HF_TOKEN": TOKEN, "HF_HOME": str(home), "NO_PROXY": "127.0.0.1"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):
        pass

    def do_GET(self):
        address = urlsplit(self.path)
        self.query = parse_qs(address.query)
        self.content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        method = self.command.replace("HEAD", "GET")
        call, match = next(
            (
                (call, match)
                for verb, call, path in ROUTES
                if verb == method and (match := re.fullmatch(path, address.path))
            ),
            ("unknown", None),
        )
        if match:
            self.server.calls.append(call)
        try:
            self.break_off("before", call)
            status, answer, headers = 200, getattr(self, call)(**(match.groupdict() if match else {})), {}
            if isinstance(answer, tuple):
                answer, headers = answer
            self.break_off("after", call)
        except Refusal as refusal:
            status, message, code, *url = refusal.args
            answer = {"error": message, "errors": [{"message": message}], "url": self.server.url + "".join(url)}
            headers = {"X-Error-Code": code, "X-Error-Message": message}
        except ConnectionAbortedError:
            self.close_connection = True
            return
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Length": len(content), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_HEAD = do_POST = do_PUT = do_GET

    def break_off(self, moment, call):
        if self.server.breaks and self.server.breaks[:2] == (moment, call):
            if self.server.breaks[2] is None:
                raise ConnectionAbortedError
            raise Refusal(*self.server.breaks[2], "")

    def unknown(self):
        raise Refusal(404, "no such page", "")

    def repository(self, kind, name):
        if (
            self.headers.get("Authorization") != f"Bearer {TOKEN}"
            or (kind or "model", name) not in self.server.repositories
        ):
            raise Refusal(404, "Repository not found", "RepoNotFound")
        return self.server.repositories[kind or "model", name]

    def files(self, kind, name, revision):
        """A repository's files; a commit is the one of main."""
        branches, revision = self.repository(kind, name).branches, unquote(revision or "main")
        if revision not in branches and not re.fullmatch("[0-9a-f]{40}", revision):
            raise Refusal(404, "Revision not found", "RevisionNotFound")
        return branches.get(revision, branches["main"])

    def check_rights(self, name):
        if name.partition("/")[0] not in (USER, *ORGANIZATIONS):
            raise Refusal(403, "You don't have the rights", "")

    def entry(self, path, content):
        """A file as the tree shows it: a large one has the digest of its pointer and its own."""
        if not path.endswith(".parquet"):
            return {"type": "file", "path": path, "size": len(content), "oid": git_blob_sha1(content)}
        lfs = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
        return {"type": "file", "path": path, "size": len(content), "oid": "0" * 40, "lfs": lfs}

    def whoami(self):
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise Refusal(401, "Invalid credentials", "")
        return {"name": USER, "type": "user"}

    def create_repo(self):
        asked = json.loads(self.content)
        kind, name = asked["type"], f"{asked['organization']}/{asked['name']}"
        self.check_rights(name)
        assert asked.get("sdk") == ("gradio" if kind == "space" else None)
        if (kind, name) in self.server.repositories:
            raise Refusal(409, "You already created this repo", "", f"/{kind}s/{name}")
        self.server.create(kind, name).visibility = asked.get("visibility")
        return {"url": f"{self.server.url}/{kind}s/{name}"}

    def validate_yaml(self):
        return {"errors": [], "warnings": []}

    def tree(self, kind, name, revision, path):
        start = f"{unquote(path)}/" if path else ""
        files = {each: text for each, text in self.files(kind, name, revision).items() if each.startswith(start)}
        is_below = {each: "/" in each.removeprefix(start) for each in files}
        folders = sorted({start + each.removeprefix(start).split("/")[0] for each in files if is_below[each]})
        is_all = self.query.get("recursive", ["false"])[0].lower() in ("true", "1")
        entries = [self.entry(each, text) for each, text in files.items() if is_all or not is_below[each]]
        return [*({"type": "directory", "path": each, "oid": "0" * 40} for each in folders), *entries]

    def paths_info(self, kind, name, revision):
        files, form = self.files(kind, name, revision), parse_qs(self.content.decode())
        paths = form["paths"] if "paths" in form else json.loads(self.content)["paths"]
        return [self.entry(path, files[path]) for path in paths if path in files]

    def info(self, kind, name, revision=None):
        files = self.files(kind, name, revision)
        facts = {"id": name, "sha": "1" * 40, "private": False, "tags": [], "downloads": 0, "likes": 0}
        return {**facts, "lastModified": TIME, "siblings": [{"rfilename": path} for path in files]}

    def resolve(self, kind, name, revision, path):
        files, path = self.files(kind, name, revision), unquote(path)
        if path not in files:
            raise Refusal(404, "Entry not found", "EntryNotFound")
        content, start = files[path], re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        headers = {"ETag": f'"{git_blob_sha1(content)}"', "X-Repo-Commit": "1" * 40, "Accept-Ranges": "bytes"}
        return content[int(start[1]) : int(start[2] or len(content)) + 1] if start else content, headers

    def discussions(self, kind, name):
        wanted = {name: values[0] for name, values in self.query.items()}
        assert wanted["type"] == "pull_request"
        requests = self.repository(kind, name).pull_requests
        requests = [each for each in requests if (each.author, each.status) == (wanted["author"], wanted["status"])]
        both = {"repo": {"name": name, "type": kind}, "createdAt": TIME, "isPullRequest": True}
        shown = [{**vars(each), "author": {"name": each.author}, **both} for each in requests]
        return {"count": len(shown), "start": 0, "discussions": shown}

    def preupload(self, kind, name, revision):
        self.repository(kind, name)
        mode = {True: "lfs", False: "regular"}
        files = [each["path"] for each in json.loads(self.content)["files"]]
        answers = [
            {"path": path, "uploadMode": mode[path.endswith(".parquet")], "shouldIgnore": False} for path in files
        ]
        return {"files": answers}

    def lfs_batch(self, kind, name):
        self.repository(kind, name)
        wanted = json.loads(self.content)["objects"]
        actions = [{"upload": {"href": f"{self.server.url}/lfs/{each['oid']}"}} for each in wanted]
        missing = [{**each, "actions": action} for each, action in zip(wanted, actions, strict=True)]
        return {"transfer": "basic", "objects": [each for each in missing if each["oid"] not in self.server.large]}

    def lfs_upload(self, oid):
        assert hashlib.sha256(self.content).hexdigest() == oid
        self.server.large[oid] = self.content
        return {}

    def create_commit(self, kind, name, revision):
        repository, creates_pr, revision = self.repository(kind, name), "create_pr" in self.query, unquote(revision)
        if revision == "main" and not creates_pr:
            self.check_rights(name)
        files = dict(repository.branches[revision])
        header, *changes = map(json.loads, self.content.splitlines())
        for change in changes:
            file = change["value"]
            if change["key"] == "deletedFile":
                del files[file["path"]]
            elif change["key"] == "lfsFile":
                files[file["path"]] = self.server.large[file["oid"]]
            else:
                files[file["path"]] = base64.b64decode(file["content"])
        prefix = "" if kind == "model" else f"{kind}s/"
        url, answer = f"{self.server.url}/{prefix}{name}", {"commitOid": "1" * 40}
        if creates_pr:
            number = len(repository.pull_requests) + 1
            request = SimpleNamespace(num=number, title=header["value"]["summary"], status="open", author=USER)
            repository.pull_requests.append(request)
            revision, answer["pullRequestUrl"] = f"refs/pr/{number}", f"{url}/discussions/{number}"
        repository.branches[revision] = files
        repository.commits.append(header["value"]["summary"])
        return {**answer, "commitUrl": f"{url}/commit/{'1' * 40}"}
