"""Writes a dataset folder in the Hub's layout: Parquet, a card with a YAML head."""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from string import Template as TextTemplate
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import filelock
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from tqdm import tqdm

from qabias.building.origin import BUNDLED
from qabias.errors import QabiasError, arg
from qabias.support.files import sha256_of, write_atomically, write_text
from qabias.support.outputs import IsOwnFile, json_with
from qabias.support.printable import printable
from qabias.support.stored import read_fields, write_stored

if TYPE_CHECKING:
    import datasets

SPLIT = "test"
PARQUET_NAME = f"{SPLIT}-00000-of-00001.parquet"

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))

MARK = ".qabias-build.json"
"""The hidden file that marks a folder written by `qabias build`, with a checksum of every data file."""

_LOCK = ".lock"

Tables = Mapping[str, pa.Table]


def is_built(benchmark: str, config: str) -> IsOwnFile:
    """A folder is own if `qabias build` wrote this configuration of the benchmark there."""
    has_mark = json_with(benchmark=benchmark, config=config)
    return lambda folder: has_mark(folder / MARK)


def data_checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of every data file of a built folder, in hexadecimal digits, by its path there."""
    files: dict[str, str] = read_fields(folder / MARK, "build the folder again").get("files", {})
    return files


@contextmanager
def claimed(folder: Path, benchmark: str, config: str) -> Iterator[list[str]]:
    """Let one `qabias build` at a time write a folder, and mark it with the checksums of its data.

    Yields:
        What became of the data of another build, filled in at the end: removed if `qabias build` wrote the folder.

    Raises:
        QabiasError: If another command is building in the folder.
    """
    before_folders = _folders(folder)
    folder.mkdir(parents=True, exist_ok=True)
    has_new_lock = not (folder / _LOCK).exists()
    lock = filelock.FileLock(folder / _LOCK)
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        raise QabiasError(f"{folder}: another command is building here", f"Choose another {arg('output')}.") from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP):  # the file system has no locks
            raise
    mark = folder / MARK
    before = mark.read_bytes() if mark.is_file() else None
    files = _files(folder)
    others: list[str] = []
    write_stored(mark, {"benchmark": benchmark, "config": config})
    try:
        yield others
        data = sorted(path for path in _files(folder) if path.suffix == ".parquet")
        old = [path for path in data if files.get(path) == _files(folder)[path]]
        is_ours = before is not None
        others += [f"{'removed' if is_ours else 'kept'} {path.relative_to(folder).as_posix()}" for path in old]
        for path in old if is_ours else ():
            path.unlink()
            with suppress(OSError):  # other files are there
                path.parent.rmdir()
        sums = {path.relative_to(folder).as_posix(): sha256_of(path) for path in data if path not in old}
        write_stored(mark, {"benchmark": benchmark, "config": config, "files": sums})
    finally:
        if _files(folder) == files:
            if before is None:
                mark.unlink()
            else:
                write_atomically(mark, lambda temporary: temporary.write_bytes(before))
            if has_new_lock:
                (folder / _LOCK).unlink(missing_ok=True)
            for made in _folders(folder):
                if made not in before_folders:
                    made.rmdir()
        lock.release()


def _files(folder: Path) -> dict[Path, tuple[int, int]]:
    """The files in a folder but its mark and lock, and what is another of each when it has been written."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name not in (MARK, _LOCK))
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}


def _folders(folder: Path) -> list[Path]:
    """A folder and its subfolders, if they exist, the innermost first."""
    return sorted((path for path in (folder, *folder.rglob("*")) if path.is_dir()), reverse=True)


class Origin(Protocol):
    """The source of a dataset's texts."""

    @property
    def source(self) -> str:
        """Name of the source."""

    @property
    def version(self) -> str:
        """Name and version of the source."""

    def table(self, config: str) -> pa.Table:
        """The rows of one config."""


AnyOrigin = TypeVar("AnyOrigin", bound=Origin)


def parquet_path(config: str) -> str:
    """Path of a config's Parquet file inside a dataset folder."""
    return f"data/{config}/{PARQUET_NAME}"


class DatasetFolder(ABC, Generic[AnyOrigin]):
    """The folder of one dataset."""

    name: str

    def __init__(self, code: Path):
        self._card = code / "card.md"
        self._sources = code / "card_sources.yaml"

    @abstractmethod
    def _configurations(self, names: Sequence[str]) -> dict[str, list[str]]:
        """The table names of every config that some tables can form, the default config first."""

    @abstractmethod
    def _features(self, name: str) -> datasets.Features:
        """The columns of a table."""

    @abstractmethod
    def _source_values(self, origin: AnyOrigin) -> dict[str, Any]:
        """Values of the slots in the texts of `card_sources.yaml`."""

    @abstractmethod
    def _body_values(self, origin: AnyOrigin, texts: Mapping[str, str], tables: Tables) -> dict[str, Any]:
        """Values of the slots of `card.md`, in addition to the texts about source and version."""

    @abstractmethod
    def _head_fields(self, origin: AnyOrigin, names: Sequence[str]) -> dict[str, Any]:
        """License and tasks in the card's head, and other unusual fields; None removes a field."""

    def write_parquet(self, table: pa.Table, path: Path) -> None:
        """Write one table."""
        # Without schema metadata every version of `datasets` reads the features from the card.
        pq.write_table(table.replace_schema_metadata(None), path, compression="zstd", compression_level=19)

    def _n_bytes(self, table: pa.Table) -> int:
        """Bytes of a table in memory."""
        return int(table.nbytes)

    def write(self, output: Path, origin: AnyOrigin, configs: Sequence[str]) -> dict[str, pa.Table]:
        """Build tables with a progress bar, and write them with their card."""
        # A closed bar ends its line: an error then starts a new one.
        with tqdm(configs, unit="table", desc=printable(f"build {self.name}")) as bar:
            tables = {config: origin.table(config) for config in bar}
        for config, table in tables.items():
            write_atomically(output / parquet_path(config), partial(self.write_parquet, table))
        sizes = {config: (output / parquet_path(config)).stat().st_size for config in tables}
        write_text(output / "README.md", self.card_text(origin, tables, sizes))
        return tables

    def card_text(self, origin: AnyOrigin, tables: Tables, sizes: Mapping[str, int]) -> str:
        """The dataset card: YAML head and text, with every figure counted from the tables."""
        texts = self._texts(origin)
        body = TextTemplate(self._card.read_text(encoding="utf-8")).substitute(
            {**texts, "version": origin.version, **self._body_values(origin, texts, tables)}
        )
        head = yaml.safe_dump(
            self._head(origin, texts["title"], tables, sizes), sort_keys=False, allow_unicode=True, width=120
        )
        return f"---\n{head}---\n\n{body}"

    def _texts(self, origin: AnyOrigin) -> dict[str, str]:
        """The card's texts about the source, filled in."""
        values = {"version": origin.version, **self._source_values(origin)}
        texts = yaml.safe_load(self._sources.read_text(encoding="utf-8"))[origin.source]
        return {part: TextTemplate(text).substitute(values).rstrip() for part, text in texts.items()}

    def _head(self, origin: AnyOrigin, title: str, tables: Tables, sizes: Mapping[str, int]) -> dict[str, Any]:
        configurations = self._configurations(list(tables))
        default = next(iter(configurations))
        own = origin.source == BUNDLED
        head = {
            "language": ["en"],
            "pretty_name": f"{self.name} ({title})",
            "size_categories": [_size_category(sum(table.num_rows for table in tables.values()))],
            "source_datasets": ["original" if own else "extended"],
            # Language models helped to write the bundled texts, and no person has labeled or rated them.
            "annotations_creators": ["no-annotation" if own else "expert-generated"],
            "language_creators": ["machine-generated" if own else "expert-generated"],
            **self._head_fields(origin, list(tables)),
            "tags": ["bias", "fairness", "social-bias", "stereotypes", "evaluation"],
            "configs": [
                {
                    "config_name": config,
                    **({"default": True} if config == default else {}),
                    "data_files": [{"split": SPLIT, "path": _patterns(names)}],
                }
                for config, names in configurations.items()
            ],
            "dataset_info": [
                {"config_name": config, **self._dataset_info(tables, sizes, names)}
                for config, names in configurations.items()
            ],
        }
        return {name: value for name, value in head.items() if value is not None}

    def _dataset_info(self, tables: Tables, sizes: Mapping[str, int], names: Sequence[str]) -> dict[str, Any]:
        n_rows = sum(tables[name].num_rows for name in names)
        n_bytes = sum(self._n_bytes(tables[name]) for name in names)
        import datasets  # takes a second, and only cards need it

        info = datasets.DatasetInfo(
            features=self._features(names[0]),
            splits=datasets.SplitDict({SPLIT: datasets.SplitInfo(SPLIT, n_bytes, n_rows)}),
            download_size=sum(sizes[name] for name in names),
            dataset_size=n_bytes,
        )
        # The same form as in `datasets`.
        return dict(info._to_yaml_dict())


def _size_category(n_rows: int) -> str:
    """The Hub's size class for fewer than ten million rows."""
    return next((name for bound, name in _SIZES if n_rows < bound), "1M<n<10M")


def _patterns(names: Sequence[str]) -> str | list[str]:
    """The file pattern of a table, or the patterns of several."""
    patterns = [f"data/{name}/{SPLIT}-*.parquet" for name in names]
    return patterns[0] if len(patterns) == 1 else patterns
