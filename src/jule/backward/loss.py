"""The weighted triplet loss."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Negatives = Literal["random", "nearest"]
NEGATIVES: tuple[Negatives, ...] = ("random", "nearest")


def weighted_triplet_loss(
    embedding: Tensor,
    labels: Tensor,
    *,
    gamma: float = 1.0,
    margin: float = 0.2,
    negatives: Negatives = "random",
    n_negatives: int = 20,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Pull samples of one cluster together and push others away (Eq. 11).

    The mean, over pairs (i, j) of one cluster and over negatives k of other clusters, of

        max(0, gamma * d(x_i, x_j) - d(x_i, x_k) + margin)

    where d is the squared Euclidean distance of unit vectors. Eq. 11 has affinities, which fall as
    distances grow; the hinge on distances is how the authors' code computes it.

    Parameters
    ----------
    embedding
        (b, d) unit vectors of a batch.
    labels
        (b,) their clusters.
    gamma, margin
        The weight of the positive pair, and how much farther a negative has to be.
    negatives
        ``"random"``: `n_negatives` samples of other clusters, drawn anew for every pair.
        ``"nearest"``: those nearest to x_i.
    n_negatives
        How many a pair has; all there are where the batch has fewer.
    generator
        Of the random choice.

    Returns
    -------
    Tensor
        A scalar; 0, with zero gradients, where the batch has no pair or no negative.

    Examples
    --------
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> weighted_triplet_loss(x, torch.tensor([0, 0, 1])).item()  # pair at 2; negatives at 0 and 2
    1.2...
    """
    if negatives not in NEGATIVES:
        raise ValueError(f"unknown negatives {negatives!r}: choose one of {', '.join(NEGATIVES)}")
    same = labels[:, None] == labels[None, :]  # (b, b)
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    anchors, partners = (same & ~itself).nonzero(as_tuple=True)
    count = min(n_negatives, int((~same).sum(dim=1).max()) if len(labels) else 0)
    if len(anchors) == 0 or count == 0:
        return embedding.sum() * 0.0
    distances = (2.0 - 2.0 * embedding @ embedding.T).clamp_min(0.0)  # (b, b)
    if negatives == "random":
        chance = torch.rand(len(anchors), len(labels), generator=generator).to(labels.device)
        order = chance.masked_fill(same[anchors], torch.inf)  # (pairs, b)
    else:
        order = distances.detach().masked_fill(same, torch.inf)[anchors]
    rank, chosen = order.topk(count, dim=1, largest=False)  # (pairs, count)
    exists = rank.isfinite()
    terms = gamma * distances[anchors, partners][:, None] - distances[anchors[:, None], chosen]
    hinge = (terms + margin).clamp_min(0.0) * exists
    return hinge.sum() / exists.sum().clamp_min(1)
