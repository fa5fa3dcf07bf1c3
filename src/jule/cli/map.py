"""`jule map`: learn a map on which new pictures can be placed, too."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from jule.cli.cluster import LOADING, DeviceOption, check_device, cluster
from jule.cli.errors import is_run_folder
from jule.cli.numbers import whole
from jule.cli.output import counted, say, status
from jule.cli.reading import CacheOption, agreed_source
from jule.cli.report import remake_report
from jule.features.registry import AUTO
from jule.progress import progress_bars


def map_(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A finished run folder; or pictures to cluster first, as for jule cluster.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="For pictures: the run folder to create."),
    ] = None,
    n_clusters: Annotated[
        int | None,
        typer.Option(
            "-k",
            "--clusters",
            parser=whole(1),
            metavar="INTEGER",
            help="For pictures: number of clusters. Default: suggested.",
        ),
    ] = None,
    features: Annotated[
        str, typer.Option(help="For pictures: what the clustering sees, as for jule cluster.")
    ] = AUTO,
    cache: CacheOption = None,
    overwrite: Annotated[bool, typer.Option(help="For pictures: replace an existing run.")] = False,
    n_components: Annotated[
        int,
        typer.Option(
            "--components",
            "-d",
            parser=whole(1),
            metavar="INTEGER",
            help="Dimensions; the page shows two.",
        ),
    ] = 2,
    seed: Annotated[
        int, typer.Option(parser=whole(0, 2**63 - 1), metavar="INTEGER", help="Random seed.")
    ] = 0,
    moved_to: Annotated[
        str | None,
        typer.Option(
            "--source", help="Where the images of a run are, if moved or if the run is not yours."
        ),
    ] = None,
    device: DeviceOption = "auto",
) -> None:
    """Learn a map: similar pictures are near each other, and clusters are apart.

    The positions are in map.csv and map.npy in the run folder, and on its page.
    A network is trained for it, so jule predict places new pictures on it, too.
    Pictures are clustered first; if that is interrupted, continue with jule resume.
    The clusters of a run stay as they are, and an earlier map is replaced.

    Examples:

      jule map photos --out photos-run

      jule map photos-run

      jule predict photos-run new-photos --out new.csv
    """
    for_pictures: dict[str, Any] = {
        "--out": out,
        "--clusters": n_clusters,
        "--features": None if features == AUTO else features,
        "--overwrite": overwrite or None,
    }
    if is_run_folder(source):
        for option, value in for_pictures.items():
            if value is not None:
                raise ValueError(f"{option} is for pictures, but {source} is a run folder")
        _map_run(Path(source), n_components, seed, moved_to, device)
        return
    if moved_to is not None:
        raise ValueError(f"--source is for runs, but {source} is not a run folder")
    if out is None:
        raise ValueError(f"{source} is not a run folder: name the one to create with --out RUN")
    cluster(
        source,
        out,
        n_clusters,
        features=features,
        cache=cache,
        seed=seed,
        n_components=n_components,
        device=device,
        overwrite=overwrite,
    )


def _map_run(run: Path, n_components: int, seed: int, source: str | None, device: str) -> None:
    from jule.locks import hold
    from jule.runs.folder import RunFolder
    from jule.runs.names import MAP, MAP_TABLE
    from jule.runs.results import check_finished

    folder = RunFolder(run)
    check_finished(folder)
    check_device(device)
    where = agreed_source(folder, source)
    had_map = folder.path(MAP).exists()
    with hold(run):
        with status(LOADING):
            from jule.runs.execute import make_map
        try:
            with progress_bars(run.name) as show:
                results = make_map(folder, n_components, seed=seed, device=device, progress=show)
        except KeyboardInterrupt:
            say(f"jule: stopped; {run} is unchanged", err=True)
            raise typer.Exit(130) from None
        say(f"{counted(len(results.names), 'image')} on the map: {folder.path(MAP_TABLE)}")
        if n_components == 2 or had_map:  # the page shows two dimensions, or no map
            remake_report(folder, where)
