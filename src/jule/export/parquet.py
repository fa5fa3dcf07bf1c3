"""Write tables as Parquet files, for data frames in any language."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.files import write_atomic


def write_parquet(path: Path, columns: Mapping[str, Sequence[Any] | NDArray]) -> None:
    """Write columns of equal length to a Parquet file, atomically."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError('Parquet files need pyarrow: pip install "jule[parquet]"') from error
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns must have equal lengths, got {lengths}")
    table = pyarrow.table({name: _plain(values) for name, values in columns.items()})
    content = io.BytesIO()
    parquet.write_table(table, content)
    write_atomic(path, content.getvalue(), private=False)


def _plain(values: Sequence[Any] | NDArray) -> Any:
    """Return strings as valid UTF-8, with lone surrogates (bytes of odd names) escaped."""
    import pyarrow

    if isinstance(values, np.ndarray) or not all(isinstance(value, str) for value in values):
        return values
    spelled = [text.encode("utf-8", "backslashreplace").decode() for text in values]
    return pyarrow.array(spelled, pyarrow.string())  # typed even if empty
