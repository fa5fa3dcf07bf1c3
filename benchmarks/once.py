"""Nothing is computed twice: the commands against those of an earlier source tree.

`python -m benchmarks.once --before PATH` times both trees in turn, each command in its own
process. PATH is a checkout of the earlier version; its src/ precedes the installed package.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.common import seconds, write
from jule.images import load_dataset

ROOT = Path(__file__).parent.parent
PICTURES = 80
TURNS = 5
CLUSTER_TURNS = 2
PLAIN = "from jule.cli import main; main()"
COUNTED = (ROOT / "benchmarks" / "counted.py").read_text(encoding="utf-8")
Trees = dict[str, Path]


def run_jule(tree: Path, arguments: list[str], script: str = PLAIN, **environment: str) -> None:
    """Run `jule` of a source tree in a fresh process; its output is shown only if it fails."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tempfile.gettempdir(),  # python -c puts the current folder on the path
        env={**os.environ, "PYTHONPATH": str(tree / "src"), **environment},
    )
    if done.returncode:
        raise RuntimeError(f"jule {' '.join(arguments)} of {tree} failed:\n{done.stdout}")


def time_in_turn(trees: Trees, commands: dict[str, list[str]], turns: int) -> dict[str, Any]:
    """Time one command per tree, alternating; return all seconds, medians and their ratio."""
    taken: dict[str, list[float]] = {name: [] for name in trees}
    for _ in range(turns):
        for name, tree in trees.items():
            spent, _none = seconds(lambda tree=tree, name=name: run_jule(tree, commands[name]))  # type: ignore[misc]
            taken[name].append(spent)
    before, after = (float(np.median(taken[name])) for name in ("before", "after"))
    return {"all": taken, "before": before, "after": after, "before / after": before / after}


def write_edits(run: Path, k: int) -> Path:
    """Write edits that name one of k clusters, as the page of a run downloads them."""
    page = (run / "report.html").read_text(encoding="utf-8")
    data = re.search(r'<script type="application/json" id="run">(.*?)</script>', page, re.DOTALL)
    version = re.search(r'"(jule-(?:page-)?edits-\d+)"', page)
    if data is None or version is None:
        raise RuntimeError(f"{run / 'report.html'} is not a page of the expected form")
    summary = json.loads(data[1])["summary"]
    edits = {
        "format": version[1],
        "run": summary["run"],
        "labels": summary["labels"],
        "k": None if version[1] == "jule-edits-1" else k,
        "names": {"0": "named"},
        "moves": [],
    }
    path = run.with_name(f"{run.name}-edits.json")
    path.write_text(json.dumps(edits), encoding="utf-8")
    return path


def run_commands(runs: Trees, k: int) -> dict[str, dict[str, list[str]]]:
    """Return the commands on finished runs of k clusters, for each tree with its own run."""
    edits = {name: str(write_edits(run, k)) for name, run in runs.items()}
    return {
        "jule apply": {name: ["apply", str(run), edits[name]] for name, run in runs.items()},
        "jule cut": {name: ["cut", str(run), "-k", str(k + 2)] for name, run in runs.items()},
        "jule report": {name: ["report", str(run)] for name, run in runs.items()},
    }


def cluster_commands(source: Path, k: int, runs: Trees) -> dict[str, list[str]]:
    return {
        name: ["cluster", str(source), "-k", str(k), "--out", str(run), "--overwrite"]
        for name, run in runs.items()
    }


def measure_large(trees: Trees, folder: Path, count: int, turns: int) -> dict[str, Any]:
    """Time the commands on MNIST-test, or on its first images."""
    data = load_dataset("mnist-test")
    source = folder / "mnist-test.npz"
    np.savez(source, images=data.images[:count], labels=data.labels[:count])
    runs = {name: folder / f"mnist-{name}" for name in trees}
    found = {"jule cluster": time_in_turn(trees, cluster_commands(source, 10, runs), turns)}
    print("jule cluster", found["jule cluster"], flush=True)
    for name, commands in run_commands(runs, 10).items():
        found[name] = time_in_turn(trees, commands, TURNS)
        print(name, found[name], flush=True)
    return found


def measure_small(trees: Trees, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Time how commands start on a run of a few pictures, and count what each computes."""
    source = folder / "pictures"
    source.mkdir()
    for number, image in enumerate(load_dataset("digits").images[:PICTURES]):
        Image.fromarray(image).save(source / f"{number:02d}.png")
    runs = {name: folder / f"pictures-{name}" for name in trees}
    clustering = cluster_commands(source, 4, runs)
    counts = {"jule cluster": count_in(trees, clustering, folder)}
    on_runs = run_commands(runs, 4)
    counts |= {name: count_in(trees, commands, folder) for name, commands in on_runs.items()}
    startup = {
        "jule --help": {name: ["--help"] for name in trees},
        "jule info": {name: ["info", str(source)] for name in trees},
    }
    times = {
        name: time_in_turn(trees, commands, TURNS) for name, commands in (startup | on_runs).items()
    }
    return times, counts


def count_in(trees: Trees, commands: dict[str, list[str]], folder: Path) -> dict[str, Any]:
    """Count the neighbour searches and embeddings of one command per tree."""
    path = folder / "counts.json"
    found = {}
    for name, tree in trees.items():
        run_jule(tree, commands[name], COUNTED, JULE_COUNTS=str(path))
        found[name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", type=Path, required=True, help="the earlier source tree")
    parser.add_argument("--name", help="what to call it in the results, such as its commit")
    parser.add_argument("--images", type=int, default=10_000, help="images of MNIST-test")
    parser.add_argument("--turns", type=int, default=CLUSTER_TURNS, help="runs of jule cluster")
    given = parser.parse_args()
    trees = {"before": given.before.resolve(), "after": ROOT}
    with tempfile.TemporaryDirectory() as name:
        os.environ["JULE_CACHE"] = str(Path(name, "cache"))
        startup, counts = measure_small(trees, Path(name))  # first: it compiles all kernels
        large = measure_large(trees, Path(name), given.images, given.turns)
    write(
        "once",
        "python -m benchmarks.once --before PATH",
        {
            "before": given.name or given.before.name,
            "images": given.images,
            "pictures": PICTURES,
            "turns": TURNS,
            "turns of jule cluster": given.turns,
        },
        {"large": large, "small": startup, "counts": counts},
    )


if __name__ == "__main__":
    main()
