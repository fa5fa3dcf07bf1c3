"""A progress bar on standard error, one line a stage, shown only where somebody can see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from jule.joint.stages import WHOLE


@contextmanager
def progress_bars(what: str) -> Iterator[Callable[[str, float], None]]:
    """Give a function that takes a stage and the share of it that is done.

    A stage has its line until another one begins; the stage named `WHOLE` keeps its own.

    Examples
    --------
    >>> with progress_bars("digits") as show:
    ...     show("merging", 0.5)
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        tasks: dict[str, TaskID] = {}

        def show(stage: str, share: float) -> None:
            if stage not in tasks:
                for gone in tasks.keys() - {WHOLE} if stage != WHOLE else set():
                    bars.remove_task(tasks.pop(gone))
                tasks[stage] = bars.add_task(f"{what}: {stage}", total=1.0)
            bars.update(tasks[stage], completed=share)

        yield show
