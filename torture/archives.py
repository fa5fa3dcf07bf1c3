"""Hostile and damaged archives, arrays and lists."""

from __future__ import annotations

import gzip
import io
import os
import resource
import struct
import tarfile
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from PIL import Image

from jule.images import ImageSpec, open_source, read_images
from jule.images.decoding.pipeline import count_cores
from jule.memory import own_address_space
from torture.campaign import Outcome, Progress
from torture.mutations import any_file, by_structure
from torture.pictures import changes, snapshot

BATCH = 50  # cases that one process runs after each other
MEMORY = 2 * 2**30  # bytes that a process may use more than at its start
SECONDS = 240.0  # for a batch
BOMB = 2**24  # bytes of a bomb when it is unpacked
SPEC = ImageSpec(8, 8, 3)
NAMES = (
    "../up.png", "../../outside/up.png", "/etc/up.png", "/absolute.png", "C:\\windows\\up.png",
    "a\x1b[2J.png", "a\nb.png", "a\r.png", "\u202egnp.png", "con.png", "a/../../b.png", ".png",
    "~/home.png", "$(touch x).png", "=1+1.png", "x" * 300 + ".png", "x" * 9000 + ".png", "..",
    "a\0b.png", "-rf.png", "[/b].png", "caf\udce9.png", "no picture", "",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One file to read: its name and content, and how it was made."""

    name: str
    content: bytes
    how: str


Make = Callable[[Generator], bytes]


@cache
def _picture(number: int = 0) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (6, 5, 3), np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "PNG")
    return content.getvalue()


def _pick(values: Any, rng: Generator) -> Any:
    return values[int(rng.integers(len(values)))]


def _members(rng: Generator) -> list[tuple[str, bytes]]:
    """Return names and contents: good pictures, hostile names, repeated names, other archives."""
    some = [(f"{number}.png", _picture(number)) for number in range(3)]
    for _ in range(int(rng.integers(1, 4))):
        name = _pick((*NAMES, "same.png", "same.png", "0.png"), rng)
        some.append((name, _picture(int(rng.integers(5)))))
    if rng.random() < 0.03:
        some.append(("bomb.png", bytes(BOMB)))
    if rng.random() < 0.1:
        some.append(("nested.zip", make_zip(rng)))
    return some


def make_zip(rng: Generator) -> bytes:
    """Return a zip file with hostile members, sometimes with a wrong field."""
    content = io.BytesIO()
    how = int(_pick((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2), rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about repeated names
        with zipfile.ZipFile(content, "w", how) as archive:
            for name, inner in _members(rng):
                member = zipfile.ZipInfo(name.replace("\udce9", "e") or "x.png")
                member.compress_type = how
                if rng.random() < 0.1:
                    member.external_attr = 0o120777 << 16  # a link
                archive.writestr(member, inner)
    found = bytearray(content.getvalue())
    if rng.random() < 0.5:
        # Flags (encryption), method, checksum, sizes, lengths, offset: locally or centrally.
        marker, fields = _pick(
            ((b"PK\1\2", (8, 10, 16, 20, 24, 28, 30, 32, 42)), (b"PK\3\4", (6, 8, 14, 18, 22, 26))),
            rng,
        )
        place = found.find(marker, int(rng.integers(len(found))))
        if place >= 0:
            at, value = place + _pick(fields, rng), _pick((0, 1, 9, 0x7FFF, 0xFFFF), rng)
            found[at : at + 2] = struct.pack("<H", value)
    return bytes(found)


def make_tar(rng: Generator) -> bytes:
    """Return a tar file with hostile members: links, devices, odd headers and sizes."""
    content = io.BytesIO()
    form = int(_pick((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT), rng))
    kinds = (
        tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE,
        tarfile.DIRTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE, tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, b"Z",
    )  # fmt: skip
    pax = (
        {"size": "-512"}, {"size": "99999999999999"}, {"path": "../../up.png"}, {"path": ""},
        {"GNU.sparse.map": "0,1,999999999,1"}, {"GNU.sparse.major": "1"}, {"size": "x"},
        {"hdrcharset": "BINARY"}, {"mtime": "1e999"}, {"path": "x" * 100_000},
    )  # fmt: skip
    with tarfile.open(fileobj=content, mode="w", format=form, errors="surrogateescape") as archive:
        for name, inner in _members(rng):
            member = tarfile.TarInfo(name.replace("\0", "") or "x.png")
            member.size = len(inner)
            if rng.random() < 0.3:
                member.type = _pick(kinds, rng)
                member.linkname = _pick(("/etc/passwd", "../../outside/up.png", "0.png", ""), rng)
            if rng.random() < 0.3:
                member.pax_headers = dict(_pick(pax, rng))
            try:
                archive.addfile(member, io.BytesIO(inner))
            except ValueError:  # this format cannot express it
                continue
    found = bytearray(content.getvalue())
    if rng.random() < 0.3:  # a size in base 256: negative or huge
        at = 512 * int(rng.integers(len(found) // 512))
        found[at + 124 : at + 136] = _pick((b"\xff" * 12, b"\x80" + b"\xff" * 11), rng)
        found[at + 148 : at + 156] = b" " * 8
        found[at + 148 : at + 156] = b"%06o\0 " % (sum(found[at : at + 512]) % 0o1000000)
    return bytes(found)


def _images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (6, 8, 8), np.uint8)


def _make_npy(rng: Generator) -> bytes:
    content = io.BytesIO()
    np.save(content, _images().astype(_pick(("u1", "f4", "f8", "i2"), rng)))
    return by_structure("a.npy", rng)[1](content.getvalue(), rng)


def _make_npz(rng: Generator) -> bytes:
    content = io.BytesIO()
    arrays = {"images": _images(), "labels": np.arange(6), "names": np.array(list("abcdef"))}
    if rng.random() < 0.3:
        arrays["names"] = np.array([_pick(NAMES, rng).replace("\0", "") for _ in range(6)])
    _pick((np.savez, np.savez_compressed), rng)(content, **arrays)
    return by_structure("a.npz", rng)[1](content.getvalue(), rng)


@cache
def _hdf5_files() -> list[bytes]:
    """Return HDF5 files of many layouts; none if h5py is not installed."""
    try:
        import h5py
    except ImportError:
        return []
    layouts: tuple[dict[str, Any], ...] = (
        {}, {"chunks": (2, 8, 8)}, {"compression": "gzip"}, {"compression": "lzf"},
        {"compression": "gzip", "shuffle": True, "fletcher32": True}, {"maxshape": (None, 8, 8)},
    )  # fmt: skip
    found = []
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        for number, layout in enumerate(layouts):
            for version in ("earliest", "latest"):
                path = Path(name, f"{number}{version}.h5")
                with h5py.File(path, "w", libver=version) as file:
                    file.create_dataset("images", data=_images(), **layout)
                    file["labels"] = np.arange(6)
                    file.create_group("more")["x"] = h5py.SoftLink("/images")
                    file["elsewhere"] = h5py.ExternalLink("../outside/secret.h5", "/images")
                found.append(path.read_bytes())
        for number, write in enumerate((_external, _virtual, _huge)):
            path = Path(name, f"odd{number}.h5")
            with h5py.File(path, "w") as file:
                write(file, h5py)
            found.append(path.read_bytes())
    return found


def _external(file: Any, _: Any) -> None:
    file.create_dataset("images", (6, 8, 8), np.uint8, external=[("/etc/passwd", 0, 384)])


def _virtual(file: Any, h5py: Any) -> None:
    layout = h5py.VirtualLayout((6, 8, 8), np.uint8)
    layout[...] = h5py.VirtualSource("../outside/secret.h5", "images", (6, 8, 8), np.uint8)
    file.create_virtual_dataset("images", layout)


def _huge(file: Any, _: Any) -> None:
    file.create_dataset("images", (10**6, 1000, 1000), np.uint8, chunks=(1, 1000, 1000))


def _make_hdf5(rng: Generator) -> bytes:
    files = _hdf5_files()
    return _pick(files, rng) if files else b""


def _make_idx(rng: Generator) -> bytes:
    kind, n_axes = _pick((8, 9, 11, 12, 13, 14, 0, 255), rng), _pick((0, 1, 2, 3, 4, 5, 255), rng)
    shape = [_pick((0, 1, 6, 8, 1000, 2**31, 2**32 - 1), rng) for _ in range(min(n_axes, 6))]
    if rng.random() < 0.5:
        kind, n_axes, shape = 8, 3, [6, 8, 8]
    return (
        bytes([0, 0, kind, n_axes]) + struct.pack(f">{len(shape)}I", *shape) + _images().tobytes()
    )


def _make_bomb(rng: Generator) -> bytes:
    head = bytes([0, 0, 8, 3]) + struct.pack(">3I", 6, 8, 8)
    return _pack(head + bytes(BOMB) if rng.random() < 0.1 else _make_idx(rng))


def _pack(content: bytes) -> bytes:
    return gzip.compress(content, 1)


def _make_list(rng: Generator) -> bytes:
    lines = [
        _pick((*NAMES, "0.png", "/etc/passwd", "x" * 200_000, '"', ","), rng) for _ in range(9)
    ]
    text = "\n".join(["path,label", *lines])
    return text.encode("utf-8", _pick(("surrogateescape", "replace"), rng))


KINDS: dict[str, Make] = {
    "a.zip": make_zip,
    "a.tar": make_tar,
    "a.tar.gz": lambda rng: _pack(make_tar(rng)),
    "a.npy": _make_npy,
    "a.npz": _make_npz,
    "a.h5": _make_hdf5,
    "a-idx3-ubyte": _make_idx,
    "a-idx3-ubyte.gz": _make_bomb,
    "a.csv": _make_list,
    "a.txt": _make_list,
}


class HostileArchives:
    """Make hostile and damaged archives, arrays and lists, and read them."""

    name = "archives"
    title = "hostile and damaged archives, arrays and lists"
    goal = 5_000
    promise = (
        "every archive, array or list is read, or refused with one line that names it; nothing is "
        "written or read outside, and memory is bounded"
    )

    def run(self, n_cases: int | None, seed: int, progress: Progress) -> Outcome:
        """Run `n_cases` cases (all of the goal if None) and return how they ended."""
        total = self.goal if n_cases is None else n_cases
        counts: Counter[str] = Counter()
        failures: list[str] = []
        starts = range(0, total, BATCH)
        context = get_context("spawn")
        with ProcessPoolExecutor(count_cores(), context) as pool:
            futures = [pool.submit(run_batch, seed, at, min(BATCH, total - at)) for at in starts]
            for at, future in zip(starts, futures, strict=True):
                try:
                    ends, wrong = future.result(SECONDS * 2)
                except (BrokenProcessPool, TimeoutError) as error:
                    problem = f"the program died or did not end ({type(error).__name__})"
                    failures.append(f"cases {at} to {at + BATCH} of seed {seed}: {problem}")
                    break
                counts.update(ends)
                failures += wrong
                progress(min(at + BATCH, total), total)
        return Outcome(total, dict(counts), failures)


def make_case(seed: int, number: int) -> Case:
    """Return one case; the same for the same seed and number."""
    rng = np.random.default_rng([seed, number])
    name = list(KINDS)[number % len(KINDS)]
    content, how = KINDS[name](rng), "as it was made"
    if name == "a.h5" or rng.random() < 0.5:
        for _ in range(int(rng.integers(0 if name == "a.h5" else 1, 4))):
            how, damage = any_file(rng)
            content = damage(content, rng)
    return Case(name, content, how)


def run_batch(seed: int, start: int, count: int) -> tuple[Counter[str], list[str]]:
    """Run some cases in this process; return how they ended, and what went wrong."""
    _limit_memory()
    # What survives a power cut is not in question here.
    vars(os)["fsync"] = lambda _: None
    counts: Counter[str] = Counter()
    failures: list[str] = []
    back = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        folder = Path(name)
        (folder / "outside").mkdir()
        (folder / "outside" / "secret.h5").write_bytes(b"secret")
        os.chdir(folder / "outside")
        try:
            for number in range(start, start + count):
                case = make_case(seed, number)
                ending, problems = _run_case(case, folder)
                counts[f"{case.name}: {ending}"] += 1
                where = f"case {number} of seed {seed} ({case.name}, {case.how})"
                failures += [f"{where}: {problem}" for problem in problems]
        finally:
            os.chdir(back)
    return counts, failures


def _limit_memory() -> None:
    """Set a limit once per process: what announces more must be refused, not tried."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_AS, (own_address_space() + MEMORY, hard))


def _run_case(case: Case, folder: Path) -> tuple[str, list[str]]:
    """Read one file, and return how that ended and which promises were broken."""
    work = folder / "work"
    work.mkdir()
    (work / "0.png").write_bytes(_picture())
    path = work / case.name
    path.write_bytes(case.content)
    before = snapshot(folder)
    problems: list[str] = []
    try:
        opened = open_source(path)
        found = read_images(opened, None if opened.array() is not None else SPEC,
                            cache=folder / "cache")  # fmt: skip
        ending = "read"
        listed = len(found) + len(found.skipped)
        if listed != len(opened) + len(opened.skipped):
            problems.append(f"{listed} of {len(opened) + len(opened.skipped)} are listed")
    except (ValueError, OSError, ImportError) as error:
        ending = "refused"
        if case.name not in str(error) or "\n" in str(error) or len(str(error)) > 2000:
            problems.append(f"the error is {error!r:.300}")
    except BaseException as error:
        ending = "raised an error"
        problems.append(f"{type(error).__name__}: {error!s:.300}")
    problems += [f"{name} was written or changed" for name in changes(before, snapshot(folder))]
    for entry in work.iterdir():
        entry.unlink()
    work.rmdir()
    return ending, problems
