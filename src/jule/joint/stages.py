"""What a run says of its progress: the stage it is in, and how far the whole is."""

from __future__ import annotations

from collections.abc import Callable

from jule.joint.config import Config

Progress = Callable[[str, float], None]

WHOLE = "all periods"  # the stage that stands for the whole run


def in_period(progress: Progress | None, done: int, config: Config) -> Progress | None:
    """Name the stages of the period after `done` others, and tell how far the whole run is.

    How many periods there will be is known where eta is left open: at most n_periods a round.

    Examples
    --------
    >>> in_period(lambda stage, share: print(stage, share), 1, Config(rounds=1))("training", 0.5)
    period 2 of 3, training 0.5
    all periods 0.5
    """
    if progress is None:
        return None
    total = config.rounds * config.n_periods if config.eta is None else None
    name = f"period {done + 1}" + (f" of {total}" if total else "")

    def show(stage: str, share: float) -> None:
        progress(f"{name}, {stage}", share)
        if total and stage == "training":
            progress(WHOLE, min(1.0, (done + share) / total))

    return show
