"""The server of a run: how long edits, looking and starting take, over HTTP and in a browser.

`python -m benchmarks.serve COUNT ...` measures some numbers of images again; the others stay in the
record.
"""

from __future__ import annotations

import http.client
import json
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from benchmarks.common import RESULTS, Memory, seconds, write
from benchmarks.corrections import large_run
from jule.paper.records import read_record
from jule.report import Report
from jule.serve import Desk
from jule.serve.server import listen, prepare

WIDE = {70_000: 160, 1_000_000: 32}  # dimensions of the vectors, by number of images
TURNS = 10
EDITS: dict[str, Callable[[int], dict[str, Any]]] = {
    "name": lambda i: {"cluster": 0, "name": f"name {i}"},
    "move": lambda i: {"images": list(range(200 * i, 200 * i + 200)), "to": 5},
    "split": lambda i: {"cluster": 10 + i},
    "merge": lambda i: {"cluster": 30 + 2 * i, "other": 31 + 2 * i},
    "shelve": lambda i: {"images": [69_999 - i]},
}
LOOKS = {  # in the order of a page: after an edit, it asks for what follows from the clusters
    "labels and names": "state",
    "tree, confidence, lists": "clusters",
    "suggestions": "suggestions",
    "the page, loaded again": "",
}


CONTENTS = {"cluster": 50, "start": 120}  # 120 images of a cluster, with their thumbnails


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
    ask(address, "contents", CONTENTS)  # opens the source
    looks["120 images of a cluster"], _ = seconds(lambda: ask(address, "contents", CONTENTS))
    looks["opened in a browser"] = opening(address)
    every = np.concatenate(list(taken.values()))
    return {
        "ms of an edit": taken,
        "median ms of all": float(np.median(every)),
        "longest ms of all": float(every.max()),
        "seconds": looks,
    }


def opening(address: str) -> float:
    """Return the seconds until a browser shows pictures of the page."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))))
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(300_000)

        def opened() -> None:
            page.goto(address)
            page.locator(".card .pic").first.wait_for()

        taken, _ = seconds(opened)
        browser.close()
    return taken


def measure_run(n: int) -> dict[str, Any]:
    """Return what a server of a made-up run takes."""
    with tempfile.TemporaryDirectory() as folder, listen() as found:
        run = large_run(Path(folder) / "run", n, WIDE[n])
        Report.of_run(run, umap=False).write(run)
        memory = Memory()
        starting, desk = seconds(lambda: Desk(run))
        server, address = prepare(desk, found)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [found]})
        thread.start()
        try:
            measured = measure(address)
            measured["MB of the page"] = ask(address, "") / 1e6
        finally:
            server.should_exit = True
            thread.join()
    measured["MiB of memory"] = memory.peak()
    measured["seconds"]["starting"] = starting
    return measured


def main(counts: Sequence[int] = tuple(WIDE)) -> None:
    found: dict[str, Any] = {}
    for n in counts:
        found[f"{n:,}"] = measure_run(n)
        print(n, {name: one for name, one in found[f"{n:,}"].items() if name != "ms of an edit"})
    path = RESULTS / "serve.json"
    before = read_record(path)["measured"] if path.exists() else {}
    known = {f"{n:,}" for n in WIDE}
    found = {count: one for count, one in before.items() if count in known} | found
    settings = {"dimensions": {f"{n:,}": wide for n, wide in WIDE.items()}, "turns": TURNS}
    write("serve", "python -m benchmarks.serve", settings, found)


if __name__ == "__main__":
    main([int(count) for count in sys.argv[1:]] or tuple(WIDE))
