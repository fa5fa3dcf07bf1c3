"""The `jule` command. One file a command; heavy imports happen when a command runs."""

from __future__ import annotations

import typer

from jule.cli.apply import apply
from jule.cli.cluster import cluster, resume
from jule.cli.cut import cut
from jule.cli.demo import demo
from jule.cli.plot import plot
from jule.cli.predict import predict
from jule.cli.report import report
from jule.cli.reproduce import reproduce

app = typer.Typer(
    help="Turn a pile of unlabelled images into clusters.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, cluster, resume, report, apply, predict, cut, plot):
    app.command()(command)
app.add_typer(reproduce, name="reproduce")


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> None:
    if version:
        from jule import __version__

        typer.echo(f"jule {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line.

    Examples
    --------
    >>> main()  # doctest: +SKIP
    """
    app()
