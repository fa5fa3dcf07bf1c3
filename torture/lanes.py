"""A lane: folders with pictures and runs in known states, and a process that runs commands there.

Everything happens at the same paths again and again, so that two runs of a command leave the same
bytes. Each lane has its own folders, so that several can work at once.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from torture.injection import Ended, Fault, Operation, Server

N_PHOTOS, N_NEW = 24, 8
# Parts of the names of JSON entries that differ from run to run.
CHANGING = ("seconds", "created", "time", "since", "signature", "sha256", "checksum", "size")

# Files whose times, and the checksums of these, differ from run to run.
TIMED = ("history.json", "manifest.json", "result.json", "report.json", "report.html")

State = dict[str, tuple[str, str]]
"""What lies in a folder: relative path -> kind with permissions, and checksum or target."""


def look(folder: Path) -> State:
    """Return the state of a folder and everything below it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     Path(folder, "a").symlink_to("b")
    ...     look(Path(folder))
    {'a': ('link', 'b')}
    """
    found: State = {}
    for parent, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(parent, name)
            key, about = str(path.relative_to(folder)), path.lstat()
            if stat.S_ISLNK(about.st_mode):
                found[key] = ("link", os.readlink(path))
            elif stat.S_ISDIR(about.st_mode):
                found[key] = ("folder", oct(stat.S_IMODE(about.st_mode)))
            else:
                content = sha256(path.read_bytes()).hexdigest()
                found[key] = (f"file {stat.S_IMODE(about.st_mode):o}", content)
    return found


def shape_of(value: Any) -> Any:
    """Return a JSON value without what differs from run to run: times, checksums, roundings.

    Examples
    --------
    >>> shape_of({"k": 3, "seconds": 1, "sureness": 0.5})
    {'k': 3, 'seconds': None, 'sureness': None}
    """
    if isinstance(value, dict):
        return {
            key: None if any(word in key for word in CHANGING) else shape_of(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [shape_of(inner) for inner in value]
    return None if isinstance(value, float) else value


@dataclass(frozen=True)
class Scenario:
    """A command, the state that it starts from, and what a user does after it was killed.

    Attributes
    ----------
    name
        For messages.
    command
        The arguments of `jule`.
    start
        The name of the starting state; see `Lane.starts`.
    recover
        Commands to run one after the other until the result is there. A command that cannot help
        must say so in one line, and change nothing.
    other
        Another way to the same result; used at every second point.
    reads
        A command that reads the run and writes ../seen.csv, which must be that of the start or
        that of the end.
    mine
        Files and folders in the case that are the user's own.
    growing
        Folders in the case whose files are appended to: they may be shorter than at the end.
    env
        Environment variables that hold paths, relative to the case folder.
    few_inline
        Whether thumbnails are written beside the page.
    """

    name: str
    command: tuple[str, ...]
    start: str
    recover: tuple[tuple[str, ...], ...]
    other: tuple[tuple[str, ...], ...] = ()
    reads: tuple[str, ...] = ()
    mine: tuple[str, ...] = ()
    growing: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    few_inline: bool = False


@dataclass(frozen=True)
class Expected:
    """What a scenario does when nothing disturbs it.

    Attributes
    ----------
    start, end
        The states before and after.
    volatile
        Paths whose content may differ between two undisturbed runs, with what must be equal.
    operations
        The file operations.
    seen
        What `reads` shows before and after; None where it fails.
    """

    start: State
    end: State
    volatile: dict[str, Any]
    operations: tuple[Operation, ...]
    seen: tuple[bytes | None, ...]


class Lane:
    """Folders and a process of their own for running scenarios.

    Parameters
    ----------
    base
        An empty folder.
    library
        The library that `build_library` made.
    starts
        Functions by name, which make a state in `case` from the state that they name first.
    """

    def __init__(
        self,
        base: Path,
        library: Path,
        starts: Mapping[str, tuple[str, Callable[[Lane], None]]],
    ) -> None:
        self.base = base
        self.case = base / "case"
        self.seen = base / "seen.csv"
        self._starts, self._made = starts, base / "starts"
        self._expected: dict[str, Expected] = {}
        for name in ("case", "starts", "photos", "new", "home", "cache", "scratch"):
            (base / name).mkdir()
        write_digits(base / "photos", range(N_PHOTOS))
        write_digits(base / "new", range(N_PHOTOS, N_PHOTOS + N_NEW))
        self.restore_victim()
        env = {
            "HOME": str(base / "home"),
            "XDG_CONFIG_HOME": str(base / "home" / "config"),
            "XDG_CACHE_HOME": str(base / "home" / "cache"),
            "JULE_CACHE": str(base / "cache"),
            "COLUMNS": "200",
        }
        self.server = Server(library, base / "scratch", env)

    def close(self) -> None:
        """End the process."""
        self.server.__exit__(None, None, None)

    def run(
        self, scenario: Scenario, arguments: Sequence[str], fault: Fault | None = None
    ) -> Ended:
        """Run a command in the case folder."""
        return self.server.run(
            arguments,
            self.case,
            env={name: str(self.case / value) for name, value in scenario.env},
            fault=fault,
            few_inline=scenario.few_inline,
        )

    def must(self, *arguments: str, few_inline: bool = False) -> Ended:
        """Run a command that succeeds while nothing disturbs it."""
        ended = self.server.run(arguments, self.case, few_inline=few_inline)
        if ended.code != 0:
            raise RuntimeError(f"jule {' '.join(arguments)}: {ended.stderr}")
        return ended

    def restore(self, start: str) -> None:
        """Put the case folder into a starting state."""
        made = self._made / start
        if not made.exists():
            before, make = self._starts[start]
            if before:
                self.restore(before)
            else:
                self._clear()
            make(self)
            copy_folder(self.case, made)
            return
        self._clear()
        copy_folder(made, self.case)

    def _clear(self) -> None:
        shutil.rmtree(self.case)
        self.case.mkdir()

    def originals(self) -> State:
        """Return the state of the user's files outside of the case folder."""
        found = {name: state for part in ("photos", "new") for name, state in self._below(part)}
        return found | {"victim.txt": ("file", (self.base / "victim.txt").read_text())}

    def restore_victim(self) -> None:
        """Write the file that links in run folders point to."""
        (self.base / "victim.txt").write_text("mine\n")

    def _below(self, part: str) -> Iterable[tuple[str, tuple[str, str]]]:
        return ((f"{part}/{name}", state) for name, state in look(self.base / part).items())

    def read(self, scenario: Scenario) -> tuple[Ended, bytes | None]:
        """Read the run as `reads` says; return how that ended, and what was read."""
        self.seen.unlink(missing_ok=True)
        ended = self.run(scenario, scenario.reads)
        return ended, self.seen.read_bytes() if self.seen.exists() else None

    def expected(self, scenario: Scenario) -> Expected:
        """Return what the scenario does when nothing disturbs it; measured once."""
        if scenario.name not in self._expected:
            self._expected[scenario.name] = self._measure(scenario)
        return self._expected[scenario.name]

    def _measure(self, scenario: Scenario) -> Expected:
        seen: list[bytes | None] = []
        self.restore(scenario.start)
        start = look(self.case)
        if scenario.reads:
            seen.append(self.read(scenario)[1])
        ends, volatile = [], {}
        for _ in range(2):
            self.restore(scenario.start)
            ended = self.run(scenario, scenario.command, Fault())
            if ended.code != 0:
                raise RuntimeError(f"jule {' '.join(scenario.command)}: {ended.stderr}")
            ends.append(look(self.case))
        for name in ends[0].keys() & ends[1].keys():
            if ends[0][name] != ends[1][name] or Path(name).name in TIMED:
                volatile[name] = self.fixed_part(name)
        self._check_traced(start, ends[1], ended.operations)
        if scenario.reads:
            seen.append(self.read(scenario)[1])
        return Expected(start, ends[1], volatile, ended.operations, tuple(seen))

    def _check_traced(self, start: State, end: State, operations: Iterable[Operation]) -> None:
        """Raise if a file changed although no operation on it was seen."""
        traced = {path for one in operations for path in (one.path, one.origin)}
        for name in end:
            changed = name not in start or start[name] != end[name]
            path = str(self.case / name)
            # What lies in a folder that was renamed moves along.
            inside = any(path.startswith(f"{one}/") for one in traced)
            if changed and path not in traced and not inside:
                raise RuntimeError(f"{name} changed, but no operation on it was seen")

    def fixed_part(self, name: str) -> Any:
        """Return what must be equal in a file that differs from run to run."""
        path = self.case / name
        if path.suffix == ".json":
            return shape_of(json.loads(path.read_bytes()))
        if path.suffix == ".html":
            return path.read_bytes().rstrip()[-7:]
        return None


def copy_folder(folder: Path, to: Path) -> None:
    """Copy a folder, links as links, with times and permissions."""
    shutil.copytree(folder, to, symlinks=True, dirs_exist_ok=True)


def write_digits(folder: Path, numbers: Iterable[int]) -> None:
    """Write handwritten digits as PNG files."""
    from PIL import Image
    from sklearn.datasets import load_digits

    images = load_digits().images
    for number in numbers:
        pixels = (images[number] * 15.9).astype("uint8")
        Image.fromarray(pixels).save(folder / f"{number:02d}.png")
