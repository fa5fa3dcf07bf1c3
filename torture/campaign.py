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
    cases : int
        The number of cases that were run.
    counts : dict of str to int
        How the cases ended, by kind, for example `{"refused": 812, "identical": 188}`.
    failures : list of str
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
    name : str
        The name on the command line.
    title : str
        What is done, in a few words.
    goal : int
        The number of cases of a full run.
    promise : str
        What must hold in every case, in one sentence for the docs, without a full stop.
    """

    name: str
    title: str
    goal: int
    promise: str

    def run(self, n_cases: int | None, seed: int, progress: Progress) -> Outcome:
        """Run `n_cases` cases (all of the goal if None) and return how they ended."""
        ...
