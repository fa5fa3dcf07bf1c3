"""Tables as Parquet files, which data frames of every language read."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.joint.state import write_whole


def write_parquet(path: Path, columns: Mapping[str, Sequence[Any] | NDArray]) -> None:
    """Write columns of one length to a Parquet file, whole or not at all.

    Examples
    --------
    >>> write_parquet(Path("labels.parquet"), {"path": ["a"], "cluster": [0]})  # doctest: +SKIP
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError('Parquet files need pyarrow: pip install "jule[parquet]"') from error
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns must have one length, got {lengths}")
    table = pyarrow.table({name: _plain(values) for name, values in columns.items()})
    content = io.BytesIO()
    parquet.write_table(table, content)
    write_whole(path, content.getvalue())


def _plain(values: Sequence[Any] | NDArray) -> Any:
    """Give texts as UTF-8 has them: bytes of a file name that are no text are spelled out."""
    import pyarrow

    if isinstance(values, np.ndarray) or not all(isinstance(value, str) for value in values):
        return values
    spelled = [
        text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        for text in values
    ]
    return pyarrow.array(spelled, pyarrow.string())  # a type even where there are none
