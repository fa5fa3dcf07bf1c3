"""Reading images: decoding on all cores, the cache, and memory for many files."""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.common import Memory, in_fresh_process, seconds, write
from jule.images import ImageSource, ImageSpec, load_dataset, open_source, read_images
from jule.images.decoding.pipeline import count_cores, decode_batches

JPEGS = 20_000
SIDE = 256
SMALL = 200_000
SMALL_SIDE = 32
SPEC = ImageSpec(64, 64, 3)
TURNS = 8
COUNTED = 8_000  # images per turn
RATIOS = {
    "all cores / one core": ("jule, all cores", "jule, one core"),
    "one core / plain loop": ("jule, one core", "plain Pillow loop, one core"),
    "all cores / plain loops": ("jule, all cores", "plain Pillow loop on every core"),
}


def write_jpegs(folder: Path, images: NDArray[np.uint8], count: int, side: int) -> None:
    """Write the objects of COIL-100 several times each: as they are, mirrored, rotated."""
    turns = [None, Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.ROTATE_180]

    def save(number: int) -> None:
        image = Image.fromarray(images[number % len(images)]).resize((side, side))
        turn = turns[number // len(images) % len(turns)]
        if turn is not None:
            image = image.transpose(turn)
        content = io.BytesIO()
        image.save(content, "JPEG", quality=75 + number // (len(turns) * len(images)) % 20)
        (folder / f"{number // 1000:03d}").mkdir(exist_ok=True)
        (folder / f"{number // 1000:03d}" / f"{number:06d}.jpg").write_bytes(content.getvalue())

    with ThreadPoolExecutor() as pool:
        list(pool.map(save, range(count)))


def plain_loop(paths: list[Path]) -> None:
    """Decode with Pillow in a plain loop, using its draft mode."""
    size = (SPEC.width, SPEC.height)
    for path in paths:
        with Image.open(path) as image:
            image.draft("RGB", size)
            np.asarray(image.convert("RGB").resize(size, Image.Resampling.BILINEAR))


def decoding(folder: Path) -> dict[str, float]:
    """Return images per second of plain loops and of jule, and ratios: means over the turns."""
    source = open_source(folder)
    source.names = source.names[:COUNTED]
    paths = [folder / name for name in source.names]
    ways: dict[str, Callable[[], float]] = {
        "plain Pillow loop, one core": lambda: len(paths) / seconds(lambda: plain_loop(paths))[0],
        "plain Pillow loop on every core": lambda: plain_on_every_core(folder),
        "jule, one core": lambda: decoding_rate(source, 1),
        "jule, all cores": lambda: decoding_rate(source, count_cores()),
    }
    turns = [{name: rate() for name, rate in ways.items()} for _ in range(TURNS)]
    found = {name: float(np.mean([turn[name] for turn in turns])) for name in ways}
    for name, (one, other) in RATIOS.items():
        ratios = [turn[one] / turn[other] for turn in turns]
        found |= {name: float(np.mean(ratios)), f"{name}, spread": float(np.std(ratios))}
    return found


def plain_on_every_core(folder: Path) -> float:
    """Return images per second of one plain loop per core, all at the same time."""
    command = [sys.executable, "-m", "benchmarks.pictures", "plain", str(folder)]
    loops = [
        subprocess.Popen([*command, str(part)], stdout=subprocess.PIPE)
        for part in range(count_cores())
    ]
    return sum(float(json.loads(loop.communicate()[0])["pictures/s"]) for loop in loops)


def plain_part(folder: str, part: str) -> dict[str, float]:
    """Run the plain loop over every n-th image, for n cores."""
    names = open_source(folder).names[:COUNTED]
    paths = [Path(folder) / name for name in names[int(part) :: count_cores()]]
    return {"pictures/s": len(paths) / seconds(lambda: plain_loop(paths))[0]}


def decoding_rate(source: ImageSource, workers: int) -> float:
    """Return images per second after the first batch, when the workers have started."""
    batches = decode_batches(source, SPEC, workers=workers)
    first = len(next(batches).indices)
    taken, _ = seconds(lambda: [None for _ in batches])
    return (len(source) - first) / taken


def measure(what: str, folder: str, cache: str) -> dict[str, float]:
    """Return time and memory of reading all images in this process."""
    memory = Memory()
    taken, data = seconds(lambda: read_images(folder, SPEC if what != "small" else None,
                                              cache=Path(cache)))  # fmt: skip
    found = {"seconds": taken, "pictures": float(len(data))}
    if what == "small":
        # An upper bound: Linux includes the moment when a worker is still a copy of this process.
        worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        own = memory.before + memory.peak()
        return found | {
            "MiB, own": own,
            "MiB, workers included, at most": own + count_cores() * worker,
        }
    copying = min(seconds(lambda: np.array(data.samples))[0] for _ in range(3))
    return found | {"MB/s": data.samples.nbytes / 1e6 / copying}


def disk_rate(cache: Path) -> float:
    """Return the MB/s of reading the cache's largest file in blocks."""
    file = max(cache.rglob("pixels.bin"), key=lambda path: path.stat().st_size)
    block = bytearray(2**22)

    def read() -> None:
        with open(file, "rb", buffering=0) as stream:
            while stream.readinto(block):
                pass

    return file.stat().st_size / 1e6 / min(seconds(read)[0] for _ in range(3))


def main() -> None:
    images = load_dataset("coil100").images
    measured: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder, cache = Path(name, "jpegs"), Path(name, "cache")
        folder.mkdir()
        write_jpegs(folder, images, JPEGS, SIDE)
        measured["decoding"] = decoding(folder)
        one = ("benchmarks.pictures", "jpegs", str(folder), str(cache))
        first, second = in_fresh_process(*one), in_fresh_process(*one)
        measured["cache"] = {
            "seconds of the first reading": first["seconds"],
            "seconds of the second": second["seconds"],
            "MB/s from the cache": second["MB/s"],
            "MB/s of reading the file in blocks": disk_rate(cache),
        }
        many = Path(name, "small")
        many.mkdir()
        write_jpegs(many, images, SMALL, SMALL_SIDE)
        measured["small"] = in_fresh_process("benchmarks.pictures", "small", str(many), str(cache))
    settings = {
        "JPEGs": JPEGS, "pixels": f"{SIDE} x {SIDE}", "spec": str(SPEC), "cores": count_cores(),
        "small": SMALL, "small pixels": f"{SMALL_SIDE} x {SMALL_SIDE}",
    }  # fmt: skip
    write("pictures", "python -m benchmarks.pictures", settings, measured)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if len(sys.argv) == 1:
        main()
    else:
        of_plain = sys.argv[1] == "plain"
        print(json.dumps(plain_part(*sys.argv[2:]) if of_plain else measure(*sys.argv[1:])))
