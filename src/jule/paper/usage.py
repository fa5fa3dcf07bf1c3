"""Time and memory of the stages of a long measurement, counted over interruptions."""

from __future__ import annotations

import time
from pathlib import Path

from jule.files import write_json
from jule.memory import peak_memory, reset_peak_memory
from jule.paper.records import read_leftover
from jule.progress import Progress

SAVE_EVERY = 10.0  # seconds
PEAKS = "peak memory of the stages in MiB"  # in the file


class Usage:
    """Counts the seconds and the largest memory of each stage, and saves them as it goes.

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
    ...     list(usage.seconds), list(usage.peaks)
    (['codes'], ['codes'])
    """

    def __init__(self, path: Path, progress: Progress) -> None:
        saved = read_leftover(path)
        self.seconds: dict[str, float] = saved.get("seconds", {})
        self.peaks: dict[str, int] = saved.get(PEAKS, {})
        self._path, self._progress = path, progress
        self._stage: str | None = None
        self._last = self._saved = time.perf_counter()

    def begin(self, stage: str) -> None:
        """Count from now on for a stage."""
        self.end()
        self._stage = stage
        reset_peak_memory()

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
        if self._stage is not None and (used := peak_memory()) is not None:
            self.peaks[self._stage] = max(used // 2**20, self.peaks.get(self._stage, 0))
        write_json(self._path, {"seconds": self.seconds, PEAKS: self.peaks})
        self._saved = self._last
