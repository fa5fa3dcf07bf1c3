"""Render a summary, arrays and sheets of thumbnails as one HTML page."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from jule import __version__
from jule.report.arrays import browser_bytes
from jule.report.pictures import TINY, Sheets

TEMPLATES = files("jule.report") / "templates"
# Around the data of a page.
BEGIN, END = '<script type="application/json" id="run">', "</script>\n<script>"
# Constants of a script may use those of the scripts before it.
SCRIPTS = (
    "data", "cuts", "tree", "branches", "colours", "votes", "sureness", "clusters", "state",
    "changes", "local", "units", "undo", "steps", "pictures", "edits", "links", "slider", "splits",
    "gallery", "same", "stacks", "dialogs", "selection", "map", "mapdraw", "mapnames", "mapinput",
    "dendrogram", "doubts", "charts", "evidence", "stages", "main",
)  # fmt: skip
# Only a page from a server has scripts that call it.
SERVED_SCRIPTS = (*SCRIPTS[:-1], "served", "guests", SCRIPTS[-1])


def render(
    summary: Mapping[str, Any],
    arrays: Mapping[str, NDArray],
    names: Sequence[str] | None,
    sheets: Sheets | None,
    urls: Sequence[str],
    served: Mapping[str, Any] | None = None,
) -> bytes:
    """Return the page as HTML, in UTF-8; text that UTF-8 does not have is shown as escapes.

    Parameters
    ----------
    summary
        See `summarize`.
    arrays
        See `page_arrays`.
    names
        One name per sample; None if the names are just numbers.
    sheets
        The thumbnails; None if there are none.
    urls
        The URL of every sheet, relative to the page or as a data URL.
    served
        What a page from a server needs to know; None for a file.
    """
    script = _script(SCRIPTS if served is None else SERVED_SCRIPTS)
    around = (
        _environment()
        .get_template("page.html")
        .render(
            summary=summary,
            version=__version__,
            style=Markup(_text("style.css")),
            script=Markup(script),
            policy=policy(served=served is not None),
            served=served is not None,
            sampled=len(arrays["rows"]) if "rows" in arrays else 0,
        )
    )
    # The data are megabytes of ASCII. Within the text around them, which has wider letters, they
    # would take several times as long to copy and to encode.
    before, begin, after = around.partition(BEGIN)
    carried = dict(arrays) if sheets is None else {**arrays, "places": sheets.places}
    run = {
        "summary": [json_for_html(summary).encode()],
        "arrays": _object({name: _array_json(array) for name, array in carried.items()}),
        "names": [json_for_html(names).encode()],
        "pictures": [json_for_html(None if sheets is None else _about(sheets, urls)).encode()],
        "served": [json_for_html(served).encode()],
    }
    parts = [_encode(before + begin), *_object(run), _encode(after)]
    return b"".join(parts)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def policy(*, served: bool) -> str:
    """Return the content security policy of a page: one script, and nothing from elsewhere.

    Examples
    --------
    >>> "connect-src" in policy(served=False)
    False
    """
    script = _script(SERVED_SCRIPTS if served else SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    pictures = "'self' data: blob:" if served else "'self' data: file:"
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        f"img-src {pictures}; base-uri 'none'; form-action 'none'"
        + ("; connect-src 'self'" if served else "")
    )


def json_for_html(value: Any) -> str:
    """Return JSON that cannot close the HTML element around it, whatever it contains.

    Examples
    --------
    >>> json_for_html("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign, escaped in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(sign, escaped)
    return text


def _object(values: Mapping[str, Sequence[bytes]]) -> list[bytes]:
    """Return the parts of a JSON object from those of its values; its names are plain words."""
    parts = [b"{"]
    for name, value in values.items():
        parts += [f'"{name}":'.encode(), *value, b","]
    parts[-1] = b"}"
    return parts


def _array_json(array: NDArray) -> list[bytes]:
    """Return an array as JSON, in parts; none of it, millions of letters, needs to be escaped."""
    kind, content = browser_bytes(array)
    return [f'{{"type":"{kind}","base64":"'.encode(), content, b'"}']


def data_urls(sheets: Sheets) -> list[str]:
    """Return the sheets as data URLs."""
    kind = f"data:image/{sheets.kind};base64,"
    return [kind + base64.b64encode(content).decode("ascii") for content in sheets.content]


def _about(sheets: Sheets, urls: Sequence[str]) -> dict[str, Any]:
    return {
        "height": sheets.height,
        "width": sheets.width,
        "cellHeight": sheets.cell_height,
        "cellWidth": sheets.cell_width,
        "columns": sheets.columns,
        "rows": sheets.rows,
        "crisp": max(sheets.height, sheets.width) <= TINY,
        "urls": list(urls),
    }


@cache
def _text(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


@cache
def _script(names: tuple[str, ...]) -> str:
    """Join JavaScript files into one script with its own scope."""
    parts = [_text(f"js/{name}.js") for name in names]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=DictLoader({"page.html": _text("page.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["thousands"] = lambda number: f"{number:,}"
    environment.filters["duration"] = duration
    environment.filters["percent"] = percent
    return environment


def percent(share: float) -> str:
    """Return a fraction as a percentage; only 1 becomes 100%.

    Examples
    --------
    >>> percent(0.5), percent(0.9991), percent(0.99999), percent(1.0)
    ('50%', '99.9%', '99.9%', '100%')
    """
    digits = 1 if 0.995 < share < 1 else 0
    return f"{100 * share if share == 1 else min(99.9, 100 * share):.{digits}f}%"


def duration(seconds: float) -> str:
    """Return a duration as text.

    Examples
    --------
    >>> duration(0.4), duration(75), duration(4000)
    ('under a second', '75 s', '1 h 7 min')
    """
    if seconds < 1:
        return "under a second"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
