"""Embed raw samples as unit vectors: a network with its input scaling and output norm.

Shapes in comments: n samples, c channels, h x w pixels.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from jule.backward.networks import Ensemble, Network, build_network
from jule.backward.plan import input_size

# The network computes in float32. Squares of larger values overflow, those of smaller ones vanish.
LEAST_VALUE, LARGEST_VALUE = 2.0**-60, 2.0**60


class Embedder(nn.Module):
    """A network with scaling of its input and L2 normalisation of its output.

    Parameters
    ----------
    body
        Maps scaled images (n, c, h, w) or vectors (n, d) to vectors.
    mean, std
        Mean and standard deviation of every channel (or feature) over the whole data set.
    size
        (height, width) to which images are resized; None keeps their size.
    normalize
        Whether to divide every image by the root mean square of its pixels first, so that bright
        and dark images of the same object look alike.

    Examples
    --------
    >>> embedder = Embedder(nn.Flatten(), torch.zeros(1), torch.ones(1))
    >>> embedder(torch.ones(1, 1, 2, 2)).tolist()
    [[0.5, 0.5, 0.5, 0.5]]
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        body: nn.Module,
        mean: Tensor,
        std: Tensor,
        size: tuple[int, int] | None = None,
        *,
        normalize: bool = False,
    ) -> None:
        super().__init__()
        self.body = body
        self.size = size
        self.normalize = normalize
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    @property
    def members(self) -> list[nn.Module]:
        """The networks side by side; usually one."""
        return list(self.body.members) if isinstance(self.body, Ensemble) else [self.body]

    def member(self, number: int) -> Embedder:
        """Return one of the networks side by side as an embedder that shares its weights.

        Examples
        --------
        >>> embedder = build_embedder(np.zeros((4, 28, 28), np.uint8), members=3)
        >>> embedder.member(2)(torch.zeros(2, 1, 28, 28)).shape
        torch.Size([2, 160])
        """
        body = self.members[number]
        return Embedder(body, self.mean, self.std, self.size, normalize=self.normalize)

    def scaled(self, x: Tensor) -> Tensor:
        """Resize and standardise raw images, or standardise vectors, for the network."""
        if x.ndim == 2:
            return (x - self.mean) / self.std
        if self.normalize:
            x = x / _root_mean_square(x)
        if self.size is not None and self.size != tuple(x.shape[2:]):
            x = resize(x, self.size)
        return (x - self.mean[:, None, None]) / self.std[:, None, None]

    def forward(self, x: Tensor) -> Tensor:
        """Map raw images (n, c, h, w) or vectors (n, d) to unit vectors."""
        return self.of_scaled(self.scaled(x))

    def of_scaled(self, x: Tensor) -> Tensor:
        """Map samples that `scaled` returned to unit vectors."""
        return F.normalize(self.body(x).flatten(1))

    def tap(self, x: Tensor, name: str) -> Tensor:
        """Return the output of a layer, counted from the top: ``"top"``, ``"top-1"``, ...

        Examples
        --------
        >>> net = build_embedder(np.zeros((4, 28, 28), np.uint8)).eval()
        >>> net.tap(torch.zeros(1, 1, 28, 28), "top-1").shape
        torch.Size([1, 3200])
        """
        if name == "top":
            return self(x)  # type: ignore[no-any-return]
        scaled, found = self.scaled(x), []
        for member in self.members:
            if not isinstance(member, Network):
                raise ValueError(
                    f"layer {name!r} exists only in the networks of jule; use 'top' with your own"
                )
            found.append(member.layers(scaled))
        outputs = [torch.cat(layer, dim=1) for layer in zip(*found, strict=True)]
        names = tap_names(len(outputs))
        if name not in names:
            raise ValueError(f"unknown layer {name!r}: choose one of {', '.join(names)}")
        return outputs[-1 - names.index(name)]


def resize(x: Tensor, size: tuple[int, int]) -> Tensor:
    """Resize images (n, c, h, w): by averaging to a smaller size, bilinearly to a larger one.

    Examples
    --------
    >>> resize(torch.tensor([[[[0.0, 1.0]]]]), (1, 4)).flatten().tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    if size[0] * size[1] < x.shape[2] * x.shape[3]:
        return F.interpolate(x, size, mode="area")
    return F.interpolate(x, size, mode="bilinear", align_corners=False)


def _root_mean_square(x: Tensor) -> Tensor:
    """Return the root mean square of every image's pixels, or 1 for a black image."""
    rms = x.square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
    return torch.where(rms > 0, rms, 1.0)


def tap_names(n_layers: int) -> list[str]:
    """Return the names of the layers, from the top down.

    Examples
    --------
    >>> tap_names(3)
    ['top', 'top-1', 'top-2']
    """
    return ["top", *(f"top-{depth}" for depth in range(1, n_layers))]


def as_images(samples: NDArray) -> Tensor:
    """Convert samples to float32: images (n, h, w[, c]) to (n, c, h, w), vectors as (n, d).

    Examples
    --------
    >>> as_images(np.zeros((2, 5, 4, 3), np.uint8)).shape
    torch.Size([2, 3, 5, 4])
    """
    with np.errstate(over="ignore"):
        values = np.array(samples, np.float32, order="C")
    if samples.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(
            "the samples have values that are not finite in float32, in which the network "
            "computes: remove NaN, and scale them like the samples that it was fitted on"
        )
    x = torch.from_numpy(values)
    if x.ndim == 3:
        return x[:, None]
    # The channels stay last in memory, the order in which convolutions run fastest.
    return x.permute(0, 3, 1, 2) if x.ndim == 4 else x


def build_embedder(
    samples: NDArray,
    *,
    network: str = "auto",
    body: nn.Module | None = None,
    min_side: int | None = None,
    max_side: int | None = None,
    normalize: bool = False,
    center: bool = False,
    lift: bool = False,
    seed: int = 0,
    members: int = 1,
) -> Embedder:
    """Build an untrained embedder for the given samples.

    Parameters
    ----------
    samples
        Images (n, h, w[, c]) or vectors (n, d). Only their shape, mean and standard deviation are
        used.
    network
        Name of the network, a key of `NETWORKS`; ``"auto"`` is ``"cnn"`` for images and ``"mlp"``
        for vectors.
    body
        Your own module, used instead of `network`.
    min_side, max_side
        Smaller images are enlarged until their longer side has length `min_side`, unless `body` is
        given; larger images are averaged down until it has length `max_side`.
    normalize
        Divide every image by the root mean square of its pixels first. Vectors are not changed.
    center, lift
        For a network that does not standardise vectors: subtract their mean, and keep their
        lengths although outputs are divided by their norms (see `Residual`).
    seed
        Random seed of the initial weights.
    members
        Number of networks side by side. The initial weights of the second one have the seed
        ``seed + 1``, and so on; copies of `body` start with the same weights.

    Examples
    --------
    >>> build_embedder(np.zeros((4, 128, 96), np.uint8), max_side=64).size
    (64, 48)
    """
    _check_range(samples)
    normalize = normalize and samples.ndim > 2
    mean, std = channel_moments(samples, normalize=normalize)
    size = None
    if samples.ndim > 2:
        smallest = min_side if body is None else None  # your own module may take any size
        size = input_size(samples.shape[1], samples.shape[2], smallest, max_side)
    bodies: list[nn.Module] = []
    if body is not None:
        bodies = [body, *(copy.deepcopy(body) for _ in range(members - 1))]
    else:
        options = {"lift": 1} if lift and network == "residual" else {}
        for number in range(members):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed + number)
                bodies.append(build_network(network, (*(size or ()), len(mean)), **options))
    if isinstance(bodies[0], Network) and not bodies[0].standardizes:
        mean = mean if center else np.zeros_like(mean)
        std = np.full_like(std, _scale(samples, mean))
    scaling = torch.from_numpy(mean), torch.from_numpy(std)
    return Embedder(side_by_side(bodies), *scaling, size, normalize=normalize)


def side_by_side(bodies: Sequence[nn.Module]) -> nn.Module:
    """Return an `Ensemble` of several networks, or a single one as it is.

    Examples
    --------
    >>> type(side_by_side([nn.Flatten()])).__name__, type(side_by_side([nn.Flatten()] * 2)).__name__
    ('Flatten', 'Ensemble')
    """
    return bodies[0] if len(bodies) == 1 else Ensemble(bodies)


def _scale(vectors: NDArray, mean: NDArray[np.float32]) -> float:
    """Return the root mean square of all differences from the mean, or 1 if all are zero."""
    rows = max(1, 2**20 // vectors.shape[1])
    parts = (vectors[start : start + rows] for start in range(0, len(vectors), rows))
    squares = sum(float(np.square(part - mean.astype(np.float64)).sum()) for part in parts)
    return math.sqrt(squares / vectors.size) or 1.0


def _check_range(samples: NDArray) -> None:
    if samples.dtype.kind != "f" or not samples.size:
        return
    largest = max(abs(float(samples.min())), abs(float(samples.max())))
    if 0 < largest < LEAST_VALUE or largest > LARGEST_VALUE:
        raise ValueError(
            f"the largest value of the samples is {largest:.1e}, but the network computes in "
            "float32: scale the samples so that it is near 1"
        )


def channel_moments(
    samples: NDArray, *, normalize: bool = False
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the mean and standard deviation of every channel or feature.

    The standard deviation of a constant channel is given as 1. With `normalize`, every image is
    first divided by the root mean square of its pixels.

    Examples
    --------
    >>> mean, std = channel_moments(np.array([[0.0, 7.0], [2.0, 7.0]]))
    >>> mean.tolist(), std.tolist()
    ([1.0, 7.0], [1.0, 1.0])
    """
    if samples.ndim == 3:
        samples = samples[..., None]
    channels = samples.shape[-1]
    # Sums of differences from one pixel are exactly 0 for a constant channel.
    pixel = _pixel_rows(samples[:1], normalize)[0]
    total, squares, count = np.zeros(channels), np.zeros(channels), 0
    rows = max(1, 2**20 // samples[0].size)  # blocks of 8 MiB as float64
    for start in range(0, len(samples), rows):
        block = _pixel_rows(samples[start : start + rows], normalize)
        block -= pixel
        total += block.sum(axis=0)
        squares += np.einsum("ij,ij->j", block, block)
        count += len(block)
    mean = total / count
    std = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
    deviation = std.astype(np.float32)
    deviation[deviation == 0] = 1.0
    return (mean + pixel).astype(np.float32), deviation


def _pixel_rows(samples: NDArray, normalize: bool) -> NDArray[np.float64]:
    values = samples.reshape(len(samples), -1).astype(np.float64)
    if normalize:
        rms = np.sqrt(np.square(values).mean(axis=1, keepdims=True))
        values /= np.where(rms > 0, rms, 1.0)
    return values.reshape(-1, samples.shape[-1])


def best_device(name: str = "auto") -> torch.device:
    """Return the device with this name; ``"auto"`` is a GPU if there is one.

    Examples
    --------
    >>> best_device("cpu").type
    'cpu'
    """
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        return torch.device(next(kind for kind, there in available.items() if there))
    kind, _, number = str(name).partition(":")  # cuda:1 is the second GPU
    there = available.get(kind, False) and (name == kind or number.isdecimal())
    if there and kind == "cuda" and number:
        there = int(number) < torch.cuda.device_count()
    if not there:
        found = ", ".join(kind for kind, there in available.items() if there)
        raise ValueError(f"device {name!r} is not available here: choose one of auto, {found}")
    return torch.device(kind, int(number)) if number else torch.device(kind)


def get_weights(embedder: Embedder) -> dict[str, NDArray]:
    """Return a copy of all weights and buffers, as arrays by name.

    Examples
    --------
    >>> sorted(get_weights(Embedder(nn.Flatten(), torch.zeros(1), torch.ones(1))))
    ['mean', 'std']
    """
    return {
        name: np.array(x.detach().cpu().numpy(), order="C")
        for name, x in embedder.state_dict().items()
    }


def set_weights(embedder: Embedder, weights: Mapping[str, NDArray]) -> None:
    """Load weights that `get_weights` returned for an embedder of the same architecture.

    Examples
    --------
    >>> embedder = Embedder(nn.Flatten(), torch.zeros(1), torch.ones(1))
    >>> set_weights(embedder, get_weights(embedder))

    Raises
    ------
    ValueError
        If names, shapes or kinds of the weights are those of another network, or if weights are not
        finite.
    """
    wanted = {
        name: (tuple(x.shape), x.dtype.is_floating_point)
        for name, x in embedder.state_dict().items()
    }
    given = {name: (x.shape, x.dtype.kind == "f") for name, x in weights.items()}
    wrong = sorted({name[:60] for name, _ in wanted.items() ^ given.items()})
    if wrong:
        raise ValueError(
            f"these weights belong to a different network; differences: {', '.join(wrong[:5])}"
        )
    for name, x in weights.items():
        if x.dtype.kind not in "fiub" or not np.isfinite(x).all():
            raise ValueError(f"the weights {name} are not finite numbers")
    if not (weights["std"] > 0).all():
        raise ValueError("the weights std are not all positive")
    embedder.load_state_dict({name: torch.from_numpy(x) for name, x in weights.items()})
