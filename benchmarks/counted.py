"""Run the `jule` command and count its neighbour searches and embeddings.

`benchmarks.once` passes this file's text to `python -c`, so that it works on any source tree. The
counts are written to the file that $JULE_COUNTS names.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jule.backward
import jule.forward
from jule.cli import main

COUNTED = {"neighbour searches": "nearest_neighbors", "embeddings": "embed"}


def count_calls(what: str, work: Callable[..., Any], counts: Counter[str]) -> None:
    """Replace a function in all modules that import it with one that counts its calls."""

    def counted(*args: Any, **options: Any) -> Any:
        counts[what] += 1
        return work(*args, **options)

    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "jule" and vars(module).get(work.__name__) is work:
            setattr(module, work.__name__, counted)


if __name__ == "__main__":
    counts = Counter(dict.fromkeys(COUNTED, 0))
    for what, name in COUNTED.items():
        package = jule.forward if hasattr(jule.forward, name) else jule.backward
        count_calls(what, getattr(package, name), counts)
    path = Path(os.environ["JULE_COUNTS"])
    atexit.register(lambda: path.write_text(json.dumps(counts)))
    main()
