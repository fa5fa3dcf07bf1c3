"""What every campaign is, and what it hands back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

Progress = Callable[[int, int], None]
"""Called with the number of cases that are done and the number of all of them."""


@dataclass(frozen=True)
class Outcome:
    """The result of one campaign.

    Attributes
    ----------
    cases
        The number of cases that were run.
    counts
        How the cases ended, by kind, for example `{"refused": 812, "identical": 188}`.
    failures
        One line for each case in which the promise did not hold, with how to reproduce it.

    Examples
    --------
    >>> Outcome(2, {"refused": 2}, []).failures
    []
    """

    cases: int
    counts: dict[str, int]
    failures: list[str]


class Campaign(Protocol):
    """A series of cases of one kind, drawn from a seed.

    Attributes
    ----------
    name
        The name on the command line.
    title
        What is done, in a few words.
    goal
        The number of cases of a full run.
    promise
        What must hold in every case, in one sentence for the docs, without a full stop.
    """

    name: str
    title: str
    goal: int
    promise: str

    def run(self, n_cases: int | None, seed: int, progress: Progress) -> Outcome:
        """Run `n_cases` cases (all of the goal if None) and return how they ended."""
        ...
