"""Write the page of a run, and print where it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jule.cli.output import say_link, warn

if TYPE_CHECKING:
    from jule.progress import Progress
    from jule.report import Report
    from jule.runs.edits import EditSession
    from jule.runs.folder import RunFolder


def report_edits(run: RunFolder, session: EditSession) -> None:
    """Make the page of a run again after edits, with thumbnails and positions of the old one."""
    from jule.report import Report
    from jule.report.stored import read_stored

    found = session.found
    stored = read_stored(run, found.id, len(found.names))
    if stored is not None and stored.pictures["no_pictures"]:
        stored = None  # the pictures may be there now
    source = None
    if stored is None:
        from jule.cli.reading import agreed_source

        source = agreed_source(run)
    try:
        write_report(
            run,
            lambda show: Report.of_run(
                run, results=session.results(), source=source, stored=stored, progress=show
            ),
        )
    except OSError as error:  # the labels are changed, even if the page is not
        warn(f"the page was not made: {error}")


def write_report(run: RunFolder, make: Callable[[Progress], Report]) -> Path:
    """Make a report with progress bars, write it into a run, and print a link to it."""
    with _bars(run.folder.name) as show:
        made = make(show)
        path = made.write(run)
    if made.sheets is None:
        warn(f"no pictures: {made.summary['no_pictures']}")
    say_link("page", path.resolve().as_uri())
    return path


@contextmanager
def _bars(title: str) -> Iterator[Progress]:
    """Show progress bars on a terminal; elsewhere rich, which draws them, is not loaded."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from jule.progress import progress_bars

    with progress_bars(title) as show:
        yield show
