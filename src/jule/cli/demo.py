"""`jule demo`: cluster real handwritten digits, and compare with K-means and raw linkage."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jule.cli.cluster import LOADING
from jule.cli.output import say, say_table, status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jule.images import Dataset
    from jule.progress import Progress
    from jule.runs.folder import RunFolder
    from jule.runs.results import RunResults

FOLDER = Path("jule-demo")
FEWEST_RUNS, MOST_RUNS = 2, 4  # one per core, each with a random seed of its own
SETTINGS: dict[str, Any] = {}  # changes of the default configuration
LEARN = "import sys; from jule.cli.demo import learn; learn(sys.argv[1])"


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder to create.")] = FOLDER,
    show: Annotated[
        bool | None, typer.Option("--open/--no-open", help="Open the page. Default: on a terminal.")
    ] = None,
) -> None:
    """Cluster real handwritten digits, and compare with K-means and raw graph degree linkage.

    Joint learning runs once per core, each time with another random seed, and the result with the
    largest modularity is kept.
    True labels are used to score the clusters, never to find or choose them.

    Example: jule demo
    """
    from jule.runs.folder import check_new_folder, check_run_folder

    if out == FOLDER and out.is_dir() and any(out.iterdir()):
        check_run_folder(out)  # another demo may replace the last one, but nothing else
    else:
        check_new_folder(out)
    say("Clustering 1,797 handwritten digits (8 x 8 pixels) without their labels.")
    with status(LOADING):
        from jule.cli.pages import write_report
        from jule.cli.show import print_clusters
        from jule.forward import agglomerate
        from jule.images import load_dataset
        from jule.progress import progress_bars
        from jule.report import Report
        from jule.runs.folder import RunFolder

        data = load_dataset("digits")
        # Compiles the kernels once, before several processes would do the same.
        agglomerate(data.images[:100].reshape(100, -1)).cut(2, min_cluster_size=2)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=out.absolute().parent, prefix=".jule-demo-") as folder:
        with progress_bars("digits") as bars:
            runs = _learn_side_by_side(Path(folder), data, bars)
        seconds = time.perf_counter() - start
        kept, results = _choose(runs)
        _move(kept, out, data)
    print_clusters(results, data.labels)
    _compare(data, results, len(runs), seconds)
    say(f"The network, labels and tree are in {out}")
    run = RunFolder(out)
    page = write_report(
        run, lambda bars: Report.of_run(run, data.images, results=results, progress=bars)
    )
    if sys.stdout.isatty() if show is None else show:
        webbrowser.open(page.resolve().as_uri())


def _learn_side_by_side(folder: Path, data: Dataset, progress: Progress) -> list[RunFolder]:
    """Run joint learning with each seed in a process with one thread."""
    from jule.images import fingerprint
    from jule.images.decoding.pipeline import count_cores
    from jule.joint import preset
    from jule.progress import OVERALL
    from jule.runs.folder import create_run

    runs = [
        create_run(
            folder / str(seed),
            preset("default", n_clusters=data.n_clusters, seed=seed, **SETTINGS),
            fingerprint(data.images),
        )
        for seed in range(min(MOST_RUNS, max(FEWEST_RUNS, count_cores())))
    ]
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    shares = [0.0] * len(runs)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", LEARN, str(run.folder)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **one_thread},
        )
        for run in runs
    ]

    def follow(which: int) -> None:
        output = processes[which].stdout
        assert output is not None
        for line in output:
            shares[which] = float(line)
            progress(OVERALL, sum(shares) / len(shares))

    threads = [threading.Thread(target=follow, args=(which,)) for which in range(len(runs))]
    try:
        for thread in threads:
            thread.start()
        for process in processes:
            if process.wait() != 0:
                raise ValueError(f"joint learning failed with exit code {process.returncode}")
    finally:
        for process in processes:
            process.kill()
        for thread in threads:
            thread.join()
    return runs


def learn(folder: str) -> None:
    """Execute one run of the demo in this process, and print the share that is done."""
    from jule.images import load_dataset
    from jule.progress import OVERALL
    from jule.runs.execute import execute
    from jule.runs.folder import RunFolder

    def show(stage: str, share: float) -> None:
        if stage == OVERALL:
            sys.stdout.write(f"{share}\n")
            sys.stdout.flush()

    data = load_dataset("digits")
    try:
        execute(RunFolder(folder), data.images, labels=data.labels, progress=show)
    except KeyboardInterrupt:
        sys.exit(130)


def _move(run: RunFolder, out: Path, data: Dataset) -> None:
    """Move a finished run to its folder, all at once; a run that is there is replaced."""
    from jule.files import arrays_bytes, make_folder
    from jule.locks import hold
    from jule.runs.manifest import own_files
    from jule.runs.names import IMAGES
    from jule.runs.update import update_files

    files = {name: run.read(name) for name in run.manifest()}
    files[IMAGES] = arrays_bytes(images=data.images)
    make_folder(out)
    with hold(out):
        update_files(out, files, remove=own_files(out))


def _choose(runs: list[RunFolder]) -> tuple[RunFolder, RunResults]:
    """Return the run whose clusters have the largest modularity in its graph."""
    from jule.forward.assign import modularity
    from jule.runs.results import read_results

    found = [read_results(run) for run in runs]
    scores = [modularity(results.result.graph, results.result.labels) for results in found]
    best = max(range(len(runs)), key=scores.__getitem__)
    listed = ", ".join(f"{score:.4f}" for score in scores)
    say(f"Modularity per seed: {listed}; seed {best} is kept.")
    return runs[best], found[best]


def _compare(data: Dataset, results: RunResults, n_runs: int, seconds: float) -> None:
    """Print the scores of joint learning beside those of K-means and linkage on raw pixels."""
    from sklearn.cluster import KMeans

    from jule.evaluation import accuracy, nmi
    from jule.forward import agglomerate, default_min_cluster_size, prepare

    k, vectors = data.n_clusters, prepare(data.images, "l2")

    def linkage() -> NDArray:
        return agglomerate(vectors).cut(k, default_min_cluster_size(len(data), k))

    def kmeans() -> NDArray:
        found: NDArray = KMeans(k, n_init=10, random_state=0).fit_predict(vectors)
        return found

    found: list[tuple[str, NDArray, float]] = [
        ("K-means on pixels, best of 10", *_timed(kmeans)),
        ("graph degree linkage on pixels", *_timed(linkage)),
        (f"joint learning, best of {n_runs}", results.result.labels, seconds),
    ]
    rows = [
        (
            name,
            f"{nmi(data.labels, labels):.3f}",
            f"{accuracy(data.labels, labels):.3f}",
            f"{t:.1f}",
        )
        for name, labels, t in found
    ]
    say_table(["method", "NMI", "AC", "seconds"], rows)


def _timed(work: Callable[[], NDArray]) -> tuple[NDArray, float]:
    start = time.perf_counter()
    labels = work()
    return labels, time.perf_counter() - start
