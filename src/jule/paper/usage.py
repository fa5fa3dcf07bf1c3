"""Time and memory of a long measurement, counted over interruptions."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from jule.files import write_json
from jule.paper.records import read_record
from jule.progress import Progress

SAVE_EVERY = 10.0  # seconds


class Usage:
    """Counts the seconds of each stage and the largest memory, and saves them as it goes.

    Parameters
    ----------
    path
        The file that they are saved in. If it exists, counting goes on from there.
    progress
        Called by `report`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     usage = Usage(Path(folder, "usage.json"), lambda stage, share: None)
    ...     usage.begin("codes")
    ...     usage.report("codes of conv1", 0.5)
    ...     usage.end()
    ...     list(usage.seconds)
    ['codes']
    """

    def __init__(self, path: Path, progress: Progress) -> None:
        saved = read_record(path) if path.exists() else {}
        self.seconds: dict[str, float] = saved.get("seconds", {})
        self.peak: int | None = saved.get("peak memory in MiB")
        self._path, self._progress = path, progress
        self._stage: str | None = None
        self._last = self._saved = time.perf_counter()

    def begin(self, stage: str) -> None:
        """Count from now on for a stage."""
        self.end()
        self._stage = stage

    def report(self, stage: str, share: float) -> None:
        """Call the progress callback, and save what was counted from time to time."""
        self._count()
        if self._last - self._saved > SAVE_EVERY:
            self._save()
        self._progress(stage, share)

    def end(self) -> None:
        """Count for no stage from now on."""
        self._count()
        self._save()
        self._stage = None

    def _count(self) -> None:
        now = time.perf_counter()
        if self._stage is not None:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._last
        self._last = now

    def _save(self) -> None:
        used = peak_memory()
        if used is not None:
            self.peak = max(used, self.peak or 0)
        write_json(self._path, {"seconds": self.seconds, "peak memory in MiB": self.peak})
        self._saved = self._last


def peak_memory() -> int | None:
    """Return the largest memory that this process has had, in MiB; None where it is not known.

    Examples
    --------
    >>> peak_memory() is None or peak_memory() > 10
    True
    """
    try:
        import resource
    except ImportError:  # Windows
        return None
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used // (2**20 if sys.platform == "darwin" else 2**10)
