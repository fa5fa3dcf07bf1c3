"""Run campaigns: `python -m torture [NAME ...] [--cases N] [--seed S] [--list]`."""

from __future__ import annotations

import argparse
import importlib
import shlex
import sys
import time
from collections.abc import Sequence

from torture.campaign import Campaign
from torture.record import MOST_FAILURES, RECORD, update_record

MODULES = ("kills", "errors_at", "damage", "pictures", "archives", "hostile", "graphs")


def load_campaigns() -> dict[str, Campaign]:
    """Return all campaigns by name."""
    modules = [importlib.import_module(f"torture.{name}") for name in MODULES]
    return {campaign.name: campaign for module in modules for campaign in module.CAMPAIGNS}


def main(arguments: Sequence[str]) -> int:
    """Run the campaigns that are named, all by default; return 1 if any case failed."""
    known = load_campaigns()
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(known)}")
    parser.add_argument("--cases", type=int, help="how many cases of each; default: its goal")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--list", action="store_true", help="list the campaigns")
    options = parser.parse_args(arguments)
    if options.list:
        for campaign in known.values():
            print(f"{campaign.name:10} {campaign.goal:>9,}  {campaign.title}")
        return 0
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no campaign is called {', '.join(unknown)}; there are {', '.join(known)}")
    command = shlex.join(["python", "-m", "torture", *arguments])
    try:
        failed = [
            name
            for name in options.names or known
            if not _succeeds(known[name], options.cases, options.seed, command)
        ]
    except KeyboardInterrupt:
        print("\nstopped; the campaigns that had ended are in the record", file=sys.stderr)
        return 130
    return 1 if failed else 0


def _succeeds(campaign: Campaign, n_cases: int | None, seed: int, command: str) -> bool:
    print(f"--- {campaign.name}: {campaign.title}")
    started = time.perf_counter()
    outcome = campaign.run(n_cases, seed, _show)
    seconds = time.perf_counter() - started
    print(file=sys.stderr)
    update_record(RECORD, campaign, outcome, seconds=seconds, seed=seed, command=command)
    for name, count in sorted(outcome.counts.items()):
        print(f"{count:>9,}  {name}")
    for line in outcome.failures[:MOST_FAILURES]:
        print(f"FAILED: {line}")
    print(f"{outcome.cases:,} cases, {len(outcome.failures):,} failed, {seconds:.0f} s")
    return not outcome.failures


def _show(done: int, total: int) -> None:
    if sys.stderr.isatty() or done == total or done % max(1, total // 20) == 0:
        print(f"\r{done:,} of {total:,}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
