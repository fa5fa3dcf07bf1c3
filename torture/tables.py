"""Write the promises and counts of results/reliability.json into docs/reliability.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jule.paper.records import read_record
from jule.paper.tables import fill_pages, markdown
from torture.record import ROOT

MARKER = "reliability"


def campaigns(results: Path) -> str:
    """Render one row per campaign: what was done, how often, what failed."""
    found = read_record(results / "reliability.json")["campaigns"]
    rows = [
        [
            entry["title"],
            f"{entry['cases']:,}",
            f"{entry['goal']:,}",
            f"{entry['n_failures']:,}",
            _counts(entry),
        ]
        for entry in found.values()
    ]
    return markdown(["", "cases", "goal", "failed", "how they ended"], rows)


def promises(results: Path) -> str:
    """Render one line per campaign: what must hold in each of its cases."""
    found = read_record(results / "reliability.json")["campaigns"]
    return "\n".join(f"- {_sentence(entry['promise'])}" for entry in found.values())


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def _counts(entry: dict[str, dict[str, int]]) -> str:
    most_first = sorted(entry["counts"].items(), key=lambda item: -item[1])
    return ", ".join(f"{count:,} {name}" for name, count in most_first)


TABLES: dict[str, Callable[[Path], str]] = {"campaigns": campaigns, "promises": promises}


def main() -> None:
    """Fill the tables of all pages."""
    for page in fill_pages(ROOT, MARKER, TABLES, ROOT / "results"):
        print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
