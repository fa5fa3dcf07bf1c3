"""JULE for scikit-learn: a thin face over `jule.joint`."""

from __future__ import annotations

import copy
import os
from collections import deque
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from jule.backward import Embedder, embed
from jule.backward.embedder import best_device
from jule.forward import MergeTree
from jule.images import check_labels, fingerprint
from jule.images.arrays import refuse_other_sizes
from jule.joint import (
    Choice,
    Config,
    Period,
    Result,
    finish,
    first_network,
    joint_learning,
    preset,
)
from jule.joint.clustering import cut
from jule.joint.config import Preset
from jule.joint.finish import cluster_shares
from jule.joint.stages import Progress
from jule.runs import Finished, Run, create_run, read_results, write_results

PIXELS = (np.float32, np.float64, np.uint8)  # what stays as it is; other numbers become the first


class JULE(ClusterMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Joint unsupervised learning of representations and clusters, from images or vectors.

    Parameters
    ----------
    n_clusters
        K, 2 or more; None lets the merge tree suggest it (see `choice_`).
    preset
        ``"default"``, or ``"paper"`` to train as the authors did.
    rounds, augment, eta, epochs, preparation
        The settings that are changed most often; None leaves them to the preset. See
        `jule.joint.Config` for what they mean and for the reasons of the defaults.
    settings
        Any other fields of `jule.joint.Config`, by name.
    network
        A `torch.nn.Module` that maps images (n, c, h, w), or vectors (n, d), to vectors; a copy of
        it is trained. None builds the paper's network for the image size, or an MLP for vectors.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``.
    random_state
        The seed. Runs with the same seed give the same labels on one machine with one number of
        threads; other processors, thread numbers or versions of torch round differently.
    progress
        Called with the name of a stage and the share of it that is done.

    Attributes
    ----------
    labels_
        (n,) the robust choice of the next two: the one with the larger modularity in the graph of
        the final representation.
    labels_sf_
        SF, the clusters when the recurrent process ends.
    labels_rc_
        RC, the final representation clustered anew.
    confidence_
        (n,) the share of a sample's affinity that stays in its cluster.
    embedding_
        (n, 160) unit vectors.
    tree_
        The `MergeTree` of the final representation.
    network_
        The trained network, `jule.backward.Embedder`.
    history_
        One `Period` after another: clusters, loss, affinities, seconds.
    choice_
        The suggested number of clusters and how sure it is; None where K was given.
    n_clusters_
        How many clusters `labels_` has.
    result_
        All of the above that is not the network, as one `jule.joint.Result`.

    Examples
    --------
    >>> import jule
    >>> digits = jule.load_dataset("digits").images[:300]
    >>> model = jule.JULE(n_clusters=10, rounds=1, settings={"least_images": 500}).fit(digits)
    >>> model.predict(digits[:5]).shape, model.recut(7).max().item()
    ((5,), 6)
    """

    labels_: NDArray[np.int32]
    labels_sf_: NDArray[np.int32]
    labels_rc_: NDArray[np.int32]
    confidence_: NDArray[np.float64]
    embedding_: NDArray[np.float32]
    tree_: MergeTree
    network_: Embedder
    history_: tuple[Period, ...]
    choice_: Choice | None
    n_clusters_: int
    result_: Result

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        preset: Preset = "default",
        rounds: int | None = None,
        augment: bool | None = None,
        eta: float | None = None,
        epochs: float | None = None,
        preparation: str | None = None,
        settings: Mapping[str, Any] | None = None,
        network: nn.Module | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = 0,
        progress: Progress | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.preset = preset
        self.rounds = rounds
        self.augment = augment
        self.eta = eta
        self.epochs = epochs
        self.preparation = preparation
        self.settings = settings
        self.network = network
        self.device = device
        self.random_state = random_state
        self.progress = progress

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # the representation is float32, always
        tags.input_tags.three_d_array = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> JULE:
        """Cluster the samples and train the network; `y` only adds NMI and AC to `history_`.

        Examples
        --------
        >>> JULE(n_clusters=10).fit(images)  # doctest: +SKIP
        """
        samples = self._checked(X, reset=True)
        labels = None if y is None else check_labels(y, len(samples))
        config = self._config()
        own = None if self.network is None else copy.deepcopy(self.network)
        embedder = first_network(samples, config, own).to(best_device(self.device))
        periods = joint_learning(samples, embedder, config, labels=labels, progress=self.progress)
        state = deque(periods, maxlen=1).pop()
        result = finish(embed(embedder, samples), state, config, self.progress)
        names = [str(number) for number in range(len(samples))]
        self._take(Finished(config, names, result, state.history, embedder))
        self._data = fingerprint(samples)
        return self

    def _checked(self, X: ArrayLike, *, reset: bool) -> NDArray:
        if isinstance(X, list):
            refuse_other_sizes(X)
        samples: NDArray = validate_data(
            self,
            X,
            reset=reset,
            dtype=PIXELS,
            allow_nd=True,
            ensure_min_samples=2 if reset else 1,
        )
        if reset:
            self.sample_shape_ = samples.shape[1:]
        elif samples.shape[1:] != self.sample_shape_:
            raise ValueError(
                f"this model was fitted on samples of shape {self.sample_shape_}, "
                f"got {samples.shape[1:]}"
            )
        return samples

    def _config(self) -> Config:
        k = self.n_clusters
        if k is not None and (not isinstance(k, Integral) or isinstance(k, bool)):
            raise ValueError(f"n_clusters must be a whole number or None, got {k!r}")
        often = ("rounds", "augment", "eta", "epochs", "preparation")
        changes = {name: getattr(self, name) for name in often if getattr(self, name) is not None}
        changes |= dict(self.settings or {})
        return preset(self.preset, n_clusters=k, seed=self._seed(), **changes)

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _take(self, finished: Finished) -> None:
        self.result_ = result = finished.result
        self.labels_, self.labels_sf_, self.labels_rc_ = (
            result.labels,
            result.labels_sf,
            result.labels_rc,
        )
        self.confidence_ = result.confidence
        self.embedding_ = result.embedding
        self.tree_ = result.tree
        self.network_ = finished.embedder
        self.history_ = finished.history
        self.choice_ = result.choice
        self.n_clusters_ = int(result.labels.max()) + 1
        self._finished = finished

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Embed samples, new ones too: (m, 160) unit vectors.

        Examples
        --------
        >>> model.transform(more_images)  # doctest: +SKIP
        """
        check_is_fitted(self)
        return embed(self.network_, self._checked(X, reset=False))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Give the share of affinity that each cluster has around a sample, (m, n_clusters_).

        Examples
        --------
        >>> model.predict_proba(more_images).sum(axis=1)  # doctest: +SKIP
        """
        finished = self._fitted()
        return cluster_shares(finished.result, finished.config, self.transform(X))

    def predict(self, X: ArrayLike) -> NDArray[np.int32]:
        """Give the cluster with the most affinity around each sample.

        Examples
        --------
        >>> model.predict(more_images)  # doctest: +SKIP
        """
        labels: NDArray[np.int32] = self.predict_proba(X).argmax(axis=1).astype(np.int32)
        return labels

    def recut(self, k: int) -> NDArray[np.int32]:
        """Give the labels for another number of clusters, from the tree, without training.

        Examples
        --------
        >>> model.recut(7)  # doctest: +SKIP
        """
        finished = self._fitted()
        return cut(finished.result.tree, k, finished.config)

    def _fitted(self) -> Finished:
        check_is_fitted(self)
        finished: Finished = self._finished
        return finished

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted model as a run folder, the same that `jule cluster` leaves.

        Examples
        --------
        >>> model.save("digits-run")  # doctest: +SKIP
        """
        finished = self._fitted()
        run = create_run(Path(folder), finished.config, self._data, overwrite=overwrite)
        write_results(run, finished)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        network: nn.Module | None = None,
        device: str = "auto",
    ) -> JULE:
        """Read a model that `save` or `jule cluster` wrote.

        `network` is an instance of the user's own module, where the model was fitted with one.

        Examples
        --------
        >>> JULE.load("digits-run").predict(more_images)  # doctest: +SKIP
        """
        run = Run(Path(folder))
        finished = read_results(run, network, device)
        config = finished.config
        settings = config.to_json()
        model = cls(
            settings.pop("n_clusters"),
            random_state=settings.pop("seed"),
            settings=settings,
            network=network,
            device=device,
        )
        model._data = run.about()["data"]
        model.sample_shape_ = tuple(model._data["shape"][1:])
        model.n_features_in_ = model.sample_shape_[0]
        model._take(finished)
        return model
