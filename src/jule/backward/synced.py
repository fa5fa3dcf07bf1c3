"""Train on several processes as on one: what a batch that is dealt to them has in common.

Each process computes the maps of its part of a batch. Batch norm uses the statistics of the whole
batch, the unit vectors of all parts are gathered, and every process computes the loss of the whole
batch from them. The gradients of the parts add up to that of the whole batch, so that weights,
losses and quality are those of a single process, up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn.modules.batchnorm import _BatchNorm

from jule.ranks import ALONE, Ranks


def part_of_batch(clusters: NDArray[np.integer], rank: int, size: int) -> slice:
    """Return which samples of a batch a process computes; neighbours of one cluster stay together.

    Parameters
    ----------
    clusters
        (b,) the cluster of each sample of the batch.
    rank, size
        The number of the process, and how many there are.

    Examples
    --------
    >>> clusters = np.array([4, 4, 4, 4, 2, 2, 2, 2, 7, 7])
    >>> part_of_batch(clusters, 0, 2), part_of_batch(clusters, 1, 2)
    (slice(0, 4, None), slice(4, 10, None))
    """
    n = len(clusters)
    if size == 1:
        return slice(0, n)
    cuts = np.concatenate([[0], 1 + np.flatnonzero(np.diff(clusters)), [n]])
    even = np.array([rank, rank + 1]) * n / size
    start, stop = (int(cuts[np.abs(cuts - goal).argmin()]) for goal in even)
    return slice(start, stop)


def gather_vectors(vectors: Tensor, part: slice, n: int, ranks: Ranks) -> Tensor:
    """Return the vectors (n, d) of a whole batch, of which this process has computed a part.

    The gradient of the part is that of its rows: the loss of all rows is the same everywhere.
    """
    if ranks.size == 1:
        return vectors
    gathered: Tensor = _Gathered.apply(vectors, part, n, ranks)  # type: ignore[no-untyped-call]
    return gathered


class _Gathered(Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, part: slice, n: int, ranks: Ranks) -> Tensor:
        ctx.part = part
        whole = vectors.new_zeros(n, vectors.shape[1])
        whole[part] = vectors
        return ranks.sum_(whole)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        return gradients[0][ctx.part], None, None, None


def sum_gradients(network: nn.Module, ranks: Ranks) -> None:
    """Add up the gradients of all processes."""
    if ranks.size == 1:
        return
    found = [weight for weight in network.parameters() if weight.requires_grad]
    for weight in found:
        if weight.grad is None:  # all processes must send the same weights
            weight.grad = torch.zeros_like(weight)
    gradients = [weight.grad for weight in found if weight.grad is not None]
    total = ranks.sum_(torch.cat([gradient.flatten() for gradient in gradients]))
    start = 0
    for gradient in gradients:
        gradient.copy_(total[start : start + gradient.numel()].view_as(gradient))
        start += gradient.numel()


_ranks: ContextVar[Ranks] = ContextVar("_ranks", default=ALONE)


def batch_ranks() -> Ranks:
    """Return the processes that compute the present batch together.

    Examples
    --------
    >>> batch_ranks().size
    1
    """
    return _ranks.get()


@contextmanager
def synced_batch_norm(network: nn.Module, ranks: Ranks) -> Iterator[None]:
    """Within this context, the batch norm of a network uses the batches of all processes."""
    if ranks.size == 1:
        yield
        return
    layers = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    token = _ranks.set(ranks)
    for layer in layers:
        layer.forward = partial(_normalize, layer, ranks)  # type: ignore[method-assign]
    try:
        yield
    finally:
        _ranks.reset(token)
        for layer in layers:
            del layer.forward  # the method of its class is visible again


def combined_moments(moments: Tensor, count: int, ranks: Ranks) -> tuple[Tensor, int]:
    """Return the moments of all processes, and of how many values they are.

    Parameters
    ----------
    moments
        (2, c) float64: mean and variance of every channel in this process.
    count
        The number of values in each of its channels.
    ranks
        The processes.

    Examples
    --------
    >>> combined_moments(torch.tensor([[1.0], [4.0]]), 3, ALONE)
    (tensor([[1.],
            [4.]]), 3)
    """
    if ranks.size == 1:
        return moments, count
    channels = moments.shape[1]
    own = moments.new_zeros(ranks.size, 2 * channels + 1)
    own[ranks.rank] = torch.cat([moments.flatten(), moments.new_tensor([count])])
    found = ranks.sum_(own)
    means, variances, counts = found[:, :channels], found[:, channels:-1], found[:, -1:]
    total = counts.sum()
    # Moments, not sums of squares, are combined: nothing cancels.
    mean = (counts * means).sum(0) / total
    variance = (counts * (variances + (means - mean) ** 2)).sum(0) / total
    return torch.stack([mean, variance]), int(total)


def _normalize(layer: _BatchNorm, ranks: Ranks, x: Tensor) -> Tensor:
    """Compute batch norm as `torch.nn.BatchNorm2d` does, from the batches of all processes."""
    if not layer.training:
        return type(layer).forward(layer, x)
    own = x.new_zeros(2, x.shape[1], dtype=torch.float64)
    if len(x):
        axes = [axis for axis in range(x.ndim) if axis != 1]
        own[1], own[0] = torch.var_mean(x.detach(), axes, correction=0)
    moments, count = combined_moments(own, x.numel() // x.shape[1], ranks)
    mean, variance = moments.to(x.dtype)
    if layer.track_running_stats and layer.running_mean is not None:
        assert layer.running_var is not None
        assert layer.num_batches_tracked is not None
        layer.num_batches_tracked.add_(1)
        rate = layer.momentum
        if rate is None:  # a plain mean over all batches
            rate = 1.0 / float(layer.num_batches_tracked)
        layer.running_mean.lerp_(mean, rate)
        layer.running_var.lerp_(variance * (count / max(1, count - 1)), rate)
    normalized: Tensor = _BatchNormOfAll.apply(  # type: ignore[no-untyped-call]
        x, layer.weight, layer.bias, mean, variance, layer.eps, count, ranks
    )
    return normalized


class _BatchNormOfAll(Function):
    """Normalise with given moments; the gradient knows that they depend on all batches."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor,
        variance: Tensor,
        eps: float,
        count: int,
        ranks: Ranks,
    ) -> Tensor:
        ctx.save_for_backward(x, weight, mean, variance)
        ctx.eps, ctx.count, ctx.ranks = eps, count, ranks
        if not len(x):
            return torch.empty_like(x)
        return torch.batch_norm(x, weight, bias, mean, variance, False, 0.0, eps, False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, variance = ctx.saved_tensors
        channels = x.shape[1]
        own = x.new_zeros(2, channels, dtype=torch.float64)
        gradient = torch.empty_like(x)
        if len(x):
            # With fixed moments; also the sums of the gradients, plain and times the output.
            gradient, *own_sums = torch.ops.aten.native_batch_norm_backward(
                gradients[0], x, weight, mean, variance, None, None, False, ctx.eps,
                [True, True, True],
            )  # fmt: skip
            own = torch.stack(own_sums).double()
        total_scaled, total = (ctx.ranks.sum_(own.clone()) / ctx.count).to(x.dtype)
        own = own.to(x.dtype)
        if len(x):
            inverse = (variance + ctx.eps).rsqrt()
            scale = inverse if weight is None else inverse * weight
            slope = scale * inverse * total_scaled
            shape = (1, channels, *[1] * (x.ndim - 2))
            gradient.addcmul_(x, slope.view(shape), value=-1.0)
            gradient -= (scale * total - slope * mean).view(shape)
        has_weights = weight is not None
        return (
            gradient,
            own[0] if has_weights else None,
            own[1] if has_weights else None,
            *[None] * 5,
        )
