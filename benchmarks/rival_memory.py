"""Memory: the peak of every method of the paper on MNIST-full, 70,000 x 784.

AC-Link and TSC-D are left out; the former needs half of all distances. Methods that an earlier run
with the same settings has measured are not measured again.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from benchmarks.common import RESULTS, Memory, in_fresh_process, mnist_vectors, write
from jule.baselines import METHODS
from jule.jit import get_num_threads

N_CLUSTERS = 10
LEFT_OUT = ("AC-Link", "TSC-D")
# More iterations take longer and need no more memory.
SHORTER: dict[str, dict[str, Any]] = {
    "NMF-LP": {"n_init": 1, "max_iter": 10},
    "NMF-D": {"max_iter": 10},
}


def measure(name: str) -> dict[str, float]:
    """Return the peak memory of this process, with the samples and above them."""
    vectors = mnist_vectors()
    memory = Memory()
    METHODS[name](N_CLUSTERS, **SHORTER.get(name, {})).fit(vectors)
    peak = memory.peak()
    return {"MiB in all": memory.before + peak, "MiB above the samples": peak}


def main() -> None:
    settings = {"clusters": N_CLUSTERS, "shorter": SHORTER, "numba threads": get_num_threads()}
    path = RESULTS / "rival_memory.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    same = record.get("settings") == settings
    measured: dict[str, Any] = record["measured"] if same else {}
    names = [name for name in METHODS if name not in LEFT_OUT]
    if set(names) <= set(measured):
        measured = {}
    for name in names:
        if name not in measured:
            measured[name] = in_fresh_process("benchmarks.rival_memory", name)
            print(name, measured[name], flush=True)
            write("rival_memory", "python -m benchmarks.rival_memory", settings, measured)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        print(json.dumps(measure(sys.argv[1])))
