"""Start commands in which one file operation kills the process or fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

SOURCE = Path(__file__).with_name("inject.c")
MODES = ("count", "before", "middle", "after", "once", "from then on")  # as in inject.c
NO_COMPILER = "there is no C compiler (cc), which builds the library that injects faults"


@dataclass(frozen=True)
class Operation:
    """One file operation of a command.

    Attributes
    ----------
    number
        Counted from 1.
    kind
        ``"create"``, ``"write"``, ``"fsync"``, ``"rename"``, ...
    size
        The number of bytes of a write.
    path
        The file; where it is renamed or linked to, if there are two.
    origin
        Where it was renamed or linked from.
    """

    number: int
    kind: str
    size: int
    path: str
    origin: str = ""


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes
    ----------
    code
        Its exit code, or minus the number of the signal that killed it.
    stdout, stderr
        What it printed.
    operations
        Its file operations, up to the one that killed it.
    """

    code: int
    stdout: str
    stderr: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Fault:
    """What happens at which operation.

    Attributes
    ----------
    number
        The number of the operation; 0 for none.
    mode
        ``"before"``, ``"middle"`` or ``"after"`` to kill the process there; ``"once"`` or
        ``"from then on"`` to let operations fail; ``"count"`` to only list them.
    error
        The number of the error of a failing operation.
    """

    number: int = 0
    mode: str = "count"
    error: int = 0


def has_compiler() -> bool:
    """Return whether the library can be built here.

    Examples
    --------
    >>> isinstance(has_compiler(), bool)
    True
    """
    return sys.platform == "linux" and shutil.which("cc") is not None


def build_library(folder: Path) -> Path:
    """Compile inject.c into a folder and return the library."""
    library = folder / "inject.so"
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def parse_trace(text: str) -> tuple[Operation, ...]:
    r"""Return the operations that inject.c listed.

    Examples
    --------
    >>> parse_trace("1\trename\t0\t/a\t/b\n")
    (Operation(number=1, kind='rename', size=0, path='/b', origin='/a'),)
    """
    found = []
    for line in text.splitlines():
        number, kind, size, *paths = line.split("\t")
        origin = paths[0] if len(paths) > 1 else ""
        found.append(Operation(int(number), kind, int(size), paths[-1], origin))
    return tuple(found)


class Server:
    """A process that has loaded everything, and runs commands in forks of itself.

    Parameters
    ----------
    library
        The library that `build_library` made.
    scratch
        A folder for its own files.
    env
        Environment variables of all commands.
    """

    def __init__(self, library: Path, scratch: Path, env: Mapping[str, str]) -> None:
        one_thread = {
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "NUMBA_NUM_THREADS": "1",
            "NUMBA_THREADING_LAYER": "workqueue",  # the one that works after a fork
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "torture.forks", str(scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=SOURCE.parents[1],
            env={**os.environ, **one_thread, **env, "LD_PRELOAD": str(library)},
        )
        self._receive()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def run(
        self,
        arguments: Sequence[str],
        cwd: Path,
        *,
        env: Mapping[str, str] | None = None,
        fault: Fault | None = None,
        few_inline: bool = False,
    ) -> Ended:
        """Run `jule` with arguments in a folder; operations below the folder count.

        Parameters
        ----------
        arguments
            The arguments; ``("JULE.save", run, folder)`` saves a model from Python.
        cwd
            The folder to run in.
        env
            Further environment variables.
        fault
            What happens to its file operations; None for nothing.
        few_inline
            Whether to write thumbnails beside the page, as with thousands of images.
        """
        request = {
            "arguments": list(arguments),
            "cwd": str(cwd),
            "env": dict(env or {}),
            "few_inline": few_inline,
            "arm": fault and [str(cwd), fault.number, MODES.index(fault.mode), fault.error],
        }
        self._send(request)
        reply = self._receive()
        trace = parse_trace(reply["trace"])
        return Ended(reply["code"], reply["stdout"], reply["stderr"], trace)

    def warm(self, arguments: Sequence[str], cwd: Path) -> None:
        """Run a command that does not train in the process itself; its forks are then faster."""
        self._send({"arguments": list(arguments), "cwd": str(cwd), "here": True})
        self._receive()

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that runs the commands has ended")
        return json.loads(line)
