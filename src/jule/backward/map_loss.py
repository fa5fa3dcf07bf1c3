"""The loss of a map: clusters stay apart, and neighbours within them stay together."""

from __future__ import annotations

import torch
from torch import Tensor


def map_distances(positions: Tensor) -> Tensor:
    """Return (f + 1) / 2 * log(1 + d / f) for all pairs of positions at a squared distance of d.

    Its negative is the logarithm of Student's t-distribution with f degrees of freedom, the kernel
    of t-SNE. In two dimensions f is 1, and the heavy tail makes room for clusters. In m dimensions
    f is m - 1, because there is more room (van der Maaten, "Learning a parametric embedding by
    preserving local structure", 2009). Positions are not divided by their norms: in two dimensions,
    they would lie on a circle.

    Examples
    --------
    >>> map_distances(torch.tensor([[0.0], [1.0]])).exp().tolist()
    [[1.0, 2.0], [2.0, 1.0]]
    """
    norms = positions.square().sum(dim=1)
    squared = norms[:, None] + norms[None, :] - 2.0 * positions @ positions.T  # (b, b)
    freedom = max(1, positions.shape[1] - 1)
    return (freedom + 1) / 2 * (squared.clamp_min(0.0) / freedom).log1p()


def neighbor_loss(distances: Tensor, samples: Tensor) -> Tensor:
    """Compute how badly the first half of a batch is told from others by its neighbours.

    Each sample i of a batch has a neighbour j in it, half the batch away. The loss is the mean of
    -log(q_ij / sum over k of q_ik), where -log q is the distance. It pulls neighbours together and
    pushes all other samples away, those of the same cluster, too. It is t-SNE's loss, estimated
    from a batch (Damrich, Boehm, Hamprecht and Kobak, "From t-SNE to UMAP with contrastive
    learning", 2023).

    Parameters
    ----------
    distances
        (2m, 2m) what `map_distances` returns for a batch of m samples and then a neighbour of each.
    samples
        (2m,) index of each sample; a sample is not pushed away from itself if it occurs twice.

    Examples
    --------
    >>> at = torch.tensor([[0.0], [9.0], [0.0], [9.0]])
    >>> neighbor_loss(map_distances(at), torch.tensor([0, 1, 2, 3])).item()
    0.02...
    """
    half = len(samples) // 2
    rows = torch.arange(2 * half, device=distances.device)
    partners = (rows + half) % (2 * half)
    is_same = samples[:, None] == samples[None, :]
    log_similarities = (-distances).masked_fill(is_same, -torch.inf)
    return (distances[rows, partners] + log_similarities.logsumexp(dim=1)).mean()
