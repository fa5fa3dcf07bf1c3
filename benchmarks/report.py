"""The page of a run: time and memory to make it, its size, and how fast it responds.

`python -m benchmarks.report SET ...` measures some sets again; the others stay in the record.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import RESULTS, Memory, in_fresh_process, seconds, write
from benchmarks.corrections import large_run
from jule.forward import MergeTree, prepare
from jule.images import fingerprint, load_dataset
from jule.joint import Config, finish, init_network
from jule.joint.state import State
from jule.paper.records import read_record
from jule.runs.folder import RunFolder, create_run
from jule.runs.results import new_results, write_results
from jule.runs.snapshots import principal_components

SETS = ("mnist-test", "mnist", "million")  # 10,000, 70,000 and 1,000,000 images
MILLION, MILLION_WIDE = 1_000_000, 32
CUTS = (2, 5, 9, 11, 12, 20, 30, 50, 100, 200, 300, 7)
LOOKING = 2000  # ms that a user looks at the page before moving the slider
MOVE = """
async (ks) => {
  const taken = [];
  for (const k of ks) {
    const start = performance.now();
    jule.show(k);
    await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 0)));
    taken.push(performance.now() - start);
    await new Promise((rest) => setTimeout(rest, 500));
  }
  return taken;
}
"""


def make_run(name: str, folder: Path) -> RunFolder:
    """Write a finished run without training, which the page does not need.

    The embedding is the first 160 principal components of the pixels, as wide as a network's. The
    million are made up: noise in clusters, with 32 dimensions.
    """
    if name == "million":
        return large_run(folder / "run", MILLION, MILLION_WIDE)
    data = load_dataset(name)
    config = Config(n_clusters=10)
    embedding = _embedding(data.images)
    result = finish(State(labels=_any_labels(len(data))), config, embedding=embedding)
    source = folder / "images.npz"
    np.savez(source, images=data.images)
    run = create_run(folder / "run", config, fingerprint(data.images), source=str(source))
    names = [f"{name}/{number:05d}.png" for number in range(len(data))]
    embedder = init_network(data.images, config)
    results = new_results(config, result, (), names=names, true_labels=data.labels)
    write_results(run, results, embedder)
    return run


def _embedding(images: NDArray) -> NDArray[np.float32]:
    pixels = prepare(images, "l2").reshape(len(images), -1)
    vectors = principal_components(pixels, 160)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


def _any_labels(n: int) -> NDArray[np.int32]:
    merges = np.column_stack((np.arange(1, n), np.r_[0, np.arange(n, 2 * n - 2)]))
    return MergeTree(n, merges, np.zeros(n - 1)).cut(10)


def measure(folder: str) -> dict[str, float]:
    """Time `jule report` in this process, including its imports."""
    run = RunFolder(Path(folder))

    def page() -> Path:
        from jule.report import Report

        return Report.of_run(run, umap=False).write(run)

    memory, before = Memory(), time.process_time()
    taken, path = seconds(page)
    of_processor = time.process_time() - before
    pictures = path.with_name(path.stem + "_pictures")
    beside = sum(file.stat().st_size for file in pictures.iterdir()) if pictures.exists() else 0
    size = path.stat().st_size
    return {
        "seconds": taken,
        "seconds of the processor": of_processor,  # other programs do not count
        "MiB of memory": memory.peak(),
        "MB of the page": size / 1e6,
        "MB in all": (size + beside) / 1e6,
    }


def measure_in_browser(page: Path) -> dict[str, float]:
    """Open the page and move the slider, timing each move up to the next drawn frame."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))))
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu"]
        )
        shown = browser.new_page(viewport={"width": 1400, "height": 900})
        shown.set_default_timeout(300_000)

        def opened() -> None:
            shown.goto(page.resolve().as_uri())
            shown.locator(".card .pic").first.wait_for()

        opening, _ = seconds(opened)
        shown.wait_for_timeout(LOOKING)
        moves = shown.evaluate(MOVE, list(CUTS))
        browser.close()
    return {
        "seconds until it answers": opening,
        "ms of a move, median": float(np.median(moves)),
        "ms of a move, longest": float(np.max(moves)),
    }


def main(names: Sequence[str] = SETS) -> None:
    found: dict[str, Any] = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            run = make_run(name, Path(folder))
            made = in_fresh_process("benchmarks.report", "--measure", str(run.folder))
            count = len(np.load(run.path("labels_rc.npy")))
            found[f"{count:,}"] = made | measure_in_browser(run.path("report.html"))
        print(name, found)
    path = RESULTS / "report.json"
    every = (read_record(path)["measured"] if path.exists() else {}) | found
    write("report", "python -m benchmarks.report", {"sets": SETS, "cuts": CUTS}, every)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2])))
    else:
        main(sys.argv[1:] or SETS)
