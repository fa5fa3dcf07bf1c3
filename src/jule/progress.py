"""Progress callbacks, and progress bars for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%", markup=False),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        tasks: dict[str, TaskID] = {}

        def show(stage: str, share: float) -> None:
            if stage not in tasks:
                for finished in tasks.keys() - {OVERALL} if stage != OVERALL else set():
                    bars.remove_task(tasks.pop(finished))
                tasks[stage] = bars.add_task(f"{title}: {stage}", total=1.0)
            bars.update(tasks[stage], completed=share)

        yield show
