"""The group of all commands, with one place that catches what any of them raises."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from jule.cli.errors import show_error, warnings_in_one_line


class Commands(TyperGroup):
    """The commands. Whatever one of them raises is shown by `jule.cli.errors`."""

    arguments: Sequence[str] = ()

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,  # noqa: ARG002
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: ARG002
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and exit."""
        self.arguments = _debug_first(sys.argv[1:] if args is None else args)
        try:
            code = super().main(
                self.arguments,
                "jule",
                complete_var,
                standalone_mode=False,
                windows_expand_args=windows_expand_args,
                **extra,
            )
        except Exception as error:
            code = show_error(error, self.arguments, self._name())
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; whatever it raises becomes an exit code."""
        from jule.cli.ranks import joined

        try:
            with warnings_in_one_line(), joined(self._name()):
                return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(show_error(error, self.arguments, self._name())) from error

    def _name(self) -> str:
        """Return the command that was typed, as far as it is known."""
        return next((one for one in self.arguments if one in self.commands), "")


def _debug_first(arguments: Iterable[str]) -> list[str]:
    """Move --debug to the front, where it is an option of `jule` itself.

    Examples
    --------
    >>> _debug_first(["info", "photos", "--debug"])
    ['--debug', 'info', 'photos']
    """
    given = list(arguments)
    end = given.index("--") if "--" in given else len(given)
    if "--debug" not in given[:end]:
        return given
    return ["--debug", *(one for one in given[:end] if one != "--debug"), *given[end:]]
