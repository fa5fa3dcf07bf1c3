"""Result files: measurements, with everything needed to repeat them."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jule.files import parse_json, write_json

Record = dict[str, Any]
REMEDY = "Move it away to measure it again"  # what to do about a damaged record
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
        record = parse_json(path.read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} does not exist: run the experiment or benchmark that writes it"
        ) from None
    except ValueError as error:
        raise ValueError(f"{path} is not a result file: {error}. {REMEDY}") from error
    if not isinstance(record, dict):
        raise ValueError(f"{path} is not a result file: it is not a JSON object. {REMEDY}")
    return record


def read_leftover(path: Path) -> Record:
    """Read a file of an interrupted measurement; return an empty record if that fails.

    Examples
    --------
    >>> read_leftover(Path("usage.json"))
    {}
    """
    try:
        return read_record(path)
    except (FileNotFoundError, ValueError):
        return {}


@contextmanager
def naming_results(name: str) -> Iterator[None]:
    """Say whose results are meant if a record has not got what it should have.

    Examples
    --------
    >>> with naming_results("joint"):
    ...     {}["scores"]
    Traceback (most recent call last):
        ...
    ValueError: a result of joint is damaged (KeyError: 'scores'). Move it away to measure it again
    """
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"a result of {name} is damaged ({what}). {REMEDY}") from error
