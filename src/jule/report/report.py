"""The page of a run as an object, for scripts, notebooks and the command line."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from jule.files import make_folder, write_atomic
from jule.forward import MergeTree
from jule.forward.branches import leaf_intervals
from jule.locks import hold
from jule.progress import Progress
from jule.report.arrays import page_arrays
from jule.report.inputs import (
    is_trusted,
    originals_url,
    read_run_images,
    read_skipped,
    read_snapshots,
)
from jule.report.page import data_urls, render
from jule.report.pictures import Sheets, make_sheets
from jule.report.sample import Sample, choose_rows, most_shown
from jule.report.stored import SheetsBeside, StoredPage
from jule.report.summary import listed_rows, summarize
from jule.runs.folder import RunFolder
from jule.runs.manifest import read_manifest
from jule.runs.names import PAGE, PAGE_PICTURES, SUMMARY
from jule.runs.results import RunResults, read_results
from jule.runs.snapshots import Snapshot

# A sheet is named by its content, so that a page never shows the sheets of another.
SHEET = re.compile(r"sheet-[0-9a-f]{16}\.(jpg|png)")
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
    sample
        The samples that the page shows, of a run that is too large for one page; None for all.
    """

    summary: dict[str, Any]
    arrays: dict[str, NDArray] = field(repr=False)
    names: list[str] = field(repr=False)
    sheets: Sheets | None = field(repr=False)
    folder: Path | None = None
    sample: Sample | None = field(default=None, repr=False)

    @classmethod
    def of_run(
        cls,
        run: RunFolder,
        images: NDArray | None = None,
        *,
        source: str | Path | None = None,
        results: RunResults | None = None,
        umap: bool = True,
        stored: StoredPage | None = None,
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
        stored
            An earlier page of the run, whose thumbnails and positions are used again; the images
            are not read then.
        progress
            Called with the name of a stage and the fraction of it that is done.
        """
        results = results or read_results(run)
        link_originals = bool(source) or images is not None or is_trusted(run)
        problem = ""
        if images is None and stored is None:
            images, problem = read_run_images(run, source)
        made = cls.of_results(
            results,
            images,
            source=source or run.about()["source"] or run.home,
            skipped=read_skipped(run),
            snapshots=read_snapshots(run, len(results.names)),
            no_pictures=problem,
            link_originals=link_originals,
            encoder=(run.features() or {}).get("about", ""),
            umap=umap,
            stored=stored,
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
        link_originals: bool = True,
        encoder: str = "",
        umap: bool = True,
        stored: StoredPage | None = None,
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
        link_originals
            Whether the page may show the originals, if `source` is a folder.
        encoder
            What the pretrained encoder is that described the pictures; empty for pixels.
        umap
            Whether to add a UMAP map where umap-learn is installed, which takes longer.
        stored
            An earlier page, whose thumbnails and positions are used again.
        progress
            Called with the name of a stage and the fraction of it that is done.
        """
        tell = progress or (lambda *_: None)
        tell("summary", 0.0)
        rows = None if stored is None else stored.rows
        summary = summarize(
            results,
            images,
            skipped=skipped,
            snapshots=snapshots,
            title=Path(source).name,
            no_pictures=no_pictures,
            originals=originals_url(source, results.names) if link_originals else None,
            encoder=encoder,
            rows=rows,
        )
        shown = most_shown(results)
        if rows is None and shown < len(results.names):
            rows = choose_rows(results, shown, listed_rows(summary))
        result = results.result
        sample = None if rows is None else Sample.of(result.tree, result.labels, rows)
        tell("pictures", 0.0)
        if stored is None:
            sheets, problem = _sheets(images, result.tree, rows)
            if problem:
                summary |= {"pictures": False, "image_shape": None, "no_pictures": problem}
        else:
            sheets = stored.sheets
            summary |= stored.pictures
        tell("pictures", 1.0)
        tell("positions", 0.0)
        positions = None if stored is None else stored.positions
        arrays = page_arrays(results, snapshots, umap=umap, positions=positions, sample=sample)
        tell("positions", 1.0)
        return cls(summary, arrays, results.names, sheets, sample=sample)

    @cached_property
    def html(self) -> str:
        """The page as HTML, with all thumbnails embedded."""
        return self._whole_page().decode()

    def _whole_page(self) -> bytes:
        return self._page([] if self.sheets is None else data_urls(self.sheets))

    @property
    def json(self) -> str:
        """The summary as JSON."""
        return json.dumps(self._finite_summary, indent=2) + "\n"

    @cached_property
    def _finite_summary(self) -> dict[str, Any]:
        finite: dict[str, Any] = _finite(self.summary)
        return finite

    def served(self, about: Mapping[str, Any], urls: Sequence[str]) -> bytes:
        """Return the page for a server that saves edits, with sheets at other addresses.

        Parameters
        ----------
        about
            What the page gets as ``RUN.served``.
        urls
            The address of every sheet, relative to the page.
        """
        return self._page(urls, about)

    def _page(self, urls: Sequence[str], served: Mapping[str, Any] | None = None) -> bytes:
        numbered = all(name == str(number) for number, name in enumerate(self.names))
        names = None if numbered else self.names
        if names is not None and self.sample is not None:
            names = [names[row] for row in self.sample.rows.tolist()]
        return render(self._finite_summary, self.arrays, names, self.sheets, urls, served)

    def _files(self, name: str, folder: str) -> dict[str, bytes]:
        """Return the page and its sheets as files; with up to 2,000 images, the page alone."""
        if self.sheets is None or self.sheets.inline:
            return {name: self._whole_page()}
        suffix = "png" if self.sheets.kind == "png" else "jpg"
        contents = list(self.sheets.content)
        names = [
            f"sheet-{hashlib.sha256(content).hexdigest()[:16]}.{suffix}" for content in contents
        ]
        page = self._page([f"{quote(folder, errors='surrogateescape')}/{one}" for one in names])
        sheets = {f"{folder}/{one}": content for one, content in zip(names, contents, strict=True)}
        return {**sheets, name: page}

    def write_html(self, path: str | Path) -> Path:
        """Write the page; more than 2,000 thumbnails go into a folder beside it."""
        path = Path(path)
        if self.folder is not None and path.absolute() == (self.folder / PAGE).absolute():
            return self.write(RunFolder(self.folder))
        folder = path.with_name(path.stem + "_pictures")
        files = self._files(path.name, folder.name)
        if len(files) > 1:
            with suppress(FileExistsError):
                folder.mkdir()  # as readable as the page: the user chose the place
            make_folder(folder)  # raises if it is a link
        for name, content in files.items():  # the page is the last one
            write_atomic(path.parent / name, content, private=False)
        _remove_sheets(folder, keep=files)
        return path

    def write(self, run: RunFolder) -> Path:
        """Write report.html, its sheets and report.json into a run folder, all or nothing."""
        files = {**self._files(PAGE, PAGE_PICTURES), SUMMARY: self.json.encode()}
        with hold(run.folder):
            listed = read_manifest(run.folder) or {}
            old = {name for name in listed if name.startswith(f"{PAGE_PICTURES}/")}
            kept = old & set(files) if self._has_sheets_of(run) else set()
            changed = {name: content for name, content in files.items() if name not in kept}
            run.update(changed, remove=tuple(old - kept))
        return run.path(PAGE)

    def _has_sheets_of(self, run: RunFolder) -> bool:
        """Return whether the sheets are files of a run, which were checked when they were read."""
        content = None if self.sheets is None else self.sheets.content
        return isinstance(content, SheetsBeside) and content.run.folder == run.folder

    def open(self, path: str | Path | None = None) -> Path:
        """Write the page and open it in the browser.

        By default it is written into the folder of the run, or, for results in memory, to
        report.html in the current folder.
        """
        import webbrowser

        written = self.write_html(path or (self.folder or Path()) / PAGE)
        webbrowser.open(written.resolve().as_uri())
        return written

    def _repr_html_(self) -> str:
        import html  # a large table of entity names; only notebooks need it

        heavy = self.sheets is not None and sum(map(len, self.sheets.content)) > NOTEBOOK_MOST
        page = replace(self, sheets=None).html if heavy else self.html
        return (
            f'<iframe srcdoc="{html.escape(page)}" title="The page of a run" '
            'style="width:100%;height:48rem;border:0" loading="lazy"></iframe>'
        )


def _sheets(
    images: NDArray | None, tree: MergeTree, rows: NDArray[np.int64] | None
) -> tuple[Sheets | None, str]:
    """Return the thumbnails, or the reason why there are none although there are images."""
    if images is None or images.ndim < 3:
        return None, ""
    starts, _ = leaf_intervals(tree)
    places = starts[: len(images)] if rows is None else starts[rows]
    try:
        return make_sheets(images if rows is None else images[rows], np.argsort(places)), ""
    except Exception as error:  # a page without pictures is better than none
        return None, f"no thumbnails can be made ({str(error) or type(error).__name__})"


def _remove_sheets(folder: Path, keep: Container[str]) -> None:
    """Remove the sheets of an earlier page; anything else in the folder stays."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for old in folder.iterdir():
        if SHEET.fullmatch(old.name) and f"{folder.name}/{old.name}" not in keep:
            old.unlink(missing_ok=True)
    with suppress(OSError):  # it is not empty
        folder.rmdir()


def _finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have, with None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
