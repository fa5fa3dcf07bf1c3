"""Memory of 50,000 photographs: reading and encoding them, and joint learning on their vectors.

The pictures are those of a sparse file, which is mapped into memory as the cache of decoded
pictures is, and the encoder picks 1,280 of their pixels: time is not measured, and a real encoder
adds about 0.1 GiB. Memory of the process's own is told apart from pages of files, which the system
takes back when it needs them.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.common import in_fresh_process, write
from jule.features import ModuleEncoder, Preprocessing, encode_images
from jule.images import fingerprint, read_images
from jule.joint import preset
from jule.runs.execute import execute
from jule.runs.folder import create_run

PICTURES, SIDE, FEATURES, CLUSTERS = 50_000, 224, 1_280, 50
EPOCHS = 0.02  # per period, because longer training needs no more memory
PAUSE = 0.02  # seconds between two looks at the memory
LIMIT = 4096  # MiB


class Pick(nn.Module):
    """Some pixels of each picture."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)[:, :: x[0].numel() // FEATURES][:, :FEATURES]


def sparse_pictures(path: Path, n_pictures: int) -> None:
    """Write a .npy file of different pictures, which are black except for a few pixels."""
    shape = (n_pictures, SIDE, SIDE, 3)
    pictures = np.lib.format.open_memmap(path, "w+", np.uint8, shape)
    rng = np.random.default_rng(0)
    for number in range(n_pictures):
        pictures[number, 0, :16] = rng.integers(0, 256, (16, 3))


def peaks(work: Callable[[], Any]) -> dict[str, float]:
    """Return the highest MiB of the process's own memory, and with pages of files (Linux)."""
    found = {"own": 0.0, "with files": 0.0}
    is_done = threading.Event()

    def look() -> None:
        while not is_done.wait(PAUSE):
            sizes = {}
            for line in Path("/proc/self/status").read_text().splitlines():
                name, _, value = line.partition(":")
                if name in ("RssAnon", "VmHWM"):
                    sizes[name] = int(value.split()[0]) / 1024
            found["own"] = max(found["own"], sizes["RssAnon"])
            found["with files"] = sizes["VmHWM"]

    watch = threading.Thread(target=look)
    watch.start()
    try:
        work()
    finally:
        is_done.set()
        watch.join()
    return found


def encode(path: str) -> None:
    """Read all pictures and encode them, as `jule cluster` does."""
    data = read_images(path)
    encoder = ModuleEncoder(Pick(), Preprocessing(SIDE, SIDE))
    vectors = encode_images(encoder, data.samples, cache=Path(path).with_name("vectors"))
    assert vectors.shape == (len(data), FEATURES)


def learn(n_pictures: int, folder: Path) -> None:
    """Cluster vectors like those of an encoder in a run folder, with little training."""
    vectors = clustered_vectors(n_pictures)
    config = preset("default", of="encoded", n_clusters=CLUSTERS, epochs=EPOCHS, min_images=0)
    run = create_run(folder / "run", config, fingerprint(vectors))
    assert execute(run, vectors).result.n_clusters == CLUSTERS


def clustered_vectors(n_pictures: int) -> NDArray[np.float32]:
    """Return vectors of root mean square 1 around a few centres."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((n_pictures, FEATURES), np.float32)
    vectors += rng.standard_normal((CLUSTERS, FEATURES), np.float32)[
        rng.integers(CLUSTERS, size=n_pictures)
    ]
    for row in vectors:  # one by one, in order not to need memory of its own
        row /= np.sqrt(np.square(row).mean())
    return vectors


def measure(stage: str, n_pictures: int) -> dict[str, float]:
    """Return the peaks of one stage in this process."""
    with tempfile.TemporaryDirectory() as name:
        if stage == "learning":
            return peaks(lambda: learn(n_pictures, Path(name)))
        path = Path(name, "pictures.npy")
        sparse_pictures(path, n_pictures)
        return peaks(lambda: encode(str(path)))


def main() -> None:
    measured: dict[str, Any] = {"limit": LIMIT}
    for stage in ("encoding", "learning"):
        measured[stage] = in_fresh_process("benchmarks.many_photos", stage, str(PICTURES))
        print(stage, measured[stage], flush=True)
    settings = {
        "pictures": PICTURES,
        "side": SIDE,
        "features": FEATURES,
        "clusters": CLUSTERS,
        "epochs": EPOCHS,
        "threads": torch.get_num_threads(),
    }
    write("many_photos", "python -m benchmarks.many_photos", settings, measured)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
