"""What a user can mend is one line, not a traceback."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import typer

P = ParamSpec("P")


def friendly(command: Callable[P, None]) -> Callable[P, None]:
    """Turn bad input into one line and exit code 1, and Ctrl-C into a word and exit code 130.

    Examples
    --------
    >>> friendly(lambda: None)()
    """

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (ValueError, OSError, ImportError) as error:
            typer.secho(f"jule: {error}", err=True, fg="red")
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            typer.secho("jule: stopped; what was finished is kept", err=True)
            raise typer.Exit(130) from error

    return run
