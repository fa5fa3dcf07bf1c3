"""Report: the page of a run as an object, for scripts, notebooks and the command line."""

from __future__ import annotations

import html
import json
import math
import shutil
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from numpy.typing import NDArray

from jule.joint.clustering import view
from jule.joint.state import write_whole
from jule.report.arrays import leaf_order, page_arrays
from jule.report.page import data_urls, render
from jule.report.pictures import Sheets, make_sheets
from jule.report.source import (
    AUTO,
    cluster_names,
    duplicate_files,
    identical_images,
    images_of,
    skipped_files,
)
from jule.report.summary import summarize
from jule.runs import SNAPSHOTS, Finished, Run, read_results
from jule.snapshots import Snapshot, load_snapshots

PAGE, SUMMARY = "report.html", "report.json"
NOTEBOOK_MOST = 20_000_000  # bytes of pictures that a notebook's cell may hold
Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False)
class Report:
    """The page of a run: groups, how sure they are, what lies between, and other numbers of them.

    Attributes
    ----------
    summary
        What was found, as a plain dict; see `jule.report.summarize`.
    arrays
        What the page works with in the browser.
    names
        One text a sample.
    sheets
        Its pictures; None for vectors, or where the images are gone.

    Examples
    --------
    >>> report = Report.of_run(Run(Path("faces")))  # doctest: +SKIP
    >>> report.write_html("faces.html")  # doctest: +SKIP
    """

    summary: dict[str, Any]
    arrays: dict[str, NDArray] = field(repr=False)
    names: list[str] = field(repr=False)
    sheets: Sheets | None = field(repr=False)

    @classmethod
    def of_run(
        cls,
        run: Run,
        *,
        images: NDArray | None = None,
        source: str | Path | None = None,
        body: Any = None,
        umap: bool = True,
        progress: Progress | None = None,
    ) -> Report:
        """Read a finished run and its images; `source` is where they are now, if they were moved.

        `images` are the run's own, where they are already in memory.
        `body` is the user's own network, if the run was made with one; `umap` adds a better map
        where umap-learn is installed, which takes longer.

        Examples
        --------
        >>> Report.of_run(Run(Path("faces"))).summary["clusters"]  # doctest: +SKIP
        """
        finished = read_results(run, body, device="cpu")
        numbers = json.loads(run.path("result.json").read_text(encoding="utf-8"))
        images, problem = images_of(run, source) if images is None else (images, "")
        return cls.of_results(
            finished,
            images,
            scores=numbers.get("scores"),
            seconds=numbers.get("seconds"),
            cluster_names=cluster_names(run),
            skipped=skipped_files(run),
            duplicates=duplicate_files(run),
            snapshots=load_snapshots(run.path(SNAPSHOTS)),
            edited=run.path(AUTO).exists(),
            title=Path(source or run.about()["source"] or run.folder).name,
            no_pictures=problem,
            umap=umap,
            progress=progress,
        )

    @classmethod
    def of_results(
        cls,
        finished: Finished,
        images: NDArray | None = None,
        *,
        duplicates: Sequence[Sequence[str]] | None = None,
        snapshots: Sequence[Snapshot] = (),
        umap: bool = True,
        progress: Progress | None = None,
        **about: Any,
    ) -> Report:
        """Make a report of results in memory; `about` is passed on to `summarize`.

        Where nobody looked for exact copies, images that are equal in every pixel count as such.

        Examples
        --------
        >>> Report.of_results(finished, images)  # doctest: +SKIP
        """
        tell = progress or (lambda stage, share: None)
        seen = view(finished.result.embedding, finished.config, progress)
        tell("summary", 0.0)
        if duplicates is None:
            same = identical_images(images)
            duplicates = [[finished.names[i] for i in group] for group in same]
        summary = summarize(
            finished,
            images,
            seen=seen,
            duplicates=duplicates,
            snapshots=snapshots,
            **about,
        )
        tell("positions", 0.0)
        arrays = page_arrays(finished, seen, snapshots, umap=umap)
        tell("pictures", 0.0)
        sheets = None
        if images is not None and images.ndim > 2:
            sheets = make_sheets(images, leaf_order(finished.result.tree))
        tell("pictures", 1.0)
        return cls(summary, arrays, finished.names, sheets)

    @cached_property
    def html(self) -> str:
        """The page with all its pictures inside."""
        return self._page([] if self.sheets is None else data_urls(self.sheets))

    @property
    def json(self) -> str:
        """The summary as text."""
        return json.dumps(_finite(self.summary), indent=2) + "\n"

    def _page(self, urls: Sequence[str]) -> str:
        numbered = self.names == [str(number) for number in range(len(self.names))]
        names = None if numbered else self.names
        return render(_finite(self.summary), self.arrays, names, self.sheets, urls)

    def write_html(self, path: str | Path) -> Path:
        """Write the page; many pictures go into a folder beside it.

        Examples
        --------
        >>> report.write_html("faces.html")  # doctest: +SKIP
        """
        path = Path(path)
        folder = path.with_name(path.stem + "_pictures")
        text = self.html if self.sheets is None or self.sheets.inline else self._beside(folder)
        # A name that is not text in UTF-8 is shown with its bytes spelled out.
        write_whole(path, text.encode("utf-8", "backslashreplace"))
        if self.sheets is None or self.sheets.inline:
            shutil.rmtree(folder, ignore_errors=True)  # of an earlier, larger report
        return path

    def _beside(self, folder: Path) -> str:
        assert self.sheets is not None
        folder.mkdir(exist_ok=True)
        names = [f"{number:04d}.{self.sheets.kind}" for number in range(len(self.sheets.content))]
        for old in folder.glob("[0-9][0-9][0-9][0-9].*"):
            old.unlink()
        for name, content in zip(names, self.sheets.content, strict=True):
            (folder / name).write_bytes(content)
        return self._page(
            [f"{quote(folder.name, errors='surrogateescape')}/{name}" for name in names]
        )

    def write(self, run: Run) -> Path:
        """Write report.html and report.json into a run folder.

        Examples
        --------
        >>> report.write(Run(Path("faces")))  # doctest: +SKIP
        """
        write_whole(run.path(SUMMARY), self.json.encode())
        return self.write_html(run.path(PAGE))

    def open(self, path: str | Path = PAGE) -> Path:
        """Write the page and show it in the browser.

        Examples
        --------
        >>> report.open("faces.html")  # doctest: +SKIP
        """
        written = self.write_html(path)
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
    """Replace numbers that JSON does not know by None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
