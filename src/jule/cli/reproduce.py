"""`jule reproduce`: the paper's experiments, and the tables made from their results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.errors import friendly

reproduce = typer.Typer(
    help="Run the paper's experiments; render tables from results/.", no_args_is_help=True
)

Results = Annotated[Path, typer.Option(help="Where results are written and read.")]


@reproduce.command("raw-gdl")
@friendly
def raw_gdl(
    datasets: Annotated[
        str, typer.Option(help="Names with commas between; all but FRGC and YTF by default.")
    ] = "",
    results: Results = Path("results"),
) -> None:
    """Cluster raw intensities by graph degree linkage, beside the paper's AC-GDL row.

    Example: jule reproduce raw-gdl --datasets usps,mnist-test
    """
    from rich.console import Console

    from jule.cli.progress import progress_bars
    from jule.paper import raw_gdl as experiment
    from jule.paper.numbers import AC_GDL

    console = Console()
    names = [name.strip() for name in datasets.split(",") if name.strip()]
    for name in names or experiment.DATASETS:
        with progress_bars(name) as show:
            record = experiment.measure(name, results, show)
        for setting, row in record["rows"].items():
            found = row["scores"]
            console.print(
                f"{name:11s} {setting:6s} NMI {found['nmi']:.3f}  AC {found['ac']:.3f}  "
                f"(paper {AC_GDL[name].nmi:.3f} / {AC_GDL[name].ac:.3f})  {row['seconds']:.1f} s",
                highlight=False,
            )


@reproduce.command()
@friendly
def joint(
    datasets: Annotated[
        str, typer.Option(help="Names with commas between; all but FRGC and YTF by default.")
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, help="How many runs, seeds 0, 1, ...")] = 3,
    preset: Annotated[str, typer.Option(help="default, or paper: as the authors ran it.")] = (
        "default"
    ),
    results: Results = Path("results"),
    runs: Annotated[Path, typer.Option(help="Where unfinished runs are kept.")] = Path("runs"),
) -> None:
    """Run joint learning, beside the paper's OURS-SF and OURS-RC; then render the tables.

    What is already in results/ is not run again, and an interrupted run is gone on with.

    Example: jule reproduce joint --datasets usps,mnist-test --seeds 3
    """
    from rich.console import Console

    from jule.cli.progress import progress_bars
    from jule.paper import joint as experiment
    from jule.paper.numbers import OURS_RC, OURS_SF

    console = Console()
    names = [name.strip() for name in datasets.split(",") if name.strip()]
    for name in names or experiment.DATASETS:
        for seed in range(seeds):
            with progress_bars(f"{name}, seed {seed}") as show:
                record = experiment.measure(
                    name,
                    preset,  # type: ignore[arg-type]
                    seed,
                    results,
                    runs,
                    show,
                )
            found = record["scores"]
            console.print(
                f"{name:11s} seed {seed}  "
                + "  ".join(
                    f"{which.upper()} {found[which]['nmi']:.3f} / {found[which]['ac']:.3f} "
                    f"(paper {paper[name].nmi:.3f} / {paper[name].ac:.3f})"
                    for which, paper in (("sf", OURS_SF), ("rc", OURS_RC))
                )
                + f"  {record['seconds of the periods']:.0f} s",
                highlight=False,
            )
    tables(results)


@reproduce.command()
@friendly
def tables(results: Results = Path("results")) -> None:
    """Write the figures of results/ into README.md and docs/ of this checkout.

    Example: jule reproduce tables
    """
    from jule.paper.tables import fill_pages

    pages = [Path("README.md"), *sorted(Path("docs").glob("*.md"))]
    changed = fill_pages([page for page in pages if page.exists()], results)
    for page in changed:
        typer.echo(f"wrote {page}")
    if not changed:
        typer.echo("all tables are up to date")
