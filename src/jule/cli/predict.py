"""`jule predict`: new images, sorted by a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.errors import friendly


@friendly
def predict(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    source: Annotated[Path, typer.Argument(help="A .npz or .npy file of new images.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The CSV to write; left out: shown.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Sort new images into the clusters of a run: name, cluster, confidence.

    Example: jule predict pictures-run more.npz --out more.csv
    """
    from jule.backward import embed
    from jule.cli.progress import progress_bars
    from jule.images import read_samples
    from jule.joint.finish import cluster_shares
    from jule.runs import Run, read_results, write_labels

    folder = Run(run)
    shape = tuple(folder.about()["data"]["shape"][1:])
    finished = read_results(folder, device=device)
    data = read_samples(source)
    if data.samples.shape[1:] != shape:
        raise ValueError(
            f"{source} has images of shape {data.samples.shape[1:]}, the run was made with {shape}"
        )
    with progress_bars(source.name) as show:
        embedding = embed(
            finished.embedder, data.samples, progress=lambda share: show("embedding", share)
        )
        shares = cluster_shares(finished.result, finished.config, embedding)
    labels, confidence = shares.argmax(axis=1), shares.max(axis=1)
    if out is not None:
        write_labels(out, data.names, labels, confidence)
        typer.echo(f"sorted {len(data)} images into {len(set(labels.tolist()))} clusters: {out}")
        return
    for name, cluster, sure in zip(data.names, labels, confidence, strict=True):
        typer.echo(f"{name},{cluster},{sure:.4f}")
