"""Complete a finished run whose process was killed before everything was done."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from jule.corrections.apply import SHELF
from jule.files import parse_json, remove_tree
from jule.locks import hold
from jule.runs.folder import RunFolder, unfinished_run
from jule.runs.manifest import own_files
from jule.runs.names import (
    IMAGES,
    LABELS,
    NEXT,
    PAGE,
    PAGE_PICTURES,
    SKIPPED,
    SNAPSHOTS,
    STATES,
    SUMMARY,
)
from jule.runs.page_edits import labels_id
from jule.runs.tables import parse_labels
from jule.runs.update import remove_leftovers

DECORATION = (PAGE, SUMMARY, SKIPPED, IMAGES)  # what the other files do not need


def complete(run: RunFolder) -> bool:
    """Remove what a killed process left of a finished run; return whether its page is missing.

    A page is missing, too, if it is damaged or shows labels that have been edited since.

    Raises
    ------
    DamagedError
        If another file is missing or damaged: it cannot be made again from the rest.
    """
    with hold(run.home):
        remove_leftovers(run.home)
        if unfinished_run(run.home) is None:
            remove_tree(run.home / NEXT)
        for name in own_files(run.home):
            if name.startswith(f"{STATES}/"):
                run.path(name).unlink()
        with suppress(OSError):  # it is not there, or has files of the user
            run.path(STATES).rmdir()
        for name in sorted(run.manifest()):
            if name not in DECORATION and not name.startswith((SNAPSHOTS, PAGE_PICTURES)):
                run.read(name)  # raises if it is missing or damaged
        return not _has_page(run)


def _has_page(run: RunFolder) -> bool:
    labels = parse_labels(run.read(LABELS), str(run.path(LABELS))).labels
    try:
        run.read(PAGE)
        shown = parse_json(run.read(SUMMARY))["labels"]
    except (ValueError, KeyError, TypeError):
        return False
    # The page counts clusters without gaps; the shelf, -1, is the last one.
    order = np.where(labels == SHELF, np.iinfo(labels.dtype).max, labels)
    return bool(shown == labels_id(np.unique(order, return_inverse=True)[1].reshape(-1)))
