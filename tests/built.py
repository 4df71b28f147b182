"""The texts of the datasets, built once for all tests, and the counts that the papers publish."""

import functools
import hashlib
import json
import re

import pyarrow as pa

from qabias.share.bbq_dataset.origin import Origin as BbqOrigin
from qabias.share.unqover_dataset.columns import batches
from qabias.share.unqover_dataset.origin import Origin as UnqoverOrigin

# Parrish et al. 2022, Table 3: examples by category.
BBQ_TABLE_3 = {
    "Age": 3680,
    "Disability_status": 1556,
    "Gender_identity": 5672,
    "Nationality": 3080,
    "Physical_appearance": 1576,
    "Race_ethnicity": 6880,
    "Religion": 1200,
    "Sexual_orientation": 864,
    "SES": 6864,
    "Race_x_gender": 15960,
    "Race_x_SES": 11160,
}
# Li et al. 2020, Table 1, in full figures: examples by set.
UNQOVER_TABLE_1 = {"gender": 1_372_000, "nationality": 1_154_232, "ethnicity": 73_500, "religion": 38_500}


@functools.cache
def bbq_rows(config, source="bundled", upstream=None, fixes=False):
    """The rows of a category or of a configuration of BBQ as inference. No test may change them."""
    return list(BbqOrigin(source, fixes=fixes).rows(config))


@functools.cache
def unqover_table(config, source="bundled", upstream=None):
    """The examples of a configuration of UnQover, texts dictionary-encoded."""
    return UnqoverOrigin(source).table(config)


def unqover_rows(table: pa.Table):
    """The rows of a table of UnQover with plain strings."""
    return [row for batch in batches(table) for row in batch.to_pylist()]


def word_runs(text, n=6):
    """The runs of n words in a text or template; a slot breaks a run."""
    runs = set()
    for piece in re.split(r"\{\{\w+\}\}", text):
        words = re.findall(r"[a-z0-9']+", piece.lower())
        runs |= {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}
    return runs


def digest_of(table):
    """The first digits of the SHA-256 of rows, or of a table whose texts are dictionary-encoded."""
    if isinstance(table, list):
        return hashlib.sha256(json.dumps(table).encode()).hexdigest()[:8]
    digest = hashlib.sha256()
    for column in table.columns:
        chunk = column.combine_chunks()
        is_encoded = pa.types.is_dictionary(chunk.type)
        digest.update(json.dumps(chunk.dictionary.to_pylist() if is_encoded else []).encode())
        digest.update((chunk.indices if is_encoded else chunk).to_numpy().tobytes())
    return digest.hexdigest()[:8]
