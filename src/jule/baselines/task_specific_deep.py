"""TSC-D: a network unrolled from graph-regularised sparse coding, trained to cluster."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import MiniBatchDictionaryLearning
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state

from jule.baselines._base import BaseClusterer, number_by_first
from jule.baselines._checks import (
    check_choice,
    check_count,
    check_not_negative,
    check_positive,
)
from jule.baselines._factors import rotate_to_fewer
from jule.baselines._rounding import round_by_kmeans
from jule.baselines._seeds import global_seeds_kept
from jule.baselines._spectral import unit_rows
from jule.baselines._unrolled import (
    Network,
    encode,
    entropy_loss,
    entropy_of_mean,
    laplacian,
    margin_loss,
    neighbor_weights,
    sparse_codes,
    unroll,
)
from jule.forward.prepare import fit_range
from jule.memory import check_memory

if TYPE_CHECKING:
    import torch

Loss = Literal["entropy", "margin"]

MAX_FOR_ATOMS = 10_000  # samples that the dictionary is learned from
DICTIONARY_EPOCHS = 5
MARGIN_DECAY = 1e-3  # weight of |omega|^2 in the margin loss


class TaskSpecificDeepClustering(BaseClusterer):
    """Task-specific deep clustering (TSC-D, DTAGnet): unrolled sparse coding, trained to cluster.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.
    n_atoms
        Number of atoms of the dictionary.
    lam
        Weight of the L1 norm of the codes, for samples of mean norm 1.
    alpha
        Weight of the graph. The original has 5, for a graph of all pairs with other weights; this
        value and `n_neighbors` were chosen on the image sets of the JULE paper.
    n_neighbors
        Number of neighbours of each sample in the graph.
    loss
        ``"entropy"`` (EML) or ``"margin"`` (MML).
    balance
        Weight of the entropy of the mean cluster probabilities, which is maximised. 0 gives the
        original loss, which is smallest with all samples in one cluster.
    auxiliary
        Weight of the loss on the intermediate codes (DTAGnet). 0 gives TAGnet.
    n_epochs
        Number of passes over the samples; 0 returns the clusters of the untrained network.
    learning_rate
        Step size of stochastic gradient descent.
    batch_size
        Number of samples per step.
    random_state
        Random seed.

    Attributes
    ----------
    labels_
        (n,) cluster of every sample, 0 .. n_clusters_ - 1.
    n_clusters_
        Number of clusters. Exact copies share a cluster, so it is at most the number of different
        samples.

    Notes
    -----
    1. The mean is subtracted from the samples X, which are scaled to a mean norm of 1. A dictionary
       D is learned from them, and their codes A minimise
       |X - DA|^2 / 2 + lam |A|_1 + alpha / 2 tr(A L A'), with L the Laplacian of the neighbour
       graph. One step of ISTA is `ista_step`.
    2. K-means on the codes, scaled to unit length, gives the first clusters.
    3. The network consists of two steps of ISTA after the first codes h(WX). W, S and the
       thresholds start at the values of ISTA, and linear scores are fitted to the first clusters;
       the scores on the intermediate codes are fitted to half as many.
    4. Stochastic gradient descent on the loss changes all of them. L is fixed; a batch has the
       Laplacian of its own part of the graph.
    5. A sample belongs to the cluster with its largest score, computed with the whole graph.

    There is no public implementation of this method to compare with. The following are choices
    made here: the subtraction of the mean (without it, training loses clusters); the graph of
    neighbours instead of all pairs, with weights divided by the roots of both degrees; codes in
    units of 1 / N, N an upper bound of the eigenvalues of D'D + alpha L, which keeps W and the
    learning rate in proportion; unit length before K-means; scores fitted by logistic regression;
    the numbers of epochs and of auxiliary clusters; the weight of |omega|^2 in the margin loss; the
    balance term. Losses are means over a batch.

    Training moves few samples to other clusters, and not always to better ones: the result is
    mostly that of the untrained network (``n_epochs=0``).

    References
    ----------
    Z. Wang, S. Chang, J. Zhou, M. Wang, T. S. Huang, "Learning a task-specific deep architecture
    for clustering", SIAM International Conference on Data Mining (SDM), 2016.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> samples = np.concatenate([rng.normal(c, 0.1, (30, 2)) for c in (-3, 3)])
    >>> model = TaskSpecificDeepClustering(n_clusters=2, n_atoms=8, n_epochs=2)
    >>> np.bincount(model.fit_predict(samples)).tolist()
    [30, 30]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_atoms: int = 128,
        lam: float = 0.1,
        alpha: float = 1000.0,
        n_neighbors: int = 3,
        loss: Loss = "entropy",
        balance: float = 1.0,
        auxiliary: float = 1.0,
        n_epochs: int = 20,
        learning_rate: float = 0.01,
        batch_size: int = 128,
        random_state: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_atoms = n_atoms
        self.lam = lam
        self.alpha = alpha
        self.n_neighbors = n_neighbors
        self.loss = loss
        self.balance = balance
        self.auxiliary = auxiliary
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.random_state = random_state

    def _cluster(self, samples: NDArray[np.floating], k: int) -> NDArray[np.int32]:
        random = check_random_state(self.random_state)
        vectors = _scaled(samples)
        check_memory(
            4 * (vectors.size + 8 * len(vectors) * self.n_atoms),
            f"sparse coding of {len(vectors):,} samples with {self.n_atoms} atoms",
        )
        weights = neighbor_weights(vectors, self.n_neighbors)
        atoms = _atoms(vectors, self.n_atoms, self.lam, random)
        start = unroll(atoms, weights, self.lam, self.alpha)
        codes = unit_rows(sparse_codes(vectors, weights, start))
        labels = number_by_first(round_by_kmeans(codes, k, random_state=random))
        if labels.max() == 0:
            return labels  # all codes are the same, such as zeros
        n_coarse = max(2, k // 2)
        coarse = number_by_first(round_by_kmeans(codes, n_coarse, random_state=random))
        network = _with_scores(start, vectors, weights, labels, coarse)
        network = self._train(network, vectors, weights, random)
        scores = encode(vectors, laplacian(weights), network)[-1] @ network.scores.T
        return np.asarray(scores.argmax(axis=1), np.int32)

    def _check_parameters(self, k: int) -> None:
        super()._check_parameters(k)
        for name in ("n_atoms", "n_neighbors", "batch_size"):
            check_count(getattr(self, name), name)
        check_count(self.n_epochs, "n_epochs", least=0)
        for name in ("lam", "learning_rate"):
            check_positive(getattr(self, name), name)
        for name in ("alpha", "balance", "auxiliary"):
            check_not_negative(getattr(self, name), name)
        check_choice(self.loss, "loss", get_args(Loss))

    def _train(
        self,
        network: Network,
        vectors: NDArray[np.float32],
        weights: sparse.csr_array,
        random: RandomState,
    ) -> Network:
        """Return the network after stochastic gradient descent on the loss."""
        import torch

        tensors = [torch.tensor(array, requires_grad=True) for array in network.trainable()]
        trained = network.replaced(tensors)
        optimizer = torch.optim.SGD(tensors, lr=self.learning_rate)
        for _ in range(self.n_epochs):
            order = random.permutation(len(vectors))
            for start in range(0, len(order), self.batch_size):
                rows = order[start : start + self.batch_size]
                own = torch.from_numpy(laplacian(weights[rows][:, rows]).toarray())
                codes = encode(torch.from_numpy(vectors[rows]), own, trained)
                loss = self._loss_of(codes[-1], trained.scores)
                if self.auxiliary:
                    loss = loss + self.auxiliary * self._loss_of(codes[-2], trained.coarse_scores)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                with torch.no_grad():
                    trained.thresholds.clamp_(min=0)
        return trained.replaced([tensor.detach().numpy() for tensor in tensors])

    def _loss_of(self, codes: torch.Tensor, omega: torch.Tensor) -> torch.Tensor:
        scores = codes @ omega.T
        loss = entropy_loss(scores) if self.loss == "entropy" else margin_loss(scores)
        if self.loss == "margin":
            loss = loss + MARGIN_DECAY * (omega**2).sum()
        return loss - self.balance * entropy_of_mean(scores) if self.balance else loss


def _scaled(samples: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return centred samples of mean norm 1, rotated into n dimensions if they have more."""
    vectors = fit_range(samples)[0]
    # If the samples share a large mean, D'D has one huge eigenvalue, and training diverges.
    vectors = vectors - vectors.mean(axis=0, dtype=np.float64).astype(vectors.dtype)
    vectors /= np.linalg.norm(vectors, axis=1).mean()
    return np.ascontiguousarray(rotate_to_fewer(vectors), np.float32)


def _atoms(
    vectors: NDArray[np.float32], n_atoms: int, lam: float, random: RandomState
) -> NDArray[np.float32]:
    """Return the (p, d) atoms of a dictionary of unit vectors."""
    if len(vectors) > MAX_FOR_ATOMS:
        vectors = vectors[random.choice(len(vectors), MAX_FOR_ATOMS, replace=False)]
    learner = MiniBatchDictionaryLearning(
        n_atoms,
        alpha=lam,
        max_iter=DICTIONARY_EPOCHS,
        batch_size=128,
        fit_algorithm="cd",
        random_state=random,
    )
    # The learner's coordinate descent draws from numpy's global generator.
    with warnings.catch_warnings(), global_seeds_kept():
        warnings.simplefilter("ignore", ConvergenceWarning)  # about the codes of a single batch
        # In float32 the learner cannot reach its tolerance, and takes far longer.
        return np.asarray(learner.fit(vectors.astype(np.float64)).components_, np.float32)


def _with_scores(
    start: Network,
    vectors: NDArray[np.float32],
    weights: sparse.csr_array,
    labels: NDArray[np.int32],
    coarse: NDArray[np.int32],
) -> Network:
    """Return the network with scores that are fitted to clusters of its codes."""
    *_, middle, last = encode(vectors, laplacian(weights), start)
    return start._replace(
        scores=_fit_scores(last, labels), coarse_scores=_fit_scores(middle, coarse)
    )


def _fit_scores(codes: NDArray[np.float32], labels: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return the (K, p) linear scores of a logistic regression on codes of mean norm 1."""
    scale = float(np.linalg.norm(codes, axis=1).mean()) or 1.0
    model = LogisticRegression(C=10.0, fit_intercept=False, max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a rough fit will do, even for many clusters
        omega = model.fit(codes / scale, labels).coef_
    if len(omega) == 1:  # for two clusters there is one row: the difference of their scores
        omega = np.concatenate((-omega / 2, omega / 2))
    return np.asarray(omega / scale, np.float32)
