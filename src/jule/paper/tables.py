"""Render Markdown tables, and write them into the pages that show them.

A page marks the place of a table with two comments, ``<!-- WORD: NAME -->`` and ``<!-- end -->``;
the text between them is replaced. The word is ``results`` for tables of experiments and
``benchmark`` for those of benchmarks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

RESULTS = "results"  # the marker word of experiments


def fill_pages(
    folder: Path, word: str, tables: Mapping[str, Callable[[Path], str]], results: Path
) -> list[Path]:
    """Write the tables into README.md and docs/ of a checkout; return the pages that changed.

    Parameters
    ----------
    folder
        The checkout.
    word
        The marker word of the tables.
    tables
        The renderers by table name, each called with `results`.
    results
        The folder of the result files.
    """
    changed = []
    for page in pages_of(folder):
        text = page.read_text(encoding="utf-8")
        filled = fill(text, word, tables, results)
        if filled != text:
            page.write_text(filled, encoding="utf-8")
            changed.append(page)
    return changed


def pages_of(folder: Path) -> list[Path]:
    """Return the existing pages of a checkout: README.md and docs/*.md."""
    readme = folder / "README.md"
    return [*([readme] if readme.exists() else []), *sorted((folder / "docs").glob("*.md"))]


def has_tables(folder: Path, word: str) -> bool:
    """Return whether any page in a folder has a place for tables."""
    return any(f"<!-- {word}: " in page.read_text(encoding="utf-8") for page in pages_of(folder))


def fill(text: str, word: str, tables: Mapping[str, Callable[[Path], str]], results: Path) -> str:
    """Return a text with its tables filled in; raise for unknown table names.

    Examples
    --------
    >>> page = "<!-- results: sizes -->\\n<!-- end -->"
    >>> print(fill(page, "results", {"sizes": lambda results: "| usps |"}, Path("results")))
    <!-- results: sizes -->
    | usps |
    <!-- end -->
    """

    def table(match: re.Match[str]) -> str:
        name = match[2]
        if name not in tables:
            raise ValueError(f"no {word} table is called {name!r}; there are {', '.join(tables)}")
        return f"{match[1]}{tables[name](results)}\n{match[3]}"

    marked = rf"(<!-- {re.escape(word)}: ([\w -]+) -->\n).*?(<!-- end -->)"
    return re.sub(marked, table, text, flags=re.DOTALL)


def mean_and_spread(values: Sequence[float]) -> str:
    """Return the mean, with the standard deviation if there are several values; a dash for none.

    Examples
    --------
    >>> mean_and_spread([0.5, 0.7]), mean_and_spread([0.5]), mean_and_spread([])
    ('0.600 ± 0.100', '0.500', '-')
    """
    if not values:
        return "-"
    spread = f" ± {np.std(values):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"


def latex(header: list[str], rows: list[list[str]], caption: str) -> str:
    r"""Return a LaTeX table, for the package booktabs, with all columns but the first centred.

    The cells are LaTeX already.

    Examples
    --------
    >>> print(latex(["NMI", "USPS"], [["K-means", "0.5"]], "On intensities."))
    \begin{table}
    \centering
    \begin{tabular}{lc}
    \toprule
    NMI & USPS \\
    \midrule
    K-means & 0.5 \\
    \bottomrule
    \end{tabular}
    \caption{On intensities.}
    \end{table}
    """
    first, *others = [" & ".join(row) + r" \\" for row in [header, *rows]]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'c' * (len(header) - 1)}}}",
        r"\toprule",
        first,
        r"\midrule",
        *others,
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{caption}}}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table with all columns but the first aligned right.

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
