"""The process that runs one method: it fits the method with every seed and reports each fit.

It is started by `run_method`. The request is JSON text on the command line; every line of standard
output is a JSON object. The labels of each seed are written to a file.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import jule
from jule.comparison.methods import fit_values, make_estimator
from jule.memory import peak_memory, reset_peak_memory, resident_memory

WARM_UP = 64  # samples of the fit that is not measured
Reply = Callable[[dict[str, Any]], None]


def serve() -> None:
    """Run the method that the command line asks for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the main process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(OSError):  # not Linux
        # If memory runs out, the system should kill this process, not the one with the results.
        Path("/proc/self/oom_score_adj").write_text("1000")
    # Some libraries print messages, which must not end up among the replies.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def reply(message: dict[str, Any]) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            fit_all(json.loads(sys.argv[2]), reply)
            end = {"reason": ""}
        except Exception as error:
            end = {"reason": describe_error(error)}
    reply({**end, "warnings": own_warnings(caught)})


def fit_all(request: dict[str, Any], reply: Reply) -> None:
    """Fit a method with every seed; report the seconds and the memory of each fit."""
    method = getattr(import_module(request["module"]), request["class"])
    samples, folder = request["samples"], Path(request["folder"])
    _warm_up(method, samples)
    reset_peak_memory()
    before = resident_memory()
    for seed in request["seeds"]:
        # A private mapping: nothing is copied, and writing to it does not change the file.
        vectors = fit_values(method, np.load(samples, mmap_mode="c", allow_pickle=False))
        estimator = make_estimator(method, request["n_clusters"], seed)
        start = time.perf_counter()
        labels = np.asarray(estimator.fit(vectors).labels_)
        seconds = time.perf_counter() - start
        memory = None if before is None else max(0, (peak_memory() or before) - before)
        np.save(folder / f"{seed}.npy", labels.astype(np.int32))
        reply({"seed": seed, "seconds": seconds, "memory": memory})


def _warm_up(method: type[Any], samples: str) -> None:
    """Fit a few samples, so that loading libraries and compiling are not measured."""
    vectors = np.load(samples, mmap_mode="r", allow_pickle=False)
    few = np.array(vectors[:: max(1, len(vectors) // WARM_UP)][:WARM_UP])
    with warnings.catch_warnings(), suppress(Exception):  # errors that matter will occur again
        warnings.simplefilter("ignore")
        make_estimator(method, 2, 0).fit(fit_values(method, few))


def _end_with_parent() -> None:
    """End this process when the one that started it has ended, which closes standard input."""
    with suppress(OSError, ValueError):
        sys.stdin.buffer.read()
    os._exit(1)


def describe_error(error: Exception) -> str:
    """Return why a method failed, on one line.

    Examples
    --------
    >>> describe_error(ValueError("too few samples")), describe_error(KeyError("x"))
    ('too few samples', "KeyError: 'x'")
    """
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"there is not enough memory ({text})" if text else "there is not enough memory"
    if isinstance(error, ValueError | ImportError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def own_warnings(caught: list[warnings.WarningMessage]) -> list[str]:
    """Return the messages of jule's own warnings; those of other libraries do not help a user.

    Examples
    --------
    >>> own_warnings([])
    []
    """
    home = str(Path(jule.__file__).parent)
    ours = (str(one.message) for one in caught if one.filename.startswith(home))
    return list(dict.fromkeys(ours))
