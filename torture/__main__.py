"""Run campaigns: `python -m torture [NAME ...] [--cases N] [--seed S] [--list]`."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence

from torture.record import MOST_FAILURES, RECORD, update_record
from torture.registry import CAMPAIGNS, load, run_alone


def main(arguments: Sequence[str]) -> int:
    """Run the campaigns that are named, all by default; return 1 if any case failed."""
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(CAMPAIGNS)}")
    parser.add_argument("--cases", type=int, help="how many cases of each; default: its goal")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--list", action="store_true", help="list the campaigns")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in CAMPAIGNS]
    if unknown:
        known = ", ".join(CAMPAIGNS)
        parser.error(f"no campaign is called {', '.join(unknown)}; there are {known}")
    if options.list:
        for name in CAMPAIGNS:
            campaign = load(name)
            print(f"{name:10} {campaign.goal:>9,}  {campaign.title}")
        return 0
    command = shlex.join(["python", "-m", "torture", *arguments])
    try:
        held = [
            _holds(name, options.cases, options.seed, command)
            for name in options.names or CAMPAIGNS
        ]
    except KeyboardInterrupt:
        print("\nstopped; the campaigns that had ended are in the record", file=sys.stderr)
        return 130
    return 0 if all(held) else 1


def _holds(name: str, n_cases: int | None, seed: int, command: str) -> bool:
    campaign = load(name)
    print(f"--- {name}: {campaign.title}", flush=True)
    started = time.perf_counter()
    outcome = run_alone(name, n_cases, seed)
    seconds = time.perf_counter() - started
    print(file=sys.stderr)
    update_record(RECORD, campaign, outcome, seconds=seconds, seed=seed, command=command)
    for ending, count in sorted(outcome.counts.items()):
        print(f"{count:>9,}  {ending}")
    for line in outcome.failures[:MOST_FAILURES]:
        print(f"FAILED: {line}")
    print(f"{outcome.cases:,} cases, {len(outcome.failures):,} failed, {seconds:.0f} s", flush=True)
    return not outcome.failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
