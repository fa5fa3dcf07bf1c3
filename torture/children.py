"""Run many cases in forked children, with limits on time, memory and what may be opened.

The parent loads everything once and forks one child per core. A child runs case after case; if one
of them hangs or crashes, the case is reported and a new child goes on with the next.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import selectors
import signal
import sys
import sysconfig
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, TextIO

LONGEST = 20.0  # seconds that a case may take
MOST_MEMORY = 1 << 30  # bytes that a child may use in addition to what it was born with
CASES_PER_CHILD = 400  # a new child then, so that nothing adds up
SYSTEM = ("/proc/", "/sys/", "/dev/null", "/dev/urandom", "/etc/", "/usr/share/", "/usr/lib/")
CHANGING = {  # events, and the places of a path and of its folder's descriptor in their arguments
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.rmdir": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.link": ((0, 2), (1, 3)),
    "os.symlink": ((1, 2),),
    "os.chmod": ((0, 2),),
    "os.utime": ((0, 3),),
    "os.truncate": ((0, None),),
    "os.listdir": ((0, None),),
    "os.scandir": ((0, None),),
}
LOADED = (
    "rich.progress", "rich.table", "sklearn.datasets",
    "torch._dynamo",  # which the first optimizer loads, for two seconds
    "jule.cli.show", "jule.estimator", "jule.export.pictures", "jule.report.plots", "jule.run",
    "jule.runs.execute",
)  # fmt: skip
LISTING = {"os.listdir", "os.scandir"}
NETWORK = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}


@dataclass(frozen=True)
class Done:
    """How a command ended.

    Attributes
    ----------
    code
        The exit code; None if an exception came through.
    out, err
        What it printed.
    """

    code: int | None
    out: str
    err: str


@dataclass
class Watch:
    """The audit hook of a child: notes everything that is touched outside of some folders."""

    inside: tuple[str, ...] = ()
    noted: list[str] = field(default_factory=list)
    _installed: bool = False

    def install(self) -> None:
        """Add the hook to this process; it cannot be removed."""
        if not self._installed:
            self._installed = True
            sys.addaudithook(self._note)

    @contextmanager
    def only(self, *folders: Path) -> Iterator[list[str]]:
        """Note what is touched outside of these folders and of the installation."""
        self.noted = []
        names = [*map(str, folders), *_installation()]
        self.inside = tuple(os.path.realpath(name) for name in names)
        try:
            yield self.noted
        finally:
            self.inside = ()

    def _note(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.inside:
            return
        if event == "open":
            self._check(event, args[0], follows=not (args[2] or 0) & os.O_NOFOLLOW)
        elif event in CHANGING:
            for place, folder in CHANGING[event]:
                descriptor = -1 if folder is None else args[folder]
                self._check(event, args[place], descriptor, follows=event in LISTING)
        elif event in NETWORK and not _is_local(args):
            self.noted.append(f"{event} {args[1:]!r}")

    def _check(self, event: str, path: Any, folder: int = -1, *, follows: bool) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return  # a descriptor: it was checked when it was opened
        name = os.fsdecode(path)
        if folder >= 0:
            name = os.path.join(f"/proc/self/fd/{folder}", name)
        real = os.path.realpath(name) if follows else _real_parent(name)
        if real.startswith(SYSTEM) or any(
            real == folder or real.startswith(f"{folder}/") for folder in self.inside
        ):
            return
        self.noted.append(f"{event} {real}")


def _installation() -> list[str]:
    import jule

    own = [os.path.dirname(jule.__file__), os.path.dirname(__file__)]
    return [sys.prefix, sys.base_prefix, *set(sysconfig.get_paths().values()), *own]


def _real_parent(name: str) -> str:
    return os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name))


def _is_local(args: tuple[Any, ...]) -> bool:
    return len(args) > 1 and isinstance(args[1], str | bytes)  # the path of a Unix socket


WATCH = Watch()


def warm_up() -> None:
    """Load what the commands need, with one thread: a process with several must not be forked."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["JULE_COMPILE"] = "0"  # the runs are too small for compiled kernels to pay
    os.environ["COLUMNS"] = "400"
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            del os.environ[name]
    for module in LOADED:
        importlib.import_module(module)
    import matplotlib.font_manager
    import torch
    import typer.main

    torch.set_num_threads(1)
    matplotlib.font_manager.findfont("DejaVu Sans")  # looks through all folders of fonts, once
    typer.main.get_command = cache(typer.main.get_command)  # builds all commands, for 20 ms


def jule_command(*arguments: object) -> Done:
    """Run a `jule` command in this process, as the program would run it."""
    from jule.cli import main

    def call() -> None:
        sys.argv = ["jule", *map(str, arguments)]
        main()

    return captured(call)


def captured(call: Callable[[], None]) -> Done:
    """Call a function and return all that it and its libraries print."""
    kept = [os.dup(1), os.dup(2)], sys.stdout, sys.stderr
    with _file_in_memory() as out, _file_in_memory() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdout, sys.stderr = _text_of(1), _text_of(2)
        code: int | None = 0
        try:
            call()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:
            code = None
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            sys.stdout, sys.stderr = kept[1:]
            for place, descriptor in enumerate(kept[0], start=1):
                os.dup2(descriptor, place)
                os.close(descriptor)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "backslashreplace"))
    return Done(code, *texts)


def _text_of(descriptor: int) -> TextIO:
    return os.fdopen(
        descriptor, "w", encoding="utf-8", errors="backslashreplace", closefd=False
    )  # fmt: skip


def _file_in_memory() -> BinaryIO:
    return os.fdopen(os.memfd_create("output"), "w+b")


def _fast() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@contextmanager
def workspace() -> Iterator[Path]:
    """Make a folder for a campaign, in memory where that is possible."""
    with tempfile.TemporaryDirectory(prefix="torture-", dir=_fast()) as folder:
        where = Path(folder)
        os.environ.update(
            JULE_CACHE=str(where / "cache"),
            XDG_CACHE_HOME=str(where / "cache"),
            XDG_CONFIG_HOME=str(where / "config"),
            HOME=str(where / "home"),
            TMPDIR=str(where / "tmp"),
        )
        for name in ("cache", "config", "home", "tmp"):
            (where / name).mkdir()
        tempfile.tempdir = str(where / "tmp")
        try:
            yield where
        finally:
            tempfile.tempdir = None


def run_cases(
    run: Callable[[int], Any],
    cases: Iterable[int],
    *,
    n_workers: int | None = None,
    longest: float = LONGEST,
) -> Iterator[tuple[int, Any, str]]:
    """Run cases in forked children; yield (case, result, problem), in no order.

    `problem` is empty, or says that the case took too long, crashed or raised.
    """
    n_workers = n_workers or os.cpu_count() or 1
    every = list(cases)
    workers = [_Worker(run, every[place::n_workers], longest) for place in range(n_workers)]
    try:
        with selectors.DefaultSelector() as selector:
            for worker in workers:
                worker.start(selector)
            while any(worker.is_busy for worker in workers):
                for key, _ in selector.select(timeout=0.5):
                    yield from key.data.receive(selector)
                for worker in workers:
                    yield from worker.stop_if_late(selector)
    finally:
        for worker in workers:
            worker.kill()


class _Worker:
    """One child at a time, and the cases that are left for it."""

    def __init__(self, run: Callable[[int], Any], cases: list[int], longest: float) -> None:
        self.run, self.left, self.longest = run, cases[::-1], longest
        self.process = 0
        self.pipe = -1
        self.buffer = b""
        self.begun: tuple[int, float] | None = None

    @property
    def is_busy(self) -> bool:
        return self.process != 0

    def start(self, selector: selectors.BaseSelector) -> None:
        if not self.left:
            return
        read, write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.process = os.fork()
        if self.process == 0:
            os.close(read)
            _work(self.run, self.left[::-1][:CASES_PER_CHILD], write)
        os.close(write)
        self.pipe, self.buffer, self.begun = read, b"", None
        selector.register(read, selectors.EVENT_READ, self)

    def receive(self, selector: selectors.BaseSelector) -> Iterator[tuple[int, Any, str]]:
        received = os.read(self.pipe, 1 << 16)
        *lines, self.buffer = (self.buffer + received).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "begin" in message:
                self.begun = (self.left[-1], time.monotonic())
                continue
            self.begun = None
            yield self.left.pop(), message["result"], message["problem"]
        if not received:
            yield from self._end(selector, "the process ended: {status}")

    def stop_if_late(self, selector: selectors.BaseSelector) -> Iterator[tuple[int, Any, str]]:
        if self.begun is not None and time.monotonic() - self.begun[1] > self.longest:
            self.kill()
            yield from self._end(selector, f"it took more than {self.longest:.0f} s")

    def _end(self, selector: selectors.BaseSelector, why: str) -> Iterator[tuple[int, Any, str]]:
        selector.unregister(self.pipe)
        os.close(self.pipe)
        if self.process:
            _, status = os.waitpid(self.process, 0)
            why = why.format(status=os.waitstatus_to_exitcode(status))
            self.process = 0
        if self.begun is not None:
            self.begun = None
            yield self.left.pop(), None, why
        self.start(selector)

    def kill(self) -> None:
        if self.process:
            try:
                os.killpg(self.process, signal.SIGKILL)
            except ProcessLookupError:
                os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            self.process = 0


def _work(run: Callable[[int], Any], cases: list[int], write: int) -> None:
    """Run cases in this child and send each result; never returns."""
    os.setsid()  # so that its own children can be ended with it
    _die_with_parent()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    limit_memory()
    code = 1
    try:
        for case in cases:
            os.write(write, b'{"begin": true}\n')
            result, problem = None, ""
            try:
                result = run(case)
            except BaseException:
                problem = traceback.format_exc()
            message = json.dumps({"result": result, "problem": problem})
            _write_all(write, message.encode() + b"\n")
        code = 0
    finally:
        os._exit(code)


def _die_with_parent() -> None:
    """Let the system end this process when its parent ends, however that happens (Linux)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def limit_memory() -> None:
    """Limit the memory of this process to what it has now and a gigabyte."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
