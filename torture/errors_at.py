"""Let every file operation of every command fail, as on a full or a broken disk."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torture.injection import Ended, Fault, Operation
from torture.kills import (
    Case,
    Kills,
    check_after,
    check_words,
    compare,
    last_line,
)
from torture.lanes import Expected, Lane, State, look

NEVER_FULL = ("unlink", "rmdir", "chmod", "utime")  # operations that need no space


def failing_points(operations: Iterable[Operation]) -> list[tuple[Fault, Operation]]:
    """Return the errors of each operation: a full and a broken disk, once and from then on.

    Examples
    --------
    >>> [fault.mode for fault, _ in failing_points([Operation(1, "unlink", 0, "a")])]
    ['once', 'from then on']
    """
    return [
        (Fault(one.number, mode, error), one)
        for one in operations
        for error in (errno.ENOSPC, errno.EIO)
        for mode in ("once", "from then on")
        if error != errno.ENOSPC or one.kind not in NEVER_FULL
    ]


def check_failed(lane: Lane, case: Case) -> list[str]:
    """Let an operation fail and return which promises were broken."""
    expected = lane.expected(case.scenario)
    lane.restore(case.scenario.start)
    ended = lane.run(case.scenario, case.scenario.command, case.fault)
    wrong = check_words(case.scenario.command, ended)
    if not wrong and ended.code == 1 and not names_file(ended, expected, lane.case):
        wrong = [f"the message does not say which file: {last_line(ended)}"]
    if not wrong and ended.code == 0 and not names_file(ended, expected, lane.case):
        differences = compare(lane, without_hidden(look(lane.case)), expected)
        if differences:
            wrong = [f"it says that all is well, but {'; '.join(differences[:4])}"]
    return wrong + check_after(lane, case)


def without_hidden(state: State) -> State:
    """Return a state without temporary files, which a broken disk does not let anybody remove.

    Examples
    --------
    >>> without_hidden({"run/.jule-lock": ("file 600", ""), "run": ("folder", "0o700")})
    {'run': ('folder', '0o700')}
    """
    return {name: value for name, value in state.items() if "/.jule-" not in f"/{name}"}


def names_file(ended: Ended, expected: Expected, folder: Path) -> bool:
    """Return whether a message names one of the files that a command writes, or its folder."""
    words = [line for line in ended.stderr.splitlines() if line.startswith("jule: ")]
    operations = [*ended.operations, *expected.operations]
    names = {name for one in operations for name in known_names(one, folder)}
    return any(is_named(name, line) for line in words for name in names)


def is_named(name: str, message: str) -> bool:
    """Return whether a message has a name as a word of its own, or as the end of a path.

    Examples
    --------
    >>> is_named("a.csv", "run/a.csv: the disk is full"), is_named("run", "run/a.csv: full")
    (True, False)
    """
    return re.search(rf"(^|[\s'\"(/]){re.escape(name)}($|[\s'\"):,])", message) is not None


def known_names(operation: Operation, folder: Path) -> set[str]:
    """Return the names under which a user may know the file of an operation, or its folder.

    Examples
    --------
    >>> sorted(known_names(Operation(1, "create", 0, "/home/run/labels.csv"), Path("/home")))
    ['/home/run', 'labels.csv', 'run']
    """
    found = set()
    for path in (Path(operation.path), Path(operation.origin)):
        found |= {path.name, str(path.parent)}
        if path.parent != folder and path.parent.is_relative_to(folder):
            found.add(str(path.parent.relative_to(folder)))
    return found - {"", "."}


@dataclass
class FullDisk(Kills):
    """Let every file operation of every command fail with ENOSPC and EIO.

    Examples
    --------
    >>> FullDisk().name
    'full-disk'
    """

    name: str = "full-disk"
    title: str = "ENOSPC and EIO at every file operation of every command, once and from then on"
    goal: int = 500
    promise: str = (
        "a full or broken disk ends a command with one line that names the file, changes no file "
        "of the user, and leaves what a kill may leave"
    )

    def points(self, operations: Sequence[Operation]) -> list[tuple[Fault, Operation]]:
        """Return the faults for the operations of one command."""
        return failing_points(operations)

    def check(self, lane: Lane, case: Case) -> list[str]:
        """Run one case and return which promises it broke."""
        return check_failed(lane, case)
