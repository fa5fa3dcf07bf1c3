"""`jule serve`: the page of a run from a local server, where edits are saved at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.output import say, say_link


def serve(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    port: Annotated[int, typer.Option(help="The port on this machine; 0 chooses a free one.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    source: Annotated[
        str | None, typer.Option(help="Where the images are, if moved or if the run is not yours.")
    ] = None,
) -> None:
    """Open the page of a run with edits that are saved as you make them.

    The page is served by this machine to itself, at an address with a secret in it. Ctrl-C ends it.

    Example: jule serve photos-run
    """
    import webbrowser

    from jule.cli.reading import agreed_source
    from jule.progress import progress_bars
    from jule.runs.folder import RunFolder
    from jule.runs.results import check_finished
    from jule.serve import Desk
    from jule.serve.server import check_installed, serve

    check_installed()
    folder = RunFolder(run)
    check_finished(folder)
    where = agreed_source(folder, source)
    with progress_bars(run.name) as show:
        desk = Desk(folder, where, show)

    def ready(address: str) -> None:
        say_link("page", address)
        say("Edits are saved as you make them. Press Ctrl-C to end.")
        if browser:
            webbrowser.open(address)

    serve(desk, port, ready)
    if desk.finish():
        say(f"{folder.path('labels.csv')} and report.html have all edits")
