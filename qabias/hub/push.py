"""Compare a plan with what the Hub holds, and send what differs as one commit or pull request."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import RepositoryNotFoundError
from huggingface_hub.hf_api import RepoFile

from qabias.building.sources import git_blob_sha1
from qabias.errors import QabiasError
from qabias.hub.changes import Push
from qabias.hub.failures import told_in_one_line
from qabias.support.version import __version__

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
        with told_in_one_line(plan):
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
        with told_in_one_line(plan):
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
