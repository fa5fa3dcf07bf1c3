"""Damage the content of a file: of any file, or of JSON, CSV, arrays and tensors by structure."""

from __future__ import annotations

import csv
import io
import json
import struct
import zipfile
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Value = TypeVar("Value")
Mutation = Callable[[bytes, Generator], bytes]
NAMES = (
    "a\x1b[2Jb",
    "=cmd()",
    "a\nb",
    "[/b]",
    "\u202egnp",
    "x" * 300,
    "../../x",
    "/etc/passwd",
    "",
)
HOSTILE_TEXT = ("NaN", "-1", "1e999", "9" * 5000, "\0", '"', "1_0", "\u0661", "x" * 200_000, "")


def any_file(rng: Generator) -> tuple[str, Mutation]:
    """Choose one of the kinds of damage that any file can have."""
    return _choose(ANY, rng)


def by_structure(name: str, rng: Generator) -> tuple[str, Mutation]:
    """Choose a kind of damage that fits the format of a file; any kind for an unknown format.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> what, damage = by_structure("result.json", rng)
    >>> damage(b'{"n_samples": 40}', rng) != b'{"n_samples": 40}'
    True
    """
    return _choose(STRUCTURES.get(name.rpartition(".")[2], ANY), rng)


def _choose(kinds: dict[str, Mutation], rng: Generator) -> tuple[str, Mutation]:
    name = _pick(list(kinds), rng)
    return name, kinds[name]


def _pick(values: Sequence[Value], rng: Generator) -> Value:
    return values[int(rng.integers(len(values)))]


# Any file


def _flip_bit(content: bytes, rng: Generator) -> bytes:
    found = bytearray(content or b"\0")
    found[int(rng.integers(len(found)))] ^= 1 << int(rng.integers(8))
    return bytes(found)


def _change_bytes(content: bytes, rng: Generator) -> bytes:
    found = bytearray(content or b"\0")
    for place in rng.integers(len(found), size=int(rng.integers(1, 9))):
        found[place] = (found[place] + int(rng.integers(1, 256))) % 256
    return bytes(found)


def _truncate(content: bytes, rng: Generator) -> bytes:
    return content[: int(rng.integers(max(1, len(content))))]


def _empty(*_: Any) -> bytes:
    return b""


def _range(content: bytes, rng: Generator) -> tuple[int, int]:
    start = int(rng.integers(len(content) + 1))
    return start, min(len(content), start + 1 + int(rng.integers(1, 4097)))


def _zero_range(content: bytes, rng: Generator) -> bytes:
    start, stop = _range(content, rng)
    return content[:start] + bytes(stop - start) + content[stop:]


def _append(content: bytes, rng: Generator) -> bytes:
    return content + rng.bytes(int(rng.integers(1, 4097)))


def _insert(content: bytes, rng: Generator) -> bytes:
    start, _ = _range(content, rng)
    return content[:start] + rng.bytes(int(rng.integers(1, 65))) + content[start:]


def _remove_range(content: bytes, rng: Generator) -> bytes:
    start, stop = _range(content, rng)
    return content[:start] + content[stop:]


def _swap_ranges(content: bytes, rng: Generator) -> bytes:
    if len(content) < 4:
        return content[::-1] + b"\0"
    half = len(content) // 2
    first, second = int(rng.integers(half)), int(rng.integers(half, len(content)))
    length = min(half - first, len(content) - second, int(rng.integers(1, 513)))
    one, two = content[first : first + length], content[second : second + length]
    between = content[first + length : second]
    return content[:first] + two + between + one + content[second + length :]


ANY: dict[str, Mutation] = {
    "flip a bit": _flip_bit,
    "change bytes": _change_bytes,
    "truncate": _truncate,
    "empty": _empty,
    "zero a range": _zero_range,
    "append bytes": _append,
    "insert bytes": _insert,
    "remove a range": _remove_range,
    "swap two ranges": _swap_ranges,
}


# JSON


def _places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [here] + [place for key, one in inner for place in _places(one, (*here, key))]


def _wrong_values() -> list[Any]:
    return [
        None, True, False, -1, 0, 1, 10**9, 2**63, 10**40, 0.5, -0.0, 1e308, 1e-320,
        float("nan"), float("inf"), float("-inf"), "", "x", "0", [], {}, [[]], [None], {"x": 1},
        "x" * 100_000, list(range(10_000)), *NAMES,
    ]  # fmt: skip


def _with(value: Any, place: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    inner = value
    for key in place[:-1]:
        inner = inner[key]
    change(inner, place[-1])
    return value


def _json_text(content: bytes, change: Callable[[Any], Any]) -> bytes:
    try:
        value = json.loads(content)
    except ValueError:
        value = {}
    return json.dumps(change(value), indent=2).encode()


def _wrong_value(content: bytes, rng: Generator) -> bytes:
    wrong = _pick(_wrong_values(), rng)

    def change(value: Any) -> Any:
        place = _pick(_places(value), rng)
        return _with(value, place, lambda at, key: at.__setitem__(key, wrong)) if place else wrong

    return _json_text(content, change)


def _missing_key(content: bytes, rng: Generator) -> bytes:
    def change(value: Any) -> Any:
        place = _pick(_places(value), rng)
        return _with(value, place, lambda at, key: at.__delitem__(key)) if place else {}

    return _json_text(content, change)


def _extra_key(content: bytes, rng: Generator) -> bytes:
    def change(value: Any) -> Any:
        for place in (_pick(_places(value), rng), ()):
            inner = value
            for key in place:
                inner = inner[key]
            if isinstance(inner, dict):
                inner[_pick(NAMES, rng)] = _pick(_wrong_values(), rng)
                break
            if isinstance(inner, list):
                inner.append(_pick(_wrong_values(), rng))
                break
        return value

    return _json_text(content, change)


def _slightly_other_number(content: bytes, rng: Generator) -> bytes:
    def change(value: Any) -> Any:
        numbers = [
            place
            for place in _places(value)
            if place and isinstance(_at(value, place), int | float)
        ]
        if not numbers:
            return [value]
        step = _pick((-1, 1, 2, 1000), rng)
        return _with(
            value, _pick(numbers, rng), lambda at, key: at.__setitem__(key, at[key] + step)
        )

    return _json_text(content, change)


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


def _deep_json(content: bytes, rng: Generator) -> bytes:
    depth = _pick((500, 5_000, 100_000), rng)
    opened, closed = _pick(((b"[", b"]"), (b'{"a":', b"}")), rng)
    deep = opened * depth + b"0" + closed * depth
    place = content.find(b":")
    return deep if place < 0 or rng.random() < 0.5 else content[: place + 1] + deep + b"}"


def _raw_json(content: bytes, rng: Generator) -> bytes:
    number = b"9" * 10_000
    return _pick(
        (
            b"\xef\xbb\xbf" + content,
            content.replace(b'"', b"'"),
            content.replace(b":", b": NaN,", 1),
            content.replace(b"1", number, 1),
            content.decode("utf-8", "replace").encode("utf-16"),
            content.replace(b'"', b'"\xff', 1),
            content.replace(b'"', b'"\\ud800', 1),
            content + content,
            content.replace(b"{", b'{"format": 1, "format": 2, ', 1),
            b"null",
            b'"x"',
            b"[]",
        ),
        rng,
    )  # fmt: skip


# CSV


def _rows(content: bytes) -> list[list[str]]:
    text = content.decode("utf-8", "surrogateescape")
    try:
        return list(csv.reader(io.StringIO(text, newline=""))) or [[""]]
    except csv.Error:
        return [[""]]


def _table(rows: list[list[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode("utf-8", "surrogateescape")


def _csv_cell(content: bytes, rng: Generator) -> bytes:
    rows = _rows(content)
    row = _pick(rows, rng)
    if not row:
        row.append("")
    row[int(rng.integers(len(row)))] = _pick((*NAMES, *HOSTILE_TEXT, "0", "1", "7", "0.5"), rng)
    return _table(rows)


def _csv_rows(content: bytes, rng: Generator) -> bytes:
    rows = _rows(content)
    place, other = int(rng.integers(len(rows))), int(rng.integers(len(rows)))
    how = int(rng.integers(6))
    if how == 0:
        del rows[place]
    elif how == 1:
        rows.insert(place, list(rows[other]))
    elif how == 2:
        rows[place], rows[other] = rows[other], rows[place]
    elif how == 3:
        rows[place] = rows[place] + ["x"] * int(rng.integers(1, 5))
    elif how == 4:
        rows[place] = rows[place][: int(rng.integers(len(rows[place]) + 1))]
    else:
        rows = rows[:1]
    return _table(rows)


def _csv_column(content: bytes, rng: Generator) -> bytes:
    rows = _rows(content)
    width = max(1, len(rows[0]))
    place, other = int(rng.integers(width)), int(rng.integers(width))
    for row in rows:
        if len(row) <= max(place, other):
            continue
        if place == other:
            del row[place]
        else:
            row[place], row[other] = row[other], row[place]
    return _table(rows)


def _raw_csv(content: bytes, rng: Generator) -> bytes:
    return _pick(
        (
            b"\xef\xbb\xbf" + content,
            content + b'"',
            content.replace(b",", b";"),
            content.replace(b",", b',"', 1),
            content.replace(b"\n", b"\n\0", 1),
            content.replace(b"\r\n", b"\r"),
            content.replace(b",", b"," + b"x" * 200_000, 1),
            content.replace(b",", b",\xff\xfe", 1),
            content.decode("utf-8", "replace").encode("utf-16"),
        ),
        rng,
    )  # fmt: skip


# Arrays


def _npy(array: NDArray) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, array, allow_pickle=True)
    return content.getvalue()


def _header(described: str, version: int = 1) -> bytes:
    text = described.encode("latin-1") + b" " * 20 + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", min(len(text), 0xFFFF))
    return b"\x93NUMPY" + bytes((version, 0)) + length + text


def _load(content: bytes) -> NDArray:
    try:
        array: NDArray = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError):
        return np.arange(4)
    return array


TEXTS, NUMBERS = ("U3", "S2"), ("f8", "f2", "i1", "u8", "c16", "?")


def _wrong_array(array: NDArray, rng: Generator) -> NDArray:
    array = array.copy()
    flat = array.reshape(-1)
    how = int(rng.integers(16))
    if how == 0:
        with np.errstate(all="ignore"):
            types = TEXTS if array.dtype.kind in "US" else (*NUMBERS, *TEXTS)
            return array.astype(_pick(types, rng))
    if how == 1:
        return array.astype(array.dtype.newbyteorder())
    if how == 2:
        return np.array([None, {"a": 1}], object)
    if how == 3:
        return array[: int(rng.integers(len(array) + 1))] if array.ndim else array[None]
    if how == 4:
        return np.concatenate([array, array]) if array.ndim else np.array([array, array])
    if how == 5:
        return array.T.copy() if array.ndim > 1 else array[None]
    if how == 6:
        return array.reshape(-1) if array.ndim != 1 else array[:, None]
    if how == 7:
        return array[..., :0] if array.ndim else np.zeros(0, array.dtype)
    if how == 8:
        return np.asfortranarray(array[..., None])
    if how == 9:
        return np.zeros(3, [("a", "i4"), ("b", "f4")])
    if not flat.size:
        return np.ones(3, array.dtype)
    place = int(rng.integers(flat.size))
    if how == 10:
        flat[place] = np.array(_pick((-1, 10**6, 127, 2**31 - 1), rng)).astype(array.dtype)
    elif how == 11 and array.dtype.kind == "f":
        flat[place] = _pick((np.nan, np.inf, -np.inf, 1e38), rng)
    elif how == 12:
        flat[:] = 0
    elif how == 13:
        flat[:] = np.array(-7).astype(array.dtype)
    elif how == 14:
        rng.shuffle(flat)
    else:
        flat[:] = flat[place]
    return array


def _other_array(content: bytes, rng: Generator) -> bytes:
    return _npy(_wrong_array(_load(content), rng))


def _other_header(content: bytes, rng: Generator) -> bytes:
    body = content[128:]
    deep = "(" * 5000 + ")" * 5000
    described = _pick(
        (
            "{'descr': '<i4', 'fortran_order': False, 'shape': (1000000000000,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
            "{'descr': '<i4', 'fortran_order': False, 'shape': (-1,), }",
            "{'descr': '<i4', 'fortran_order': 3, 'shape': (40,), }",
            "{'descr': '|O', 'fortran_order': False, 'shape': (40,), }",
            "{'descr': [('a', '<i4', (100000, 100000))], 'fortran_order': False, 'shape': (1,), }",
            "{'descr': '<i4', 'shape': (40,), }",
            "{'descr': 'nonsense', 'fortran_order': False, 'shape': (40,), }",
            "{'descr': '<i4', 'fortran_order': False, 'shape': (40,)",
            "__import__('os')",
            "{'descr': '<i4', 'fortran_order': False, 'shape': (40L,), }",
            f"{{'descr': '<i4', 'fortran_order': False, 'shape': {deep}, }}",
            "[" * 3000,
            "{'a': 1" + ", 'a': 1" * 2000 + "}",
        ),
        rng,
    )
    return _header(described, _pick((1, 2, 3, 9), rng)) + body


def _members(content: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, OSError, ValueError, EOFError):
        return {"a.npy": _npy(np.arange(3))}


def _npz(members: Sequence[tuple[str, bytes]], how: int = zipfile.ZIP_STORED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", how) as archive:
        for name, inner in members:
            archive.writestr(name, inner)
    return content.getvalue()


def _other_member(content: bytes, rng: Generator) -> bytes:
    members = _members(content)
    name = _pick(list(members), rng)
    change = _pick((_other_array, _other_array, _other_header, _pick(list(ANY.values()), rng)), rng)
    members[name] = change(members[name], rng)
    return _npz(list(members.items()), _pick((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED), rng))


def _other_members(content: bytes, rng: Generator) -> bytes:
    members = _members(content)
    name = _pick(list(members), rng)
    how = int(rng.integers(7))
    if how == 0:
        del members[name]
    elif how == 1:
        members = {**members, "extra.npy": _npy(np.arange(3))}
    elif how == 2:
        members = {key.removesuffix(".npy"): value for key, value in members.items()}
    elif how == 3:
        members = {f"../{key}": value for key, value in members.items()}
    elif how == 4:
        members[name] = members.pop(name)
    elif how == 5:
        members = {name: members[name]}
    else:
        other = _pick(list(members), rng)
        members[name], members[other] = members[other], members[name]
    return _npz(list(members.items()))


def _zip_bomb(content: bytes, rng: Generator) -> bytes:
    members = _members(content)
    name = _pick(list(members), rng)
    shape = "{'descr': '|u1', 'fortran_order': False, 'shape': (2000000000,), }"
    members[name] = _header(shape) + bytes(3_000_000)
    return _npz(list(members.items()), zipfile.ZIP_DEFLATED)


def _zip_fields(content: bytes, rng: Generator) -> bytes:
    found = bytearray(content)
    place = found.rfind(b"PK\x01\x02")
    if place < 0:
        return _flip_bit(content, rng)
    field = _pick((8, 10, 16, 20, 24, 28, 30, 42), rng)  # flags, method, checksum, sizes, ...
    for at in range(place + field, min(len(found), place + field + 2)):
        found[at] = int(rng.integers(256))
    return bytes(found)


# safetensors


def _tensors(content: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        length = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8 : 8 + length])
        return (header if isinstance(header, dict) else {}), content[8 + length :]
    except (ValueError, struct.error):
        return {}, content


def _safetensors(header: bytes, body: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + body


def _other_tensor_header(content: bytes, rng: Generator) -> bytes:
    header, body = _tensors(content)
    change = _pick((_wrong_value, _missing_key, _extra_key, _slightly_other_number), rng)
    return _safetensors(change(json.dumps(header).encode(), rng), body)


def _other_metadata(content: bytes, rng: Generator) -> bytes:
    """Change the JSON inside the JSON: the description of the network or of the state."""
    header, body = _tensors(content)
    about = header.get("__metadata__", {})
    inner = [key for key, value in about.items() if isinstance(value, str) and value[:1] == "{"]
    if not inner:
        return _other_tensor_header(content, rng)
    key = _pick(inner, rng)
    changes = (_wrong_value, _missing_key, _extra_key, _slightly_other_number, _deep_json)
    change = _pick(changes, rng)
    about[key] = change(about[key].encode(), rng).decode()
    return _safetensors(json.dumps(header).encode(), body)


def _other_weights(content: bytes, rng: Generator) -> bytes:
    header, body = _tensors(content)
    values = np.frombuffer(body[: len(body) // 4 * 4], "<f4").copy()
    if not values.size:
        return content + b"\0"
    start = int(rng.integers(values.size))
    values[start : start + int(rng.integers(1, 1000))] = _pick((np.nan, np.inf, 1e38, 7.0), rng)
    return _safetensors(json.dumps(header).encode(), values.tobytes())


def _tensor_length(content: bytes, rng: Generator) -> bytes:
    length = _pick((0, 1, 2**63, 2**40, 100_000_000, len(content), len(content) - 8), rng)
    return struct.pack("<Q", length) + content[8:]


# HTML and pictures have no structure that is read again.

STRUCTURES: dict[str, dict[str, Mutation]] = {
    "json": {
        "a wrong value": _wrong_value,
        "a missing entry": _missing_key,
        "an extra entry": _extra_key,
        "a slightly different number": _slightly_other_number,
        "deep nesting": _deep_json,
        "odd JSON": _raw_json,
    },
    "csv": {
        "another cell": _csv_cell,
        "other rows": _csv_rows,
        "other columns": _csv_column,
        "odd CSV": _raw_csv,
    },
    "npy": {"another array": _other_array, "another header": _other_header},
    "npz": {
        "another array in it": _other_member,
        "other members": _other_members,
        "a zip bomb": _zip_bomb,
        "other fields of the archive": _zip_fields,
    },
    "safetensors": {
        "another header": _other_tensor_header,
        "another description": _other_metadata,
        "other weights": _other_weights,
        "another length of the header": _tensor_length,
    },
}
