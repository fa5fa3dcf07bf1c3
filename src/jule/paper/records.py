"""Result files: measurements, with everything needed to repeat them."""

from __future__ import annotations

import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jule.files import write_json

Record = dict[str, Any]
PACKAGES = ("jule", "numpy", "scipy", "numba", "scikit-learn", "torch")


def write_record(path: Path, record: Record) -> Record:
    """Write a record as JSON, with the date and versions added; return the complete record.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = write_record(Path(folder, "usps.json"), {"nmi": 0.9})
    ...     read_record(Path(folder, "usps.json"))["nmi"]
    0.9
    """
    complete = {
        **record,
        "date": time.strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "versions": {"python": platform.python_version()}
        | {package: version(package) for package in PACKAGES},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, complete, private=False)
    return complete


def read_record(path: Path) -> Record:
    """Read a result file.

    Examples
    --------
    >>> read_record(Path("usps.json"))
    Traceback (most recent call last):
        ...
    FileNotFoundError: usps.json does not exist: run the experiment or benchmark that writes it
    """
    try:
        record: Record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} does not exist: run the experiment or benchmark that writes it"
        ) from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not a result file: {error}") from error
    return record
