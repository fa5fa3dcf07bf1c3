"""`jule refine`: train on, with the corrections of a run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from jule.cli.cluster import LOADING, DeviceOption, check_device
from jule.cli.numbers import whole
from jule.cli.output import ask, counted, say, status
from jule.cli.reading import CacheOption, MovedEncoder, agreed_source
from jule.progress import progress_bars, reading_bar

MOST_LINES = 20


def refine(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run with corrections.")],
    periods: Annotated[
        int,
        typer.Option(parser=whole(1, 100), metavar="INTEGER", help="Periods of training."),
    ] = 2,
    yes: Annotated[
        bool, typer.Option("--yes", help="Accept the result without a question.")
    ] = False,
    source: Annotated[
        str | None, typer.Option(help="Where the images are, if moved or if the run is not yours.")
    ] = None,
    features: MovedEncoder = None,
    cache: CacheOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Learn from corrections: train a few more periods, show what changed, and ask.

    Pictures that must be together are trained as positives, and those kept apart as negatives.
    Names and corrections stay. Unless you accept, the run is as before.

    Examples:

      jule refine photos-run

      jule refine photos-run --periods 3 --yes
    """
    from jule.locks import hold
    from jule.runs.folder import RunFolder
    from jule.runs.results import check_finished

    folder = RunFolder(run)
    check_finished(folder)
    if not folder.is_edited:
        raise ValueError(f"{run} has no corrections to learn from: edit it first")
    check_device(device)
    with status(LOADING):
        from jule.cli.pages import write_report
        from jule.report import Report
        from jule.runs.encoding import ENCODING, encode, encoder_of
        from jule.runs.reading import read_again
        from jule.runs.refining import accept, n_moved
        from jule.runs.refining import refine as train_on

        encoder = encoder_of(folder, features)
    where = agreed_source(folder, source)
    stored = Path(cache) if cache else None
    with hold(run):
        with reading_bar(run.name) as show:
            data = read_again(folder, where, cache=stored, progress=show)
        if data.fingerprint != folder.about()["data"]:
            raise ValueError(f"the pictures of {run} have changed: pass the originals (--source)")
        with progress_bars(run.name) as bars:
            samples = encode(encoder, data.samples, cache=stored, progress=partial(bars, ENCODING))
            refined = train_on(folder, samples, periods=periods, device=device, progress=bars)
        moved = n_moved(refined)
        say(f"{counted(moved, 'picture')} of {len(data):,} changed their cluster")
        changed = [one for one in refined.changes() if one[2] or one[3]]
        for cluster, stayed, left, joined in changed[:MOST_LINES]:
            name = refined.before.cluster_names.get(cluster)
            title = f"cluster {refined.before.numbers[cluster]}" + (f" ({name})" if name else "")
            say(f"  {title}: {stayed:,} stayed, {left:,} left, {joined:,} joined")
        if len(changed) > MOST_LINES:
            say(f"  ... and {len(changed) - MOST_LINES:,} more clusters")
        if not yes and not ask("Accept it?"):
            say(f"not accepted: {run} is as before (--yes accepts without a question)")
            return
        accept(folder, refined)
        say(f"accepted: {folder.path('labels.csv')}")
        write_report(
            folder,
            lambda show: Report.of_run(
                folder, results=refined.after, images=data.samples, progress=show
            ),
        )
