"""The record of all campaigns: results/reliability.json."""

from __future__ import annotations

import platform
import shutil
import subprocess
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jule.paper.records import read_record
from torture.campaign import Campaign, Outcome

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "results" / "reliability.json"
PACKAGES = ("jule", "numpy", "torch", "pillow")
MOST_FAILURES = 20


def update_record(
    path: Path, campaign: Campaign, outcome: Outcome, *, seconds: float, seed: int, command: str
) -> dict[str, Any]:
    """Write the outcome of one campaign into the record and keep those of the others.

    Returns
    -------
    entry
        What was written for this campaign.
    """
    from jule.files import write_json

    entry = {
        "title": campaign.title,
        "promise": campaign.promise,
        "goal": campaign.goal,
        "cases": outcome.cases,
        "counts": dict(sorted(outcome.counts.items())),
        "n_failures": len(outcome.failures),
        "failures": outcome.failures[:MOST_FAILURES],
        "seconds": round(seconds, 1),
        "seed": seed,
        "command": command,
        "date": time.strftime("%Y-%m-%d"),
        "commit": _commit(),
        "versions": _versions(),
    }
    known = read_record(path)["campaigns"] if path.exists() else {}
    write_json(
        path, {"campaigns": dict(sorted({**known, campaign.name: entry}.items()))}, private=False
    )
    return entry


def _commit() -> str:
    """Return the commit of the source, with a plus sign if it was changed; empty if not known."""
    if shutil.which("git") is None:
        return ""
    changed = _git("status", "--porcelain", "--", "src", "torture")
    return _git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _versions() -> dict[str, str]:
    here = {"python": platform.python_version(), "platform": platform.platform(terse=True)}
    return here | {package: version(package) for package in PACKAGES}
