"""The server of a run: how long edits, looking and starting take, over HTTP."""

from __future__ import annotations

import http.client
import json
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from benchmarks.common import seconds, write
from benchmarks.corrections import N_LARGE, large_run
from jule.serve import Desk
from jule.serve.server import listen, prepare

TURNS = 10
EDITS: dict[str, Callable[[int], dict[str, Any]]] = {
    "name": lambda i: {"cluster": 0, "name": f"name {i}"},
    "move": lambda i: {"images": list(range(200 * i, 200 * i + 200)), "to": 5},
    "split": lambda i: {"cluster": 10 + i},
    "merge": lambda i: {"cluster": 30 + 2 * i, "other": 31 + 2 * i},
    "shelve": lambda i: {"images": [N_LARGE - 1 - i]},
}
LOOKS = {  # in the order of a page: after an edit, it asks for what follows from the clusters
    "labels and names": "state",
    "tree, confidence, lists": "clusters",
    "suggestions": "suggestions",
    "the page, loaded again": "",
}


def ask(address: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """Send one request; return what the answer says, or its size if it is a page."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port or 80)
    content = None if body is None else json.dumps(body)
    method = "GET" if body is None else "POST"
    connection.request(method, parts.path + path, content, {"content-type": "application/json"})
    answer = connection.getresponse()
    found = answer.read()
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {found[:200]!r}")
    return json.loads(found) if path else len(found)


def measure(address: str) -> dict[str, Any]:
    """Return the milliseconds of edits, and the seconds of looking after one."""
    revision = ask(address, "state")["revision"]
    taken: dict[str, list[float]] = {}
    for kind, make in EDITS.items():
        for turn in range(TURNS):
            body = {"edit": kind, "revision": revision, **make(turn)}
            spent, state = seconds(lambda body=body: ask(address, "edit", body))  # type: ignore[misc]
            revision = state["revision"]
            taken.setdefault(kind, []).append(1e3 * spent)
    for kind in ("undo", "redo"):
        for _ in range(TURNS):
            body = {"revision": revision}
            spent, state = seconds(lambda kind=kind, body=body: ask(address, kind, body))  # type: ignore[misc]
            revision = state["revision"]
            taken.setdefault(kind, []).append(1e3 * spent)
    looks = {what: seconds(lambda path=path: ask(address, path))[0] for what, path in LOOKS.items()}  # type: ignore[misc]
    every = np.concatenate(list(taken.values()))
    return {
        "ms of an edit": taken,
        "median ms of all": float(np.median(every)),
        "longest ms of all": float(every.max()),
        "seconds": looks,
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, listen() as found:
        run = large_run(Path(folder) / "run")
        starting, desk = seconds(lambda: Desk(run))
        server, address = prepare(desk, found)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [found]})
        thread.start()
        try:
            measured = measure(address)
        finally:
            server.should_exit = True
            thread.join()
    measured["seconds"]["starting"] = starting
    write("serve", "python -m benchmarks.serve", {"images": N_LARGE, "turns": TURNS}, measured)


if __name__ == "__main__":
    main()
