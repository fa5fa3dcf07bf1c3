"""ClustPy's DEC, IDEC and DCN, with the interface of the baselines."""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Iterator
from types import ModuleType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from jule.baselines._base import BaseClusterer
from jule.baselines._checks import check_count
from jule.baselines._seeds import global_seeds_kept
from jule.forward.prepare import fit_range


class _FromClustPy(BaseClusterer):
    """Base class of ClustPy's deep methods; `_name` is the name of the class in ClustPy."""

    _name: ClassVar[str]
    _is_rotation_invariant = False

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        pretrain_epochs: int = 100,
        clustering_epochs: int = 150,
        random_state: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.pretrain_epochs = pretrain_epochs
        self.clustering_epochs = clustering_epochs
        self.random_state = random_state

    def _check_parameters(self, k: int) -> None:
        super()._check_parameters(k)
        check_count(self.pretrain_epochs, "pretrain_epochs")
        check_count(self.clustering_epochs, "clustering_epochs")

    def _cluster(self, samples: NDArray[np.floating], k: int) -> NDArray[np.int32]:
        method = getattr(import_clustpy(), self._name)
        vectors = scale_for_clustpy(samples)
        with global_seeds_kept(), silenced():  # ClustPy seeds all generators
            model = method(
                k,
                pretrain_epochs=self.pretrain_epochs,
                clustering_epochs=self.clustering_epochs,
                random_state=self.random_state,
            )
            return np.asarray(model.fit(vectors).labels_, np.int32)


class DEC(_FromClustPy):
    """Deep embedded clustering: an autoencoder, then self-training on its codes.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.
    pretrain_epochs
        Number of epochs in which the autoencoder alone is trained.
    clustering_epochs
        Number of epochs of the clustering phase that follows.
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
    This is ClustPy's `DEC` with its default settings; install it with
    ``pip install "jule[rivals]"``. Samples are scaled to a mean square of 1.

    References
    ----------
    J. Xie, R. Girshick, A. Farhadi, "Unsupervised deep embedding for clustering analysis", ICML,
    2016.

    Examples
    --------
    >>> model = DEC(n_clusters=10)
    >>> model.pretrain_epochs, model.clustering_epochs
    (100, 150)
    """

    _name = "DEC"


class IDEC(_FromClustPy):
    """Improved deep embedded clustering: DEC that keeps the reconstruction loss.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.
    pretrain_epochs
        Number of epochs in which the autoencoder alone is trained.
    clustering_epochs
        Number of epochs of the clustering phase that follows.
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
    This is ClustPy's `IDEC` with its default settings; install it with
    ``pip install "jule[rivals]"``. Samples are scaled to a mean square of 1.

    References
    ----------
    X. Guo, L. Gao, X. Liu, J. Yin, "Improved deep embedded clustering with local structure
    preservation", IJCAI, 2017.

    Examples
    --------
    >>> model = IDEC(n_clusters=10)
    >>> model.pretrain_epochs, model.clustering_epochs
    (100, 150)
    """

    _name = "IDEC"


class DCN(_FromClustPy):
    """Deep clustering network: an autoencoder whose codes are pulled to K-means centres.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.
    pretrain_epochs
        Number of epochs in which the autoencoder alone is trained.
    clustering_epochs
        Number of epochs of the clustering phase that follows.
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
    This is ClustPy's `DCN` with its default settings; install it with
    ``pip install "jule[rivals]"``. Samples are scaled to a mean square of 1.

    References
    ----------
    B. Yang, X. Fu, N. D. Sidiropoulos, M. Hong, "Towards K-means-friendly spaces: simultaneous
    deep learning and clustering", ICML, 2017.

    Examples
    --------
    >>> model = DCN(n_clusters=10)
    >>> model.pretrain_epochs, model.clustering_epochs
    (100, 150)
    """

    _name = "DCN"


def scale_for_clustpy(samples: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the samples as float32, scaled to a mean square of 1.

    Examples
    --------
    >>> scale_for_clustpy(np.array([[3.0], [-3.0]])).tolist()
    [[1.0], [-1.0]]
    """
    vectors = fit_range(samples)[0].astype(np.float32)
    vectors /= np.sqrt(np.mean(vectors**2, dtype=np.float64))
    return vectors


def import_clustpy() -> ModuleType:
    """Return ``clustpy.deep``; an ImportError says what to install."""
    try:
        _make_torchvision_importable()
        return importlib.import_module("clustpy.deep")
    except ImportError as error:
        raise ImportError('DEC, IDEC and DCN need ClustPy: pip install "jule[rivals]"') from error
    except RuntimeError as error:
        # ClustPy imports torchvision, which raises this if it was built for another torch.
        raise ImportError(
            f"ClustPy cannot be imported ({error}): install the torchvision that belongs to the "
            "installed torch, from the same package index"
        ) from error


def _make_torchvision_importable() -> None:
    """Declare two operators that torchvision asks for when it is imported.

    A torchvision that was built for GPUs cannot load its operators beside a torch without them, and
    its import fails. ClustPy does not use the operators.
    """
    import torch

    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            torch.library.define(
                f"torchvision::{name}", "(Tensor dets, Tensor scores, float threshold) -> Tensor"
            )


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Discard what ClustPy prints: messages and progress bars."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
