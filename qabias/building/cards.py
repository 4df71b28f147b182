"""What the YAML heads of all dataset cards have in common: the class of size and the description of a configuration."""

from typing import Any

import datasets

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def size_category(n_rows: int) -> str:
    """The size class of the Hub for a number of rows below ten million."""
    return next((name for bound, name in _SIZES if n_rows < bound), "1M<n<10M")


def dataset_info(
    features: datasets.Features, split: str, n_rows: int, n_bytes: int, download_size: int
) -> dict[str, Any]:
    """The entry of a configuration with one split in `dataset_info`, without its name.

    Args:
        features: Its columns.
        split: Name of its split.
        n_rows: Rows of the split.
        n_bytes: Bytes of the split in memory.
        download_size: Bytes of its files.
    """
    split_info = datasets.SplitInfo(name=split, num_bytes=n_bytes, num_examples=n_rows)
    info = datasets.DatasetInfo(
        features=features,
        splits=datasets.SplitDict({split: split_info}),
        download_size=download_size,
        dataset_size=n_bytes,
    )
    # The form in which `datasets` itself writes a card's head.
    return dict(info._to_yaml_dict())
