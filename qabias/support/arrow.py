"""Arrow columns as NumPy arrays."""

import numpy as np
import pyarrow as pa


def column_codes(column: pa.ChunkedArray) -> np.ndarray:
    """Number the distinct values of a column by first occurrence; int64 array of shape (n,)."""
    codes: np.ndarray = column.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    return codes
