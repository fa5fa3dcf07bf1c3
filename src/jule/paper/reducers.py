"""The networks of the experiment on embeddings: for JULE, and for two methods it is compared with.

The latter have the layers of van der Maaten, "Learning a parametric embedding by preserving local
structure" (2009): 500, 500 and 2,000 hidden units. They are trained as networks are today, with
batch norm, ReLU and Adam, instead of restricted Boltzmann machines before training and conjugate
gradients. Parametric t-SNE is written here because no library has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from jule.backward import Embedder, build_embedder
from jule.backward.batches import random_batches
from jule.backward.embedder import as_images
from jule.backward.mapper import Mapper
from jule.backward.plan import OUTPUTS

HIDDEN = (500, 500, 2000)
AT_ONCE = 2000  # samples that are embedded at once
HALVINGS = 40  # of the interval in which the width of a Gaussian is searched
NEIGHBORS_PER_PERPLEXITY = 3  # samples beyond these have no similarity in t-SNE


@dataclass(frozen=True)
class Fitting:
    """How a network is trained.

    Examples
    --------
    >>> Fitting(epochs=3).epochs
    3
    """

    epochs: int = 10
    batch_size: int = 1000
    learning_rate: float = 1e-3  # of Adam; falls to 0 in the end


def fully_connected(widths: Sequence[int]) -> nn.Sequential:
    """Return linear layers of these widths, with batch norm and ReLU between them.

    Examples
    --------
    >>> fully_connected((4, 3, 2))(torch.zeros(5, 4)).shape
    torch.Size([5, 2])
    """
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths[:-1]):
        layers += [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1]))


class ImageMapper(nn.Module):
    """The paper's network for images, and two hidden layers from its 160 outputs to a map.

    Parameters
    ----------
    images
        The network for images.
    outputs
        Number of dimensions of the map.
    start
        A fixed map of raw images, whose output is added to that of the network; none by default.
    """

    def __init__(self, images: Embedder, outputs: int, start: nn.Module | None = None) -> None:
        super().__init__()
        self.images, self.start = images, start
        self.between = nn.Sequential(nn.BatchNorm1d(OUTPUTS), nn.ReLU())
        self.mapper = Mapper(OUTPUTS, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map raw images (n, c, h, w) to positions (n, outputs)."""
        features = self.images.body(self.images.scaled(x))  # without the layer that normalises
        positions: Tensor = self.mapper(self.between(features))
        return positions if self.start is None else positions + self.start(x.flatten(1))


def build_image_mapper(
    images: NDArray, outputs: int, side: int, *, spread: float | None = None, seed: int = 0
) -> ImageMapper:
    """Build an untrained `ImageMapper`, which sees images at a size of `side` pixels.

    If `spread` is given, the network learns offsets from the principal components of the images
    (see `pca_layer`).

    Examples
    --------
    >>> images = np.zeros((4, 8, 8), np.uint8)
    >>> apply_network(build_image_mapper(images, 2, 16), images).shape
    (4, 2)
    """
    embedder = build_embedder(images, min_side=side, max_side=side, normalize=True, seed=seed)
    start = None if spread is None else pca_layer(images, outputs, spread)
    torch.manual_seed(seed)
    return ImageMapper(embedder, outputs, start)


def pca_layer(images: NDArray, n_components: int, spread: float) -> nn.Linear:
    """Return a fixed linear layer that projects raw images onto their principal components.

    One factor scales all components, so that the square root of their total variance is `spread`.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 255, (50, 4, 4), np.uint8)
    >>> positions = pca_layer(images, 2, spread=5.0)(as_images(images).flatten(1))
    >>> round(positions.var(dim=0).sum().sqrt().item(), 3)
    5.0
    """
    from sklearn.decomposition import PCA

    vectors = as_images(images).flatten(1).numpy()
    pca = PCA(n_components, svd_solver="covariance_eigh").fit(vectors)
    scale = spread / np.sqrt(pca.explained_variance_.sum())
    axes = torch.from_numpy(np.ascontiguousarray(scale * pca.components_, dtype=np.float32))
    layer = nn.Linear(vectors.shape[1], n_components).requires_grad_(False)
    layer.weight.copy_(axes)
    layer.bias.copy_(-axes @ torch.from_numpy(pca.mean_))
    return layer


def train_autoencoder(
    samples: NDArray[np.float32],
    n_components: int,
    *,
    fitting: Fitting,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> nn.Module:
    """Train an autoencoder on squared errors, and return its encoder.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
    >>> encoder = train_autoencoder(points, 2, fitting=Fitting(epochs=1, batch_size=10))
    >>> apply_network(encoder, points).shape
    (20, 2)
    """
    torch.manual_seed(seed)
    widths = (samples.shape[1], *HIDDEN, n_components)
    encoder, decoder = fully_connected(widths), fully_connected(widths[::-1])

    rng = np.random.default_rng(seed)
    batches = random_batches(len(samples), fitting.batch_size, rng)

    def loss() -> Tensor:
        x = torch.from_numpy(samples[next(batches)])
        return F.mse_loss(decoder(encoder(x)), x)

    steps = fitting.epochs * math.ceil(len(samples) / fitting.batch_size)
    _minimise(nn.ModuleList([encoder, decoder]), loss, steps, fitting, progress)
    return encoder


def train_parametric_tsne(
    samples: NDArray[np.float32],
    n_components: int,
    *,
    fitting: Fitting,
    perplexity: float = 30.0,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> nn.Module:
    """Train a network on the loss of t-SNE within batches.

    Batches are redrawn in every epoch, so that over time a sample shares batches with more of its
    neighbours. Van der Maaten keeps them fixed, so that similarities are computed only once. The
    Student-t kernel has n_components - 1 degrees of freedom, and at least one.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    >>> options = {"fitting": Fitting(epochs=1, batch_size=20), "perplexity": 5.0}
    >>> apply_network(train_parametric_tsne(points, 2, **options), points).shape
    (40, 2)
    """
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    network = fully_connected((samples.shape[1], *HIDDEN, n_components))
    n_batches = math.ceil(len(samples) / fitting.batch_size)
    batches = (
        batch
        for _ in range(fitting.epochs)
        for batch in np.array_split(rng.permutation(len(samples)), n_batches)
    )

    def loss() -> Tensor:
        x = torch.from_numpy(samples[next(batches)])
        positions = network(x)
        similar = joint_similarities(x, perplexity)
        gradient = tsne_gradient(positions.detach(), similar, max(1, n_components - 1))
        # Not the divergence itself, but a function of the positions that has the same gradient.
        linear: Tensor = (positions * gradient).sum()
        return linear

    _minimise(network, loss, fitting.epochs * n_batches, fitting, progress)
    return network


def joint_similarities(x: Tensor, perplexity: float) -> Tensor:
    """Return t-SNE's similarities of samples, (n, n), which sum to 1.

    The similarities to one sample are Gaussian, with the width at which their perplexity is as
    given; both directions are averaged. As in Barnes-Hut t-SNE, only the nearest neighbours of a
    sample have similarities, three times as many as the perplexity; the others would add a few per
    cent.

    Examples
    --------
    >>> round(joint_similarities(torch.eye(6), 3.0).sum().item(), 3)
    1.0
    """
    n = len(x)
    squared = torch.cdist(x, x).square().fill_diagonal_(torch.inf)
    near, which = squared.topk(
        min(n - 1, round(NEIGHBORS_PER_PERPLEXITY * perplexity)), largest=False
    )
    near = near / near.mean().clamp_min(1e-12)
    low, high = torch.full((n, 1), -20.0), torch.full((n, 1), 20.0)  # logarithms of precisions
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        log_shares = (-near * middle.exp()).log_softmax(dim=1)
        entropy = -(log_shares.exp() * log_shares).sum(dim=1, keepdim=True)
        too_wide = entropy > math.log(perplexity)
        low, high = torch.where(too_wide, middle, low), torch.where(too_wide, high, middle)
    shares = torch.zeros_like(squared).scatter_(1, which, log_shares.exp())
    return (shares + shares.T) / (2 * n)


@torch.no_grad()
def tsne_gradient(positions: Tensor, similar: Tensor, freedom: int) -> Tensor:
    """Return the gradient of t-SNE's Kullback-Leibler divergence with respect to the positions.

    With k_ij = 1 / (1 + |y_i - y_j|^2 / f), and q_ij = k_ij^((f + 1) / 2) divided by the sum over
    all pairs, it is 2 (f + 1) / f * sum over j of (p_ij - q_ij) k_ij (y_i - y_j). In this form, a
    batch of thousands takes few passes over its pairs.

    Parameters
    ----------
    positions
        (n, m) positions y of a batch.
    similar
        (n, n) similarities p of its samples.
    freedom
        Degrees of freedom f of the Student-t kernel.

    Examples
    --------
    >>> similar = torch.tensor([[0.0, 0.5], [0.5, 0.0]])  # two samples: nothing to improve
    >>> tsne_gradient(torch.tensor([[0.0], [1.0]]), similar, 1).abs().max().item()
    0.0
    """
    y = positions - positions.mean(dim=0)  # float32 loses digits far from the origin
    norms = y.square().sum(dim=1)
    kernel = torch.addmm(norms.expand(len(norms), -1), y, y.T, alpha=-2.0)
    kernel.add_(norms[:, None]).clamp_min_(0.0).div_(freedom).add_(1.0).reciprocal_()
    kernel.fill_diagonal_(0.0)
    # Relative to the largest one, so that powers of small values are not all rounded to 0.
    pulls = (kernel / kernel.max()).pow_((freedom + 1) / 2)
    pulls.mul_(-1.0 / pulls.sum()).add_(similar).mul_(kernel)
    gradient = pulls.sum(dim=1, keepdim=True) * y - pulls @ y
    return gradient * (2.0 * (freedom + 1) / freedom)


@torch.no_grad()
def apply_network(network: nn.Module, samples: NDArray) -> NDArray[np.float32]:
    """Return the outputs of a trained network for all samples.

    Examples
    --------
    >>> apply_network(nn.Identity(), np.zeros((3, 2), np.float32)).shape
    (3, 2)
    """
    network.eval()
    parts = [
        network(as_images(samples[start : start + AT_ONCE]))
        for start in range(0, len(samples), AT_ONCE)
    ]
    outputs: NDArray[np.float32] = torch.cat(parts).numpy()
    return outputs


def _minimise(
    network: nn.Module,
    loss: Callable[[], Tensor],
    steps: int,
    fitting: Fitting,
    progress: Callable[[float], None] | None,
) -> None:
    """Train a network in place with Adam; `loss` returns the loss of the next batch."""
    optimizer = torch.optim.Adam(network.parameters(), lr=fitting.learning_rate)
    network.train()
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = fitting.learning_rate * (1.0 - step / steps)
        optimizer.zero_grad()
        loss().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if progress is not None:
            progress((step + 1) / steps)
