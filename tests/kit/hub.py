"""A Hub in memory: what `HfApi` answers to the calls of a push, with repositories, pull requests and planted errors."""

import hashlib
import inspect
from dataclasses import dataclass, field
from types import SimpleNamespace

from huggingface_hub import CommitInfo, CommitOperationAdd, HfApi, constants
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError
from huggingface_hub.hf_api import RepoFile, RepoFolder

from qabias.building.sources import git_blob_sha1
from qabias.hub.push import Push

TOKEN = "hf_standinTOKENthatMustNotBeSeen"
USER = "tester"
ORGANIZATIONS = ("org",)
READING = ("whoami", "list_repo_tree", "get_repo_discussions")


@dataclass
class Repository:
    """The files of each branch by path, and the commits, oldest first."""

    kind: str
    name: str
    is_private: bool | None = None
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


def failure(status, message, kind=HfHubHTTPError):
    """An error as the library raises it for an answer of the Hub."""
    response = SimpleNamespace(status_code=status, reason_phrase="", headers={}, request=None)
    return kind(message, response=response, server_message=message)


class StandInHub:
    """The state, and the calls that were made; `breaks` has the moment, the call and the error that it raises."""

    def __init__(self, monkeypatch):
        self.repositories, self.calls, self.breaks = {}, [], None
        self.url = "http://hub.invalid"
        monkeypatch.setattr(constants, "ENDPOINT", self.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setattr("qabias.hub.push.HfApi", lambda **_: self)

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

    def __getattr__(self, name):
        def call(*arguments, **options):
            bound = inspect.signature(getattr(HfApi, name)).bind(self, *arguments, **options).arguments
            self.calls.append(name)
            bound["self"] = self
            for moment in ("before", "after"):
                if moment == "after":
                    answer = getattr(StandInHub, f"_{name}")(**bound)
                if self.breaks and self.breaks[:2] == (moment, name):
                    raise self.breaks[2]
            return answer

        return call

    def _repository(self, kind, name):
        if (kind, name) not in self.repositories:
            raise failure(404, "Repository not found", RepositoryNotFoundError)
        return self.repositories[kind, name]

    def _check_rights(self, name):
        if name.partition("/")[0] not in (USER, *ORGANIZATIONS):
            raise failure(403, "You don't have the rights")

    def _whoami(self):
        return {"name": USER}

    def _list_repo_tree(self, repo_id, recursive, revision, repo_type):
        assert recursive
        yield RepoFolder(path="data", oid="0")
        for path, content in self._repository(repo_type, repo_id).branches[revision].items():
            large = {"size": 0, "oid": hashlib.sha256(content).hexdigest(), "pointerSize": 0}
            is_large = path.endswith(".parquet")
            oid = "of the pointer" if is_large else git_blob_sha1(content)
            yield RepoFile(path=path, size=len(content), oid=oid, lfs=large if is_large else None)

    def _get_repo_discussions(self, repo_id, author, discussion_type, discussion_status, repo_type):
        assert discussion_type == "pull_request"
        requests = self._repository(repo_type, repo_id).pull_requests
        return [each for each in requests if (each.author, each.status) == (author, discussion_status)]

    def _create_repo(self, repo_id, private, repo_type, exist_ok, space_sdk):
        self._check_rights(repo_id)
        assert exist_ok
        assert space_sdk == ("gradio" if repo_type == "space" else None)
        if (repo_type, repo_id) not in self.repositories:
            self.create(repo_type, repo_id).is_private = private

    def _create_commit(self, repo_id, operations, commit_message, commit_description, repo_type, revision, create_pr):
        repository = self._repository(repo_type, repo_id)
        if revision == "main" and not create_pr:
            self._check_rights(repo_id)
        files = dict(repository.branches[revision])
        for operation in operations:
            if isinstance(operation, CommitOperationAdd):
                with operation.as_file() as content:
                    files[operation.path_in_repo] = content.read()
            else:
                del files[operation.path_in_repo]
        url = Push(repo_id, repo_type, "", "", {}).url
        link = None
        if create_pr:
            number = len(repository.pull_requests) + 1
            request = SimpleNamespace(num=number, title=commit_message, status="open", author=USER)
            repository.pull_requests.append(request)
            revision, link = f"refs/pr/{number}", f"{url}/discussions/{number}"
        repository.branches[revision] = files
        repository.commits.append(commit_message)
        texts = {"commit_message": commit_message, "commit_description": commit_description}
        return CommitInfo(commit_url=f"{url}/commit/1", oid="1", pr_url=link, **texts)
