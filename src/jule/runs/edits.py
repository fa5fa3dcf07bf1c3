"""The corrections of a run, in its edits.json: read, saved one by one, applied to labels.csv.

`EditSession` is for programs in which a person edits; `apply_edits` is for a whole file.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jule.corrections.apply import SHELF, Corrected, EditError
from jule.corrections.constraints import constraints_from
from jule.corrections.editor import Editor
from jule.corrections.edits import Edit, EditLog
from jule.corrections.pictures import PictureIndex
from jule.files import parse_json, read_regular
from jule.forward.constraints import Constraints, ContradictionError
from jule.locks import hold
from jule.runs.corrected import (
    base_of,
    corrected_columns,
    log_bytes,
    parse_log,
    warn_of_another_number,
    with_state,
)
from jule.runs.folder import RunFolder
from jule.runs.import_labels import Row, rows_as_edits
from jule.runs.manifest import DamagedError, describe
from jule.runs.names import EDITS, LABELS, LABELS_AUTO, RESULT
from jule.runs.page_edits import EARLIER_FORMATS, PageEdits, page_as_edits, parse_page_edits
from jule.runs.page_edits import FORMAT as PAGE_FORMAT
from jule.runs.results import RunResults, read_found, read_log
from jule.runs.tables import labels_csv

if TYPE_CHECKING:
    from jule.images import Samples

MOST_BYTES = 2**28  # of a file of edits: a million moves have a tenth of it
PATIENCE = 5.0  # seconds to wait while another process saves an edit
MENTIONED = 3  # edits in a warning


class StaleError(ValueError):
    """The edits of a run have changed since the caller looked at them.

    Attributes
    ----------
    revision
        The present revision.
    """

    def __init__(self, revision: int) -> None:
        super().__init__(
            "the edits of this run were changed in another window: look at the present ones first"
        )
        self.revision = revision


class ChangedRunError(ValueError):
    """The run itself, not only its edits, has changed since a session began."""


class EditSession:
    """The corrections of a finished run, each saved when it is made.

    Parameters
    ----------
    run
        A finished run.

    Attributes
    ----------
    editor
        Makes edits from numbers of clusters (`editor.split(3)`); see `jule.corrections.editor`.
    found
        The results of the run as they were found.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import jule
    >>> points = np.random.default_rng(0).normal(size=(40, 2))
    >>> with TemporaryDirectory() as folder:
    ...     jule.JULE(n_clusters=2, settings={"min_images": 100}).fit(points).save(folder)
    ...     session = EditSession(RunFolder(folder))
    ...     revision = session.add(session.editor.name(0, "left"), revision=session.revision)
    ...     session.undo(), dict(session.state.names), EditSession(RunFolder(folder)).revision
    (2, {}, 2)
    """

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        self.found = read_found(run)
        manifest = run.manifest()
        log = read_log(run, manifest)
        self._run_seen = manifest[RESULT]  # size and checksum of what the edits start from
        self._seen = manifest.get(EDITS)  # the same of the edits that the editor has
        base = base_of(self.found, self.found.result)
        self.editor = Editor(base, self.found.result.embedding, log)
        self._results: tuple[Corrected, EditLog, RunResults] | None = None

    @property
    def revision(self) -> int:
        """The revision of the edits; it grows with every change."""
        return self.editor.log.revision

    @property
    def state(self) -> Corrected:
        """The clustering with all edits in effect."""
        return self.editor.state

    def add(self, *edits: Edit, revision: int | None = None) -> int:
        """Apply edits and save them, all or none; return the new revision.

        Parameters
        ----------
        *edits
            The edits.
        revision
            The revision that the caller has seen. Without it, whatever others have saved is kept,
            and these edits follow it.

        Raises
        ------
        StaleError
            If the edits have changed since that revision.
        EditError
            If an edit is not possible. Nothing is saved then.

        Warns
        -----
        UserWarning
            If corrections allow no cut into as many clusters as an edit asks for; the nearest
            number is taken.
        """
        revision = self._change(lambda: self.editor.add(*edits), revision)
        if edits:
            _warn_of_number(self.editor, edits[-1])
        return revision

    def undo(self, revision: int | None = None) -> int:
        """Undo the last edit and save that; return the new revision."""
        return self._change(self.editor.undo, revision)

    def redo(self, revision: int | None = None) -> int:
        """Redo the edit that was undone last and save that; return the new revision."""
        return self._change(self.editor.redo, revision)

    def refresh(self) -> int:
        """Take over what other processes have saved; return the revision.

        Raises
        ------
        ChangedRunError
            If pictures were added to the run, or it was trained again: a new session is needed.
        """
        manifest = self.run.manifest()
        if manifest[RESULT] != self._run_seen:
            raise ChangedRunError(
                f"{self.run.home} has changed since it was opened (pictures were added, or it was "
                "trained again): open it again"
            )
        if manifest.get(EDITS) != self._seen:
            self.editor.load(read_log(self.run, manifest))
            self._seen = manifest.get(EDITS)
        return self.revision

    def _change(self, change: Callable[[], None], revision: int | None) -> int:
        with hold(self.run.home, wait=PATIENCE):
            self.refresh()
            if revision not in (None, self.revision):
                raise StaleError(self.revision)
            before = self.editor.log
            try:
                change()
                content = log_bytes(self.editor.log)
                self.run.update({EDITS: content})
                self._seen = describe(content)
            except BaseException:
                if self.editor.log != before:
                    self.editor.load(before)
                raise
        return self.revision

    def results(self) -> RunResults:
        """Return the results of the run with all edits in effect."""
        known = self._known_results()
        if known is None:
            state, log = self.state, self.editor.log  # another thread may change them meanwhile
            known = with_state(self.found, state, log)
            self._results = state, log, known
        return known

    def _known_results(self) -> RunResults | None:
        """Return the results if they were computed since the last edit."""
        if self._results is None:
            return None
        state, log, results = self._results
        return results if state is self.state and log is self.editor.log else None

    def write_labels(self) -> None:
        """Write labels.csv with all edits in effect.

        The labels as they were found are kept in labels_auto.csv.
        """
        with hold(self.run.home, wait=PATIENCE):
            self.refresh()
            _write_labels(self)


def _write_labels(session: EditSession) -> None:
    run, state = session.run, session.state
    log = log_bytes(session.editor.log)
    # The table alone is cheaper than the results, but known results are reused.
    known = session._known_results()
    columns = corrected_columns(session.found, state) if known is None else known.columns()
    files = {EDITS: log, LABELS: labels_csv(columns, state.by_hand)}
    if LABELS_AUTO not in run.manifest():
        files[LABELS_AUTO] = run.read(LABELS)
    files = {name: content for name, content in files.items() if not _has(run, name, content)}
    if files:
        run.update(files)
    session._seen = describe(log)


def _has(run: RunFolder, name: str, content: bytes) -> bool:
    """Return whether a file of a run has some content already."""
    try:
        return run.read(name) == content
    except DamagedError:  # it is missing or was changed
        return False


def read_edits(path: Path) -> EditLog | PageEdits:
    """Read a file of edits: edits.json of a run, whose folder will do, or what a page downloads."""
    if path.is_dir():
        path = path / EDITS
    if not path.exists():
        home = path.parent
        if path.name == EDITS and RunFolder(home).is_finished:
            raise FileNotFoundError(f"{home} has no corrections: make them with jule serve {home}")
        raise FileNotFoundError(
            f"{path} does not exist: give edits.json of a run, or the file of the button "
            "'Download JSON' on the page"
        )
    try:
        value = parse_json(read_regular(path.resolve(), MOST_BYTES))
    except ValueError as error:
        raise ValueError(
            f"{path} is not JSON ({error}): use the file of the button 'Download JSON' on the page"
        ) from error
    try:
        return parse_edits(value)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def parse_edits(value: Any) -> EditLog | PageEdits:
    """Parse and check the content of a file of edits.

    Examples
    --------
    >>> parse_edits({"format": "jule-edits-3", "edits": []}).done
    0
    """
    written = value.get("format") if isinstance(value, dict) else None
    if written in EARLIER_FORMATS:
        raise ValueError(
            "these edits were made on a page of an earlier version: make the page again with "
            "jule report, and edit there"
        )
    if written == PAGE_FORMAT:
        return parse_page_edits(value)
    return EditLog.from_json(value)


def apply_edits(run: RunFolder, edits: EditLog | PageEdits | None = None) -> tuple[RunResults, int]:
    """Add edits to those of a run and write labels.csv; return its results and how many moved.

    See `write_edits`, which does not compute the results.
    """
    session, n_moved = write_edits(run, edits, with_results=True)
    return session.results(), n_moved


def write_edits(
    run: RunFolder, edits: EditLog | PageEdits | None = None, *, with_results: bool = False
) -> tuple[EditSession, int]:
    """Add edits to those of a run and write labels.csv; return the session and how many moved.

    Edits of a file that the run has already are not repeated. Those that are not possible, because
    their pictures are not in the run or a cannot-link forbids them, are left out with a warning.

    Parameters
    ----------
    run
        A finished run.
    edits
        The content of a file; None to write labels.csv with the edits that the run has.
    with_results
        Whether the results of the session are needed as well: the table is then made from them.
    """
    run.about()  # raises if there is no run
    with hold(run.home):
        session = EditSession(run)
        editor = session.editor
        if isinstance(edits, PageEdits):
            page, n_moved = page_as_edits(
                edits, session.results(), session.found.result, run.folder
            )
            if page:
                editor.add(*page)
        else:
            before = editor.state.by_hand
            if edits is None:
                _warn_of_ignored([(edit, reason) for _, edit, reason in editor.ignored])
            else:
                _add_log(editor, edits)
            n_moved = int((editor.state.by_hand & ~before).sum())
        if with_results:
            session.results()
        _write_labels(session)
        return session, n_moved


def import_table(run: RunFolder, rows: Sequence[Row], where: str) -> tuple[EditSession, int]:
    """Apply a table of corrections; return the session and the number of edits that it became.

    Parameters
    ----------
    run
        A finished run.
    rows
        The table; see `jule.runs.import_labels.parse_corrections`.
    where
        The file, for error messages.
    """
    with hold(run.home):
        session = EditSession(run)
        edits = rows_as_edits(session.editor, rows, session.found.indices, where)
        if edits:
            _write_labels(session)
        return session, len(edits)


def run_constraints(run: RunFolder, data: Samples) -> Constraints | None:
    """Return what the edits of an unfinished run ask of its clusters; None if it has no edits.

    Raises
    ------
    ValueError
        If they contradict each other; the message names two pictures.
    """
    if not run.path(EDITS).exists():
        return None
    log = parse_log(read_regular(run.path(EDITS), MOST_BYTES))
    if not log.done:
        return None
    try:
        return constraints_from(
            log.in_effect, PictureIndex(data.names, data.digests), data.first_copies
        )
    except ContradictionError as error:
        one, other = (data.names[sample] for sample in error.pair)
        raise ValueError(
            f"the edits contradict each other: {one} and {other} have a cannot-link, but "
            "must-links or exact copies join them"
        ) from error


def _add_log(editor: Editor, log: EditLog) -> None:
    """Add the edits of another list to those of a run."""
    own = editor.log
    if log.revision > own.revision and log.edits[: own.done] == own.in_effect:
        editor.load(log)  # the same list, which has grown or of which something was undone
        if log.done > own.done:
            _warn_of_number(editor, log.in_effect[-1])
        ignored = [(edit, reason) for _, edit, reason in editor.ignored]
    else:
        known, ignored = set(own.in_effect), []
        for edit in log.in_effect:
            if edit in known:
                continue
            try:
                editor.add(edit)
                _warn_of_number(editor, edit)
            except EditError as error:
                ignored.append((edit, str(error)))
    _warn_of_ignored(ignored)


def _warn_of_number(editor: Editor, edit: Edit) -> None:
    """Warn if the last edit has asked for a number of clusters that is not possible."""
    base, state = editor.base, editor.state
    if edit.kind == "cut" and base.is_own(edit):
        shelved = state.labels == SHELF
        warn_of_another_number(len(state.numbers), edit.k, base.first_copies, shelved)


def _warn_of_ignored(ignored: list[tuple[Edit, str]]) -> None:
    if ignored:
        some = "; ".join(f"{edit.kind}: {reason}" for edit, reason in ignored[:MENTIONED])
        more = "; ..." if len(ignored) > MENTIONED else ""
        warnings.warn(f"{len(ignored)} edits are left out ({some}{more})", stacklevel=5)
