"""Shared helpers of the benchmarks: data, timing, memory, fresh processes, result files."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from jule.files import write_json
from jule.forward import Neighbors, prepare
from jule.images import load_dataset
from jule.paper.records import read_record

RESULTS = Path(__file__).parent.parent / "results" / "benchmarks"
PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "faiss-cpu",
    "pynndescent",
    "torch",
    "umap-learn",
    "clustpy",
    "onnxruntime",
)
Result = TypeVar("Result")


def seconds(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return the seconds that a call takes, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def processor_seconds(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return the processor time of a call, on all cores together, and its result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def mnist_vectors() -> NDArray[np.floating]:
    """Return MNIST-full, 70,000 x 784, each image divided by its L2 norm."""
    return prepare(load_dataset("mnist").images, "l2")


def save_neighbors(path: Path, neighbors: Neighbors) -> None:
    np.savez(path, indices=neighbors.indices, distances=neighbors.distances)


def load_neighbors(path: Path) -> Neighbors:
    with np.load(path, allow_pickle=False) as archive:
        return Neighbors(archive["indices"], archive["distances"])


class Memory:
    """The peak memory of this process, measured from the creation of this object (Linux)."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        self.before = self._mebibytes("VmRSS")

    def peak(self) -> float:
        """Return the peak in MiB above the memory in use at the start."""
        return self._mebibytes("VmHWM") - self.before

    @staticmethod
    def _mebibytes(field: str) -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def in_fresh_process(module: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """Run `python -m module arguments` and return the JSON object that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, **environment},
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def write(name: str, command: str, settings: dict[str, Any], measured: Any) -> None:
    """Write a result file, with everything needed to repeat the measurement."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    record = {
        "benchmark": name,
        "command": command,
        "date": time.strftime("%Y-%m-%d"),
        "machine": {"cores": os.cpu_count(), "processor": _processor()},
        "versions": package_versions(),
        "settings": settings,
        "measured": measured,
    }
    path = RESULTS / f"{name}.json"
    write_json(path, record, private=False)
    print(f"wrote results/benchmarks/{path.name}")


def read_measured(results: Path, name: str) -> dict[str, Any]:
    """Return what a benchmark measured, from the file that it wrote."""
    found: dict[str, Any] = read_record(results / "benchmarks" / f"{name}.json")["measured"]
    return found


def mean_and_spread(runs: list[dict[str, float]], score: str, digits: int = 3) -> str:
    """Render the mean and the standard deviation of a score over several runs."""
    values = np.array([run[score] for run in runs])
    return f"{values.mean():.{digits}f} ± {values.std():.{digits}f}"


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that are installed."""
    found = {package: version(package) for package in PACKAGES if _is_installed(package)}
    return {"python": platform.python_version()} | found


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _processor() -> str:
    lines = (
        Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    )
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
