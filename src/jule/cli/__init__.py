"""The `jule` command: one file per command; heavy imports happen when a command runs."""

from __future__ import annotations

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
for command in COMMANDS:
    app.command()(command)


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
    debug: bool = typer.Option(
        False, "--debug", help="Show tracebacks of errors; may stand anywhere."
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
    # Set before torch is loaded: waiting threads give up their core after a few microseconds. With
    # the default they spin, which makes training several times slower beside another program.
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
    arguments = sys.argv[1:]
    if "--debug" in arguments:  # wherever it was typed
        arguments = ["--debug", *(one for one in arguments if one != "--debug")]
    app(arguments)
