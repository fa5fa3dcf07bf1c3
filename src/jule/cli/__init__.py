"""The `jule` command. Each command has its own module and imports heavy packages when it runs."""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from jule.cli.errors import is_plain_file, is_run_folder
from jule.cli.quick import run_quickly
from jule.ranks import end_process, is_helper
from jule.runs.names import LABELS_AUTO, RESULT

if TYPE_CHECKING:
    from jule.cli.program import COMMANDS, app

__all__ = ["COMMANDS", "app", "is_light", "main"]

# Commands on the results of a run.
READING = ("report", "serve", "apply", "import-labels", "cut", "export", "plot")
FEW_SAMPLES = 2000  # with more, compiled kernels are faster although they take a second to load
FEW_EDITED = 500  # the same for edited labels, whose clusters have to be merged again
MOST_RESULT = 2**20  # bytes of result.json that are read to find out


def __getattr__(name: str) -> Any:
    """Load the commands when they are first used."""
    if name in ("COMMANDS", "app"):
        from jule.cli import program

        return getattr(program, name)
    raise AttributeError(f"module 'jule.cli' has no attribute {name!r}")


def main() -> None:
    """Run the command line."""
    # Must be set before torch is loaded. Waiting threads then give up their core after a few
    # microseconds; by default they spin, which slows training several times beside another program.
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
    if is_helper():
        from jule.cli.ranks import SHARED

        if not any(word in SHARED for word in sys.argv[1:]):
            sys.exit(0)  # one process is enough for all other commands
    if "WORLD_SIZE" in os.environ and "OMP_NUM_THREADS" in os.environ:
        # torchrun sets the one so that processes share the cores; it does not know the other.
        os.environ.setdefault("NUMBA_NUM_THREADS", os.environ["OMP_NUM_THREADS"])
    if is_light(sys.argv[1:]):
        os.environ.setdefault("JULE_COMPILE", "0")
    code = run_quickly(sys.argv[1:])
    if code is not None:
        gc.freeze()  # nothing has to be collected in a process that ends
        sys.exit(code)
    from jule.cli.program import app

    try:
        app()
    except SystemExit as ended:
        end_process(int(ended.code or 0))


def is_light(arguments: list[str]) -> bool:
    """Return whether a command does too little work to be worth loading the compiled kernels.

    Examples
    --------
    >>> is_light(["info", "photos"]), is_light(["cluster", "photos"])
    (True, False)
    """
    words = [word for word in arguments if not word.startswith("-")]
    if words[:1] == ["info"]:
        return True
    runs = [word for word in words[1:] if is_run_folder(word)]
    if not runs or words[0] not in READING:
        return False
    try:
        if not is_plain_file(os.path.join(runs[0], RESULT)):
            return False
        with open(os.path.join(runs[0], RESULT), "rb") as file:
            n_samples = json.loads(file.read(MOST_RESULT))["n_samples"]
        edited = words[0] in ("serve", "apply") or os.path.exists(
            os.path.join(runs[0], LABELS_AUTO)
        )
        return bool(n_samples <= (FEW_EDITED if edited else FEW_SAMPLES))
    except Exception:  # the command itself will say what is wrong with the run
        return False
