"""A push to the Hub: the files, the differences, and errors with one problem and one fix."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants, get_token
from huggingface_hub.errors import (
    HfHubHTTPError,
    HFValidationError,
    HTTPError,
    LocalTokenNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import validate_repo_id

from qabias.building.sources import git_blob_sha1
from qabias.errors import QabiasError, arg
from qabias.support.version import __version__

_URL_PREFIXES = {"dataset": "datasets/", "space": "spaces/", "model": ""}
_MAIN = "main"
# Files that the Hub adds to a new repository. Models are never created: results need an existing one.
_INITIAL = {"dataset": {".gitattributes"}, "space": {".gitattributes", "README.md"}}


@dataclass(frozen=True)
class Push:
    """Files and target of a push."""

    repo_id: str
    kind: str
    title: str
    description: str
    files: Mapping[str, bytes | Path] = field(repr=False)
    owned: tuple[str, ...] = ()
    sdk: str | None = None

    @property
    def url(self) -> str:
        """Address of the repository."""
        return f"{constants.ENDPOINT}/{_URL_PREFIXES[self.kind]}{self.repo_id}"

    def content(self, path: str) -> bytes:
        """The bytes of a file."""
        content = self.files[path]
        return content if isinstance(content, bytes) else content.read_bytes()


def check_repo_id(repo_id: str) -> None:
    """Check that a repository name has the form ORG/NAME."""
    is_valid = False
    with suppress(HFValidationError):
        validate_repo_id(repo_id)
        is_valid = repo_id.count("/") == 1
    if not is_valid:
        raise QabiasError(f"{repo_id!r} is not a repository name.", "Use ORG/NAME, such as my-name/my-data.")


@dataclass(frozen=True)
class Difference:
    """The changes of a push, with revision and method."""

    states: Mapping[str, str]
    removed: tuple[str, ...]
    way: str
    url: str
    revision: str = _MAIN
    is_new: bool = False
    create_pr: bool = False

    @property
    def sent(self) -> list[str]:
        """Paths of the files to be sent."""
        return [path for path, state in self.states.items() if state != "unchanged"]

    @property
    def is_empty(self) -> bool:
        """Whether the Hub already holds exactly these files."""
        return not self.sent and not self.removed


class Hub:
    """The Hub, as the logged-in user."""

    def __init__(self) -> None:
        self._api = HfApi(library_name="qabias", library_version=__version__)

    def difference(self, plan: Push, *, create_pr: bool) -> Difference:
        """Compare a plan with its repository, read-only."""
        with explained(plan):
            user = self._api.whoami()["name"]
            try:
                states, removed, there = self._compare(plan, _MAIN)
            except RepositoryNotFoundError as error:
                if plan.kind == "model":
                    raise QabiasError(
                        f"{plan.repo_id}: no such model at {plan.url}, or not visible to this login",
                        f"push the model first, or correct {arg('to')}",
                    ) from error
                states, removed, there = dict.fromkeys(plan.files, "new"), (), set()
            if plan.kind in _INITIAL and there <= _INITIAL[plan.kind]:
                way = "directly, since the repository is new"
                return Difference(states, removed, way, plan.url, is_new=True)
            if not create_pr:
                return Difference(states, removed, "directly to main", plan.url)
            difference = Difference(states, removed, "as a pull request", plan.url, create_pr=True)
            number = None if difference.is_empty else self._open_pull_request(plan, user)
            if number is None:
                return difference
            states, removed, _ = self._compare(plan, revision := f"refs/pr/{number}")
            url = f"{plan.url}/discussions/{number}"
            return Difference(states, removed, f"into the open pull request #{number}", url, revision)

    def send(self, plan: Push, difference: Difference, *, private: bool = False) -> str:
        """Send the changed files in one commit."""
        operations: list[CommitOperationAdd | CommitOperationDelete] = [
            *(CommitOperationAdd(path, plan.files[path]) for path in difference.sent),
            *(CommitOperationDelete(path) for path in difference.removed),
        ]
        with explained(plan):
            if difference.is_new:
                self._api.create_repo(
                    plan.repo_id, repo_type=plan.kind, private=private or None, exist_ok=True, space_sdk=plan.sdk
                )
            commit = self._api.create_commit(
                plan.repo_id,
                operations,
                repo_type=plan.kind,
                commit_message=plan.title,
                commit_description=plan.description,
                revision=difference.revision,
                create_pr=difference.create_pr,
            )
        return commit.pr_url or commit.commit_url

    def _compare(self, plan: Push, revision: str) -> tuple[dict[str, str], tuple[str, ...], set[str]]:
        """The state of each planned file in a revision, the files to remove, and the existing files."""
        tree = self._api.list_repo_tree(plan.repo_id, recursive=True, revision=revision, repo_type=plan.kind)
        there = {file.path: file for file in tree if isinstance(file, RepoFile)}
        states = dict.fromkeys(plan.files, "new")
        for path in states.keys() & there.keys():
            content, lfs = plan.content(path), there[path].lfs
            if lfs is None:
                is_same = git_blob_sha1(content) == there[path].blob_id
            else:
                is_same = hashlib.sha256(content).hexdigest() == lfs.sha256
            states[path] = "unchanged" if is_same else "changed"
        removed = (path for path in there if path.partition("/")[0] in plan.owned and path not in plan.files)
        return states, tuple(removed), set(there)

    def _open_pull_request(self, plan: Push, user: str) -> int | None:
        """The newest open pull request of this user with the plan's title."""
        discussions = self._api.get_repo_discussions(
            plan.repo_id, repo_type=plan.kind, author=user, discussion_type="pull_request", discussion_status="open"
        )
        return max((each.num for each in discussions if each.title == plan.title), default=None)


def plan_lines(plan: Push, create_pr: bool, difference: Difference | None = None) -> list[str]:
    """A plan as lines: target, method, files with sizes, and their state on the Hub if known."""
    if difference is None:  # the Hub is not asked
        way = "as a pull request" if create_pr else "directly to main"
        way += " (directly if the repository is new)" if create_pr and plan.kind in _INITIAL else ""
        difference = Difference(dict.fromkeys(plan.files, ""), (), way, plan.url)
    lines = [f"{plan.kind} {plan.repo_id} ({plan.url}), {difference.way}", f"  {plan.title}: {plan.description}"]
    width = max(map(len, plan.files))
    sizes = {path: len(plan.content(path)) for path in plan.files}
    lines += [f"  {path:<{width}}{size:>12,} bytes  {difference.states[path]}".rstrip() for path, size in sizes.items()]
    for path in difference.removed:
        lines.append(f"  {path:<{width}}{'':>12}        removed: not part of this {plan.kind}")
    sent = [sizes[path] for path in difference.sent]
    return [*lines, f"  to send: {len(sent)} files, {sum(sent):,} bytes"]


_LOGIN = "rerun `hf auth login`, or correct HF_TOKEN, which has priority"


@contextmanager
def explained(plan: Push) -> Iterator[None]:
    """Turn errors of `huggingface_hub` into a QabiasError without the token."""
    try:
        yield
    except QabiasError:
        raise
    except (LocalTokenNotFoundError, OfflineModeIsEnabled, HTTPError, RuntimeError, ValueError) as error:
        problem, fix = _explain(error, plan)
        token = get_token()
        raise QabiasError(problem.replace(token, "[token]") if token else problem, fix) from None


def _explain(error: BaseException, plan: Push) -> tuple[str, str]:
    repository = f"{plan.kind} {plan.repo_id}"
    match error:
        case RuntimeError(__cause__=BaseException() as cause):
            return _explain(cause, plan)  # a failed upload in a thread
        case LocalTokenNotFoundError():
            return "not logged in to the Hub", "run `hf auth login`, or set HF_TOKEN to a token with write permission"
        case OfflineModeIsEnabled():
            return "HF_HUB_OFFLINE forbids access to the Hub", "unset HF_HUB_OFFLINE, or preview with --dry-run"
        case UnicodeEncodeError():
            return "the token has an invalid character", _LOGIN
        case HfHubHTTPError():
            pass
        case HTTPError():
            problem = f"{constants.ENDPOINT}: the connection failed ({type(error).__name__})"
            return problem, "check the network and rerun the command: it resumes"
        case _:
            return f"{repository}: the Hub refused the files or disconnected: {error}", "rerun the command"
    status = error.response.status_code
    reason = error.server_message or error.response.reason_phrase
    if status == 401 and not isinstance(error, RepositoryNotFoundError):
        return f"the Hub does not accept the token ({reason})", _LOGIN
    if status in (401, 403, 404):
        owner = plan.repo_id.partition("/")[0]
        fix = f"check that {owner} is you or your organization, and that the token has write permission"
        return f"{repository}: this login may not write there ({status}: {reason})", fix
    fix = "rerun the command later" if status >= 429 else "correct this and rerun the command"
    return f"{repository}: the Hub answered {status}: {reason}", fix
