"""The `jule` command as typer knows it, with all its commands."""

from __future__ import annotations

import typer

from jule.cli.apply import apply
from jule.cli.cache import cache
from jule.cli.cluster import cluster, resume
from jule.cli.commands import Commands
from jule.cli.compare import compare
from jule.cli.cut import cut
from jule.cli.demo import demo
from jule.cli.export import export
from jule.cli.import_labels import import_labels
from jule.cli.info import info
from jule.cli.map import map_
from jule.cli.output import say
from jule.cli.plot import plot
from jule.cli.predict import predict
from jule.cli.refine import refine
from jule.cli.report import report
from jule.cli.reproduce import reproduce
from jule.cli.serve import serve
from jule.cli.similar import similar
from jule.cli.update import update

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
