"""Turn every error of every command into one line instead of a traceback."""

from __future__ import annotations

import errno
import os
import shlex
import stat
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from jule.cli.output import ClosedError, fail, say, warn
from jule.runs.names import CONFIG, ERRORS, MANIFEST
from jule.text import printable

KNOWN = (ValueError, OSError, ImportError, ArithmeticError)
FULL = {errno.ENOSPC, errno.EDQUOT}
NO_MEMORY = (
    "there is not enough memory: use smaller images (--size) or fewer, or end other programs"
)
MARKS = {CONFIG: b"jule-run-", MANIFEST: b"jule-manifest-"}  # in the files of a run
MOST_READ = 4096


def run_guarded(work: Callable[[], object], arguments: Sequence[str], name: str) -> int:
    """Run a command; print whatever it raises as one line, and return the exit code.

    Parameters
    ----------
    work
        The command.
    arguments, name
        See `show_error`.
    """
    try:
        with warnings_in_one_line():
            work()
    except (Exception, KeyboardInterrupt) as error:
        return show_error(error, arguments, name)
    return 0


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Print every warning as one line during the block."""
    with warnings.catch_warnings():
        warnings.showwarning = _warn_in_one_line
        yield


def show_error(error: BaseException, arguments: Sequence[str], name: str) -> int:
    """Print an error as one line, and return the exit code.

    It is 1 for bad input, 2 for bad options and 130 for Ctrl-C. The traceback of an unexpected
    error is logged in the run folder, and shown with --debug.

    Parameters
    ----------
    error
        What a command has raised.
    arguments
        What was typed, with --debug first if it was given.
    name
        The name of the command, as far as it is known.
    """
    if isinstance(error, ClosedError):
        _close_output()
        return 0
    try:
        return _print(error, arguments, name)
    except ClosedError:  # nobody reads the message, but the command has failed
        return 1


def _print(error: BaseException, arguments: Sequence[str], name: str) -> int:
    if isinstance(error, KeyboardInterrupt):
        say("jule: stopped; finished parts are kept", err=True)
        return 130
    if list(arguments[:1]) == ["--debug"] or os.environ.get("JULE_DEBUG"):
        for line in _traceback(error):
            say(line, err=True)
    if _is_usage_error(error):
        fail(_describe_usage(error, f"jule {name}".rstrip()))
        return int(getattr(error, "exit_code", 2))
    known = describe_known(error)
    logged = None
    if known is None or not _has_plain_cause(error):
        logged = write_log(error, arguments)
    fail(known or _describe_unexpected(error, arguments, logged))
    return 1


def _close_output() -> None:
    """Send the rest of the output nowhere, so that nothing fails when Python exits."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _warn_in_one_line(message: Warning | str, *_: Any, **__: Any) -> None:
    warn(str(message))


# ---- the line


def _is_usage_error(error: BaseException) -> bool:
    # Older releases of typer use click, newer ones a copy of it: its errors have no common name.
    return hasattr(error, "format_message")


def _describe_usage(error: Any, command: str) -> str:
    message = error.format_message().strip()
    message = message[:1].lower() + message[1:]
    if getattr(error, "ctx", None) is not None:
        command = error.ctx.command_path
    if message.endswith("?"):
        return f"{message} See {command} --help"
    return f"{message.rstrip('.')}; see {command} --help"


def describe_known(error: BaseException) -> str | None:
    """Return the message of an error that a user can do something about; None for others.

    Examples
    --------
    >>> describe_known(FileNotFoundError(2, "No such file or directory", "a.png"))
    'a.png: No such file or directory'
    >>> describe_known(KeyError("path")) is None
    True
    """
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and "memory" in str(error) and "alloc" in str(error)
    ):
        details = one_sentence(error)
        return f"{NO_MEMORY} ({details})" if details else NO_MEMORY
    if isinstance(error, OSError) and error.strerror is not None:
        return _describe_os_error(error)
    if isinstance(error, KNOWN) and str(error) and _raised_by_us(error):
        return str(error)
    return None


def one_sentence(error: BaseException) -> str:
    """Return the first line of a message.

    Examples
    --------
    >>> one_sentence(MemoryError("needs 9 GB\\n[more]"))
    'needs 9 GB'
    """
    return str(error).strip().split("\n")[0]


def _describe_os_error(error: OSError) -> str:
    named = [os.fsdecode(name) for name in (error.filename, error.filename2) if _is_name(name)]
    where = f"{' -> '.join(named)}: " if named else ""
    todo = ""
    if error.errno in FULL:
        todo = ": free some space and run the command again, or jule resume RUN if it made a run"
    return f"{where}{error.strerror}{todo}"


def _is_name(value: object) -> bool:
    return isinstance(value, str | bytes)  # others are numbers of open files


def _raised_by_us(error: BaseException) -> bool:
    """Return whether our own code raised an error; the message of another may name no file."""
    if isinstance(error, OSError | ImportError):
        return True
    name = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = frame.f_globals.get("__name__", "")
    return name.split(".")[0] in ("jule", "")


def _describe_unexpected(
    error: BaseException, arguments: Sequence[str], logged: Path | None
) -> str:
    command = shlex.join(["jule", *(one for one in arguments if one != "--debug")])
    problem = f"unexpected {type(error).__name__}: {error}" if str(error) else type(error).__name__
    details = f"details in {logged}" if logged else "add --debug for details"
    return f"{problem.strip()} (in `{command}`); {details}"


# ---- the log


def _has_plain_cause(error: BaseException) -> bool:
    return error.__cause__ is None or isinstance(error.__cause__, OSError)


def write_log(error: BaseException, arguments: Sequence[str]) -> Path | None:
    """Log a traceback in the run folder that a command works on; return the path of the log.

    Nothing is logged if the command names no run folder, or if it cannot be written to.

    Examples
    --------
    >>> write_log(KeyError("path"), ["cut", "no run", "-k", "3"]) is None
    True
    """
    from jule.files import write_atomic

    values = (one.partition("=")[2] if one.startswith("--") else one for one in arguments)
    folder = next((Path(one) for one in values if is_run_folder(one)), None)
    if folder is None:
        return None
    path = folder / ERRORS
    try:
        write_atomic(path, _log_text(error, arguments).encode())
    except Exception:  # the error itself matters more
        return None
    return path


def _log_text(error: BaseException, arguments: Sequence[str]) -> str:
    import platform  # only for what nobody expects

    from jule import __version__

    loaded = [
        f"{name} {getattr(sys.modules[name], '__version__', '?')}"
        for name in ("numpy", "torch")
        if name in sys.modules
    ]
    versions = [f"jule {__version__}", f"Python {platform.python_version()}", *loaded]
    lines = [
        time.strftime("%Y-%m-%d %H:%M:%S %z"),
        f"{', '.join(versions)}, {platform.platform()}",
        printable(shlex.join(["jule", *arguments])),
        *map(printable, _traceback(error)),
    ]
    return "\n".join(lines) + "\n"


def _traceback(error: BaseException) -> list[str]:
    return "".join(traceback.format_exception(error)).splitlines()


def is_run_folder(folder: str | Path) -> bool:
    """Return whether a folder holds a run of jule, even one with damaged files.

    Examples
    --------
    >>> is_run_folder("nowhere")
    False
    """
    for name, mark in MARKS.items():
        path = Path(folder) / name
        try:
            if is_plain_file(path):
                with open(path, "rb") as file:
                    if mark in file.read(MOST_READ):
                        return True
        except (OSError, ValueError):
            continue
    return False


def is_plain_file(path: str | Path) -> bool:
    """Return whether a path is a file: no link, no pipe, no device.

    Examples
    --------
    >>> is_plain_file("/dev/null")
    False
    """
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False
