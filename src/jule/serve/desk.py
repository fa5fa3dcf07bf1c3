"""What the server does, without the web: the state of a run, edits of it, its page."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.corrections.apply import SHELF, apply_edit
from jule.corrections.requests import Request, RequestError, make_edit, whole
from jule.locks import hold
from jule.progress import Progress
from jule.report import Report
from jule.report.arrays import cluster_arrays, for_browser
from jule.report.pictures import Sheets, sheet_like
from jule.report.sample import most_shown
from jule.report.stored import StoredPage, read_stored
from jule.report.summary import TYPICAL, links, suggest
from jule.runs.corrected import with_state
from jule.runs.edits import PATIENCE, ChangedRunError, EditSession, StaleError
from jule.runs.folder import RunFolder
from jule.runs.results import RunResults
from jule.serve.originals import Originals

AT_ONCE = 120  # images of a cluster in one answer
MOST_KEPT = 1000  # images of one edit that the page of a large run shows from then on
# Entries of the summary that change with the clusters.
CHANGING = (
    "labels", "clusters", "shelf", "chosen", "edited", "sureness", "groups", "doubts", "n_doubts",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Shown:
    """The results and the page of one revision."""

    revision: int
    results: RunResults
    report: Report


class Desk:
    """A run that is looked at and edited in a browser; several threads may use it.

    Parameters
    ----------
    run
        A finished run.
    source
        Where its pictures are, if they have been moved since.
    progress
        Called with the name of a stage and the fraction of it that is done, while the first page is
        made.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import jule
    >>> points = np.random.default_rng(0).normal(size=(40, 2))
    >>> with TemporaryDirectory() as folder:
    ...     jule.JULE(n_clusters=2, settings={"min_images": 100}).fit(points).save(folder)
    ...     desk = Desk(RunFolder(folder))
    ...     named = desk.edit({"revision": 0, "edit": "name", "cluster": 0, "name": "left"})
    >>> named["revision"], named["names"], named["undo"]
    (1, ['left', ''], 'name')
    """

    def __init__(
        self, run: RunFolder, source: str | None = None, progress: Progress | None = None
    ) -> None:
        self.run = run
        self.session = EditSession(run)
        self.first_revision = self.session.revision
        self.n_samples = len(self.session.found.names)
        self.originals = Originals(run, self.session.found, source)
        self._source = source
        self._lock = threading.Lock()  # of the session, held for moments
        self._making = threading.Lock()  # of the page, held for seconds
        self._n_changes = 0  # under way
        self._no_change = threading.Condition()
        self._stored = read_stored(run, self.session.found.id, self.n_samples)
        is_large = most_shown(self.session.found) < self.n_samples
        if is_large and self._stored is not None and self._stored.rows is None:
            self._stored = None  # a page of all images is too large now
        if source is not None and self._stored is not None and self._stored.sheets is None:
            self._stored = None  # now there may be pictures
        self._shown: _Shown | None = None
        report = self._show(progress).report
        names = ("coords", "umap")
        self._stored = StoredPage(
            report.sheets,
            {name: report.arrays[name] for name in names if name in report.arrays},
            {name: report.summary[name] for name in ("image_shape", "pictures", "no_pictures")},
            None if report.sample is None else report.sample.rows,
        )
        self._more: list[int] = []  # rows that edits are about and that the page does not show

    # ---- looking

    def state(self) -> dict[str, Any]:
        """Return the clusters as they are now, with whatever other processes have saved."""
        with self._lock:
            self.session.refresh()
            return self._state()

    def _state(self) -> dict[str, Any]:
        state, log = self.session.state, self.session.editor.log
        labels, names = state.numbered()
        numbers = [*state.numbers.tolist(), *([SHELF] if state.has_shelf else [])]
        rows = self._rows
        self._cover(labels, len(numbers))
        return {
            "revision": self.session.revision,
            "labels": for_browser(labels[rows]),
            "by_hand": for_browser(state.by_hand[rows].astype("uint8")),
            "more": {"rows": self._more, "labels": labels[self._more].tolist()},
            "sizes": np.bincount(labels, minlength=len(numbers)).tolist(),
            "numbers": numbers,
            "next_number": state.next_label,
            "names": [names.get(place, "") for place in range(len(numbers))],
            "undo": log.edits[log.done - 1].kind if log.done else "",
            "redo": log.edits[log.done].kind if log.done < len(log.edits) else "",
            "links": links(state.links, self.session.editor.base),
        }

    @property
    def _rows(self) -> Any:
        """The rows of the images on the page, as an index."""
        rows = None if self._stored is None else self._stored.rows
        return slice(None) if rows is None else rows

    def _cover(self, labels: NDArray[np.int32], k: int) -> None:
        """Add images of clusters of which the page shows none, and those of links."""
        if isinstance(self._rows, slice):
            return
        known = np.zeros(len(labels), bool)
        known[self._rows] = known[self._more] = True
        state, find = self.session.state, self.session.editor.base.pictures.find_all
        linked = [one for link in state.links for one in find((*link.pictures, *link.others))]
        shown = np.bincount(labels[known], minlength=k)
        for cluster in np.flatnonzero(shown == 0):
            linked += np.flatnonzero(labels == cluster)[:TYPICAL].tolist()
        self._more += [int(one) for one in dict.fromkeys(linked) if not known[one]]

    def clusters(self) -> dict[str, Any]:
        """Return what follows from the clusters: the merge tree, typical pictures, doubts."""
        shown = self._show()
        arrays = cluster_arrays(shown.results, shown.report.sample)
        summary = shown.report.summary
        return {
            "revision": shown.revision,
            "arrays": {name: for_browser(array) for name, array in arrays.items()},
            "summary": {name: summary[name] for name in CHANGING},
        }

    def suggestions(self) -> dict[str, Any]:
        """Return pairs of clusters that may be the same, and branches that may be strangers."""
        with self._lock:
            self.session.refresh()
            revision, state = self.session.revision, self.session.state
            base, edits = self.session.editor.base, self.session.editor.log.in_effect
        graph = self.session.found.result.graph
        return {"revision": revision, **suggest(graph, base, state, edits)}

    def contents(self, request: Request) -> dict[str, Any]:
        """Return some images of a cluster, the most typical first; see `images`.

        Parameters
        ----------
        request
            ``cluster``: its number; ``start``: how many are known already.
        """
        cluster, begin = whole(request, "cluster"), whole(request, "start")
        with self._lock:
            state, editor = self.session.state, self.session.editor
        members = np.flatnonzero(state.labels == cluster)
        if len(members) == 0 or not 0 <= begin < len(members):
            raise RequestError("there are no such images")
        ordered = editor.nearest_to_mean(members)[begin : begin + AT_ONCE]
        return {**self._about(ordered), "left": max(0, len(members) - begin - AT_ONCE)}

    def images(self, request: Request) -> dict[str, Any]:
        """Return names, confidence and thumbnails of images that the page does not show.

        Parameters
        ----------
        request
            ``rows``: their rows in labels.csv.
        """
        rows = request.get("rows")
        if not isinstance(rows, list) or not 0 < len(rows) <= AT_ONCE:
            raise RequestError(f"'rows' must be a list of 1 to {AT_ONCE} rows")
        if not all(type(row) is int and 0 <= row < self.n_samples for row in rows):
            raise RequestError("there are no such images")
        return self._about(np.array(rows))

    def parts(self, request: Request) -> dict[str, Any]:
        """Return what a split would make of a cluster, without making it.

        Parameters
        ----------
        request
            ``revision``: what the page has seen; and the split, as for `edit`.

        Returns
        -------
        dict
            ``sizes`` of what stays and of what leaves, and the rows of ``typical`` images of both.
        """
        with self._lock:
            self._check(whole(request, "revision"))
            editor = self.session.editor
            before = editor.state
            after = apply_edit(editor.base, before, make_edit(editor, {**request, "edit": "split"}))
        leaves = np.flatnonzero(after.labels != before.labels)
        stays = np.flatnonzero(after.labels == before.labels[leaves[0]])
        return {
            "sizes": [len(stays), len(leaves)],
            "typical": [editor.typical_of(part, TYPICAL).tolist() for part in (stays, leaves)],
        }

    def _about(self, rows: NDArray[np.int64]) -> dict[str, Any]:
        shown = self._shown
        assert shown is not None  # since the desk was made
        sample = shown.report.sample
        sheets = shown.report.sheets
        return {
            "rows": rows.tolist(),
            "names": [self.session.found.names[row] for row in rows],
            "stand_in": (rows if sample is None else sample.stands_for[rows]).tolist(),
            "confidence": shown.results.result.confidence[rows].tolist(),
            "indices": self.session.found.indices[rows].tolist(),
            "sheet": "" if sheets is None else self._sheet(rows, sheets),
        }

    def _sheet(self, rows: NDArray[np.int64], sheets: Sheets) -> str:
        """Return thumbnails that were not made for the page, as the data URL of a sheet."""
        size = sheets.height, sheets.width
        content = sheet_like(sheets, self.originals.thumbnails(rows.tolist(), size))
        return f"data:image/{sheets.kind};base64,{base64.b64encode(content).decode('ascii')}"

    def page(self) -> bytes:
        """Return the page as HTML."""
        while True:
            shown, state = self._show(), self.state()
            if shown.revision == state["revision"]:
                break
        urls = [f"sheets/{number}" for number in range(len(self.sheets))]
        return shown.report.served(state, urls)

    @property
    def sheets(self) -> Sequence[bytes]:
        """The sheets of thumbnails."""
        sheets = None if self._stored is None else self._stored.sheets
        return [] if sheets is None else sheets.content

    @property
    def sheet_type(self) -> str:
        """The media type of the sheets."""
        sheets = None if self._stored is None else self._stored.sheets
        return "" if sheets is None else f"image/{sheets.kind}"

    def _show(self, progress: Progress | None = None) -> _Shown:
        """Return results and page of the present revision; they are made if it is new."""
        with self._making:
            with self._lock:
                session = self.session
                session.refresh()
                revision, state, log = session.revision, session.state, session.editor.log
            if self._shown is None or self._shown.revision != revision:
                results = with_state(session.found, state, log)
                report = Report.of_run(
                    self.run,
                    source=self._source,
                    results=results,
                    umap=False,
                    stored=self._stored,
                    progress=progress,
                )
                self._shown = _Shown(revision, results, report)
            return self._shown

    # ---- editing

    def edit(self, request: Request) -> dict[str, Any]:
        """Make one edit and save it; return the clusters after it.

        Parameters
        ----------
        request
            ``revision``: what the page has seen; and the edit, see `jule.corrections.requests`.

        Raises
        ------
        StaleError
            If the clusters have changed since that revision. Nothing is saved then.
        ValueError
            If the edit is not possible; the message says why. Nothing is saved then.
        """

        def change(revision: int) -> None:
            self._check(revision)
            self.session.add(make_edit(self.session.editor, request), revision=revision)

        return self._change(request, change)

    def _check(self, revision: int) -> None:
        """Raise if the clusters have changed since a revision."""
        self.session.refresh()
        if revision != self.session.revision:
            raise StaleError(self.session.revision)

    def undo(self, request: Request) -> dict[str, Any]:
        """Undo the last edit; return the clusters after it."""
        return self._change(request, self.session.undo)

    def redo(self, request: Request) -> dict[str, Any]:
        """Redo the edit that was undone last; return the clusters after it."""
        return self._change(request, self.session.redo)

    def _change(self, request: Request, change: Callable[[int], object]) -> dict[str, Any]:
        revision = whole(request, "revision")
        with self._counted(), self._lock:
            change(revision)
            self._keep_shown(request)
            return self._state()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count a change while it is under way."""
        with self._no_change:
            self._n_changes += 1
        try:
            yield
        finally:
            with self._no_change:
                self._n_changes -= 1
                self._no_change.notify_all()

    def _keep_shown(self, request: Request) -> None:
        """Show the images that an edit named from now on."""
        if isinstance(self._rows, slice):
            return
        given = (request.get("images"), request.get("others"))  # kinds without them do not check
        named = [
            row
            for rows in given
            if isinstance(rows, list)
            for row in rows
            if type(row) is int and 0 <= row < self.n_samples
        ]
        known = {*self._rows.tolist(), *self._more}
        self._more += [row for row in dict.fromkeys(named) if row not in known][:MOST_KEPT]

    def finish(self) -> bool:
        """Write labels.csv and the page with all edits; return whether there was any new one.

        Edits under way are waited for. A run that another command has changed is left as it is:
        that command wrote both.
        """
        with self._no_change:
            # Windows interrupts no wait that has no limit.
            while not self._no_change.wait_for(lambda: self._n_changes == 0, timeout=1):
                pass
        try:
            if self.state()["revision"] == self.first_revision:
                return False
            with hold(self.run.home, wait=PATIENCE):
                self.session.write_labels()
                self._show().report.write(self.run)
        except ChangedRunError:
            return False
        return True
