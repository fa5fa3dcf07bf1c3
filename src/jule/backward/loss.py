"""The weighted triplet loss."""

from __future__ import annotations

import torch
from torch import Tensor

from jule.backward.settings import NEGATIVES, Negatives, Training


def weighted_triplet_loss(
    embedding: Tensor,
    labels: Tensor,
    *,
    gamma: float = Training.gamma,
    margin: float = Training.margin,
    negatives: Negatives = Training.negatives,
    n_negatives: int = Training.n_negatives,
    generator: torch.Generator | None = None,
    apart: Tensor | None = None,
) -> Tensor:
    """Compute the weighted triplet loss of a batch (Eq. 11).

    It pulls samples of one cluster together and pushes other samples away. The loss is the mean of

        max(0, gamma * d(x_i, x_j) - d(x_i, x_k) + margin)

    over pairs (i, j) of one cluster and negatives k from other clusters, where d is the squared
    Euclidean distance between unit vectors. Eq. 11 is written with affinities, which decrease with
    distance; the authors' code computes it as this hinge on distances.

    Parameters
    ----------
    embedding
        (b, d) unit vectors of a batch.
    labels
        (b,) cluster of each of them.
    gamma, margin
        Weight of the positive pair, and how much farther away a negative has to be.
    negatives
        ``"random"``: `n_negatives` samples of other clusters, drawn separately for every pair.
        ``"nearest"``: those nearest to x_i.
    n_negatives
        Number of negatives per pair, or all of them if the batch has fewer.
    generator
        Random generator that draws the negatives.
    apart
        (b, b) pairs that are always negatives of each other, before any other is chosen.

    Returns
    -------
    Tensor
        A scalar. It is 0, with zero gradients, if the batch has no pair or no negative.

    Examples
    --------
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> weighted_triplet_loss(x, torch.tensor([0, 0, 1])).item()  # pair at 2; negatives at 0 and 2
    1.2...
    """
    if negatives not in NEGATIVES:
        raise ValueError(f"unknown negatives {negatives!r}: choose one of {', '.join(NEGATIVES)}")
    distances = (2.0 - 2.0 * embedding @ embedding.T).clamp_min(0.0)  # (b, b)
    return triplet_hinge(
        distances,
        labels,
        gamma=gamma,
        margin=margin,
        negatives=negatives,
        n_negatives=n_negatives,
        generator=generator,
        apart=apart,
    )


def triplet_hinge(
    distances: Tensor,
    labels: Tensor,
    *,
    gamma: float,
    margin: float,
    negatives: Negatives,
    n_negatives: int,
    generator: torch.Generator | None = None,
    apart: Tensor | None = None,
) -> Tensor:
    """Compute the loss of `weighted_triplet_loss` from the distances (b, b) within a batch.

    Examples
    --------
    >>> apart = torch.tensor([[0.0, 2.0, 0.0], [2.0, 0.0, 2.0], [0.0, 2.0, 0.0]])
    >>> settings = {"gamma": 1.0, "margin": 0.2, "negatives": "nearest", "n_negatives": 20}
    >>> triplet_hinge(apart, torch.tensor([0, 0, 1]), **settings).item()
    1.2...
    """
    same = labels[:, None] == labels[None, :]  # (b, b)
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    anchors, partners = (same & ~itself).nonzero(as_tuple=True)
    count = min(n_negatives, int((~same).sum(dim=1).max()) if len(labels) else 0)
    if len(anchors) == 0 or count == 0:
        return distances.sum() * 0.0
    if negatives == "random":
        draws = torch.rand(len(anchors), len(labels), generator=generator).to(labels.device)
        order = draws.masked_fill(same[anchors], torch.inf)  # (pairs, b)
    else:
        order = distances.detach().masked_fill(same, torch.inf)[anchors]
    if apart is not None:
        order = order.masked_fill(apart[anchors] & ~same[anchors], -1.0)
    rank, chosen = order.topk(count, dim=1, largest=False)  # (pairs, count)
    exists = rank.isfinite()
    terms = gamma * distances[anchors, partners][:, None] - distances[anchors[:, None], chosen]
    hinge = (terms + margin).clamp_min(0.0) * exists
    return hinge.sum() / exists.sum().clamp_min(1)
