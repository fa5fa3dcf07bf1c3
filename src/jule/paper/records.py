"""Result files: what was measured, with all that is needed to measure it again."""

from __future__ import annotations

import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("jule", "numpy", "scipy", "numba", "scikit-learn", "torch")


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write one result as JSON, whole or not at all, with date and versions added.

    Examples
    --------
    >>> write_record(Path("results/x.json"), {"nmi": 0.9})  # doctest: +SKIP
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {
        **record,
        "date": time.strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "versions": {"python": platform.python_version()}
        | {package: version(package) for package in PACKAGES},
    }
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    os.replace(part, path)


def read_record(path: Path) -> dict[str, Any]:
    """Read a result file; a damaged one is named in the error.

    Examples
    --------
    >>> read_record(Path("results/x.json"))  # doctest: +SKIP
    """
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} is not there: run the experiment or benchmark that writes it first"
        ) from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not a result file: {error}") from error
    return record
