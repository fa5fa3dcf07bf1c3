"""Where this system keeps what programs can make again."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def user_cache() -> Path:
    """Give the folder where this system keeps what programs can make again.

    Examples
    --------
    >>> user_cache()  # doctest: +SKIP
    """
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
