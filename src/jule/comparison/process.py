"""Run a method in a process of its own.

A method that crashes or runs out of memory then costs only its own row of the table, and the peak
memory of each method can be measured.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from jule.baselines._factors import rotate_to_fewer
from jule.comparison.methods import is_random, is_rotation_invariant
from jule.images.copies import find_copies

ROTATED = "rotated.npy"
# The child gets the module path of this process, which may have been changed at run time.
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from jule.comparison.child import serve; serve()"
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The clusters that a method found, and the time and memory that it took.

    Attributes
    ----------
    method
        Name of the method.
    labels
        One array (n,) per seed that was finished; -1 marks samples in no cluster.
    seconds
        Wall time of each fit.
    memory
        Peak memory in bytes, with the samples but without libraries; None if it is not known.
    reason
        Why the method failed; empty if it succeeded.
    warnings
        What the method warned of.
    """

    method: str
    labels: tuple[NDArray[np.int32], ...] = field(default=(), repr=False)
    seconds: tuple[float, ...] = ()
    memory: int | None = None
    reason: str = ""
    warnings: tuple[str, ...] = ()


@contextmanager
def stored_vectors(vectors: NDArray[np.floating]) -> Iterator[Path]:
    """Store vectors in a temporary file, which `run_method` maps, for the duration of the block.

    Vectors with more features than there are samples are also stored in a basis of fewer features,
    which changes no distance and makes most methods faster.

    Examples
    --------
    >>> with stored_vectors(np.eye(3)) as path:
    ...     np.load(path).shape
    (3, 3)
    """
    with TemporaryDirectory(prefix="jule-compare-") as folder:
        path = Path(folder, "samples.npy")
        np.save(path, vectors, allow_pickle=False)
        if vectors.shape[1] > len(vectors):
            rotated = rotate_to_fewer(vectors)[find_copies(vectors)]  # copies stay exact
            np.save(path.with_name(ROTATED), rotated, allow_pickle=False)
        yield path


def _file_for(method: type[Any], samples: Path) -> Path:
    """Return the file with the vectors that a method is given."""
    rotated = samples.with_name(ROTATED)
    return rotated if rotated.exists() and is_rotation_invariant(method) else samples


def run_method(
    name: str,
    method: type[Any],
    samples: Path,
    n_clusters: int,
    *,
    seeds: Sequence[int] = (0,),
    progress: Callable[[float], None] | None = None,
) -> Outcome:
    """Fit a method in a process of its own, once per seed if it is random.

    Parameters
    ----------
    name
        Name of the method.
    method
        An estimator class that can be imported. Its parameters `n_clusters` and `random_state` are
        set if it has them; `fit` must set `labels_`.
    samples
        A .npy file of vectors (n, d).
    n_clusters
        Number of clusters.
    seeds
        Random seeds. A method that is not random is run once.
    progress
        Called with the fraction of the seeds that are done.

    Examples
    --------
    >>> from jule.comparison.methods import known_methods
    >>> points = np.random.default_rng(0).normal(size=(20, 2)) + np.repeat([[0], [9]], 10, axis=0)
    >>> with stored_vectors(points) as path:
    ...     outcome = run_method("AC-GDL", known_methods()["AC-GDL"], path, 2)
    >>> outcome.labels[0].tolist() == [0] * 10 + [1] * 10, outcome.reason
    (True, '')
    """
    with TemporaryDirectory(prefix="labels-", dir=samples.parent) as folder:
        used = list(seeds) if is_random(method) else list(seeds[:1])
        request = {
            "module": method.__module__,
            "class": method.__qualname__,
            "samples": str(_file_for(method, samples)),
            "folder": folder,
            "n_clusters": n_clusters,
            "seeds": used,
        }
        fits: list[dict[str, Any]] = []
        end: dict[str, Any] = {}
        with open(Path(folder, "messages"), "wb") as messages, _started(request, messages) as child:
            assert child.stdout is not None
            for line in child.stdout:
                reply = json.loads(line)
                if "reason" in reply:
                    end = reply
                    continue
                fits.append(reply)
                if progress is not None:
                    progress(len(fits) / len(used))
            code = child.wait()
        labels = [np.load(Path(folder, f"{fit['seed']}.npy"), allow_pickle=False) for fit in fits]
    known = [fit["memory"] for fit in fits if fit["memory"] is not None]
    return Outcome(
        name,
        tuple(labels),
        tuple(fit["seconds"] for fit in fits),
        max(known, default=None),
        end.get("reason", describe_exit(code)),
        tuple(end.get("warnings", ())),
    )


@contextmanager
def _started(request: dict[str, Any], messages: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Start the process, and kill it when the block is left, even by an error."""
    child = subprocess.Popen(
        [sys.executable, "-c", START, json.dumps(sys.path), json.dumps(request)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=messages,
    )
    with child:
        try:
            yield child
        finally:
            child.kill()


def describe_exit(code: int) -> str:
    """Return why a process ended without giving a reason itself.

    Examples
    --------
    >>> describe_exit(-9), describe_exit(3)
    ('it was killed: probably there is not enough memory', 'it ended with exit code 3')
    """
    if code >= 0:
        return f"it ended with exit code {code}"
    if code == -9:
        return "it was killed: probably there is not enough memory"
    try:
        return f"it crashed ({signal.Signals(-code).name})"
    except ValueError:
        return f"it crashed (signal {-code})"
