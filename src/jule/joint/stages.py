"""Names of the stages of a run, for progress reports."""

from __future__ import annotations

from jule.joint.config import Config
from jule.progress import OVERALL, Progress


def in_period(
    progress: Progress | None, done: int, config: Config, member: int = 0
) -> Progress | None:
    """Return a callback that names the next period and also reports overall progress.

    `done` is the number of finished periods of a network, and `member` its number in an ensemble.
    The total is known only if eta is None: at most `n_periods` per round.

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
    if config.ensemble > 1:
        name = f"network {member + 1} of {config.ensemble}, {name}"

    def show(stage: str, share: float) -> None:
        progress(f"{name}, {stage}", share)
        if total and stage == "training":
            of_this = min(1.0, (done + share) / total)
            progress(OVERALL, (member + of_this) / config.ensemble)

    return show


def after_training(progress: Progress | None) -> Progress | None:
    """Return a callback for what happens to all networks of an ensemble, once they are trained.

    Examples
    --------
    >>> after_training(lambda stage, share: print(stage, share))("embedding", 0.5)
    all networks, embedding 0.5
    """
    if progress is None:
        return None
    return lambda stage, share: progress(f"all networks, {stage}", share)
