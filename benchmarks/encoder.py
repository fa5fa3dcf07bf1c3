"""The encoder for photographs: pictures per second, beside a bare loop over onnxruntime.

`python -m benchmarks.encoder` needs the folder flowers17 in $JULE_DATA, and onnxruntime. Both run
the same network on the same decoded pictures with the same number of threads, in turn.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray

from benchmarks.common import seconds, write
from benchmarks.photos import flowers
from jule.features import ModuleEncoder, encode_images, photos_encoder

PICTURES, BATCH, TURNS = 256, 16, 7
OURS, BARE, SCALED = "encode_images", "onnxruntime", "onnxruntime, pictures scaled before"


def open_session(encoder: ModuleEncoder, path: Path, threads: int) -> onnxruntime.InferenceSession:
    """Export the network of an encoder and open it with onnxruntime."""
    height, width = encoder.preprocessing.height, encoder.preprocessing.width
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            encoder.module,
            (torch.zeros(2, 3, height, width),),
            path,
            input_names=["x"],
            dynamic_shapes=({0: torch.export.Dim("n")},),
            dynamo=True,
            verbose=False,
            external_data=False,
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def scale(images: NDArray[np.uint8], encoder: ModuleEncoder) -> NDArray[np.float32]:
    """Scale pictures of the right size with numpy, as a bare loop has to."""
    mean, std = (np.array(one, np.float32) for one in _moments(encoder))
    x = (images.astype(np.float32) - 255 * mean) / (255 * std)
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2))


def _moments(encoder: ModuleEncoder) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return encoder.preprocessing.mean, encoder.preprocessing.std


def measure(images: NDArray[np.uint8], threads: int) -> dict[str, Any]:
    """Return the pictures per second of each way, and how far their vectors are apart."""
    encoder = photos_encoder()
    starts = range(0, len(images), BATCH)
    with tempfile.TemporaryDirectory() as name:
        session = open_session(encoder, Path(name, "encoder.onnx"), threads)
        scaled = [scale(images[start : start + BATCH], encoder) for start in starts]

        def ours(turn: int) -> NDArray[np.float32]:
            return encode_images(encoder, images, cache=Path(name, str(turn)))  # a new cache

        def bare(_: int) -> list[Any]:
            batches = (scale(images[start : start + BATCH], encoder) for start in starts)
            return [session.run(None, {"x": batch})[0] for batch in batches]

        def only_run(_: int) -> list[Any]:
            return [session.run(None, {"x": batch})[0] for batch in scaled]

        ways: dict[str, Callable[[int], Any]] = {OURS: ours, BARE: bare, SCALED: only_run}
        apart = np.abs(encoder.encode(images[:BATCH]) - only_run(0)[0]).max()
        rates: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(TURNS + 1):
            for way, run in ways.items():
                taken, _none = seconds(lambda run=run, turn=turn: run(turn))  # type: ignore[misc]
                if turn:  # the first one warms up
                    rates[way].append(len(images) / taken)
            print({way: round(found[-1], 1) for way, found in rates.items() if found}, flush=True)
    # Ratios of the same turn, because the machine is not equally fast in all of them.
    ratios = {
        f"{OURS} / {way}": median(a / b for a, b in zip(rates[OURS], rates[way], strict=True))
        for way in (BARE, SCALED)
    }
    return {
        "pictures per second": {way: median(found) for way, found in rates.items()},
        "ratios": ratios,
        "largest difference of a value": float(apart),
        "all": rates,
    }


def main() -> None:
    threads = torch.get_num_threads()
    images, _ = flowers()
    chosen = np.array(images[:: len(images) // PICTURES][:PICTURES])
    settings = {"pictures": PICTURES, "batch": BATCH, "turns": TURNS, "threads": threads}
    write("encoder", "python -m benchmarks.encoder", settings, measure(chosen, threads))


if __name__ == "__main__":
    main()
