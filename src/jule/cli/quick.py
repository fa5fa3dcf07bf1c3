"""`jule apply` as it is mostly typed, without typer: loading that takes longer than the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jule.cli.errors import run_guarded
from jule.cli.output import counted, counted_clusters, say

NAME = "apply"
PAGE = {"--page": True, "--no-page": False}


@dataclass(frozen=True)
class Applied:
    """The parameters of `jule apply`."""

    run: Path
    edits: Path | None = None
    page: bool = True


def run_quickly(arguments: Sequence[str]) -> int | None:
    """Run `jule apply` and return its exit code; None for anything that typer has to parse."""
    asked = parse_apply(arguments)
    if asked is None:
        return None
    return run_guarded(lambda: apply_to_run(asked), arguments, NAME)


def parse_apply(arguments: Sequence[str]) -> Applied | None:
    """Return what a plain `jule apply` asks for; None for anything unusual, such as --help.

    Examples
    --------
    >>> parse_apply(["apply", "run", "--no-page"]).page
    False
    >>> parse_apply(["apply", "--help"]) is None, parse_apply(["cut", "run"]) is None
    (True, True)
    """
    if arguments[:1] != [NAME]:
        return None
    words = [word for word in arguments[1:] if word not in PAGE]
    if not 1 <= len(words) <= 2 or any(not word or word.startswith("-") for word in words):
        return None
    run, *edits = map(Path, words)
    page = [True, *(PAGE[word] for word in arguments if word in PAGE)][-1]  # the last one counts
    return Applied(run, edits[0] if edits else None, page)


def apply_to_run(asked: Applied) -> None:
    """Add edits to those of a run, write labels.csv, and make the page again if that is asked."""
    from jule.cli.pages import report_edits
    from jule.locks import hold
    from jule.runs.edits import read_edits, write_edits
    from jule.runs.folder import RunFolder
    from jule.runs.results import check_finished

    folder = RunFolder(asked.run)
    check_finished(folder)
    edits = None if asked.edits is None else read_edits(asked.edits)
    with hold(asked.run):
        session, n_moved = write_edits(folder, edits, with_results=asked.page)
        state = session.state
        say(
            f"{counted_clusters(len(state.numbers), state.n_shelved)}, "
            f"{counted(n_moved, 'image')} moved, "
            f"{counted(len(state.names), 'cluster')} named: {folder.path('labels.csv')}"
        )
        if asked.page:
            report_edits(folder, session)
