"""`jule cluster`, `jule resume`: a run, started or gone on with."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jule.cli.errors import friendly

if TYPE_CHECKING:
    from jule.images import Samples
    from jule.runs import Run


@friendly
def cluster(
    source: Annotated[Path, typer.Argument(help="A .npz file with the array `images`, or a .npy.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder to make.")],
    n_clusters: Annotated[
        int | None, typer.Option("-k", "--clusters", help="How many clusters; left out: chosen.")
    ] = None,
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
    """Cluster images and train a network on them; everything lands in one folder.

    Labels in the file, if there are any, are used to score the result and for nothing else.

    Example: jule cluster pictures.npz -k 10 --seed 0 --out pictures-run
    """
    from jule.images import fingerprint, read_samples
    from jule.joint import preset as make_config
    from jule.joint.loop import refuse_what_cannot_be_clustered
    from jule.runs import create_run

    data = read_samples(source)
    given = {"rounds": rounds, "eta": eta, "epochs": epochs, "augment": augment}
    config = make_config(
        preset,  # type: ignore[arg-type]
        n_clusters=n_clusters,
        seed=seed,
        **{name: value for name, value in given.items() if value is not None},
    )
    refuse_what_cannot_be_clustered(data.samples, config)
    run = create_run(
        out,
        config,
        fingerprint(data.samples),
        source=str(source.resolve()),
        overwrite=overwrite,
    )
    run_and_tell(run, data, device)


@friendly
def resume(
    run: Annotated[Path, typer.Argument(help="A run folder that was interrupted.")],
    source: Annotated[
        Path | None, typer.Option(help="Where the images are now, if they were moved.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Go on with an interrupted run; it ends as if nothing had happened.

    Example: jule resume pictures-run
    """
    from jule.images import read_samples
    from jule.runs import Run

    folder = Run(run)
    about = folder.about()
    if folder.is_finished:
        typer.echo(f"{run} is finished: nothing is left to do")
        return
    found = source or about["source"]
    if not found:
        raise ValueError(f"{run} does not say where its images are: give --source")
    run_and_tell(folder, read_samples(found), device)


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
    start = time.perf_counter()
    try:
        with progress_bars(run.folder.name) as show:
            finished = go(
                run,
                data.samples,
                names=data.names,
                labels=data.labels,
                device=device,
                progress=show,
            )
    except KeyboardInterrupt:
        typer.secho(f"jule: stopped; go on with: jule resume {run.folder}", err=True)
        raise typer.Exit(130) from None
    seconds = time.perf_counter() - start
    show_clusters(console, finished.result, data.labels)
    console.print(f"{len(data)} images in {seconds:.0f} s; everything is in", end=" ")
    console.print(str(run.folder), markup=False, highlight=False)
    make_report(run)
