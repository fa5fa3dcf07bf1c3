"""From raw samples to unit vectors: a network, and all that stands around it.

Shapes in comments: n samples, c channels, h x w pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from jule.backward.networks import MLP, ConvNet


class Embedder(nn.Module):
    """A network with all that stands around it: scaling of the pixels before, L2 norm after.

    Parameters
    ----------
    body
        Maps what `scaled` gives, images (n, c, h, w) or vectors (n, d), to vectors.
    mean, std
        Of every channel (or feature) over the whole set.
    size
        (height, width) that images are averaged down to; None leaves them as they are.
    level
        Whether every image is first divided by the root mean square of its own pixels, so that
        bright and dark pictures of one thing look alike.

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
        level: bool = False,
    ) -> None:
        super().__init__()
        self.body = body
        self.size = size
        self.level = level
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def scaled(self, x: Tensor) -> Tensor:
        """Bring raw pixels or features to the network's size, mean 0 and deviation 1."""
        if x.ndim == 2:
            return (x - self.mean) / self.std
        if self.level:
            x = x / _own_level(x)
        if self.size is not None and self.size != tuple(x.shape[2:]):
            x = F.interpolate(x, self.size, mode="area")
        return (x - self.mean[:, None, None]) / self.std[:, None, None]

    def forward(self, x: Tensor) -> Tensor:
        """Map raw images (n, c, h, w) or vectors (n, d) to unit vectors."""
        return self.of_scaled(self.scaled(x))

    def of_scaled(self, x: Tensor) -> Tensor:
        """Map what `scaled` gave to unit vectors."""
        return F.normalize(self.body(x).flatten(1))

    def tap(self, x: Tensor, name: str) -> Tensor:
        """Give the output of a layer near the top: ``"top"``, ``"top-1"``, ``"top-2"``, ...

        Examples
        --------
        >>> net = build_embedder(np.zeros((4, 28, 28), np.uint8)).eval()
        >>> net.tap(torch.zeros(1, 1, 28, 28), "top-1").shape
        torch.Size([1, 3200])
        """
        if name == "top":
            return self(x)  # type: ignore[no-any-return]
        if not isinstance(self.body, ConvNet | MLP):
            raise ValueError(f"only jule's own networks have a layer {name!r}; 'top' always works")
        outputs = self.body.layers(self.scaled(x))
        names = tap_names(len(outputs))
        if name not in names:
            raise ValueError(f"there is no layer {name!r}: choose one of {', '.join(names)}")
        return outputs[-1 - names.index(name)]


def _own_level(x: Tensor) -> Tensor:
    """Give the root mean square of every image's pixels; 1 for a black one."""
    level = x.square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
    return torch.where(level > 0, level, 1.0)


def tap_names(n_layers: int) -> list[str]:
    """Name layers from the top down.

    Examples
    --------
    >>> tap_names(3)
    ['top', 'top-1', 'top-2']
    """
    return ["top", *(f"top-{depth}" for depth in range(1, n_layers))]


def as_images(samples: NDArray) -> Tensor:
    """Give samples as float32: images (n, h, w[, c]) become (n, c, h, w), vectors stay (n, d).

    Examples
    --------
    >>> as_images(np.zeros((2, 5, 4, 3), np.uint8)).shape
    torch.Size([2, 3, 5, 4])
    """
    x = torch.from_numpy(np.array(samples, np.float32, order="C"))
    if x.ndim == 3:
        return x[:, None]
    # The channels already lie last in memory, which is the order that convolutions want.
    return x.permute(0, 3, 1, 2) if x.ndim == 4 else x


def build_embedder(
    samples: NDArray,
    *,
    body: nn.Module | None = None,
    max_side: int | None = None,
    level: bool = False,
    seed: int = 0,
) -> Embedder:
    """Build the network that suits the samples, with first weights drawn from a seed.

    Parameters
    ----------
    samples
        Images (n, h, w[, c]) or vectors (n, d): their shape, mean and deviation are taken.
    body
        Another network instead of the paper's.
    max_side
        Larger images are averaged down until their larger side is this.
    level
        Divide every image by its own level first; plain vectors are left as they are.
    seed
        Of the first weights.

    Examples
    --------
    >>> build_embedder(np.zeros((4, 128, 96), np.uint8), max_side=64).size
    (64, 48)
    """
    level = level and samples.ndim > 2
    mean, std = channel_moments(samples, level=level)
    size = None if samples.ndim == 2 else _size_within(samples.shape, max_side)
    if body is None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            body = MLP(len(mean)) if size is None else ConvNet(*size, channels=len(mean))
    return Embedder(body, torch.from_numpy(mean), torch.from_numpy(std), size, level=level)


def _size_within(shape: tuple[int, ...], max_side: int | None) -> tuple[int, int]:
    height, width = shape[1], shape[2]
    largest = max(height, width)
    if max_side is None or largest <= max_side:
        return height, width
    return max(1, round(height * max_side / largest)), max(1, round(width * max_side / largest))


def channel_moments(
    samples: NDArray, *, level: bool = False
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Give mean and standard deviation of every channel or feature; a constant one has 1.

    With `level`, every image is divided by the root mean square of its own pixels before.

    Examples
    --------
    >>> mean, std = channel_moments(np.array([[0.0, 7.0], [2.0, 7.0]]))
    >>> mean.tolist(), std.tolist()
    ([1.0, 7.0], [1.0, 1.0])
    """
    if samples.ndim == 3:
        samples = samples[..., None]
    channels = samples.shape[-1]
    # Sums of differences from any one pixel: a constant channel has exactly none.
    pixel = _rows_of_pixels(samples[:1], level)[0]
    total, squares, count = np.zeros(channels), np.zeros(channels), 0
    rows = max(1, 2**20 // samples[0].size)  # 8 MiB of float64 in a block
    for start in range(0, len(samples), rows):
        block = _rows_of_pixels(samples[start : start + rows], level)
        block -= pixel
        total += block.sum(axis=0)
        squares += np.einsum("ij,ij->j", block, block)
        count += len(block)
    mean = total / count
    std = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
    std[std == 0] = 1.0
    return (mean + pixel).astype(np.float32), std.astype(np.float32)


def _rows_of_pixels(samples: NDArray, level: bool) -> NDArray[np.float64]:
    values = samples.reshape(len(samples), -1).astype(np.float64)
    if level:
        own = np.sqrt(np.square(values).mean(axis=1, keepdims=True))
        values /= np.where(own > 0, own, 1.0)
    return values.reshape(-1, samples.shape[-1])


def describe(embedder: Embedder) -> dict[str, Any]:
    """Say in plain values how a network is built, so that `rebuild` can build it again.

    Examples
    --------
    >>> describe(build_embedder(np.zeros((4, 28, 28), np.uint8)))["body"]
    'ConvNet'
    """
    about = {"size": embedder.size, "channels": len(embedder.mean), "level": embedder.level}
    if isinstance(embedder.body, MLP):
        return about | {"body": "MLP", "widths": embedder.body.widths}
    if isinstance(embedder.body, ConvNet):
        return about | {"body": "ConvNet", "widths": [embedder.body.top.out_features]}
    return about | {"body": f"{type(embedder.body).__name__}, not of jule"}


def rebuild(about: Mapping[str, Any], body: nn.Module | None = None) -> Embedder:
    """Build the network that `describe` described, with numbers still to be restored.

    Examples
    --------
    >>> about = describe(build_embedder(np.zeros((4, 28, 28), np.uint8)))
    >>> rebuild(about).size
    (28, 28)
    """
    size = None if about["size"] is None else (int(about["size"][0]), int(about["size"][1]))
    channels = int(about["channels"])
    if body is None and "widths" not in about:
        raise ValueError(
            f"this network is one of yours ({about['body']}): give an instance of it to load it"
        )
    if body is None:
        with torch.random.fork_rng(devices=[]):
            if size is None:
                body = MLP(channels, *about["widths"])
            else:
                body = ConvNet(*size, channels, *about["widths"])
    empty = torch.zeros(channels), torch.ones(channels)
    return Embedder(body, *empty, size, level=bool(about["level"]))


def best_device(name: str = "auto") -> torch.device:
    """Give the device of a name; ``"auto"`` is a GPU where there is one.

    Examples
    --------
    >>> best_device("cpu").type
    'cpu'
    """
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def state_of(embedder: Embedder) -> dict[str, NDArray]:
    """Give all numbers of a network as arrays, each with memory of its own.

    Examples
    --------
    >>> sorted(state_of(Embedder(nn.Flatten(), torch.zeros(1), torch.ones(1))))
    ['mean', 'std']
    """
    return {
        name: np.array(x.detach().cpu().numpy(), order="C")
        for name, x in embedder.state_dict().items()
    }


def restore(embedder: Embedder, state: Mapping[str, NDArray]) -> None:
    """Put the numbers that `state_of` gave into a network of the same build.

    Examples
    --------
    >>> embedder = Embedder(nn.Flatten(), torch.zeros(1), torch.ones(1))
    >>> restore(embedder, state_of(embedder))
    """
    shapes = {name: tuple(x.shape) for name, x in embedder.state_dict().items()}
    given = {name: x.shape for name, x in state.items()}
    wrong = sorted(name for name, _ in shapes.items() ^ given.items())
    if wrong:
        raise ValueError(
            f"these weights belong to another network: it differs in {', '.join(wrong[:5])}"
        )
    embedder.load_state_dict({name: torch.from_numpy(x) for name, x in state.items()})
