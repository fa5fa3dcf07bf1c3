"""Whole runs from ten thousand images to a million, killed and resumed once on the way.

The images are MNIST digits, 15 different copies of each: rotated, scaled and shifted a little, and
averaged to 16 x 16 pixels. Each run has the default settings and its own process. The largest one
is killed after its second period, and another process resumes it. Runs are kept in the folder that
is given; sizes that are finished there are not run again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from benchmarks.common import write
from jule.evaluation import scores
from jule.images import load_dataset, read_images
from jule.joint import preset
from jule.joint.loop import begin
from jule.joint.state import Period
from jule.report import Report
from jule.runs import execute as execution
from jule.runs.folder import RunFolder, create_run
from jule.runs.results import read_results

COPIES = 15
SIZES = (10_500, 30_000, 105_000, 300_000, 1_050_000)
SIDE = 16
DEGREES, SCALING, SHIFT = 10.0, 0.1, 0.1  # at most; the shift as a share of half the side
AT_ONCE = 7_000
N_BEFORE_KILL = 2
KILLED_AFTER = f"state-{N_BEFORE_KILL:04d}.safetensors"
LOOK_EVERY = 0.5  # seconds
PLOT = Path(__file__).parent.parent / "docs" / "million.png"
STAGES = ("reading", "inputs", "train", "embed", "neighbours", "merge", "end", "page")


def warped_digits(n: int, path: Path) -> NDArray[np.int64]:
    """Write n images to a .npy file, `COPIES` of each digit, and return their classes."""
    data = load_dataset("mnist")
    rng = np.random.default_rng(0)
    digits = rng.permutation(len(data.images))[: n // COPIES]
    which = rng.permutation(np.repeat(digits, COPIES))
    images = np.lib.format.open_memmap(path, "w+", np.uint8, (len(which), SIDE, SIDE))
    for start in range(0, len(which), AT_ONCE):
        some = which[start : start + AT_ONCE]
        images[start : start + AT_ONCE] = _warp(data.images[some], rng)
    images.flush()
    classes: NDArray[np.int64] = data.labels[which]
    return classes


def _warp(images: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    n = len(images)
    angle = np.radians(rng.uniform(-DEGREES, DEGREES, n))
    scale = rng.uniform(1 - SCALING, 1 + SCALING, n)
    shift = rng.uniform(-SHIFT, SHIFT, (n, 2))
    rows = np.stack([np.cos(angle) * scale, -np.sin(angle) * scale, shift[:, 0]], axis=1)
    columns = np.stack([np.sin(angle) * scale, np.cos(angle) * scale, shift[:, 1]], axis=1)
    theta = torch.from_numpy(np.stack([rows, columns], axis=1).astype(np.float32))
    grid = F.affine_grid(theta, [n, 1, 2 * SIDE, 2 * SIDE], align_corners=False)
    found = F.grid_sample(
        torch.from_numpy(images.astype(np.float32))[:, None], grid, align_corners=False
    )
    small: NDArray[np.uint8] = F.avg_pool2d(found, 2)[:, 0].round().byte().numpy()
    return small


def learn(images: str, folder: str, log: str) -> None:
    """Start or resume a run, as `jule cluster` and `jule resume` do; write how long it took."""
    searched: list[float] = []

    def timed_begin(*arguments: Any) -> Any:
        before = time.perf_counter()
        state = begin(*arguments)
        searched.append(time.perf_counter() - before)
        return state

    start = time.perf_counter()
    data = read_images(images)
    read = time.perf_counter()
    run = RunFolder(Path(folder))
    if not run.folder.exists():
        run = create_run(folder, preset(n_clusters=10), data.fingerprint)
    with patch.object(execution, "begin", timed_begin):
        execution.execute(run, data.samples, data=data.fingerprint, progress=show)
    rest = time.perf_counter() - read - sum(searched)
    times = {"reading": read - start, "inputs": sum(searched), "rest": rest}
    Path(log).write_text(json.dumps(times))


def show(stage: str, share: float) -> None:
    print(f"{stage} {share:.0%}", flush=True)


def page(folder: str, images: str) -> None:
    """Write the page of a run, as `jule report` does."""
    run = RunFolder(Path(folder))
    Report.of_run(run, images=read_images(images).samples).write(run)


def watched(work: str, *arguments: str, until: Path | None = None) -> dict[str, float]:
    """Run a function of this module in a process of its own, and kill it when a file appears.

    Returns its seconds, its seconds of processor time, and its peak of memory in MiB, which
    includes pages of files that are mapped.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.million", work, *arguments], stdout=subprocess.DEVNULL
    )
    killed = False
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if until is not None and until.exists() and not killed:
            os.kill(process.pid, signal.SIGKILL)
            killed = True
        time.sleep(LOOK_EVERY)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, -signal.SIGKILL if killed else 0):
        raise RuntimeError(f"{work} ended with {process.returncode}")
    return {
        "seconds": time.perf_counter() - start,
        "processor seconds": usage.ru_utime + usage.ru_stime,
        "MiB": usage.ru_maxrss / 1024,
    }


def measure(n: int, folder: Path, *, is_killed: bool) -> dict[str, Any]:
    """Run joint learning on n images, and return its time per stage, memory and scores."""
    images, run, log = folder / f"{n}.npy", folder / f"run-{n}", folder / f"{n}.json"
    classes = warped_digits(n, images)
    parts = []
    if is_killed:
        until = run / "state" / KILLED_AFTER
        parts.append(watched("learn", str(images), str(run), str(log), until=until))
    parts.append(watched("learn", str(images), str(run), str(log)))
    results = read_results(RunFolder(run))
    return {
        "n": n,
        "stages": stages_of(results.history, json.loads(log.read_text()), parts),
        "processes": parts,
        "scores": scores(classes, results.result.labels),
        "recall": [period.recall for period in results.history],
        "period": [period.seconds for period in results.history],
    }


def stages_of(
    history: Sequence[Period], last: dict[str, float], parts: list[dict[str, float]]
) -> dict[str, float]:
    """Return the seconds of every stage of a run.

    A process that resumes a run clusters the inputs again, at the end. The time of that is taken
    from the first process, which was killed: it is what is left of its time without the periods,
    with a few seconds for starting.
    """
    periods = [sum(period.seconds.values()) for period in history]
    inputs, end = last["inputs"], last["rest"] - sum(periods)
    if len(parts) > 1:
        inputs = parts[0]["seconds"] - sum(periods[:N_BEFORE_KILL]) - last["reading"]
        end = last["rest"] - sum(periods[N_BEFORE_KILL:]) - inputs
    taken = {
        stage: sum(period.seconds[stage] for period in history)
        for stage in ("train", "embed", "neighbours", "merge")
    }
    return {"reading": last["reading"], "inputs": inputs, **taken, "end": end}


def add_page(row: dict[str, Any], folder: Path) -> None:
    """Make the page of a finished run, and add its time and size to the row."""
    n = row["n"]
    run = folder / f"run-{n}"
    row["page"] = watched("page", str(run), str(folder / f"{n}.npy"))
    row["page"]["MB of the page"] = (run / "report.html").stat().st_size / 1e6
    row["stages"]["page"] = row["page"]["seconds"]


def exponents(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the slope of log time over log n of every stage, by least squares."""
    n = np.log([row["n"] for row in rows])
    return {
        stage: float(np.polyfit(n, np.log([row["stages"][stage] for row in rows]), 1)[0])
        for stage in STAGES
        if len(rows) > 1 and all(stage in row["stages"] for row in rows)
    }


def plot(rows: list[dict[str, Any]], slopes: dict[str, float]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
    n = [row["n"] for row in rows]
    for stage, slope in slopes.items():
        taken = [row["stages"][stage] for row in rows]
        axes.loglog(n, taken, "o-", label=f"{stage}: n^{slope:.2f}")
    axes.set(xlabel="images", ylabel="seconds")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    figure.savefig(PLOT, dpi=110)


def save(rows: list[dict[str, Any]]) -> None:
    settings = {"copies": COPIES, "side": SIDE, "seed": 0, "K": 10, "settings": "default"}
    slopes = exponents(rows)
    write(
        "million",
        "python -m benchmarks.million FOLDER",
        settings,
        {"rows": rows, "exponents": slopes},
    )
    if slopes:
        plot(rows, slopes)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for n in SIZES:
        record = folder / f"row-{n}.json"
        if not record.exists():
            record.write_text(json.dumps(measure(n, folder, is_killed=n == SIZES[-1])))
        row = json.loads(record.read_text())
        add_page(row, folder)
        rows.append(row)
        print(json.dumps(row), flush=True)
        save(rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["learn"]:
        learn(*sys.argv[2:])
    elif sys.argv[1:2] == ["page"]:
        page(*sys.argv[2:])
    elif len(sys.argv) == 2:
        main(Path(sys.argv[1]))
    else:
        sys.exit("python -m benchmarks.million FOLDER: say where the runs are kept")
