"""A push before anything is sent: the repository, and its files by path."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from huggingface_hub import constants
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id

from qabias.errors import QabiasError

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
