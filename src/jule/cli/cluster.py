"""`jule cluster`, `jule resume`: a run, started or gone on with."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jule.cli.errors import friendly
from jule.cli.reading import (
    AspectOption,
    CacheOption,
    ColourOption,
    Size,
    Source,
    Strict,
    absolute,
    reading_bar,
    say,
    tell_left_out,
    wanted_look,
)

if TYPE_CHECKING:
    from jule.images import Samples
    from jule.runs import Run


@friendly
def cluster(
    source: Source,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder to make.")],
    n_clusters: Annotated[
        int | None, typer.Option("-k", "--clusters", help="How many clusters; left out: chosen.")
    ] = None,
    size: Size = None,
    aspect: AspectOption = "crop",
    colour: ColourOption = "auto",
    strict: Strict = False,
    folder_classes: Annotated[
        bool,
        typer.Option(
            "--folder-classes",
            help="The folder of a picture is its true class: score the result by it.",
        ),
    ] = False,
    cache: CacheOption = None,
    seed: Annotated[int, typer.Option(help="Of everything that has chance in it.")] = 0,
    preset: Annotated[str, typer.Option(help="default, or paper: as the authors ran it.")] = (
        "default"
    ),
    rounds: Annotated[int | None, typer.Option(help="Rounds of the recurrent process.")] = None,
    eta: Annotated[
        float | None, typer.Option(help="Unrolling rate, 0 .. 1; left out: even periods.")
    ] = None,
    epochs: Annotated[float | None, typer.Option(help="Epochs of training a period.")] = None,
    augment: Annotated[
        bool | None, typer.Option(help="Warp training images a little, or never.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    overwrite: Annotated[bool, typer.Option(help="Replace a run that is already there.")] = False,
) -> None:
    """Cluster pictures and train a network on them; everything lands in one folder.

    Pictures that cannot be read are left out and listed in skipped.csv.
    Labels that the source has only score the result.

    Examples:

      jule cluster photos -k 12 --out photos-run

      jule cluster "photos/2024-*/**/*.jpg" --size 96 --aspect fit --out run

      jule cluster digits.npz -k 10 --seed 0 --out digits-run
    """
    from jule.images import fingerprint, open_source, read_images

    # A path that was mistyped is told before torch is loaded, which takes seconds.
    opened = open_source(source, labels_from_folders=folder_classes)

    from jule.joint import preset as make_config
    from jule.joint.loop import refuse_what_cannot_be_clustered
    from jule.runs import create_run, refuse_existing, write_reading

    given = {"rounds": rounds, "eta": eta, "epochs": epochs, "augment": augment}
    config = make_config(
        preset,  # type: ignore[arg-type]
        n_clusters=n_clusters,
        seed=seed,
        **{name: value for name, value in given.items() if value is not None},
    )
    if not overwrite:
        refuse_existing(out)  # before an hour of reading, not after it
    look = wanted_look(opened, size, aspect, colour)
    with reading_bar(source) as show:
        data = read_images(
            opened, look, strict=strict, cache=Path(cache) if cache else None, progress=show
        )
    refuse_what_cannot_be_clustered(data.samples, config)
    run = create_run(
        out,
        config,
        fingerprint(data.samples),
        source=absolute(source),
        look=data.look,
        folder_classes=folder_classes,
        overwrite=overwrite,
    )
    write_reading(run, data)
    run_and_tell(run, data, device)


@friendly
def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that was interrupted.")],
    source: Annotated[
        str | None, typer.Option(help="Where the images are now, if they were moved.")
    ] = None,
    cache: CacheOption = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Go on with an interrupted run; it ends as if nothing had happened.

    Example: jule resume photos-run
    """
    from jule.runs import Run, read_again, write_reading

    folder = Run(run)
    if folder.is_finished:
        typer.echo(f"{run} is finished: nothing is left to do")
        return
    with reading_bar(run.name) as show:
        data = read_again(folder, source, cache=Path(cache) if cache else None, progress=show)
    write_reading(folder, data)
    run_and_tell(folder, data, device)


def run_and_tell(run: Run, data: Samples, device: str) -> None:
    """Run to the end with progress bars, and say what was found and where it is.

    Examples
    --------
    >>> run_and_tell(run, data, "auto")  # doctest: +SKIP
    """
    from rich.console import Console

    from jule.cli.progress import progress_bars
    from jule.cli.report import make_report
    from jule.cli.show import show_clusters
    from jule.runs import go

    console = Console()
    tell_left_out(console, data, str(run.path("skipped.csv")))
    if data.look is not None:
        say(console, f"{len(data):,} pictures, brought to {data.look}")
    start = time.perf_counter()
    try:
        with progress_bars(run.folder.name) as show:
            finished = go(
                run,
                data.samples,
                names=data.names,
                labels=data.labels,
                first_copies=data.first_copies,
                device=device,
                progress=show,
            )
    except KeyboardInterrupt:
        typer.secho(f"jule: stopped; go on with: jule resume {run.folder}", err=True)
        raise typer.Exit(130) from None
    seconds = time.perf_counter() - start
    show_clusters(console, finished.result, data.labels)
    say(console, f"{len(data):,} images in {seconds:.0f} s; everything is in {run.folder}")
    say(console, f"To sort the pictures into folders: jule export {run.folder} --to DIR")
    make_report(run, images=data.samples)
