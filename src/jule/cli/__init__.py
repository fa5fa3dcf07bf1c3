"""The `jule` command. Each command has its own module and imports heavy packages when it runs."""

from __future__ import annotations

import json
import os
import sys

import typer

from jule.cli.apply import apply
from jule.cli.cache import cache
from jule.cli.cluster import cluster, resume
from jule.cli.compare import compare
from jule.cli.cut import cut
from jule.cli.demo import demo
from jule.cli.errors import Commands, is_plain_file, is_run_folder
from jule.cli.export import export
from jule.cli.import_labels import import_labels
from jule.cli.info import info
from jule.cli.map import map_
from jule.cli.output import say
from jule.cli.plot import plot
from jule.cli.predict import predict
from jule.cli.ranks import SHARED
from jule.cli.refine import refine
from jule.cli.report import report
from jule.cli.reproduce import reproduce
from jule.cli.serve import serve
from jule.cli.similar import similar
from jule.cli.update import update
from jule.ranks import end_process, is_helper
from jule.runs.names import LABELS_AUTO, RESULT

app = typer.Typer(
    cls=Commands,
    help="Turn a pile of unlabelled images into clusters.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (
    demo, info, cluster, resume, map_, report, serve, apply, import_labels, update, refine, predict,
    similar, cut, export, plot, compare, cache, reproduce,
)  # fmt: skip
# Commands on the results of a run; some of them change it.
READING = ("report", "serve", "apply", "import-labels", "cut", "export", "plot")
EDITING = ("serve", "apply", "import-labels")
FEW_SAMPLES = 2000  # with more, compiled kernels are faster although they take a second to load
FEW_EDITED = 500  # the same for edited labels, whose clusters have to be merged again
MOST_RESULT = 2**20  # bytes of result.json that are read to find out
for command in COMMANDS:
    app.command(command.__name__.removesuffix("_").replace("_", "-"))(command)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
    _debug: bool = typer.Option(
        False, "--debug", help="Show tracebacks of errors; can be given anywhere."
    ),
) -> None:
    if version:
        from jule import __version__

        say(f"jule {__version__}")
    elif context.invoked_subcommand is None:
        context.get_help()
    else:
        return
    raise typer.Exit


def main() -> None:
    """Run the command line."""
    # Must be set before torch is loaded. Waiting threads then give up their core after a few
    # microseconds; by default they spin, which slows training several times beside another program.
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
    if is_helper() and not any(word in SHARED for word in sys.argv[1:]):
        sys.exit(0)  # one process is enough for all other commands
    if "WORLD_SIZE" in os.environ and "OMP_NUM_THREADS" in os.environ:
        # torchrun sets the one so that processes share the cores; it does not know the other.
        os.environ.setdefault("NUMBA_NUM_THREADS", os.environ["OMP_NUM_THREADS"])
    if is_light(sys.argv[1:]):
        os.environ.setdefault("JULE_COMPILE", "0")
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
