"""A push to the Hub: the files of a repository, what differs there, and its errors in one line each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
from qabias.errors import QabiasError
from qabias.support.version import __version__

URL_PREFIXES = {"dataset": "datasets/", "space": "spaces/", "model": ""}


@dataclass(frozen=True)
class Push:
    """What is to be pushed where."""

    repo_id: str
    kind: str
    title: str
    description: str
    files: Mapping[str, bytes | Path] = field(repr=False)
    owned: tuple[str, ...] = ()
    sdk: str | None = None

    @property
    def may_be_created(self) -> bool:
        """Whether a missing repository is created: results are for a model that is there."""
        return self.kind != "model"

    @property
    def url(self) -> str:
        """Address of the repository."""
        return f"{constants.ENDPOINT}/{URL_PREFIXES[self.kind]}{self.repo_id}"

    def content(self, path: str) -> bytes:
        """The bytes of a file."""
        content = self.files[path]
        return content if isinstance(content, bytes) else content.read_bytes()

    def size(self, path: str) -> int:
        """The number of bytes of a file."""
        content = self.files[path]
        return len(content) if isinstance(content, bytes) else content.stat().st_size


def check_repo_id(repo_id: str) -> None:
    """Check that the name of a repository is of the form ORG/NAME."""
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise QabiasError(f"{repo_id!r} is not the name of a repository: {error}") from error
    if repo_id.count("/") != 1:
        raise QabiasError(f"{repo_id!r} is not the name of a repository: write ORG/NAME, such as my-name/my-data")


_MAIN = "main"
# What the Hub itself puts into a new repository.
_INITIAL = {"dataset": {".gitattributes"}, "model": {".gitattributes"}, "space": {".gitattributes", "README.md"}}


@dataclass(frozen=True)
class Difference:
    """What a push would change, and where."""

    states: Mapping[str, str]
    removed: tuple[str, ...] = ()
    is_new: bool = False
    pull_request: int | None = None
    opens_pull_request: bool = False

    @property
    def sent(self) -> list[str]:
        """Paths of the files to be sent."""
        return [path for path, state in self.states.items() if state != "unchanged"]

    @property
    def is_empty(self) -> bool:
        """Whether the Hub holds exactly this already."""
        return not self.sent and not self.removed

    @property
    def way(self) -> str:
        """How the files reach the repository, in words."""
        if self.is_new:
            return "directly, since the repository is new"
        if self.pull_request is not None:
            return f"into the open pull request #{self.pull_request}"
        return "as a pull request" if self.opens_pull_request else "directly to main"


class Hub:
    """The Hub as the user who is logged in."""

    def __init__(self) -> None:
        self._api = HfApi(library_name="qabias", library_version=__version__)

    def difference(self, plan: Push, *, create_pr: bool) -> Difference:
        """Compare a plan with its repository; only reads."""
        with explained(plan):
            user = self._api.whoami()["name"]
            try:
                on_main = self._files(plan, _MAIN)
            except RepositoryNotFoundError as error:
                if not plan.may_be_created:
                    raise QabiasError(
                        f"{plan.repo_id}: no such model at {plan.url}, or this login may not see it; push the model "
                        "first, or correct --to"
                    ) from error
                on_main = {}
            if plan.may_be_created and on_main.keys() <= _INITIAL[plan.kind]:
                return _difference(plan, on_main, is_new=True)
            difference = _difference(plan, on_main, opens_pull_request=create_pr)
            if difference.is_empty or not create_pr:
                return difference
            number = self._open_pull_request(plan, user)
            if number is None:
                return difference
            return _difference(plan, self._files(plan, _reference(number)), pull_request=number)

    def send(self, plan: Push, difference: Difference, *, private: bool = False) -> str:
        """Send what differs, in one commit."""
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
                revision=_MAIN if difference.pull_request is None else _reference(difference.pull_request),
                create_pr=difference.opens_pull_request,
            )
        return commit.pr_url or commit.commit_url

    def _files(self, plan: Push, revision: str) -> dict[str, tuple[str, bool]]:
        """Identity of every file of the repository, and whether it is kept as a large file."""
        tree = self._api.list_repo_tree(plan.repo_id, recursive=True, revision=revision, repo_type=plan.kind)
        return {
            file.path: (file.blob_id, False) if file.lfs is None else (file.lfs.sha256, True)
            for file in tree
            if isinstance(file, RepoFile)
        }

    def _open_pull_request(self, plan: Push, user: str) -> int | None:
        """The newest open pull request of this user with the title of the plan."""
        numbers = [
            discussion.num
            for discussion in self._api.get_repo_discussions(
                plan.repo_id,
                repo_type=plan.kind,
                author=user,
                discussion_type="pull_request",
                discussion_status="open",
            )
            if discussion.title == plan.title
        ]
        return max(numbers, default=None)


def pull_request_url(plan: Push, number: int) -> str:
    """Address of a pull request."""
    return f"{plan.url}/discussions/{number}"


def where_it_is(plan: Push, difference: Difference) -> str:
    """Address of what holds the files of a plan already."""
    return plan.url if difference.pull_request is None else pull_request_url(plan, difference.pull_request)


def _reference(number: int) -> str:
    return f"refs/pr/{number}"


def _difference(
    plan: Push,
    there: Mapping[str, tuple[str, bool]],
    *,
    is_new: bool = False,
    pull_request: int | None = None,
    opens_pull_request: bool = False,
) -> Difference:
    states = {}
    for path in plan.files:
        if path not in there:
            states[path] = "new"
            continue
        identity, is_large = there[path]
        content = plan.content(path)
        here = hashlib.sha256(content).hexdigest() if is_large else git_blob_sha1(content)
        states[path] = "unchanged" if here == identity else "changed"
    removed = tuple(path for path in there if path.partition("/")[0] in plan.owned and path not in plan.files)
    return Difference(states, removed, is_new, pull_request, opens_pull_request)


def intended_way(plan: Push, create_pr: bool) -> str:
    """How the files would reach the repository, before the Hub is asked."""
    if not create_pr:
        return "directly to main"
    return "as a pull request" + (" (directly if the repository is new)" if plan.may_be_created else "")


def plan_lines(plan: Push, way: str, difference: Difference | None = None) -> list[str]:
    """A plan as lines: target, way and files with their sizes, and what the Hub has of them where that is known."""
    lines = [f"{plan.kind} {plan.repo_id} ({plan.url}), {way}", f"  {plan.title}: {plan.description}"]
    width = max(map(len, plan.files))
    for path in plan.files:
        state = "" if difference is None else f"  {difference.states[path]}"
        lines.append(f"  {path:<{width}}{plan.size(path):>12,} bytes{state}")
    sent = list(plan.files) if difference is None else difference.sent
    if difference is not None:
        for path in difference.removed:
            lines.append(f"  {path:<{width}}{'':>12}        removed: it lies in a folder of this {plan.kind}")
    return [*lines, f"  to send: {len(sent)} files, {sum(map(plan.size, sent)):,} bytes"]


_LOGIN = "run `hf auth login` again, or fix HF_TOKEN, which is read first"


@contextmanager
def explained(plan: Push) -> Iterator[None]:
    """Turn the errors of `huggingface_hub` into one that a user is meant to read, in which the token is not shown."""
    try:
        yield
    except QabiasError:
        raise
    except LocalTokenNotFoundError as error:
        raise QabiasError(
            "not logged in to the Hub: run `hf auth login`, or put a token that may write into HF_TOKEN"
        ) from error
    except OfflineModeIsEnabled as error:
        raise QabiasError("the Hub is switched off: unset HF_HUB_OFFLINE, or look with --dry-run") from error
    except UnicodeEncodeError as error:
        raise QabiasError(f"the token has a character that no token has; {_LOGIN}") from error
    except (HTTPError, RuntimeError, ValueError) as error:
        raise QabiasError(_without_token(_explain(error, plan))) from None


def _without_token(text: str) -> str:
    token = get_token()
    return text.replace(token, "[token]") if token else text


def _explain(error: BaseException, plan: Push) -> str:
    # An upload that fails in a thread comes as a RuntimeError around what happened.
    if isinstance(error, RuntimeError) and error.__cause__ is not None:
        return _explain(error.__cause__, plan)
    if isinstance(error, HfHubHTTPError):
        return _explain_answer(error, plan)
    if isinstance(error, HTTPError):
        return (
            f"{constants.ENDPOINT}: the connection failed ({type(error).__name__}); look at the network and run the "
            "same command again, what has arrived is not sent twice"
        )
    return f"{plan.kind} {plan.repo_id}: the Hub refused the files or broke off: {error}"


def _explain_answer(error: HfHubHTTPError, plan: Push) -> str:
    status = error.response.status_code
    said = error.server_message or error.response.reason_phrase
    owner = plan.repo_id.partition("/")[0]
    if status == 401 and not isinstance(error, RepositoryNotFoundError):
        return f"the Hub does not accept the token ({said}): {_LOGIN}"
    if status in (401, 403, 404):
        return (
            f"{plan.kind} {plan.repo_id}: this login may not write there ({status}: {said}); check that {owner} is "
            "your name or an organization of yours, and that the token has write permission"
        )
    fix = "run the same command again later" if status >= 429 else "fix that and run the same command again"
    return f"{plan.kind} {plan.repo_id}: the Hub answered {status}: {said}; {fix}"
