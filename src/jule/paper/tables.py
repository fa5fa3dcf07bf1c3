"""The figures of results/ as Markdown, put where README and docs ask for them.

A page asks with a pair of comments, ``<!-- results: NAME -->`` and ``<!-- end -->``; what stands
between them is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jule.paper import joint, raw_gdl
from jule.paper.numbers import AC_GDL, FIRST_CLUSTERS, OURS_RC, OURS_SF, Score
from jule.paper.records import read_record

ASKED = re.compile(r"(<!-- results: ([\w -]+) -->\n).*?(<!-- end -->)", re.DOTALL)
SHARE = "jule's share of that"
WITH_WORKERS = "MiB, workers included, at most"
IN_BLOCKS = "MB/s of reading the file in blocks"
DECODING = ("all cores / one core", "one core / plain loop", "all cores / plain loops")
DISPLAY = {"mnist": "MNIST-full", "mnist-test": "MNIST-test", "usps": "USPS", "coil20": "COIL-20"}
DISPLAY |= {"coil100": "COIL-100", "umist": "UMist", "cmu-pie": "CMU-PIE"}


def fill_pages(pages: list[Path], results: Path) -> list[Path]:
    """Write every table that the pages ask for; gives the pages that changed.

    Examples
    --------
    >>> fill_pages([Path("README.md")], Path("results"))  # doctest: +SKIP
    """
    changed = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        filled = fill(text, results)
        if filled != text:
            page.write_text(filled, encoding="utf-8")
            changed.append(page)
    return changed


def fill(text: str, results: Path) -> str:
    """Put the tables that a text asks for in their places.

    Examples
    --------
    >>> fill("no table here", Path("results"))
    'no table here'
    """

    def table(match: re.Match[str]) -> str:
        name = match[2]
        if name not in TABLES:
            raise ValueError(f"no table is called {name!r}; there are {', '.join(TABLES)}")
        return f"{match[1]}{TABLES[name](results)}\n{match[3]}"

    return ASKED.sub(table, text)


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """Render a Markdown table, numbers aligned right.

    Examples
    --------
    >>> print(markdown(["set", "NMI"], [["usps", "0.9"]]))
    | set | NMI |
    |---|---:|
    | usps | 0.9 |
    """
    rule = ["---"] + ["---:"] * (len(header) - 1)
    lines = ["| " + " | ".join(row) + " |" for row in [header, *rows]]
    return "\n".join([lines[0], "|" + "|".join(rule) + "|", *lines[1:]])


def _score(row: dict[str, Any]) -> str:
    return f"{row['scores']['nmi']:.3f} / {row['scores']['ac']:.3f}"


def _raw_gdl(results: Path) -> str:
    rows = []
    for name in raw_gdl.DATASETS:
        record = read_record(results / raw_gdl.FOLDER / f"{name}.json")
        paper, found = AC_GDL[name], record["rows"]
        rows.append(
            [
                DISPLAY[name],
                f"{paper.nmi:.3f} / {paper.ac:.3f}",
                _score(found["paper"]),
                _score(found["plain"]),
                _score(found["local"]),
                f"{found['paper']['first clusters']:,}",
                f"{found['plain']['first clusters']:,}",
                f"{FIRST_CLUSTERS[name]:,}",
            ]
        )
    header = ["NMI / AC", "the paper's AC-GDL", "same setting", "plain", "local"]
    header += ["first clusters, same setting", "L2", "paper"]
    return markdown(header, rows)


def _joint_records(results: Path, which: str, dataset: str) -> list[dict[str, Any]]:
    paths = sorted((results / joint.FOLDER / which).glob(f"{dataset}-[0-9]*.json"))
    return [read_record(path) for path in paths]


def _mean_and_spread(records: list[dict[str, Any]], which: str) -> str:
    """Give mean and standard deviation of NMI and AC over the seeds."""
    parts = []
    for score in ("nmi", "ac"):
        values = np.array([record["scores"][which][score] for record in records])
        parts.append(f"{values.mean():.3f} ± {values.std():.3f}")
    return " / ".join(parts)


def _joint(results: Path, which: str) -> str:
    def paper(score: Score) -> str:
        return f"{score.nmi:.3f} / {score.ac:.3f}"

    rows = []
    for name in joint.DATASETS:
        records = _joint_records(results, which, name)
        if not records:
            continue
        seconds = np.mean([record["seconds of the periods"] for record in records])
        rows.append(
            [
                DISPLAY[name],
                paper(OURS_SF[name]),
                _mean_and_spread(records, "sf"),
                paper(OURS_RC[name]),
                _mean_and_spread(records, "rc"),
                _mean_and_spread(records, "labels"),
                f"{records[0]['images trained on']:,}",
                f"{seconds:.0f}",
                f"{len(records)}",
            ]
        )
    header = ["NMI / AC", "paper's SF", "SF", "paper's RC", "RC", "`labels_`"]
    return markdown([*header, "images trained on", "seconds", "seeds"], rows)


def _presets(results: Path) -> str:
    """Both presets on the sets that were run with both: quality and training images."""
    rows = []
    for name in joint.DATASETS:
        ours, papers = (_joint_records(results, which, name) for which in ("default", "paper"))
        if not ours or not papers:
            continue
        images = [records[0]["images trained on"] for records in (ours, papers)]
        rows.append(
            [
                DISPLAY[name],
                _mean_and_spread(ours, "rc"),
                _mean_and_spread(papers, "rc"),
                _mean_and_spread(ours, "sf"),
                _mean_and_spread(papers, "sf"),
                f"{images[0]:,}",
                f"{images[1]:,}",
                f"{images[0] / images[1]:.2f}",
            ]
        )
    header = ["NMI / AC", "RC, default", "RC, paper", "SF, default", "SF, paper"]
    header += ["images, default", "images, paper", "share"]
    return markdown(header, rows)


def _chosen(results: Path) -> str:
    """How often the choice between SF and RC, made without labels, was the better one."""
    right, wrong, same, lost = 0, 0, 0, 0.0
    for path in sorted((results / joint.FOLDER).glob("*/*.json")):
        record = read_record(path)
        values = {which: record["scores"][which]["nmi"] for which in ("sf", "rc")}
        gap = max(values.values()) - values[record["chosen"]]
        if values["sf"] == values["rc"]:
            same += 1
        elif gap == 0:
            right += 1
        else:
            wrong += 1
            lost = max(lost, gap)
    rows = [
        ["runs where the better one was chosen", f"{right}"],
        ["runs where the worse one was chosen", f"{wrong}"],
        ["runs where both are equal", f"{same}"],
        ["the most NMI that a wrong choice cost", f"{lost:.3f}"],
    ]
    return markdown(["`labels_`", "measured"], rows)


def _measured(results: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = read_record(results / "benchmarks" / f"{name}.json")["measured"]
    return found


def _times(found: dict[str, Any]) -> list[list[str]]:
    times = found["seconds"].items()
    return [[what, f"{taken:.2f} s"] for what, taken in times if not isinstance(taken, list)]


def _neighbors(results: Path) -> str:
    found = _measured(results, "neighbors")
    names = ("faiss / jule", "jule / bare products all", "jule / bare products once")
    ratios = [[name, f"{found[name]:.2f}"] for name in names]
    return markdown(["", "measured"], _times(found) + ratios)


def _linkage(results: Path) -> str:
    found = _measured(results, "linkage")
    rows = [
        ["ward / jule", f"{found['ward / jule']:.1f}"],
        ["memory above the input", f"{found['MiB above input']:.0f} MiB"],
        ["compiling all kernels, once", f"{found['seconds to compile the kernels once']:.0f} s"],
        ["reading them from the cache", f"{found['seconds to read them from the cache']:.1f} s"],
    ]
    return markdown(["", "measured"], _times(found) + rows)


def _training(results: Path) -> str:
    found = _measured(results, "training")
    rows = [
        [
            name,
            f"{step['plain images/s']:,.0f}",
            f"{step['jule images/s']:,.0f}",
            f"{step['jule / plain']:.2f}",
            f"{step['GFLOP/s of matrix products']:.0f}",
            f"{step[SHARE]:.0%}",
        ]
        for name, step in found["steps"].items()
    ]
    header = ["network", "plain images/s", "jule images/s", "jule / plain"]
    return markdown([*header, "GFLOP/s of matrix products", SHARE], rows)


def _memory(results: Path) -> str:
    found = _measured(results, "memory")
    row = ["MNIST-full, a round and RC, the whole process", f"{found['MiB in all']:,.0f} MiB"]
    return markdown(["", "at most"], [row])


def _pictures(results: Path) -> str:
    found = _measured(results, "pictures")
    settings = read_record(results / "benchmarks" / "pictures.json")["settings"]
    decoding, cache, small = found["decoding"], found["cache"], found["small"]
    many = f"{settings['small']:,} JPEGs of {settings['small pixels']} pixels"
    rows = [
        [name, f"{decoding[name]:,.0f} pictures/s"]
        for name in (
            "plain Pillow loop, one core",
            "jule, one core",
            "plain Pillow loop on every core",
            "jule, all cores",
        )
    ]
    rows += [
        *(
            [f"jule, {ratio}", f"{decoding[ratio]:.2f} ± {decoding[f'{ratio}, spread']:.2f}"]
            for ratio in (
                "all cores / one core",
                "one core / plain loop",
                "all cores / plain loops",
            )
        ),
        [
            f"first reading of {settings['JPEGs']:,} JPEGs of {settings['pixels']} pixels",
            f"{cache['seconds of the first reading']:.1f} s",
        ],
        ["second reading", f"{cache['seconds of the second']:.1f} s"],
        ["the cache, copied out of the map", f"{cache['MB/s from the cache']:,.0f} MB/s"],
        ["the same file, read in blocks", f"{cache[IN_BLOCKS]:,.0f} MB/s"],
        [f"memory at the peak, {many}", f"{small['MiB, own']:,.0f} MiB"],
        ["the same with all workers, at most", f"{small[WITH_WORKERS]:,.0f} MiB"],
    ]
    return markdown(["", ""], rows)


def _report(results: Path) -> str:
    rows = [
        [
            count,
            f"{at['seconds']:.1f}",
            f"{at['MB of the page']:.1f}",
            f"{at['MB in all']:.1f}",
            f"{at['seconds until it answers']:.1f}",
            f"{at['ms of a move, median']:.0f}",
            f"{at['ms of a move, longest']:.0f}",
        ]
        for count, at in _measured(results, "report").items()
    ]
    header = ["images", "seconds to make", "MB of the page", "MB with pictures"]
    header += ["seconds until it answers", "ms a move of the slider, median", "longest"]
    return markdown(header, rows)


def _approximate(results: Path) -> str:
    found = _measured(results, "approximate")
    header, rows = [""], [[method] for method in next(iter(found.values()))]
    for where, methods in found.items():
        header += [f"{where}, seconds", "recall"]
        for row in rows:
            measured = methods[row[0]]
            row += [f"{measured['seconds']:.1f}", f"{measured['recall']:.3f}"]
    return markdown(header, rows)


def _growth(results: Path) -> str:
    found = _measured(results, "growth")
    rows = []
    for name, curve in found["curves"].items():
        for at in curve:
            rows.append(
                [
                    name,
                    f"{at['n']:,}",
                    f"{at['seconds']:.2f}",
                    f"{at['MiB above input']:,.0f}",
                    f"{at['largest in-degree']:,}",
                    f"{at['neighbours']}, recall {at['recall']:.3f}",
                ]
            )
        rows.append([name, "**exponent**", f"**{found['exponents'][name]:.2f}**", "", "", ""])
    header = ["data", "samples", "seconds", "MiB above input", "largest in-degree", "neighbours"]
    return markdown(header, rows)


TABLES: dict[str, Callable[[Path], str]] = {
    "raw-gdl": _raw_gdl,
    "joint default": partial(_joint, which="default"),
    "joint paper": partial(_joint, which="paper"),
    "presets": _presets,
    "chosen": _chosen,
    "training": _training,
    "memory": _memory,
    "pictures": _pictures,
    "neighbors": _neighbors,
    "linkage": _linkage,
    "report": _report,
    "approximate": _approximate,
    "growth": _growth,
}
