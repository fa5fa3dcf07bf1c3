"""Run campaigns: `python -m torture [NAME ...] [--cases N] [--seed S] [--list]`."""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import shlex
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from torture.campaign import Campaign, Outcome
from torture.record import MOST_FAILURES, RECORD, update_record

CAMPAIGNS = {
    "kills": "torture.kills.Kills",
    "full-disk": "torture.errors_at.FullDisk",
    "damage": "torture.damage.Damage",
    "pictures": "torture.pictures.DamagedPictures",
    "archives": "torture.archives.HostileArchives",
    "hostile": "torture.hostile.Hostile",
    "graphs": "torture.graphs.GraphCampaign",
}


def load(name: str) -> Campaign:
    """Return a campaign by its name.

    Examples
    --------
    >>> load("damage").goal
    50000
    """
    module, _, kind = CAMPAIGNS[name].rpartition(".")
    campaign: Campaign = getattr(importlib.import_module(module), kind)()
    return campaign


def run_alone(name: str, n_cases: int | None, seed: int) -> Outcome:
    """Run a campaign in a process of its own, which it may change as it likes."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as process:
        return process.submit(_run, name, n_cases, seed).result()


def _run(name: str, n_cases: int | None, seed: int) -> Outcome:
    return load(name).run(n_cases, seed, _show)


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


def _show(done: int, total: int) -> None:
    if sys.stderr.isatty() or done == total or done % max(1, total // 20) == 0:
        print(f"\r{done:,} of {total:,}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
