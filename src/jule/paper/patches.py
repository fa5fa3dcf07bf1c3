"""Small patches of images, and the network that the paper learns on them.

Patches are normalised and whitened as Coates, Ng and Lee do ("An Analysis of Single-Layer Networks
in Unsupervised Feature Learning", 2011). A patch is a row of pixels in the order (y, x, channel).
Shapes in comments: n patches, h x w pixels, c channels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jule.backward import Embedder
from jule.backward.embedder import as_images
from jule.backward.networks import Network
from jule.backward.networks.base import init_weights
from jule.jit import njit

SIDE = 6  # of a patch, in pixels
CHANNELS = 50  # filters of each convolution
OUTPUTS = 160  # of the network, as in the other networks of the paper
CONTRAST = 10.0  # added to the variance of a patch: noise in flat patches is not blown up
SMOOTHING = 0.1  # added to the eigenvalues before whitening, for the same reason

Rows = NDArray[np.float32]
Describe = Callable[[Rows], list[Rows]]  # from normalised patches to their representations


def cut_patches(images: NDArray) -> Rows:
    """Return all patches of images (n, h, w[, c]), image by image and row by row.

    Examples
    --------
    >>> cut_patches(np.zeros((2, 8, 8), np.uint8)).shape
    (18, 36)
    """
    if images.ndim == 3:
        images = images[..., None]
    windows = np.lib.stride_tricks.sliding_window_view(images, (SIDE, SIDE), axis=(1, 2))
    windows = windows.transpose(0, 1, 2, 4, 5, 3)  # (n, y, x, SIDE, SIDE, c)
    return windows.astype(np.float32, order="C").reshape(-1, SIDE * SIDE * images.shape[-1])


def random_patches(images: NDArray, n_patches: int, seed: int) -> Rows:
    """Return patches of random images at random places.

    Examples
    --------
    >>> random_patches(np.zeros((2, 8, 8, 3), np.uint8), 5, seed=0).shape
    (5, 108)
    """
    rng = np.random.default_rng(seed)
    which = rng.integers(len(images), size=n_patches)
    top = rng.integers(images.shape[1] - SIDE + 1, size=n_patches)
    left = rng.integers(images.shape[2] - SIDE + 1, size=n_patches)
    steps = np.arange(SIDE)
    rows, columns = top[:, None, None] + steps[:, None], left[:, None, None] + steps
    chosen = images[which[:, None, None], rows, columns]  # (n, SIDE, SIDE[, c])
    patches: Rows = chosen.reshape(n_patches, -1).astype(np.float32)
    return patches


def normalize_contrast(patches: Rows) -> Rows:
    """Subtract the mean of every patch and divide it by its standard deviation.

    Examples
    --------
    >>> normalize_contrast(np.array([[5.0, 5.0], [0.0, 200.0]], np.float32)).round(1)
    array([[ 0. ,  0. ],
           [-0.7,  0.7]], dtype=float32)
    """
    centred: Rows = patches - patches.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", centred, centred) / (patches.shape[1] - 1)
    centred /= np.sqrt(variance + np.float32(CONTRAST))[:, None]
    return centred


@dataclass(frozen=True, eq=False)
class Whitening:
    """ZCA whitening: decorrelates pixels, and changes patches as little as that allows.

    Attributes
    ----------
    matrix, offset
        A patch x becomes x @ matrix + offset.
    """

    matrix: Rows
    offset: NDArray[np.float32]

    def __call__(self, patches: Rows) -> Rows:
        """Whiten patches whose contrast is normalised."""
        whitened: Rows = patches @ self.matrix
        whitened += self.offset
        return whitened


def fit_whitening(patches: Rows) -> Whitening:
    """Fit the whitening to patches whose contrast is normalised.

    Examples
    --------
    >>> patches = np.random.default_rng(0).normal(size=(900, 2)) @ np.array([[50, 49], [49, 50]])
    >>> fit_whitening(patches)(patches).std(axis=0).round(1).tolist()
    [1.0, 1.0]
    """
    mean = patches.mean(axis=0, dtype=np.float64)
    values, vectors = np.linalg.eigh(np.cov(patches, rowvar=False, dtype=np.float64))
    matrix = (vectors / np.sqrt(values + SMOOTHING)) @ vectors.T
    return Whitening(matrix.astype(np.float32), (-mean @ matrix).astype(np.float32))


class PatchNet(Network):
    """The paper's network for patches: two convolutional blocks, then 160 outputs.

    A block has 50 filters of 3 x 3 with padding 1, batch norm, ReLU and pooling. Pooling keeps the
    odd row and column at the border, as in Caffe, so that a patch has 3 x 3 and 2 x 2 cells.

    Examples
    --------
    >>> PatchNet(3)(torch.zeros(2, 3, 6, 6)).shape
    torch.Size([2, 160])
    """

    input_ndim = 3

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList()
        side = SIDE
        for inputs in (channels, CHANNELS):
            self.blocks.append(
                nn.Sequential(
                    nn.Conv2d(inputs, CHANNELS, 3, padding=1, bias=False),
                    nn.BatchNorm2d(CHANNELS),
                    nn.ReLU(inplace=True),
                    nn.MaxPool2d(2, ceil_mode=True),
                )
            )
            side = -(-side // 2)
        self.top = nn.Linear(CHANNELS * side * side, OUTPUTS)
        init_weights(self)

    def layers(self, x: Tensor) -> list[Tensor]:
        """Return the flattened output of both blocks, and the output of the top.

        Examples
        --------
        >>> [x.shape[1] for x in PatchNet(3).layers(torch.zeros(2, 3, 6, 6))]
        [450, 200, 160]
        """
        maps = []
        for block in self.blocks:
            x = block(x)  # (n, 50, h', w')
            maps.append(x.flatten(1))
        return [*maps, self.top(maps[-1])]

    def forward(self, x: Tensor) -> Tensor:
        """Map patches (n, c, 6, 6) to vectors (n, 160)."""
        return self.layers(x)[-1]


@torch.no_grad()
def set_batch_statistics(embedder: Embedder, patches: NDArray) -> None:
    """Set the statistics of the batch norms of an untrained network to those of patches.

    The patches are (n, 6, 6, c).

    Examples
    --------
    >>> from jule.backward import build_embedder
    >>> patches = np.random.default_rng(0).normal(size=(5, 6, 6, 3)).astype(np.float32)
    >>> embedder = build_embedder(patches, body=PatchNet(3))
    >>> set_batch_statistics(embedder, patches)
    >>> bool((embedder.body.blocks[0][1].running_var < 0.1).all())
    True
    """
    for module in embedder.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # the mean over all batches, and not a moving average
    embedder.train()
    for start in range(0, len(patches), 1000):
        embedder(as_images(patches[start : start + 1000]))
    embedder.eval()


class ConvolutionalLayers:
    """The two convolutional layers of a trained `PatchNet`, as matrix products.

    Batch norm, whitening and scaling are folded into the matrices. On patches this small, that is
    faster than convolutions by torch.

    Parameters
    ----------
    whitening
        The whitening of the patches.
    embedder
        The network with the scaling of its input.

    Examples
    --------
    >>> from jule.backward import build_embedder
    >>> patches = np.random.default_rng(0).normal(size=(5, 108)).astype(np.float32)
    >>> embedder = build_embedder(patches.reshape(5, 6, 6, 3), body=PatchNet(3))
    >>> [part.shape for part in ConvolutionalLayers(fit_whitening(patches), embedder)(patches)]
    [(5, 450), (5, 200)]
    """

    def __init__(self, whitening: Whitening, embedder: Embedder) -> None:
        mean, std = (x.numpy() for x in (embedder.mean, embedder.std))
        per_pixel = SIDE * SIDE
        self._whitening = Whitening(
            whitening.matrix / np.tile(std, per_pixel),
            (whitening.offset - np.tile(mean, per_pixel)) / np.tile(std, per_pixel),
        )
        assert isinstance(embedder.body, PatchNet)
        self._blocks, side = [], SIDE
        for block in embedder.body.blocks:
            assert isinstance(block, nn.Sequential)
            self._blocks.append((side, *_as_matrices(block, side)))
            side = -(-side // 2)

    def __call__(self, patches: Rows) -> list[Rows]:
        """Return the outputs of both layers for patches whose contrast is normalised."""
        x, outputs = self._whitening(patches), []
        for side, bands, bias in self._blocks:
            maps = np.empty((side, len(x), side * CHANNELS), np.float32)
            for row, (first, last, matrix) in enumerate(bands):
                np.matmul(x[:, first:last], matrix, out=maps[row])
            half = -(-side // 2)
            pooled = np.empty((len(x), half, half, CHANNELS), np.float32)
            _pool(maps.reshape(side, len(x), side, CHANNELS), bias, pooled)
            x = pooled.reshape(len(x), -1)
            outputs.append(x)
        return outputs


Band = tuple[int, int, Rows]  # the first and last input that a row of outputs depends on


@torch.no_grad()
def _as_matrices(block: nn.Sequential, side: int) -> tuple[list[Band], NDArray[np.float32]]:
    """Return a convolution with its batch norm as one matrix per row of outputs, and the bias."""
    convolution, norm = block[0], block[1]
    assert isinstance(convolution, nn.Conv2d)
    assert isinstance(norm, nn.BatchNorm2d)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    bias = norm.bias - norm.running_mean * scale
    inputs = convolution.in_channels
    basis = torch.eye(side * side * inputs).reshape(-1, side, side, inputs).permute(0, 3, 1, 2)
    dense = (convolution(basis) * scale[:, None, None]).permute(2, 0, 3, 1)  # (h, inputs, w, c)
    bands = []
    for row in dense.numpy():
        used = np.flatnonzero(row.any(axis=(1, 2)))
        first, last = int(used[0]), int(used[-1]) + 1
        bands.append((first, last, np.ascontiguousarray(row[first:last].reshape(last - first, -1))))
    return bands, bias.numpy()


@njit(nogil=True, cache=True, fastmath=True)
def _pool(maps: NDArray, bias: NDArray, pooled: NDArray) -> None:
    """Add the bias to maps (h, n, w, c), and apply pooling and ReLU."""
    height, n, width, channels = maps.shape
    for i in range(n):
        for y in range(0, height, 2):
            for x in range(0, width, 2):
                out = pooled[i, y // 2, x // 2]
                out[:] = maps[y, i, x]
                for dy in range(min(2, height - y)):
                    for dx in range(min(2, width - x)):
                        for k in range(channels):
                            out[k] = max(out[k], maps[y + dy, i, x + dx, k])
                for k in range(channels):
                    out[k] = max(out[k] + bias[k], np.float32(0))
