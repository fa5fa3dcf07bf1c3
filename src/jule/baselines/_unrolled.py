"""A network unrolled from graph-regularised sparse coding (TAGnet), its graph and its losses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from jule.baselines._spectral import find_neighbors, normalize, symmetric_graph
from jule.forward.affinity import affinity_graph

if TYPE_CHECKING:
    import torch

N_STEPS = 2  # unrolled steps of ISTA after the first codes
MAX_CODING_STEPS = 300
CODING_TOLERANCE = 1e-4  # relative change of the codes at which coding stops


class Network(NamedTuple):
    """The network's parameters, as numpy arrays or as tensors.

    Attributes
    ----------
    filters
        (p, d) W.
    feedback
        (p, p) S.
    thresholds
        (p,) theta.
    scores
        (K, p) omega, the linear scores of the clusters.
    coarse_scores
        (k, p) omega of the auxiliary clusters, of which there are fewer.
    smoothing
        alpha / N, which is not trained.
    """

    filters: Any
    feedback: Any
    thresholds: Any
    scores: Any
    coarse_scores: Any
    smoothing: float

    def trainable(self) -> tuple[Any, ...]:
        """Return the parameters that are trained."""
        return self[:-1]

    def replaced(self, trainable: list[Any]) -> Network:
        """Return a network with new values of the trainable parameters."""
        return Network._make((*trainable, self.smoothing))


def ista_step(drive: Any, codes: Any, smooth: Any, feedback: Any, thresholds: Any) -> Any:
    """Return h(WX + SA - alpha / N AL), one step of ISTA on codes in rows.

    h is the soft threshold. Arrays and tensors are accepted.

    Parameters
    ----------
    drive
        (n, p) WX of every sample.
    codes
        (n, p) A.
    smooth
        (n, p) alpha / N LA.
    feedback
        (p, p) S.
    thresholds
        (p,) thresholds of h.

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> ista_step(3.0 * one, one, 0.5 * one, 2.0 * one, one[0]).item()
    3.5
    """
    inner = drive + codes @ feedback.T - smooth
    return inner - inner.clip(-thresholds, thresholds)


def encode(vectors: Any, graph_laplacian: Any, network: Network) -> list[Any]:
    """Return the first codes h(WX) and the codes after each step of the network.

    Examples
    --------
    >>> eye = np.eye(2)
    >>> network = Network(eye, 0 * eye, np.zeros(2), eye, eye, 0.5)
    >>> [codes.tolist() for codes in encode(eye, 0 * eye, network)][-1]
    [[1.0, 0.0], [0.0, 1.0]]
    """
    drive = vectors @ network.filters.T
    codes = [drive - drive.clip(-network.thresholds, network.thresholds)]
    for _ in range(N_STEPS):
        smooth = network.smoothing * (graph_laplacian @ codes[-1])
        codes.append(ista_step(drive, codes[-1], smooth, network.feedback, network.thresholds))
    return codes


def entropy_loss(scores: torch.Tensor) -> torch.Tensor:
    """Return the mean entropy of the samples' cluster probabilities (EML).

    Examples
    --------
    >>> import torch
    >>> round(entropy_loss(torch.zeros(3, 2)).item(), 4)
    0.6931
    """
    logs = scores.log_softmax(1)
    return -(logs.exp() * logs).sum(1).mean()


def margin_loss(scores: torch.Tensor) -> torch.Tensor:
    """Return the mean hinge loss of the two largest scores (MML).

    Examples
    --------
    >>> import torch
    >>> margin_loss(torch.tensor([[3.0, 2.75, 0.0], [5.0, 1.0, 1.0]])).item()
    0.375
    """
    best = scores.topk(2, dim=1).values
    return (1 + best[:, 1] - best[:, 0]).clip(min=0).mean()


def entropy_of_mean(scores: torch.Tensor) -> torch.Tensor:
    """Return the entropy of the mean of the samples' cluster probabilities.

    Examples
    --------
    >>> import torch
    >>> round(entropy_of_mean(torch.tensor([[99.0, 0.0], [0.0, 99.0]])).item(), 4)
    0.6931
    """
    # By logarithms, as the gradient of p log p is not finite where p is rounded to 0.
    logs = scores.log_softmax(1).logsumexp(0) - math.log(len(scores))
    return -(logs.exp() * logs).sum()


def neighbor_weights(vectors: NDArray[np.floating], n_neighbors: int) -> sparse.csr_array:
    """Return the weights of the neighbour graph, divided by the roots of both degrees.

    Examples
    --------
    >>> neighbor_weights(np.array([[0.0], [1.0]]), 1).toarray().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    graph = affinity_graph(find_neighbors(vectors, n_neighbors))
    weights = symmetric_graph(graph.indices, graph.weights)
    normalize(weights, weights.sum(axis=1))
    return sparse.csr_array(weights.astype(np.float32))


def laplacian(weights: sparse.csr_array) -> sparse.csr_array:
    """Return the Laplacian of a graph: degrees on the diagonal, minus the weights.

    Examples
    --------
    >>> laplacian(sparse.csr_array([[0.0, 2.0], [2.0, 0.0]])).toarray().tolist()
    [[2.0, -2.0], [-2.0, 2.0]]
    """
    return sparse.csr_array(sparse.diags_array(weights.sum(axis=1)) - weights)


def unroll(
    atoms: NDArray[np.float32], weights: sparse.csr_array, lam: float, alpha: float
) -> Network:
    """Return the untrained network, whose steps are those of ISTA; it has no scores yet.

    Parameters
    ----------
    atoms
        (p, d) dictionary.
    weights
        Weights of the graph.
    lam
        Weight of the L1 norm of the codes.
    alpha
        Weight of the graph.

    Notes
    -----
    Codes are in units of 1 / N, where N is at least the largest eigenvalue of D'D + alpha L: W is
    D' instead of D' / N, and the thresholds are lam instead of lam / N.

    Examples
    --------
    >>> unroll(np.eye(2, dtype=np.float32), sparse.csr_array((2, 2)), 0.1, 5.0).feedback.tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    gram = atoms @ atoms.T
    # The largest eigenvalue of a Laplacian is at most twice the largest degree.
    largest = np.linalg.eigvalsh(gram)[-1] + 2 * alpha * weights.sum(axis=1).max()
    feedback = np.eye(len(atoms), dtype=np.float32) - gram / np.float32(largest)
    thresholds = np.full(len(atoms), lam, np.float32)
    return Network(atoms, feedback, thresholds, None, None, float(alpha / largest))


def sparse_codes(
    vectors: NDArray[np.float32], weights: sparse.csr_array, start: Network
) -> NDArray[np.float32]:
    """Return the codes at convergence, by accelerated ISTA (Beck and Teboulle, 2009).

    Parameters
    ----------
    vectors
        (n, d) samples.
    weights
        Weights of the graph.
    start
        Network of `unroll`.

    Examples
    --------
    >>> eye, no_edges = np.eye(2, dtype=np.float32), sparse.csr_array((2, 2), dtype=np.float32)
    >>> sparse_codes(eye, no_edges, unroll(eye, no_edges, 0.25, 5.0)).tolist()
    [[0.75, 0.0], [0.0, 0.75]]
    """
    graph_laplacian = laplacian(weights)
    drive = vectors @ start.filters.T
    codes: NDArray[np.float32] = np.zeros_like(drive)
    ahead = codes
    momentum = 1.0
    for _ in range(MAX_CODING_STEPS):
        smooth = np.float32(start.smoothing) * (graph_laplacian @ ahead)
        last, codes = codes, ista_step(drive, ahead, smooth, start.feedback, start.thresholds)
        change = codes - last
        if np.linalg.norm(change) <= CODING_TOLERANCE * np.linalg.norm(codes):
            break
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = codes + np.float32((momentum - 1) / following) * change
        momentum = following
    return codes
