"""Training: a step of the paper's networks against a plain eager loop, and where its time goes.

The variants run in turn, each in its own process, because they allocate memory differently.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.common import in_fresh_process, write
from jule.backward import Training, build_embedder, train, weighted_triplet_loss
from jule.backward.plan import CHANNELS, KERNEL, OUTPUTS, layer_plan

SIZES = {"MNIST, 28 x 28": (28, 60), "COIL, 128 x 128": (128, 6)}  # side, steps measured
WARM = 2  # steps before that, which touch their memory for the first time
BATCH = 100
TURNS = 2
SETTINGS = Training(negatives="nearest", warp=1.0)

Tick = Callable[[float], None]
Clock = Callable[[], float]


def images_of(side: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 255, (4 * BATCH, side, side), np.uint8), np.arange(4 * BATCH) // 8


def plain_network(side: int) -> nn.Module:
    """Return the same network in the usual form: NCHW, with biases."""
    layers: list[nn.Module] = []
    channels = 1
    for pooled in layer_plan(side, side):
        layers += [nn.Conv2d(channels, CHANNELS, KERNEL), nn.BatchNorm2d(CHANNELS), nn.ReLU()]
        if pooled:
            layers.append(nn.MaxPool2d(2, ceil_mode=True))
        channels = CHANNELS
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(OUTPUTS))


def plain_loop(side: int) -> Callable[[int, Tick], None]:
    """Return an eager loop with the same loss, on float32 images that are in memory."""
    images, labels = images_of(side)
    x = torch.from_numpy(images[:BATCH].astype(np.float32) / 255)[:, None]
    y = torch.from_numpy(labels[:BATCH])
    network = plain_network(side)
    network(x)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9, weight_decay=5e-5)

    def steps(count: int, tick: Tick) -> None:
        for _ in range(count):
            embedding: Tensor = F.normalize(network(x))
            loss = weighted_triplet_loss(embedding, y, negatives="nearest")
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            tick(0.0)

    return steps


def jule_loop(side: int) -> Callable[[int, Tick], None]:
    """Return jule's own training, from uint8 images, with sampling, scaling and warping."""
    images, labels = images_of(side)
    embedder = build_embedder(images, normalize=True)

    def steps(count: int, tick: Tick) -> None:
        train(embedder, images, labels, n_steps=count, settings=SETTINGS, progress=tick)

    return steps


def flops_per_image(side: int) -> float:
    """Count the multiplications and additions of a step: forward, and twice that backward."""
    total, channels = 0.0, 1
    for number, pooled in enumerate(layer_plan(side, side)):
        side -= KERNEL - 1
        products = 2.0 * side * side * CHANNELS * channels * KERNEL**2
        total += products * (2 if number == 0 else 3)  # the pixels need no gradient
        side = -(-side // 2) if pooled else side
        channels = CHANNELS
    return total + 3 * 2.0 * side * side * CHANNELS * OUTPUTS


def product_rate(clock: Clock = time.perf_counter) -> float:
    """Return the GFLOP/s of a large float32 matrix product."""
    a = torch.rand(2048, 2048)
    torch.matmul(a, a)
    return 2e-9 * 2048**3 / min(repeated_seconds(lambda: torch.matmul(a, a), 5, clock))


def repeated_seconds(work: Callable[[], object], count: int, clock: Clock) -> list[float]:
    """Return the seconds that each of several calls takes."""
    times = [clock()]
    for _ in range(count):
        work()
        times.append(clock())
    return [float(taken) for taken in np.diff(times)]


def median_step(
    loop: Callable[[int, Tick], None], steps: int, clock: Clock = time.perf_counter
) -> float:
    """Return the seconds of the median step."""
    times: list[float] = []
    loop(WARM + steps, lambda _: times.append(clock()))
    return float(np.median(np.diff(times[WARM - 1 :])))


def measure_loop(which: str, side: int, steps: int) -> dict[str, float]:
    """Return the images per second of the median step."""
    loop = plain_loop(side) if which == "plain" else jule_loop(side)
    rate = BATCH / median_step(loop, steps)
    return {"images/s": rate, "GFLOP/s of products": product_rate()}


def profile(side: int, steps: int) -> dict[str, Any]:
    """Return where the time of a step goes, with one thread."""
    found: dict[str, Any] = in_fresh_process(
        "benchmarks.step_profile",
        str(side),
        str(steps),
        OMP_NUM_THREADS="1",
        NUMBA_NUM_THREADS="1",
    )
    return found


def main() -> None:
    found: dict[str, dict[str, float]] = {}
    for name, (side, steps) in SIZES.items():
        turns = [
            {
                which: in_fresh_process("benchmarks.training", which, str(side), str(steps))
                for which in ("plain", "jule")
            }
            for _ in range(TURNS)
        ]
        best = {
            which: max(turn[which]["images/s"] for turn in turns) for which in ("plain", "jule")
        }
        rate = max(turn[which]["GFLOP/s of products"] for turn in turns for which in turn)
        done = best["jule"] * flops_per_image(side) / 1e9
        found[name] = {
            "plain images/s": best["plain"],
            "jule images/s": best["jule"],
            "jule / plain": best["jule"] / best["plain"],
            "GFLOP/s of matrix products": rate,
            "jule's share of that": done / rate,
        }
    write(
        "training",
        "python -m benchmarks.training",
        {"batch": BATCH, "turns": TURNS, "threads": torch.get_num_threads()},
        {
            "steps": found,
            "profiles": {name: profile(side, steps) for name, (side, steps) in SIZES.items()},
        },
    )


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        print(json.dumps(measure_loop(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
