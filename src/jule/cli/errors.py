"""Show errors that a user can fix as one line instead of a traceback."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import typer

P = ParamSpec("P")


def friendly(command: Callable[P, None]) -> Callable[P, None]:
    """Decorate a command: bad input prints one line and exits with 1, Ctrl-C exits with 130.

    Examples
    --------
    >>> friendly(lambda: None)()
    """

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _one_line  # type: ignore[assignment]
                command(*args, **kwargs)
        except BrokenPipeError:
            # The reader of the output, such as `head`, has closed it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (ValueError, OSError, ImportError, ArithmeticError) as error:
            if debugging():
                raise
            typer.secho(f"jule: {error}", err=True, fg="red")
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            typer.secho("jule: stopped; finished parts are kept", err=True)
            raise typer.Exit(130) from error

    return run


def debugging() -> bool:
    """Return whether tracebacks are shown, as --debug or JULE_DEBUG requests.

    Examples
    --------
    >>> debugging()
    False
    """
    return bool(os.environ.get("JULE_DEBUG"))


def _one_line(message: Warning | str, *_: Any) -> None:
    typer.secho(f"jule: {message}", err=True, fg="yellow")
