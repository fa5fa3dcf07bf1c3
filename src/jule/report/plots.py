"""Figures of a run for a paper: the stages of Fig. 1, a map, a gallery, the history."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.joint.clustering import view
from jule.report.layout import coordinates, umap_map
from jule.report.pictures import brightness, thumbnail
from jule.report.source import cluster_names, images_of
from jule.report.summary import groups, stages
from jule.runs import SNAPSHOTS, Finished, Run, read_results
from jule.snapshots import load_snapshots

GOLDEN = 0.6180339887  # steps of the hue: far apart for a few, still different for hundreds
IN_A_ROW = 10
MOST_ROWS = 40


def plot_run(run: Run, kind: str, out: Path, *, source: str | Path | None = None) -> None:
    """Draw one of the figures and write it; the ending of `out` says as what.

    Examples
    --------
    >>> plot_run(Run(Path("faces")), "pca3d", Path("faces.png"))  # doctest: +SKIP
    """
    if kind not in KINDS:
        raise ValueError(f"no figure is called {kind!r}; there are {', '.join(KINDS)}")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "jule[plot]"') from error
    finished = read_results(run, device="cpu")
    images = images_of(run, source)[0] if kind == "gallery" else None
    figure = Figure(figsize=(8, 6), layout="constrained")
    KINDS[kind](figure, run, finished, images)
    figure.savefig(out, dpi=200)


def _colours(labels: NDArray[np.integer]) -> NDArray[np.float64]:
    from matplotlib.colors import hsv_to_rgb

    hues = (labels * GOLDEN) % 1.0
    light = 0.85 - 0.2 * (labels // 9 % 3)
    hsv = np.stack([hues, np.full(len(labels), 0.75), light], axis=-1)
    found: NDArray[np.float64] = hsv_to_rgb(hsv)
    return found


def _pca3d(figure: Any, run: Run, finished: Finished, images: NDArray | None) -> None:
    """Draw the stages side by side; without snapshots, the end alone."""
    shots = [
        (f"{shot.n_clusters:,} clusters, {_when(shot.period)}", shot.positions, shot.labels)
        for shot in stages(load_snapshots(run.path(SNAPSHOTS)))
    ]
    if not shots:
        labels = finished.result.labels
        positions = coordinates(finished.result.embedding)[:, :3].astype(np.float32)
        shots = [(f"{len(np.unique(labels)):,} clusters", positions, labels)]
    figure.set_size_inches(4.5 * len(shots), 4.5)
    for place, (title, positions, labels) in enumerate(shots):
        axes = figure.add_subplot(1, len(shots), place + 1, projection="3d")
        axes.scatter(*positions.T, c=_colours(labels), s=4, linewidths=0)
        axes.set_title(title, fontsize=10)
        axes.set_xticks([]), axes.set_yticks([]), axes.set_zticks([])


def _when(period: int) -> str:
    return "before training" if period == 0 else f"after period {period}"


def _map(figure: Any, run: Run, finished: Finished, images: NDArray | None) -> None:
    result = finished.result
    neighbors = view(result.embedding, finished.config).neighbors
    better = umap_map(result.embedding, neighbors, finished.config.seed)
    places = coordinates(result.embedding)[:, :2] if better is None else better
    names = cluster_names(run)
    axes = figure.add_subplot()
    axes.scatter(*places.T, c=_colours(result.labels), s=3, linewidths=0, rasterized=True)
    for cluster in np.unique(result.labels).tolist():
        x, y = np.median(places[result.labels == cluster], axis=0)
        text = axes.text(x, y, "", ha="center", va="center", weight="bold", parse_math=False)
        text.set_text(names.get(cluster, str(cluster)))
        text.set_bbox({"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 1})
    axes.set_aspect("equal")
    axes.axis("off")


def _gallery(figure: Any, run: Run, finished: Finished, images: NDArray | None) -> None:
    """Draw a row a cluster, its most typical images first."""
    if images is None or images.ndim < 3:
        raise ValueError("a gallery needs the run's images: say where they are with --source")
    found = groups(finished, view(finished.result.embedding, finished.config).graph, {})
    rows = sorted(found, key=lambda group: -group["size"])[:MOST_ROWS]
    scale = brightness(images)
    height, width = images.shape[1:3]
    figure.set_size_inches(IN_A_ROW * 0.7, len(rows) * 0.7 * height / width)
    axes = figure.subplots(len(rows), IN_A_ROW, squeeze=False)
    for row, group in zip(axes, rows, strict=True):
        for place in row:
            place.axis("off")
        for place, image in zip(row, group["typical"], strict=False):
            place.imshow(thumbnail(images[image], scale, (height, width)), cmap="gray", vmin=0)


def _history(figure: Any, run: Run, finished: Finished, images: NDArray | None) -> None:
    history = finished.history
    periods = np.arange(1, len(history) + 1)
    left, middle, right = figure.subplots(1, 3)
    figure.set_size_inches(11, 3.2)
    left.semilogy(periods, [period.clusters_after for period in history], "o-")
    left.set_ylabel("clusters left")
    for which in ("loss_first", "loss_last"):
        values = [getattr(period, which) for period in history]
        middle.plot(periods, [np.nan if v is None else v for v in values], "o-", label=which[5:])
    middle.set_ylabel("loss")
    middle.legend(frameon=False)
    below = np.zeros(len(history))
    for stage in ("train", "embed", "neighbours", "merge"):
        taken = np.array([period.seconds.get(stage, 0.0) for period in history])
        right.bar(periods, taken, bottom=below, label=stage)
        below += taken
    right.set_ylabel("seconds")
    right.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=8)
    for axes in (left, middle, right):
        axes.set_xlabel("period")
        axes.spines[["top", "right"]].set_visible(False)


KINDS: dict[str, Callable[[Any, Run, Finished, NDArray | None], None]] = {
    "pca3d": _pca3d,
    "map": _map,
    "gallery": _gallery,
    "history": _history,
}
