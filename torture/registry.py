"""The campaigns by name, each run in a process of its own."""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

from torture.campaign import Campaign, Outcome

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


def _show(done: int, total: int) -> None:
    if sys.stderr.isatty() or done == total or done % max(1, total // 20) == 0:
        print(f"\r{done:,} of {total:,}", end="", file=sys.stderr, flush=True)
