"""Progress callbacks, and progress bars for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jule.text import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import ProgressColumn

Progress = Callable[[str, float], None]  # called with a stage and the fraction done

OVERALL = "all periods"  # the stage that stands for the whole run


@contextmanager
def progress_bars(title: str) -> Iterator[Progress]:
    """Show progress bars on standard error, if it is a terminal.

    The bar of a stage is removed when the next stage begins, except that of `OVERALL`.

    Examples
    --------
    >>> with progress_bars("digits") as show:
    ...     show("merging", 0.5)
    """
    from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn

    share = TextColumn("{task.percentage:>3.0f}%", markup=False)
    with _bars(BarColumn(), share, TimeRemainingColumn()) as bars:
        tasks: dict[str, TaskID] = {}

        def show(stage: str, share: float) -> None:
            if stage not in tasks:
                for finished in tasks.keys() - {OVERALL} if stage != OVERALL else set():
                    bars.remove_task(tasks.pop(finished))
                tasks[stage] = bars.add_task(printable(f"{title}: {stage}"), total=1.0)
            bars.update(tasks[stage], completed=share)

        yield show


@contextmanager
def reading_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show progress and speed of reading on standard error, if it is a terminal.

    Examples
    --------
    >>> with reading_bar("photos") as show:
    ...     show(10, 100)
    """
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    speed_column = TextColumn("{task.fields[speed]}", markup=False)
    with _bars(BarColumn(), MofNCompleteColumn(), speed_column, TimeRemainingColumn()) as bars:
        task = bars.add_task(printable(f"{title}: reading"), total=None, speed="")

        def show(done: int, total: int) -> None:
            speed = bars.tasks[0].speed
            rate = f"{speed:,.0f} images/s" if speed else ""
            bars.update(task, completed=done, total=total, speed=rate)

        yield show


def _bars(*columns: ProgressColumn) -> Bars:
    """Return bars on standard error that vanish when they are done; names are not markup."""
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    console = Console(stderr=True)
    title = TextColumn("{task.description}", markup=False)
    return Progress(
        title, *columns, console=console, transient=True, disable=not console.is_terminal
    )
