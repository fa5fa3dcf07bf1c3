"""Kill commands before, in the middle of and after every file operation."""

from __future__ import annotations

import errno
import os
import random
import re
import signal
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

from torture.campaign import Outcome, Progress
from torture.injection import (
    NO_COMPILER,
    Ended,
    Fault,
    Operation,
    build_library,
    has_compiler,
)
from torture.lanes import Expected, Lane, Scenario, State, look
from torture.scenarios import SCENARIOS, STARTS

LANES = 2  # processes at once
# A disk that is full when the first run is made: the run is not signed, and a warning says so.
NO_KEY = "home/config/jule/key is missing"
# What may stay in the user's own folder, beside a file chosen with --out.
BESIDE = re.compile(r"\.jule-[0-9a-f]{16}\.part")


@dataclass(frozen=True)
class Case:
    """One fault in one command."""

    scenario: Scenario
    fault: Fault
    operation: Operation

    def __str__(self) -> str:
        what = f"{self.operation.kind} {Path(self.operation.path).name}"
        return (
            f"{self.scenario.name}: {describe(self.fault)} operation {self.fault.number} ({what})"
        )


def describe(fault: Fault) -> str:
    """Return a fault in words.

    Examples
    --------
    >>> describe(Fault(3, "before"))
    'killed before'
    >>> describe(Fault(3, "once", errno.ENOSPC))
    'ENOSPC once at'
    """
    if fault.error:
        return f"{errno.errorcode[fault.error]} {fault.mode} at"
    return f"killed {fault.mode}"


def kill_points(operations: Iterable[Operation]) -> list[tuple[Fault, Operation]]:
    """Return the moments at which a command is killed: three per write, two per other operation.

    Examples
    --------
    >>> found = kill_points([Operation(1, "write", 10, "a"), Operation(2, "fsync", 0, "a")])
    >>> [(fault.number, fault.mode) for fault, _ in found]
    [(1, 'before'), (1, 'middle'), (1, 'after'), (2, 'before'), (2, 'after')]
    """
    return [
        (Fault(one.number, mode), one)
        for one in operations
        for mode in ("before", "middle", "after")
        if mode != "middle" or (one.kind == "write" and one.size > 1)
    ]


# ---- the promises


def check_killed(lane: Lane, case: Case) -> list[str]:
    """Kill a command once and return which promises it broke."""
    lane.restore(case.scenario.start)
    ended = lane.run(case.scenario, case.scenario.command, case.fault)
    if ended.code != -signal.SIGKILL:
        return [f"it was not killed, but ended with {ended.code}: {last_line(ended)}"]
    return check_after(lane, case)


def check_after(lane: Lane, case: Case) -> list[str]:
    """Return which promises do not hold in the case folder, after a fault."""
    scenario, expected = case.scenario, lane.expected(case.scenario)
    found = check_whole(lane, scenario, expected)
    if scenario.reads:
        found += check_reading(lane, scenario, expected)
    found += check_recovery(lane, case, expected)
    found += check_mine(lane, scenario, expected)
    return found


def check_whole(lane: Lane, scenario: Scenario, expected: Expected) -> list[str]:
    """Return the files that are neither the old nor the new ones under their own names."""
    found = []
    for name, (kind, content) in look(lane.case).items():
        if is_in(name, scenario.growing):
            continue
        if name in expected.volatile:
            try:
                lane.fixed_part(name)
            except ValueError as error:
                found.append(f"{name} is half-written: {error}")
            continue
        known = {state[name][1] for state in (expected.start, expected.end) if name in state}
        hidden = any(part.startswith(".") for part in Path(name).parts)
        if known and kind.startswith("file") and not hidden and content not in known:
            found.append(f"{name} is neither the old nor the new file")
    return found


def check_reading(lane: Lane, scenario: Scenario, expected: Expected) -> list[str]:
    """Return whether the run reads as something else than the old or the new one."""
    ended, seen = lane.read(scenario)
    wrong = check_words(scenario.reads, ended)
    if seen not in expected.seen:
        wrong.append(
            f"`jule {' '.join(scenario.reads)}` shows neither the old nor the new run "
            f"({last_line(ended)})"
        )
    return wrong


def check_recovery(lane: Lane, case: Case, expected: Expected) -> list[str]:
    """Run what a user would run; return how the result differs from an undisturbed one."""
    scenario = case.scenario
    commands = scenario.recover
    if scenario.other and case.fault.mode in ("after", "from then on"):
        commands = scenario.other
    said: list[str] = []
    for command in commands:
        ended = lane.run(scenario, command)
        wrong = check_words(command, ended)
        if wrong:
            return wrong
        state = look(lane.case)
        differences = compare(lane, state, expected)
        if case.fault.error:
            differences = [one for one in differences if one != NO_KEY]
        if not differences:
            return []
        said.append(f"jule {' '.join(command)} -> {ended.code} {last_line(ended)}")
        if ended.code == 0 and compare_states(state, expected.start):
            break
    return [f"after [{'; '.join(said)}]: {'; '.join(differences[:4])}"]


def check_mine(lane: Lane, scenario: Scenario, expected: Expected) -> list[str]:
    """Return the user's own files that were changed."""
    state = look(lane.case)
    found = [
        f"the user's own {name} was changed"
        for name in expected.start
        if is_in(name, scenario.mine) and state.get(name) != expected.start[name]
    ]
    return found


def check_words(command: Sequence[str], ended: Ended) -> list[str]:
    """Return what is wrong with the way in which a command refused; nothing if it worked."""
    shown = f"`jule {' '.join(command)}`"
    if "Traceback" in ended.stderr:
        return [f"{shown} ended in a traceback: {last_line(ended)}"]
    if ended.code not in (0, 1):
        return [f"{shown} ended with {ended.code}"]
    lines = ended.stderr.strip().splitlines()
    if ended.code == 1 and not (len(lines) == 1 and lines[0].startswith("jule: ")):
        return [f"{shown} refused in {len(lines)} lines: {ended.stderr.strip()!r}"]
    return []


def compare(lane: Lane, state: State, expected: Expected) -> list[str]:
    """Return how the case folder differs from the undisturbed end."""
    found = compare_states(
        {name: value for name, value in state.items() if name not in expected.volatile},
        {name: value for name, value in expected.end.items() if name not in expected.volatile},
    )
    for name, fixed in expected.volatile.items():
        if name not in state:
            found.append(f"{name} is missing")
        elif state[name][0] != expected.end[name][0]:
            found.append(f"{name} is a {state[name][0]}, not a {expected.end[name][0]}")
        else:
            try:
                if lane.fixed_part(name) != fixed:
                    found.append(f"{name} differs")
            except ValueError:
                found.append(f"{name} is damaged")
    return found


def compare_states(state: State, other: State) -> list[str]:
    """Return how a state differs from another one.

    Examples
    --------
    >>> compare_states({"a": ("file 600", "1")}, {"a": ("file 600", "2"), "b": ("link", "a")})
    ['a differs', 'b is missing']
    """
    found = []
    for name in sorted(state.keys() | other.keys()):
        if name not in state:
            found.append(f"{name} is missing")
        elif name not in other:
            if not BESIDE.fullmatch(name):
                found.append(f"{name} is left over")
        elif state[name] != other[name]:
            permissions = state[name][1] == other[name][1]
            found.append(f"{name} " + (f"is a {state[name][0]}" if permissions else "differs"))
    return found


def is_in(name: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of several files and folders, or below one.

    Examples
    --------
    >>> is_in("run/mine/a.png", ["run/mine"]), is_in("run/mine2", ["run/mine"])
    (True, False)
    """
    return any(name == one or name.startswith(f"{one}/") for one in folders)


def last_line(ended: Ended) -> str:
    """Return the last line of what a command said about its failure."""
    lines = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
    return lines[-1] if lines else ""


def not_flushed(operations: Sequence[Operation]) -> list[str]:
    """Return the files that get their names before their content has reached the disk.

    Examples
    --------
    >>> not_flushed([Operation(1, "write", 9, "/x/a"), Operation(2, "rename", 0, "/x/b", "/x/a")])
    ['/x/b: its content is not flushed', '/x/b: its folder is not flushed']
    """
    found, dirty = [], set()
    for at, one in enumerate(operations):
        if one.kind == "write":
            dirty.add(one.path)
        elif one.kind == "fsync":
            dirty.discard(one.path)
        elif one.kind in ("rename", "link"):
            if one.origin in dirty:
                found.append(f"{one.path}: its content is not flushed")
            parent = os.path.dirname(one.path)
            later = {after.path for after in operations[at:] if after.kind == "fsync"}
            if parent not in later:
                found.append(f"{one.path}: its folder is not flushed")
    return found


# ---- the campaign


def in_memory() -> Path | None:
    """Return a folder in memory, where flushing takes no time; None for the usual place.

    Examples
    --------
    >>> in_memory() in (None, Path("/dev/shm"))
    True
    """
    folder = Path("/dev/shm")
    return folder if folder.is_dir() and os.access(folder, os.W_OK) else None


@dataclass
class Kills:
    """Kill every command at every file operation, and look what is left.

    Attributes
    ----------
    scenarios
        The commands, and the states that they start from.
    lanes
        Number of processes at once.

    Examples
    --------
    >>> Kills().name
    'kills'
    """

    scenarios: tuple[Scenario, ...] = SCENARIOS
    lanes: int = LANES
    name: str = "kills"
    title: str = "SIGKILL before, in the middle of and after every file operation of every command"
    goal: int = 1000
    promise: str = (
        "after a kill, no file of the user is changed, nothing is half-written under its own name, "
        "and running the command again or `jule resume` ends exactly as if nothing had happened"
    )

    def points(self, operations: Sequence[Operation]) -> list[tuple[Fault, Operation]]:
        """Return the faults for the operations of one command."""
        return kill_points(operations)

    def check(self, lane: Lane, case: Case) -> list[str]:
        """Run one case and return which promises it broke."""
        return check_killed(lane, case)

    def run(self, n_cases: int | None, seed: int, progress: Progress) -> Outcome:
        """Run `n_cases` cases, drawn from all that there are."""
        if not has_compiler():
            return Outcome(0, {f"skipped: {NO_COMPILER}": 1}, [])
        with tempfile.TemporaryDirectory(prefix="jule-torture-", dir=in_memory()) as folder:
            return self._run_in(Path(folder).resolve(), n_cases, seed, progress)

    def _run_in(self, folder: Path, n_cases: int | None, seed: int, progress: Progress) -> Outcome:
        library = build_library(folder)

        def open_lane(number: int) -> Lane:
            (folder / str(number)).mkdir()
            return Lane(folder / str(number), library, STARTS)

        with ThreadPoolExecutor(self.lanes) as pool:
            lanes = list(pool.map(open_lane, range(self.lanes)))
            try:
                cases, failures = self.all_cases(lanes[0])
                n_cases = n_cases or self.goal
                if n_cases < len(cases):
                    cases = self.sample(cases, n_cases, seed)
                counts: Counter[str] = Counter()
                queue: SimpleQueue[Case] = SimpleQueue()
                for case in cases:
                    queue.put(case)
                total = len(cases)

                def work(lane: Lane) -> None:
                    while True:
                        try:
                            case = queue.get_nowait()
                        except Empty:
                            return
                        wrong = self.check_all(lane, case)
                        failures.extend(f"{case}: {text}" for text in wrong)
                        counts[case.scenario.name] += 1
                        progress(sum(counts.values()), total)

                list(pool.map(work, lanes))
            finally:
                for lane in lanes:
                    lane.close()
        return Outcome(total, dict(counts), failures)

    def sample(self, cases: Sequence[Case], n_cases: int, seed: int) -> list[Case]:
        """Return some of the cases, those of one command together."""
        drawn = random.Random(seed).sample(cases, n_cases)
        return sorted(drawn, key=lambda case: self.scenarios.index(case.scenario))

    def check_all(self, lane: Lane, case: Case) -> list[str]:
        """Run one case and return which promises it broke, also outside of the case folder."""
        before = lane.originals()
        wrong = self.check(lane, case)
        if lane.originals() != before:
            changed = compare_states(lane.originals(), before)
            lane.restore_victim()
            wrong.append(f"originals were changed: {'; '.join(changed)}")
        return wrong

    def all_cases(self, lane: Lane) -> tuple[list[Case], list[str]]:
        """Return all cases, and what the undisturbed commands did wrong already."""
        cases, failures = [], []
        for scenario in self.scenarios:
            operations = lane.expected(scenario).operations
            wrong = not_flushed(operations)
            if wrong:
                failures.append(f"{scenario.name}: {wrong[0]} ({len(wrong)} such operations)")
            cases += [Case(scenario, fault, one) for fault, one in self.points(operations)]
        return cases, failures
