"""Run commands in forks of one process, which has loaded everything they need.

Loading torch takes seconds, a command on thirty images takes a tenth of one. This process reads
one JSON request per line, forks, runs the command there with its faults, and answers with one line.
It is started by `torture.injection.Server`, with the library of `inject.c` preloaded.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import io
import json
import os
import signal
import subprocess
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

CHUNK = 8  # pictures per batch, so that filling a cache takes several
STEPS = 2  # training batches per period
LONGEST = 120  # seconds, after which a command is taken to hang
FEW_INLINE, SMALL_SHEET = 5, 40  # for requests that want several sheets beside the page


def serve(scratch: Path) -> None:
    """Answer requests until the input ends."""
    load_everything()
    send("ready")
    for line in sys.stdin:
        send(answer(json.loads(line), scratch))


def send(message: Any) -> None:
    """Write one line to the process that asks."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def load_everything() -> None:
    """Import what commands import, and load the kernels; start no thread that stays."""
    import numpy as np
    import torch

    import jule.cli
    import jule.estimator
    import jule.export.folders
    import jule.export.pictures
    import jule.images.decoding.child
    import jule.images.decoding.pipeline
    import jule.images.decoding.worker
    import jule.report
    import jule.run
    import jule.runs.cost
    import jule.runs.execute
    import jule.runs.predict
    from jule.forward import agglomerate
    from jule.joint import Config

    torch.set_num_threads(1)
    jule.images.decoding.pipeline.CHUNK = CHUNK
    processes = SimpleNamespace(
        Popen=ForkedWorker, PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL
    )  # fmt: skip
    vars(jule.images.decoding.worker)["subprocess"] = processes
    jule.runs.cost.products_per_second = lambda: 1e9  # measuring it takes most of a second
    Config.steps_per_period = lambda *_: STEPS  # type: ignore[method-assign]
    points = np.random.default_rng(0).normal(size=(40, 64)).astype(np.float32)
    agglomerate(points, n_neighbors=5)
    # The first optimizer and the first command line import hundreds of modules. No training here:
    # the threads of torch's backward pass would be missing in the forks.
    torch.optim.SGD([torch.zeros(1, requires_grad=True)])
    with suppress(SystemExit), redirect_stderr(io.StringIO()):
        jule.cli.app(["cut", "nowhere"])


class ForkedWorker:
    """A process that decodes pictures: a fork of this one, instead of a new interpreter."""

    def __init__(self, *_: Any, **__: Any) -> None:
        its_input, requests = os.pipe()
        answers, its_output = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(its_input, 0)
            os.dup2(its_output, 1)
            os.closerange(3, 1024)
            decode()
        os.close(its_input)
        os.close(its_output)
        self.stdin, self.stdout = os.fdopen(requests, "wb"), os.fdopen(answers, "rb")
        self.status: int | None = None

    def poll(self) -> int | None:
        """Return the status of the process; None while it runs."""
        if self.status is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if ended else None
        return self.status

    def kill(self) -> None:
        """End the process."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait for the end of the process."""
        if self.status is None:
            self.status = os.waitpid(self.pid, 0)[1]


def decode() -> None:
    """Decode what is asked for on standard input, then end the process."""
    from jule.images.decoding.child import serve

    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    try:
        serve()
    finally:
        os._exit(0)


def answer(request: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Run one request in a fork and return how it ended."""
    out, error, trace = (scratch / name for name in ("stdout", "stderr", "trace"))
    if request.get("here"):
        run_here(request)
        return {}
    gc.freeze()  # a search for garbage in the fork would copy all memory of this process
    child = os.fork()
    if child == 0:
        run(request, out, error, trace)
    _, status = os.waitpid(child, 0)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "stdout": out.read_text("utf-8", "backslashreplace"),
        "stderr": error.read_text("utf-8", "backslashreplace"),
        "trace": trace.read_text("utf-8", "backslashreplace") if request.get("arm") else "",
    }


def run_here(request: dict[str, Any]) -> None:
    """Run a command in this process, to load what its forks need; it must not train."""
    os.chdir(request["cwd"])
    with suppress(SystemExit), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        command(request)


def run(request: dict[str, Any], out: Path, error: Path, trace: Path) -> None:
    """Run one command and end the process, as the interpreter would."""
    signal.alarm(LONGEST)
    os.chdir(request["cwd"])
    os.environ.update(request["env"])
    for number, path in ((0, Path(os.devnull)), (1, out), (2, error)):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        fd = os.open(path, flags, 0o600)
        os.dup2(fd, number)
        os.close(fd)
    if request.get("arm"):
        fd = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        root, number, how, failure = request["arm"]
        ctypes.CDLL(None).inject_arm(
            os.fsencode(root), ctypes.c_long(number), how, failure, fd
        )  # fmt: skip
    code = 1
    try:
        command(request)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def command(request: dict[str, Any]) -> None:
    """Run `jule` with arguments, or save a model from Python."""
    if request.get("few_inline"):
        import jule.report.pictures

        jule.report.pictures.INLINE_MOST = FEW_INLINE
        jule.report.pictures.SHEET_SIDE = SMALL_SHEET
    if request["arguments"][0] == "JULE.save":
        save(*request["arguments"][1:])
        return
    from jule.cli import main

    sys.argv = ["jule", *request["arguments"]]
    main()


def save(run: str, to: str) -> None:
    """Save a model from Python; an error of the system is the caller's, and is shown as one."""
    import jule

    try:
        jule.JULE.load(run).save(to, overwrite=True)
    except OSError as error:
        sys.stderr.write(f"jule: {error}\n")
        sys.exit(1)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
