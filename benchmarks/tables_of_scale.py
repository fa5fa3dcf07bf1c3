"""The tables of docs/scale.md: a million images, merging in rounds, and more than was measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.common import read_measured
from benchmarks.needs import needs
from jule.paper.records import read_record
from jule.paper.tables import markdown

SETUP = "setup of both"


def rounds(results: Path) -> str:
    """Render the quality of merging in rounds, by set and eps."""
    found = read_measured(results, "rounds")
    sets = found["sets"] | {"shifted mnist": found["million"]}
    rows = [
        _quality(name, of, eps, own)
        for name, of in sets.items()
        for eps, own in of["rounds"].items()
    ]
    noise = f"0, weights ± {found['noise']['weights differ by at most']:.1%}"
    rows.append(_quality("shifted mnist", found["million"], noise, found["noise"]))
    header = ["", "initial clusters", "eps", "rounds", "NMI, exact", "NMI, rounds"]
    header += ["NMI between both, at K =", "same clusters", "pairs in another order"]
    return markdown(header, rows)


def _quality(name: str, of: dict[str, Any], eps: str, own: dict[str, Any]) -> list[str]:
    between = ", ".join(f"{k}: {value:.3f}" for k, value in own["NMI with the exact cut"].items())
    return [
        name,
        f"{of['initial clusters']:,}",
        eps,
        f"{own['rounds']:,}" if "rounds" in own else "–",
        f"{of['NMI with the labels, exact']:.3f}",
        f"{own['NMI with the labels']:.3f}",
        between,
        f"{own['clusters that the exact tree has as well']:.0%}",
        f"{own['pairs of them in another order']:.2%}",
    ]


def rounds_times(results: Path) -> str:
    """Render the time of merging a million samples in both orders, and the best case of two cores.

    At best two cores halve everything that two workers do after the setup.
    """
    record = read_record(results / "benchmarks" / "rounds.json")
    found, timed = record["measured"]["million"], record["settings"]["eps with two workers"]
    times = {"exact order": found["time, exact"]}
    times |= {f"rounds, eps = {eps}": of["time"] for eps, of in found["rounds"].items()}
    for name, of in found["times"].items():
        times[name if name == SETUP else f"{name}, eps = {timed}"] = of
    exact = found["time, exact"]["processor seconds"]
    rows = [
        [
            name,
            f"{of['processor seconds']:.1f}",
            f"{exact / of['processor seconds']:.2f}",
            f"{of['seconds']:.0f}",
            f"{of['load average']:.0f}",
        ]
        for name, of in times.items()
    ]
    setup, in_turn = (
        found["times"][name]["processor seconds"]
        for name in (SETUP, "two workers in turn on one core")
    )
    best = setup + (in_turn - setup) / 2
    name = f"two cores that never wait, at best, eps = {timed}"
    rows.append([name, f"{best:.1f}", f"{exact / best:.2f}", "", ""])
    header = ["", "processor seconds", "exact order / this", "seconds", "load average"]
    return markdown(header, rows)


def million(results: Path) -> str:
    """Render the seconds of every stage of whole runs, and how they grow with the images."""
    found = read_measured(results, "million")
    stages = list(found["exponents"])
    rows = [
        [
            f"{row['n']:,}",
            *(f"{row['stages'][stage]:,.0f}" for stage in stages),
            f"{sum(row['stages'].values()) / 60:,.0f}",
            f"{max(process['MiB'] for process in row['processes']):,.0f}",
            f"{row['scores']['nmi']:.3f} / {row['scores']['ac']:.3f}",
            f"{min(row['recall']):.3f}",
        ]
        for row in found["rows"]
    ]
    exponents = [f"**{found['exponents'][stage]:.2f}**" for stage in stages]
    rows.append(["**exponent**", *exponents, "", "", "", ""])
    header = ["images", *stages, "minutes in all", "peak, MiB", "NMI / AC", "smallest recall"]
    return markdown(header, rows)


SCALE: dict[str, Callable[[Path], str]] = {
    "rounds": rounds,
    "rounds times": rounds_times,
    "needs": needs,
    "million": million,
}
