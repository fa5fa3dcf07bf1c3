"""What a page that was written before has, so that it need not be made again.

Thumbnails and positions do not change when clusters are edited. Taken from the page, they are there
at once, and even if the pictures themselves are gone.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from jule.files import parse_json
from jule.report.arrays import BROWSER_TYPES
from jule.report.layout import AXES
from jule.report.page import BEGIN, END
from jule.report.pictures import Sheets
from jule.runs.folder import RunFolder
from jule.runs.manifest import Manifest, read_listed
from jule.runs.names import PAGE, PAGE_PICTURES

INLINE = re.compile(r"data:image/(png|jpeg);base64,([A-Za-z0-9+/=]*)")
BESIDE = re.compile(rf"{PAGE_PICTURES}/(sheet-[0-9a-f]{{16}}\.(png|jpg))")
LARGEST_SIDE = 4096  # of a sheet and of all that is on it


@dataclass(frozen=True, eq=False)
class StoredPage:
    """What can be taken from an earlier page of a run.

    Attributes
    ----------
    sheets
        Its thumbnails; None if it has none.
    positions
        Its arrays of positions: ``"coords"``, and ``"umap"`` if it has a UMAP map.
    pictures
        What its summary says of its pictures.
    rows
        The samples that it shows; None for all.
    """

    sheets: Sheets | None = field(repr=False)
    positions: dict[str, NDArray] = field(repr=False)
    pictures: dict[str, Any]
    rows: NDArray[np.int64] | None = None


def read_stored(run: RunFolder, run_id: str, n: int) -> StoredPage | None:
    """Read the page in a run folder; None if there is none, or if it does not fit the run.

    Parameters
    ----------
    run
        A finished run.
    run_id, n
        Its identifier and its number of samples.
    """
    try:
        page = parse_json(_data_without_names(run.read(PAGE)))
        if page["summary"]["run"] != run_id:
            return None
        arrays = page["arrays"]
        rows = _rows(arrays["rows"], n) if "rows" in arrays else None
        shown = n if rows is None else len(rows)
        positions = {"coords": _array(arrays["coords"], np.int16, (shown, AXES))}
        if "umap" in arrays:
            positions["umap"] = _array(arrays["umap"], np.int16, (shown, 2))
        sheets = None
        if page["pictures"] is not None:
            sheets = _sheets(run, page["pictures"], arrays["places"], shown)
        return StoredPage(sheets, positions, _about_pictures(page["summary"]), rows)
    except (ValueError, KeyError, TypeError, OSError):  # damaged, or of another version
        return None


def _data_without_names(page: bytes) -> bytes:
    """Return the data of a page as JSON, without the names of all samples: they are known.

    Quotes inside of JSON strings are escaped, so the first letters of an entry are nowhere else.
    Names come after the arrays, which are most of the page, so they are searched from the end.
    """
    begin = page.index(BEGIN.encode()) + len(BEGIN)
    end = page.rindex(END.encode(), begin)
    pictures = page.rindex(b',"pictures":', begin, end)
    names = page.rindex(b',"names":', begin, pictures)
    return page[begin:names] + page[pictures:end]


def _rows(value: dict[str, Any], n: int) -> NDArray[np.int64]:
    rows = _array(value, np.int32, (-1,)).astype(np.int64)
    if len(rows) == 0 or (np.diff(rows) <= 0).any() or rows[0] < 0 or rows[-1] >= n:
        raise ValueError("its samples are not those of the run")
    return rows


def _about_pictures(summary: dict[str, Any]) -> dict[str, Any]:
    shape, shown, reason = (summary[name] for name in ("image_shape", "pictures", "no_pictures"))
    is_shape = shape is None or all(type(side) is int for side in shape)
    if not is_shape or type(shown) is not bool or type(reason) is not str:
        raise ValueError("its summary is damaged")
    return {"image_shape": shape, "pictures": shown, "no_pictures": reason}


def _array(value: dict[str, Any], dtype: type, shape: tuple[int, ...]) -> NDArray:
    """Return an array that `for_browser` has encoded."""
    if value["type"] != BROWSER_TYPES[np.dtype(dtype).name]:
        raise ValueError(f"an array of {value['type']} instead of {dtype}")
    content = base64.b64decode(value["base64"], validate=True)
    return np.frombuffer(content, np.dtype(dtype).newbyteorder("<")).reshape(shape).astype(dtype)


def _sheets(run: RunFolder, about: dict[str, Any], places: dict[str, Any], n: int) -> Sheets:
    names = ("height", "width", "cellHeight", "cellWidth", "columns", "rows")
    sizes = [about[name] for name in names]
    if not all(type(size) is int and 0 < size <= LARGEST_SIDE for size in sizes):
        raise ValueError("the size of a sheet is wrong")
    cells = _array(places, np.int32, (n,))
    urls = about["urls"]
    on_each = sizes[4] * sizes[5]
    if len(urls) != -(-n // on_each) or not np.array_equal(np.sort(cells), np.arange(n)):
        raise ValueError("the sheets do not have a cell for each sample")
    inside = [INLINE.fullmatch(url) for url in urls]
    beside = [BESIDE.fullmatch(url) for url in urls]
    content: Sequence[bytes]
    manifest = run.manifest()
    if all(beside) and set(urls) <= set(manifest):
        content = SheetsBeside(run, urls, manifest)
        kind = "png" if urls[0].endswith("png") else "jpeg"
    else:  # raises if one is neither in the page nor a file of the run
        content = [base64.b64decode(_found(one).group(2), validate=True) for one in inside]
        kind = _found(inside[0]).group(1)
    height, width, cell_height, cell_width, columns, rows = sizes
    return Sheets(
        height, width, cell_height, cell_width, columns, rows, kind, cells, content
    )  # fmt: skip


def _found(match: re.Match[str] | None) -> re.Match[str]:
    if match is None:
        raise ValueError("a sheet has a strange address")
    return match


class SheetsBeside(Sequence[bytes]):
    """Sheets that are files of a run, each read when it is looked at: there may be gigabytes.

    Parameters
    ----------
    run
        The run.
    names
        The names of the files.
    manifest
        The manifest of the run, with which they are compared.
    """

    def __init__(self, run: RunFolder, names: Sequence[str], manifest: Manifest) -> None:
        self.run = run
        self.names = names
        self.manifest = manifest

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, number: int) -> bytes: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[bytes]: ...
    def __getitem__(self, number: int | slice) -> bytes | Sequence[bytes]:
        """Read one sheet."""
        if isinstance(number, slice):
            return SheetsBeside(self.run, self.names[number], self.manifest)
        return read_listed(self.run.folder, self.names[number], self.manifest)
