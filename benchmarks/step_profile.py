"""Where the time of a training step goes: every operation by itself, against matrix products.

`benchmarks.training` runs this in processes of its own, with one thread.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.training import (
    BATCH,
    SETTINGS,
    images_of,
    jule_loop,
    median_step,
    product_rate,
    repeated_seconds,
)
from jule.backward import build_embedder, weighted_triplet_loss
from jule.backward.augment import small_warps
from jule.backward.batches import cluster_batches
from jule.backward.embedder import Embedder, as_images
from jule.backward.fused import normalize_and_activate
from jule.backward.memory import keep_freed_memory
from jule.backward.networks import ConvNet

REPEATS = 5  # of every operation, after one that touches its memory for the first time
CLOCK = time.process_time  # other programs disturb it less; it is the time of a single thread
LARGEST_PRODUCT = 2**24  # numbers of a plain product: the matrix of a whole batch may have 10**9


@dataclass(frozen=True)
class Operation:
    """One operation of a step."""

    name: str
    seconds: float
    gflop: float = 0.0  # 0 if it has no matrix products
    plain_rate: float = 0.0  # GFLOP/s of a plain matrix product of the same shape


def median_seconds(work: Callable[[], object]) -> float:
    work()
    return float(np.median(repeated_seconds(work, REPEATS, CLOCK)))


def plain_rate(rows: int, inner: int, columns: int) -> float:
    """Return the GFLOP/s of a product (rows, inner) @ (inner, columns)."""
    a, b = torch.rand(rows, inner), torch.rand(inner, columns)
    return 2e-9 * rows * inner * columns / median_seconds(lambda: a @ b)


def backward(output: Tensor, inputs: list[Tensor]) -> Callable[[], object]:
    """Return a call that computes the gradients by some inputs, again and again."""
    gradient = torch.randn_like(output)
    return lambda: torch.autograd.grad(output, inputs, gradient, retain_graph=True)


def of_convolution(number: int, convolution: nn.Conv2d, x: Tensor) -> Iterator[Operation]:
    """Time a convolution and its gradients; the pixels of the first one need none."""
    maps = convolution(x)
    pixels, taps = maps.numel() // maps.shape[1], convolution.weight[0].numel()
    rows, filters = min(pixels, LARGEST_PRODUCT // taps), convolution.out_channels
    gflop = 2e-9 * pixels * taps * filters
    name = f"convolution {number}"
    yield Operation(
        f"{name}, forward",
        median_seconds(lambda: convolution(x)),
        gflop,
        plain_rate(rows, taps, filters),
    )
    yield Operation(
        f"{name}, gradient by filters",
        median_seconds(backward(maps, [convolution.weight])),
        gflop,
        plain_rate(taps, rows, filters),
    )
    if x.requires_grad:
        yield Operation(
            f"{name}, gradient by input",
            median_seconds(backward(maps, [x])),
            gflop,
            plain_rate(rows, filters, taps),
        )


def of_block(number: int, block: nn.Sequential, x: Tensor) -> Iterator[Operation]:
    """Time a convolution and what follows it."""
    convolution, norm, *others = block
    assert isinstance(convolution, nn.Conv2d)
    assert isinstance(norm, nn.BatchNorm2d)
    yield from of_convolution(number, convolution, x)
    maps = convolution(x).detach().requires_grad_()

    def forward() -> Tensor:
        return normalize_and_activate(maps, norm, pooled=len(others) > 1)

    taken = median_seconds(forward) + median_seconds(
        backward(forward(), [maps, norm.weight, norm.bias])
    )
    yield Operation(f"norm, ReLU, pooling {number}", taken)


def of_top(top: nn.Linear, x: Tensor) -> Operation:
    """Time the last layer, forward and backward."""

    def forward() -> Tensor:
        found: Tensor = top(x.flatten(1))
        return found

    taken = median_seconds(forward) + median_seconds(backward(forward(), [x, top.weight, top.bias]))
    products = 2e-9 * len(x) * top.weight.numel()
    plain = plain_rate(len(x), top.in_features, top.out_features)
    return Operation("last layer", taken, 3 * products, plain)


def of_network(network: ConvNet, images: Tensor) -> Iterator[Operation]:
    x = images.to(memory_format=torch.channels_last)
    for number, block in enumerate(network.blocks, start=1):
        assert isinstance(block, nn.Sequential)
        yield from of_block(number, block, x)
        with torch.no_grad():
            x = block(x)
        x.requires_grad_()
    yield of_top(network.top, x)


def of_the_rest(embedder: Embedder, side: int) -> Iterator[Operation]:
    """Time what surrounds the network: batch, loss and optimiser."""
    images, labels = images_of(side)
    size, per_cluster = SETTINGS.batch_size, SETTINGS.per_cluster
    batches = cluster_batches(labels, size, per_cluster, np.random.default_rng(0))
    x = embedder.scaled(as_images(images[:BATCH]))
    clusters = torch.from_numpy(labels[:BATCH])
    vectors = torch.randn(BATCH, 160, requires_grad=True)
    optimizer = torch.optim.SGD(embedder.parameters(), lr=1e-9, momentum=0.9, weight_decay=5e-5)
    for weight in embedder.parameters():
        weight.grad = torch.zeros_like(weight)

    def loss_and_gradient() -> object:
        loss = weighted_triplet_loss(F.normalize(vectors), clusters, negatives="nearest")
        return torch.autograd.grad(loss, vectors)

    parts: dict[str, Callable[[], object]] = {
        "sampling and scaling": lambda: embedder.scaled(as_images(images[next(batches)])),
        "warping": lambda: small_warps(x, SETTINGS.warp),
        "loss and its gradient": loss_and_gradient,
        "optimiser": optimizer.step,
    }
    for name, work in parts.items():
        yield Operation(name, median_seconds(work))


@keep_freed_memory()
def operations_of(side: int) -> list[Operation]:
    images, _ = images_of(side)
    embedder = build_embedder(images, normalize=True)
    assert isinstance(embedder.body, ConvNet)
    x = embedder.scaled(as_images(images[:BATCH]))
    return [*of_network(embedder.body, x), *of_the_rest(embedder, side)]


def profile(side: int, steps: int) -> dict[str, object]:
    """Return the seconds of a step and of its operations, and the rate of a large product."""
    before, operations = product_rate(CLOCK), operations_of(side)
    return {
        "seconds of a step": median_step(jule_loop(side), steps, CLOCK),
        "GFLOP/s of matrix products": max(before, product_rate(CLOCK)),
        "operations": [asdict(operation) for operation in operations],
    }


if __name__ == "__main__":
    print(json.dumps(profile(int(sys.argv[1]), int(sys.argv[2]))))
