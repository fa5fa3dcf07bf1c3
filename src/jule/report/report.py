"""The page of a run as an object, for scripts, notebooks and the command line."""

from __future__ import annotations

import html
import json
import math
import shutil
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from jule.files import write_atomic
from jule.forward.branches import leaf_intervals
from jule.progress import Progress
from jule.report.arrays import page_arrays
from jule.report.inputs import originals_url, read_run_images
from jule.report.page import data_urls, render
from jule.report.pictures import Sheets, make_sheets
from jule.report.summary import summarize
from jule.runs.folder import PAGE, SKIPPED, SNAPSHOTS, SUMMARY, RunFolder
from jule.runs.results import RunResults, read_results
from jule.runs.snapshots import Snapshot, load_snapshots
from jule.runs.tables import read_skipped

NOTEBOOK_MOST = 20_000_000  # bytes of thumbnails in the cell of a notebook


@dataclass(frozen=True, eq=False)
class Report:
    """The page of a run, and its summary.

    Attributes
    ----------
    summary
        The results as a plain dict; see `jule.report.summarize`.
    arrays
        The arrays that the page works with in the browser.
    names
        One name per sample.
    sheets
        Thumbnails; None for vectors, or if the images cannot be read.
    folder
        The run folder; None for results in memory.
    """

    summary: dict[str, Any]
    arrays: dict[str, NDArray] = field(repr=False)
    names: list[str] = field(repr=False)
    sheets: Sheets | None = field(repr=False)
    folder: Path | None = None

    @classmethod
    def of_run(
        cls,
        run: RunFolder,
        images: NDArray | None = None,
        *,
        source: str | Path | None = None,
        results: RunResults | None = None,
        umap: bool = True,
        progress: Progress | None = None,
    ) -> Report:
        """Make the report of a finished run.

        Parameters
        ----------
        run
            The run folder.
        images
            The images of the run, if they are in memory; otherwise they are read again.
        source
            Where the images are, if they have been moved since the run.
        results
            The results of the run, if they are in memory; otherwise they are read.
        umap
            Whether to add a UMAP map where umap-learn is installed, which takes longer.
        progress
            Called with the name of a stage and the fraction of it that is done.
        """
        results = results or read_results(run)
        images, problem = read_run_images(run, source) if images is None else (images, "")
        made = cls.of_results(
            results,
            images,
            source=source or run.about()["source"] or run.folder,
            skipped=read_skipped(run.path(SKIPPED)),
            snapshots=load_snapshots(run.path(SNAPSHOTS)),
            no_pictures=problem,
            umap=umap,
            progress=progress,
        )
        return replace(made, folder=run.folder)

    @classmethod
    def of_results(
        cls,
        results: RunResults,
        images: NDArray | None = None,
        *,
        source: str | Path = "",
        skipped: Sequence[tuple[str, str]] = (),
        snapshots: Sequence[Snapshot] = (),
        no_pictures: str = "",
        umap: bool = True,
        progress: Progress | None = None,
    ) -> Report:
        """Make the report of results in memory.

        Parameters
        ----------
        results
            The results of a run.
        images
            (n, h, w) or (n, h, w, c): the images. With vectors or None, the page has no pictures.
        source
            Where the images came from: the title of the page, and the folder of the originals.
        skipped
            (path, reason) of every file that could not be used.
        snapshots
            The positions of the samples after each period.
        no_pictures
            The reason if there are no images, shown on the page.
        umap
            Whether to add a UMAP map where umap-learn is installed, which takes longer.
        progress
            Called with the name of a stage and the fraction of it that is done.
        """
        tell = progress or (lambda *_: None)
        tell("summary", 0.0)
        summary = summarize(
            results,
            images,
            skipped=skipped,
            snapshots=snapshots,
            title=Path(source).name,
            no_pictures=no_pictures,
            originals=originals_url(source, results.names),
        )
        tell("positions", 0.0)
        arrays = page_arrays(results, snapshots, umap=umap)
        tell("pictures", 0.0)
        sheets = None
        if images is not None and images.ndim > 2:
            starts, _ = leaf_intervals(results.result.tree)
            sheets = make_sheets(images, np.argsort(starts[: len(images)]))
        tell("pictures", 1.0)
        return cls(summary, arrays, results.names, sheets)

    @cached_property
    def html(self) -> str:
        """The page as HTML, with all thumbnails embedded."""
        return self._page([] if self.sheets is None else data_urls(self.sheets))

    @property
    def json(self) -> str:
        """The summary as JSON."""
        return json.dumps(_finite(self.summary), indent=2) + "\n"

    def _page(self, urls: Sequence[str]) -> str:
        numbered = self.names == [str(number) for number in range(len(self.names))]
        names = None if numbered else self.names
        return render(_finite(self.summary), self.arrays, names, self.sheets, urls)

    def write_html(self, path: str | Path) -> Path:
        """Write the page; more than 2,000 thumbnails go into a folder beside it."""
        path = Path(path)
        folder = path.with_name(path.stem + "_pictures")
        beside = self.sheets is not None and not self.sheets.inline
        names = self._write_sheets(folder) if beside else []
        urls = [f"{quote(folder.name, errors='surrogateescape')}/{name}" for name in names]
        text = self._page(urls) if beside else self.html
        # Bytes in a name that are not UTF-8 are shown as escapes.
        write_atomic(path, text.encode("utf-8", "backslashreplace"))
        if not beside:
            shutil.rmtree(folder, ignore_errors=True)  # of an earlier, larger report
        return path

    def _write_sheets(self, folder: Path) -> list[str]:
        assert self.sheets is not None
        folder.mkdir(exist_ok=True)
        names = [f"{number:04d}.{self.sheets.kind}" for number in range(len(self.sheets.content))]
        for name, content in zip(names, self.sheets.content, strict=True):
            write_atomic(folder / name, content)
        for old in folder.glob("[0-9][0-9][0-9][0-9].*"):
            if old.name not in names:
                old.unlink()
        return names

    def write(self, run: RunFolder) -> Path:
        """Write report.html and report.json into a run folder."""
        write_atomic(run.path(SUMMARY), self.json.encode())
        return self.write_html(run.path(PAGE))

    def open(self, path: str | Path | None = None) -> Path:
        """Write the page and open it in the browser.

        By default it is written into the folder of the run, or, for results in memory, to
        report.html in the current folder.
        """
        written = self.write_html(path or (self.folder or Path()) / PAGE)
        webbrowser.open(written.resolve().as_uri())
        return written

    def _repr_html_(self) -> str:
        heavy = self.sheets is not None and sum(map(len, self.sheets.content)) > NOTEBOOK_MOST
        page = replace(self, sheets=None).html if heavy else self.html
        return (
            f'<iframe srcdoc="{html.escape(page)}" title="The page of a run" '
            'style="width:100%;height:48rem;border:0" loading="lazy"></iframe>'
        )


def _finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have, with None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
