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
from torture.lanes import Lane, look

PART = re.compile(r"\.(.+)\.[0-9a-f]{16}\.part")  # a temporary name, and the name it stands for
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
    lane.restore(case.scenario.start)
    ended = lane.run(case.scenario, case.scenario.command, case.fault)
    wrong = check_words(case.scenario.command, ended)
    if not wrong and ended.code == 1 and not names_file(ended, case, lane.case):
        wrong = [f"the message does not say which file: {last_line(ended)}"]
    if not wrong and ended.code == 0:
        differences = compare(lane, look(lane.case), lane.expected(case.scenario))
        if differences:
            wrong = [f"it says that all is well, but {'; '.join(differences[:4])}"]
    return wrong + check_after(lane, case)


def names_file(ended: Ended, case: Case, folder: Path) -> bool:
    """Return whether a message names a file that could not be written, or its folder."""
    message = last_line(ended)
    failed = [one for one in ended.operations if one.number >= case.fault.number]
    return any(is_named(name, message) for one in failed for name in known_names(one, folder))


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
    >>> written = Operation(1, "create", 0, "/home/run/.labels.csv.0123456789abcdef.part")
    >>> sorted(known_names(written, Path("/home")))
    ['.labels.csv.0123456789abcdef.part', '/home/run', 'labels.csv', 'run']
    """
    found = set()
    for path in (Path(operation.path), Path(operation.origin)):
        found |= {path.name, str(path.parent)}
        if path.parent != folder and path.is_relative_to(folder):
            found.add(str(path.parent.relative_to(folder)))
        temporary = PART.fullmatch(path.name)
        if temporary:
            found.add(temporary.group(1))
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
    goal: int = 1000
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
