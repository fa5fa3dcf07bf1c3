"""Draw figures of a run for a paper: the stages of Fig. 1, a map, a gallery, the history."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jule.files import write_atomic
from jule.joint import Period
from jule.report.inputs import read_run_images, read_snapshots
from jule.report.layout import coordinates, umap_map
from jule.report.pictures import brightness, thumbnail
from jule.report.summary import groups, stages
from jule.runs.folder import RunFolder
from jule.runs.names import is_own_name
from jule.runs.results import RunResults, read_results
from jule.runs.snapshots import Snapshot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("pca3d", "map", "gallery", "history")
GOLDEN = 0.6180339887  # step of the hue: distinct colours, for a few clusters or for hundreds
IMAGES_PER_ROW = 10
MOST_ROWS = 40


def plot_run(run: RunFolder, kind: str, out: Path, *, source: str | Path | None = None) -> None:
    """Draw a figure of a run and write it to a file.

    Parameters
    ----------
    run
        A finished run.
    kind
        ``"pca3d"``, ``"map"``, ``"gallery"`` or ``"history"``.
    out
        The file to write; its suffix is the format, such as .png, .pdf or .svg.
    source
        Where the images are, if they have been moved since the run.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown figure {kind!r}: choose one of {', '.join(KINDS)}")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "jule[plot]"') from error
    figure = Figure(figsize=(8, 6), layout="constrained")
    results = read_results(run)
    if kind == "pca3d":
        _draw_stages(figure, results, stages(read_snapshots(run, len(results.names))))
    elif kind == "map":
        _draw_map(figure, results)
    elif kind == "gallery":
        images, problem = read_run_images(run, source)
        if images is None or images.ndim < 3:
            why = f" ({problem})" if problem else ""
            raise ValueError(
                f"a gallery needs the images of the run{why}: pass their source "
                "(source=..., --source)"
            )
        _draw_gallery(figure, results, images)
    else:
        _draw_history(figure, results.history)
    content = io.BytesIO()
    figure.savefig(content, dpi=200, format=out.suffix.lstrip(".").lower() or "png")
    if is_own_name(out.name) and out.parent.resolve() == run.folder.resolve():
        run.update({out.name: content.getvalue()})
    else:
        write_atomic(out, content.getvalue(), private=False)


def cluster_colours(labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return a colour (red, green, blue) for each label, the same for the same cluster.

    Examples
    --------
    >>> cluster_colours(np.array([0, 1, 0])).shape
    (3, 3)
    """
    from matplotlib.colors import hsv_to_rgb

    hues = (labels * GOLDEN) % 1.0
    light = 0.85 - 0.2 * (labels // 9 % 3)
    hsv = np.stack([hues, np.full(len(labels), 0.75), light], axis=-1)
    found: NDArray[np.float64] = hsv_to_rgb(hsv)
    return found


def _draw_stages(figure: Figure, results: RunResults, snapshots: Sequence[Snapshot]) -> None:
    """Draw the stages side by side; without snapshots, only the final representation."""
    shots = [
        (f"{shot.n_clusters:,} clusters, {_when(shot.period)}", shot.positions, shot.labels)
        for shot in snapshots
    ]
    if not shots:
        positions = coordinates(results.result.embedding)[:, :3].astype(np.float32)
        labels = results.result.labels
        shots = [(f"{results.result.n_clusters:,} clusters", positions, labels)]
    figure.set_size_inches(4.5 * len(shots), 4.5)
    for place, (title, positions, labels) in enumerate(shots):
        axes = figure.add_subplot(1, len(shots), place + 1, projection="3d")
        axes.scatter(*positions.T, c=cluster_colours(labels), s=4, linewidths=0)
        axes.set_title(title, fontsize=10)
        axes.set_xticks([]), axes.set_yticks([]), axes.set_zticks([])


def _when(period: int) -> str:
    return "before training" if period == 0 else f"after period {period}"


def _draw_map(figure: Figure, results: RunResults) -> None:
    result = results.result
    places: NDArray | None = results.positions
    if places is None or places.shape[1] != 2:
        places = umap_map(result.embedding, result.neighbors, results.config.seed)
    if places is None:
        places = coordinates(result.embedding)[:, :2]
    axes = figure.add_subplot()
    colours = cluster_colours(result.labels)
    axes.scatter(places[:, 0], places[:, 1], c=colours, s=3, linewidths=0, rasterized=True)
    for cluster in range(result.n_clusters):
        x, y = np.median(places[result.labels == cluster], axis=0)
        text = axes.text(x, y, "", ha="center", va="center", weight="bold", parse_math=False)
        text.set_text(results.cluster_names.get(cluster, str(results.numbers[cluster])))
        text.set_bbox({"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 1})
    axes.set_aspect("equal")
    axes.axis("off")


def _draw_gallery(figure: Figure, results: RunResults, images: NDArray) -> None:
    """Draw one row per cluster, its most typical images first."""
    rows = sorted(groups(results), key=lambda group: -group["size"])[:MOST_ROWS]
    scale = brightness(images)
    height, width = images.shape[1:3]
    figure.set_size_inches(IMAGES_PER_ROW * 0.7, len(rows) * 0.7 * height / width)
    axes = figure.subplots(len(rows), IMAGES_PER_ROW, squeeze=False)
    for row, group in zip(axes, rows, strict=True):
        for place in row:
            place.axis("off")
        for place, image in zip(row, group["typical"], strict=False):
            place.imshow(thumbnail(images[image], scale, (height, width)), cmap="gray", vmin=0)


def _draw_history(figure: Figure, history: Sequence[Period]) -> None:
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
