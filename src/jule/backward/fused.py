"""Batch norm, ReLU and pooling of convolutional maps, in two passes over the maps.

The modules of torch read and write the large maps several times: batch norm, ReLU and pooling one
after the other, and back again. Here the first pass computes the statistics, and the second one
normalises, activates and pools; the way back also has two passes, the first over the pooled maps
alone. A map is scaled by one number per channel, so the largest of four scaled values is found
before the offset and ReLU are applied.

In the kernels, maps are (n, h, w, c), contiguous, as convolutions on a CPU leave them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jule.backward.synced import batch_ranks, combined_moments
from jule.jit import IS_COMPILED, get_num_threads, njit

Maps = NDArray[np.float32]
Channels = NDArray[np.float32]  # one value per channel

FASTMATH = {"nsz", "contract", "reassoc"}
NOWHERE = 4  # the place of the largest of four values if ReLU sets it to 0


def can_fuse(maps: Tensor, norm: nn.BatchNorm2d) -> bool:
    """Return whether `normalize_and_activate` can be used instead of the modules of torch.

    Examples
    --------
    >>> maps = torch.zeros(2, 50, 8, 8).contiguous(memory_format=torch.channels_last)
    >>> can_fuse(maps, nn.BatchNorm2d(50)), can_fuse(maps.double(), nn.BatchNorm2d(50))
    (True, False)
    """
    return (
        IS_COMPILED
        and type(maps) is Tensor  # neither exported nor compiled by torch
        and not torch.jit.is_tracing()  # type: ignore[attr-defined]
        and maps.device.type == "cpu"
        and maps.dtype == torch.float32
        and len(maps) > 0  # one of several processes may have no images
        and maps.is_contiguous(memory_format=torch.channels_last)
        and norm.momentum is not None
        and (norm.training or not torch.is_grad_enabled())
    )


def normalize_and_activate(maps: Tensor, norm: nn.BatchNorm2d, *, pooled: bool) -> Tensor:
    """Apply batch norm, ReLU and, if wanted, max pooling of 2 x 2 cells to maps.

    In training mode, the running statistics are updated as `torch.nn.BatchNorm2d` does it.

    Parameters
    ----------
    maps
        (n, c, h, w), for which `can_fuse` holds.
    norm
        The batch norm.
    pooled
        Whether to pool; an odd row or column at the border is pooled by itself.

    Examples
    --------
    >>> maps = torch.randn(2, 50, 7, 8).contiguous(memory_format=torch.channels_last)
    >>> normalize_and_activate(maps, nn.BatchNorm2d(50), pooled=True).shape
    torch.Size([2, 50, 4, 4])
    """
    if norm.training:
        fused: Tensor = _Fused.apply(maps, norm.weight, norm.bias, norm, pooled)
        return fused
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    offset = norm.bias - norm.running_mean * scale
    return _activated(maps, scale.detach().numpy(), offset.detach().numpy(), pooled)[0]


class _Fused(torch.autograd.Function):
    """Batch norm with the statistics of the batch, ReLU and pooling."""

    @staticmethod
    def forward(
        ctx: Any, maps: Tensor, weight: Tensor, bias: Tensor, norm: nn.BatchNorm2d, pooled: bool
    ) -> Tensor:
        ranks = batch_ranks()
        own = torch.from_numpy(np.stack(_moments(maps)))
        moments, count = combined_moments(own, maps.numel() // maps.shape[1], ranks)
        mean, variance = moments.numpy()
        _update_running(norm, mean, variance * (count / max(1, count - 1)))
        inverse = 1.0 / np.sqrt(variance + norm.eps)
        exact = weight.detach().numpy() * inverse
        offset = (bias.detach().numpy() - mean * exact).astype(np.float32)
        scale = exact.astype(np.float32)
        outputs, largest, places = _activated(maps, scale, offset, pooled)
        ctx.save_for_backward(maps, outputs)
        ctx.of_batch = count, mean, inverse, scale, largest, places
        ctx.ranks = ranks
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        maps, outputs = ctx.saved_tensors
        count, mean, inverse, scale, largest, places = ctx.of_batch
        gradient = _rows(gradients[0].contiguous(memory_format=torch.channels_last))
        kept = _rows(maps) if largest is None else largest
        sums = np.zeros((len(maps), 2, maps.shape[1]))
        per_image = gradient, _rows(outputs), kept, sums
        _on_all_cores(_sum_gradients, per_image, mean.astype(np.float32))
        of_bias, of_weight = sums.sum(axis=0)
        of_weight = of_weight * inverse
        all_weight, all_bias = ctx.ranks.sum_(
            torch.from_numpy(np.stack([of_weight, of_bias]))
        ).numpy()
        # d maps = scale * (d - mean(d) - normalised * mean(d * normalised)), where d is the
        # gradient before ReLU and pooling; as an affine function of the maps:
        slope = scale * inverse * all_weight / count
        constant = scale * all_bias / count - slope * mean
        constant, slope = constant.astype(np.float32), slope.astype(np.float32)
        found = torch.empty_like(maps)
        kernel, chosen = (_spread, _rows(outputs)) if places is None else (_spread_pooled, places)
        per_image = gradient, chosen, _rows(maps), _rows(found)
        _on_all_cores(kernel, per_image, scale, constant, slope)
        return found, _channels(of_weight), _channels(of_bias), None, None


def _rows(maps: Tensor) -> Maps:
    """Return maps as an array (n, h, w, c) that shares their memory."""
    rows: Maps = maps.detach().permute(0, 2, 3, 1).numpy()
    return rows


def _channels(values: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(values.astype(np.float32))


def _moments(maps: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean and the variance of every channel."""
    rows = _rows(maps)
    # Squares of differences from a value near the mean do not lose their digits.
    near = rows[0].mean(axis=(0, 1))
    count = maps.numel() // maps.shape[1]
    found = np.zeros((len(maps), 2, maps.shape[1]))
    _on_all_cores(_sum_moments, (rows, found), near)
    sums, squares = found.sum(axis=0) / count
    return near + sums, np.maximum(squares - sums**2, 0.0)


@torch.no_grad()
def _update_running(
    norm: nn.BatchNorm2d, mean: NDArray[np.float64], variance: NDArray[np.float64]
) -> None:
    if norm.running_mean is None or norm.running_var is None:
        return
    assert norm.momentum is not None
    assert norm.num_batches_tracked is not None
    norm.num_batches_tracked += 1
    norm.running_mean.lerp_(_channels(mean), norm.momentum)
    norm.running_var.lerp_(_channels(variance), norm.momentum)


def _activated(
    maps: Tensor, scale: Channels, offset: Channels, pooled: bool
) -> tuple[Tensor, Maps | None, NDArray[np.uint8] | None]:
    """Return scaled and activated maps; if pooled, also which of four values was the largest.

    The second array has these values, before they were scaled.
    """
    n, c, h, w = maps.shape
    if not pooled:
        outputs = torch.empty_like(maps)
        _on_all_cores(_activate, (_rows(maps), _rows(outputs)), scale, offset)
        return outputs, None, None
    h, w = -(-h // 2), -(-w // 2)
    outputs = torch.empty((n, c, h, w), memory_format=torch.channels_last)
    largest, places = np.empty((n, h, w, c), np.float32), np.empty((n, h, w, c), np.uint8)
    per_image = _rows(maps), _rows(outputs), largest, places
    _on_all_cores(_activate_and_pool, per_image, scale, offset)
    return outputs, largest, places


def _on_all_cores(
    kernel: Callable[..., None], per_image: tuple[NDArray, ...], *shared: Channels
) -> None:
    """Call a kernel with parts of the arrays that have one row per image, one part per core.

    The kernels would take three times as long to compile if numba divided the work.
    """
    n = len(per_image[0])
    n_parts = min(n, get_num_threads())
    edges = [n * part // n_parts for part in range(n_parts + 1)]
    parts = [[array[a:b] for array in per_image] for a, b in pairwise(edges)]
    others = [_threads().submit(kernel, *part, *shared) for part in parts[1:]]
    kernel(*parts[0], *shared)
    for other in others:
        other.result()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, get_num_threads() - 1), "fused")


if hasattr(os, "register_at_fork"):  # not on Windows
    # A forked process has no such threads.
    os.register_at_fork(after_in_child=_threads.cache_clear)


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _sum_moments(maps, found, near):
    """Add up, per image, differences and their squares: found is (n, 2, c)."""
    n, h, w, c = maps.shape
    for i in range(n):
        total, squares = np.empty(c, np.float32), np.empty(c, np.float32)
        for y in range(h):
            total[:] = 0
            squares[:] = 0
            for x in range(w):
                for k in range(c):
                    value = maps[i, y, x, k] - near[k]
                    total[k] += value
                    squares[k] += value * value
            for k in range(c):  # row by row into float64: long sums of float32 lose digits
                found[i, 0, k] += total[k]
                found[i, 1, k] += squares[k]


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _activate(maps, outputs, scale, offset):
    n, h, w, c = maps.shape
    for i in range(n):
        for y in range(h):
            for x in range(w):
                for k in range(c):
                    outputs[i, y, x, k] = max(
                        scale[k] * maps[i, y, x, k] + offset[k], np.float32(0)
                    )


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _activate_and_pool(maps, outputs, largest, places, scale, offset):
    n, h, w, c = maps.shape
    for i in range(n):
        found = np.empty(c, np.int32)  # as wide as the values: then the loop runs in vectors
        for y in range(outputs.shape[1]):
            below = min(2 * y + 1, h - 1)
            for x in range(outputs.shape[2]):
                right = min(2 * x + 1, w - 1)
                for k in range(c):
                    a, b = maps[i, 2 * y, 2 * x, k], maps[i, 2 * y, right, k]
                    d, e = maps[i, below, 2 * x, k], maps[i, below, right, k]
                    # Of equal values, the first one counts, as in torch.
                    is_b, is_e = scale[k] * b > scale[k] * a, scale[k] * e > scale[k] * d
                    upper, lower = b if is_b else a, e if is_e else d
                    is_lower = scale[k] * lower > scale[k] * upper
                    best = lower if is_lower else upper
                    place = (np.int32(3) if is_e else np.int32(2)) if is_lower else np.int32(is_b)
                    value = scale[k] * best + offset[k]
                    largest[i, y, x, k] = best
                    outputs[i, y, x, k] = max(value, np.float32(0))
                    found[k] = place if value > 0 else np.int32(NOWHERE)
                for k in range(c):
                    places[i, y, x, k] = found[k]


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _sum_gradients(gradient, outputs, kept, found, mean):
    """Add up, per image, gradients and their products with the maps: found is (n, 2, c)."""
    n, h, w, c = gradient.shape
    for i in range(n):
        total, products = np.empty(c, np.float32), np.empty(c, np.float32)
        for y in range(h):
            total[:] = 0
            products[:] = 0
            for x in range(w):
                for k in range(c):
                    value = gradient[i, y, x, k] if outputs[i, y, x, k] > 0 else np.float32(0)
                    total[k] += value
                    products[k] += value * (kept[i, y, x, k] - mean[k])
            for k in range(c):
                found[i, 0, k] += total[k]
                found[i, 1, k] += products[k]


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _spread(gradient, outputs, maps, found, scale, constant, slope):
    n, h, w, c = maps.shape
    for i in range(n):
        for y in range(h):
            for x in range(w):
                for k in range(c):
                    value = gradient[i, y, x, k] if outputs[i, y, x, k] > 0 else np.float32(0)
                    found[i, y, x, k] = scale[k] * value - constant[k] - slope[k] * maps[i, y, x, k]


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _spread_pooled(gradient, places, maps, found, scale, constant, slope):
    n, h, w, c = maps.shape
    for i in range(n):
        for y in range(h):
            for x in range(w):
                place, top, left = np.uint8(2 * (y % 2) + x % 2), y // 2, x // 2
                for k in range(c):
                    is_here = places[i, top, left, k] == place
                    value = gradient[i, top, left, k] if is_here else np.float32(0)
                    found[i, y, x, k] = scale[k] * value - constant[k] - slope[k] * maps[i, y, x, k]
