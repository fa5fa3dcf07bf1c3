"""The same runs on one process and on two, started by torchrun: quality and processor time.

`python -m benchmarks.ranks [SET ...] [--seeds N] [--processes 1,2]` makes runs with default
settings and the true number of clusters, one thread per process. What was measured before is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.common import RESULTS, mean_and_spread, write
from jule.images import load_dataset
from jule.runs.folder import RunFolder
from jule.runs.results import read_results

SETS = ("usps", "mnist-test")
THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def run(source: Path, out: Path, k: int, seed: int, processes: int) -> dict[str, Any]:
    """Make one run in new processes; return its scores and how long it took."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command = [*(launcher if processes > 1 else []), "-m", "jule", "cluster", str(source)]
    options = ["-k", str(k), "--seed", str(seed), "--out", str(out)]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, *command, *options],
        check=True,
        stdout=subprocess.DEVNULL,
        env=os.environ | dict.fromkeys(THREADS, "1"),
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    results = read_results(RunFolder(out))
    stages: dict[str, float] = {}
    for period in results.history:
        for stage, taken in period.seconds.items():
            stages[stage] = stages.get(stage, 0.0) + taken
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return {
        "scores": results.scores,
        "processor seconds": user + system,
        "seconds": time.perf_counter() - started,
        "seconds of stages": stages,
    }


def measure(name: str, seed: int, processes: int) -> dict[str, Any]:
    """Make a run of a data set in a temporary folder."""
    data = load_dataset(name)
    with TemporaryDirectory() as folder:
        source = Path(folder) / f"{name}.npz"
        np.savez(source, images=data.images, labels=data.labels)
        out = Path(folder) / "run"
        return run(source, out, len(np.unique(data.labels)), seed, processes)


def measured_before() -> dict[str, Any]:
    path = RESULTS / "ranks.json"
    if not path.exists():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["measured"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds")
    parser.add_argument("--processes", default="1,2", help="numbers of processes, with commas")
    given = parser.parse_args()
    for name in given.sets or SETS:
        for processes in given.processes.split(","):
            for seed in range(given.seeds):
                found = measure(name, seed, int(processes))
                print(name, "processes", processes, "seed", seed, found, flush=True)
                measured = measured_before()  # read again: another set may have been measured
                runs = measured.setdefault(name, {}).setdefault(processes, {})
                runs[str(seed)] = found
                write("ranks", "python -m benchmarks.ranks", {"threads per process": 1}, measured)
    for name, by_processes in measured_before().items():
        for processes, runs in sorted(by_processes.items()):
            scores = [each["scores"]["rc"] for each in runs.values()]
            print(name, processes, *(mean_and_spread(scores, one) for one in ("nmi", "ac")))


if __name__ == "__main__":
    main()
