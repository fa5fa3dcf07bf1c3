"""The `jule` command. Each command has its own module and imports heavy packages when it runs."""

from __future__ import annotations

import json
import os
import sys

import typer

from jule.cli.apply import apply
from jule.cli.cache import cache
from jule.cli.cluster import cluster, resume
from jule.cli.cut import cut
from jule.cli.demo import demo
from jule.cli.export import export
from jule.cli.info import info
from jule.cli.plot import plot
from jule.cli.predict import predict
from jule.cli.report import report
from jule.cli.reproduce import reproduce
from jule.cli.similar import similar

app = typer.Typer(
    help="Turn a pile of unlabelled images into clusters.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (
    demo, info, cluster, resume, report, apply, predict, similar, cut, export, plot, cache,
    reproduce,
)  # fmt: skip
READING = ("report", "apply", "cut", "export", "plot")  # commands on the results of a run
FEW_SAMPLES = 2000  # with more, compiled kernels are faster although they take a second to load
FEW_EDITED = 500  # the same for edited labels, whose clusters have to be merged again
for command in COMMANDS:
    app.command()(command)


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
    debug: bool = typer.Option(
        False, "--debug", help="Show tracebacks of errors; can be given anywhere."
    ),
) -> None:
    if debug:
        os.environ["JULE_DEBUG"] = "1"
    if version:
        from jule import __version__

        typer.echo(f"jule {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line."""
    # Must be set before torch is loaded. Waiting threads then give up their core after a few
    # microseconds; by default they spin, which slows training several times beside another program.
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
    arguments = sys.argv[1:]
    if "--debug" in arguments:  # wherever it was typed
        arguments = ["--debug", *(one for one in arguments if one != "--debug")]
    if is_light(arguments):
        os.environ.setdefault("JULE_COMPILE", "0")
    app(arguments)


def is_light(arguments: list[str]) -> bool:
    """Return whether a command does too little work to be worth loading the compiled kernels.

    Examples
    --------
    >>> is_light(["info", "photos"]), is_light(["cluster", "photos"])
    (True, False)
    """
    # File names as in jule.runs.folder, whose import would load the kernels.
    words = [word for word in arguments if not word.startswith("-")]
    if words[:1] == ["info"]:
        return True
    runs = [word for word in words[1:] if os.path.exists(os.path.join(word, "result.json"))]
    if not runs or words[0] not in READING:
        return False
    try:
        with open(os.path.join(runs[0], "result.json"), encoding="utf-8") as file:
            n_samples = json.load(file)["n_samples"]
        edited = words[0] == "apply" or os.path.exists(os.path.join(runs[0], "labels_auto.csv"))
        return bool(n_samples <= (FEW_EDITED if edited else FEW_SAMPLES))
    except (OSError, ValueError, KeyError, TypeError):
        return False
