"""JULE as a scikit-learn estimator: a thin wrapper around `jule.joint`."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from jule.backward import Embedder, embed
from jule.backward.embedder import best_device
from jule.backward.mapper import place
from jule.features.registry import PIXELS
from jule.files import array_bytes, arrays_bytes, write_atomic
from jule.forward import MergeTree
from jule.forward.assign import cluster_affinities
from jule.forward.constraints import Constraints
from jule.forward.prepare import check_not_masked
from jule.images import check_labels, fingerprint
from jule.images.copies import find_copies
from jule.images.read import digests_of
from jule.images.sources.arrays import check_layout, check_same_shape
from jule.joint import Choice, Config, Period, Result, finish, init_network, preset
from jule.joint.clustering import count_neighbors
from jule.joint.config import Kind, Preset, kind_of
from jule.joint.lowdim import Map, requested_map
from jule.joint.result import cluster_shares, recut
from jule.joint.sharing import check_agreement, learn_together
from jule.locks import hold
from jule.progress import Progress, progress_bars
from jule.ranks import Ranks, existing_ranks
from jule.report import Report
from jule.runs.encoding import (
    ENCODING,
    as_encoder,
    check_preset,
    describe_encoder,
    encode,
    encoder_of,
)
from jule.runs.folder import RunFolder, create_run
from jule.runs.manifest import damaged
from jule.runs.maps import read_map
from jule.runs.names import DIGESTS, DUPLICATES, IMAGES
from jule.runs.reading import read_run_array
from jule.runs.results import RunResults, new_results, read_network, read_results, write_results
from jule.runs.tables import duplicates_csv
from jule.runs.update import is_empty

if TYPE_CHECKING:
    from jule.features import Encoder

DTYPES = (np.float32, np.float64, np.uint8)  # kept as they are; other numbers become float32


class JULE(ClusterMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Joint unsupervised learning of representations and clusters, from images or vectors.

    Parameters
    ----------
    n_clusters
        Number of clusters, K. If None, the merge tree suggests it; see `choice_`.
    preset
        ``"default"``, or ``"paper"`` to train as the authors did.
    ensemble
        Number of networks, which are trained one after another with the seeds `random_state`,
        ``random_state + 1``, and so on. Their representations are clustered side by side, and
        samples on which they agree have more confidence. Three take three times as long as one.
        None uses the value of the preset, 1.
    rounds, augment, eta, epochs, preparation
        The settings that are changed most often; None uses the value of the preset. See
        `jule.joint.Config` for their meaning and the reasons for the defaults.
    n_components
        Number of dimensions of a map that is learned in the end, such as 2 for a figure. Then
        `transform` returns positions on it; clusters are the same with and without it.
    settings
        Other fields of `jule.joint.Config`, by name.
    features
        What the clustering sees: ``"pixels"``, or a frozen, pretrained encoder: ``"photos"``
        (``pip install "jule[photos]"``), ``"onnx:FILE"``, ``"timm:MODEL"``,
        ``"open_clip:MODEL/WEIGHTS"``, or a `jule.features.Encoder`. With an encoder, images
        must be uint8, and a small head is trained on its vectors.
    network
        A `torch.nn.Module` that maps images (n, c, h, w), or vectors (n, d), to vectors; a copy of
        it is trained. If None, the paper's network for the image size is built; for vectors, a
        head that starts as the identity. It sees vectors minus their mean, divided by one number:
        scale features of different units yourself, for example with
        `sklearn.preprocessing.StandardScaler`.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
    random_state
        Random seed. The same seed gives the same labels on one machine with the same number of
        threads; other processors, thread counts or versions of torch round differently.
    verbose
        Show progress bars.
    progress
        Called with the name of a stage and the fraction of it that is done. It replaces the
        progress bars.

    Attributes
    ----------
    labels_
        (n,) cluster of every sample: `labels_sf_`, `labels_rc_`, or the clusters without learning,
        chosen without true classes; see `jule.joint.finish`. In a loaded run, unsure images,
        which are in no cluster, have the label ``n_clusters_``.
    labels_sf_
        (n,) SF: the clusters when the recurrent process ends; if K is open, merged into K clusters
        without further training. For an ensemble: samples that are together in the clusterings of
        all networks, merged into K clusters in their joint representation.
    labels_rc_
        (n,) RC: the final representation clustered again.
    confidence_
        (n,) how likely each sample is to be with its class, from 0 to 1. It follows from the
        fraction of its affinity that lies within its own cluster, in the final representation and
        among the samples as they were given, and for an ensemble, from the fraction of its networks
        that agree.
    embedding_
        (n, 160) final representation of the samples, as unit vectors; that of vectors has one value
        more than they have, and an ensemble has as much for each network.
    map_
        (n, n_components) positions of the samples on the map; None without `n_components`.
    tree_
        The `MergeTree` of the final representation. Cutting it into as many clusters as there are
        labels in `labels_` gives `labels_`.
    network_
        The trained network, a `jule.backward.Embedder`.
    history_
        Tuple with one `Period` per period: clusters, loss, affinities, seconds.
    choice_
        The suggested number of clusters and its score; None if `n_clusters` was given.
    n_clusters_
        Number of clusters in `labels_`. Exact copies share a cluster, so it is at most the number
        of different samples; a warning says if that is fewer than `n_clusters`. Unsure images of a
        loaded run are not counted as one.
    sample_shape_
        Shape of one sample.
    result_
        All of the above except the network, as one `jule.joint.Result`.

    Examples
    --------
    >>> import jule
    >>> digits = jule.load_dataset("digits").images[:300]
    >>> model = jule.JULE(n_clusters=10, rounds=1, settings={"min_images": 500}).fit(digits)
    >>> model.predict(digits[:5]).shape, model.transform(digits[:5]).shape
    ((5,), (5, 160))
    >>> model.recut(7).max().item()
    6
    """

    labels_: NDArray[np.int32]
    labels_sf_: NDArray[np.int32]
    labels_rc_: NDArray[np.int32]
    confidence_: NDArray[np.float64]
    embedding_: NDArray[np.float32]
    map_: NDArray[np.float32] | None
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
        ensemble: int | None = None,
        rounds: int | None = None,
        augment: bool | None = None,
        eta: float | None = None,
        epochs: float | None = None,
        preparation: str | None = None,
        n_components: int | None = None,
        settings: Mapping[str, Any] | None = None,
        features: str | Encoder = PIXELS,
        network: nn.Module | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.preset = preset
        self.ensemble = ensemble
        self.rounds = rounds
        self.augment = augment
        self.eta = eta
        self.epochs = epochs
        self.preparation = preparation
        self.n_components = n_components
        self.settings = settings
        self.features = features
        self.network = network
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.progress = progress

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # the representation is always float32
        tags.input_tags.three_d_array = True
        return tags

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
    ) -> JULE:
        """Cluster samples and train the network on them.

        In a program that has a process group of `torch.distributed`, all its processes call this
        with the same samples and settings. They learn together, and all of them get the result.

        Parameters
        ----------
        X
            Images (n, height, width) or (n, height, width, channels), or vectors (n, d).
        y
            True classes, or None. They only add NMI and AC to `history_`.
        must_link, cannot_link
            (m, 2) pairs of samples that share a cluster, and that do not, in `labels_` as in every
            period. Exact copies always share one. There are more than `n_clusters` clusters, with
            a warning, if cannot-links keep more apart.
        """
        samples = self._checked(X, reset=True)
        labels = None if y is None else check_labels(y, len(samples))
        check_preset(self.preset, self.features)
        encoder = as_encoder(self.features)
        config = self._config(kind_of(samples.shape[1:], encoded=encoder is not None))
        copies = find_copies(samples)
        constraints = _constraints(copies, must_link, cannot_link)
        own = None if self.network is None else copy.deepcopy(self.network)
        data = fingerprint(samples)
        started = time.perf_counter()
        with existing_ranks() as ranks, self._progress(ranks) as show:
            check_agreement(ranks, {"X": data, **config.to_json()})
            vectors = encode(encoder, samples, progress=show and partial(show, ENCODING))
            embedder = init_network(vectors, config, own).to(best_device(self.device))
            state = learn_together(
                ranks,
                vectors,
                embedder,
                config,
                labels=labels,
                constraints=constraints,
                progress=show,
            )
            result = finish(state, config, samples=vectors, first_copies=copies, progress=show)
            learned_map = requested_map(result, config, device=self.device, progress=show)
        seconds = time.perf_counter() - started
        results = new_results(
            config,
            result,
            state.history,
            seconds=seconds,
            true_labels=labels,
            first_copies=copies,
            learned_map=learned_map,
        )
        self._set_fitted(results, embedder, learned_map)
        self._encoder = encoder
        self._data = data
        self._samples: NDArray | None = samples
        self._source = ""
        return self

    @contextmanager
    def _progress(self, ranks: Ranks) -> Iterator[Progress | None]:
        """Yield the progress callback: the caller's own, progress bars, or None."""
        if not ranks.is_first:
            yield None
            return
        if self.progress is not None or not self.verbose:
            yield self.progress
            return
        with progress_bars("jule") as bars:
            yield bars

    def _checked(self, X: ArrayLike, *, reset: bool) -> NDArray:
        check_not_masked(X)
        if isinstance(X, list):
            check_same_shape(X)
        samples: NDArray = validate_data(
            self,
            X,
            reset=reset,
            dtype=DTYPES,
            allow_nd=True,
            ensure_min_samples=2 if reset else 1,
        )
        check_layout(samples.shape)
        if reset:
            self.sample_shape_ = samples.shape[1:]
        elif samples.shape[1:] != self.sample_shape_:
            raise ValueError(
                f"X has samples of shape {samples.shape[1:]}, but JULE was fitted on samples of "
                f"shape {self.sample_shape_}: resize them first"
            )
        return samples

    def _config(self, kind: Kind) -> Config:
        k = self.n_clusters
        if k is not None and (not isinstance(k, Integral) or isinstance(k, bool)):
            raise ValueError(f"n_clusters must be an integer or None, got {k!r}")
        often = ("ensemble", "rounds", "augment", "eta", "epochs", "preparation", "n_components")
        changes = {name: getattr(self, name) for name in often if getattr(self, name) is not None}
        changes |= dict(self.settings or {})
        # Your own network needs the training that starts from random weights.
        of: Kind = kind if self.network is None else "images"
        return preset(self.preset, of=of, n_clusters=k, seed=self._seed(), **changes)

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _set_fitted(self, results: RunResults, embedder: Embedder, learned_map: Map | None) -> None:
        self.result_ = result = results.result
        self.labels_ = result.labels
        self.labels_sf_ = result.labels_sf
        self.labels_rc_ = result.labels_rc
        self.confidence_ = result.confidence
        self.embedding_ = result.embedding
        self.map_ = results.positions
        self.tree_ = result.tree
        self.network_ = embedder
        self.history_ = results.history
        self.choice_ = result.choice
        self.n_clusters_ = results.n_clusters
        self._results = results
        self._map = learned_map

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Return the representation of samples as unit vectors, or their positions on the map.

        Unit vectors have 160 values for images, as many as those of an encoder, and one more than
        other vectors have; an ensemble has as many for each network. With `n_components`, positions
        are returned instead.
        """
        embedding = self._embed(X)
        if self._map is None or self._results.config.n_components is None:
            return embedding
        return place(self._map.mapper, embedding)

    def _embed(self, X: ArrayLike) -> NDArray[np.float32]:
        check_is_fitted(self)
        return embed(self.network_, encode(self._encoder, self._checked(X, reset=False)))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the fraction of each sample's affinity per cluster, (m, n_clusters_).

        Column i is the cluster with the label i in `labels_`. Unsure images of a run that was
        loaded are in no cluster: they have no column, and do not count as neighbours.
        """
        embedding = self._embed(X)
        result, config = self.result_, self._results.config
        if self._results.shelf is None:
            return cluster_shares(result, config, embedding)
        counts = result.labels != self._results.shelf
        if not counts.any():
            raise ValueError("all images of this run are unsure, so it has no clusters")
        return cluster_affinities(
            embedding,
            result.embedding[counts],
            result.labels[counts],
            sigma2=result.sigma2,
            n_neighbors=count_neighbors(int(counts.sum()), config),
        )

    def predict(self, X: ArrayLike) -> NDArray[np.int32]:
        """Return the cluster to which each sample has the largest affinity."""
        labels: NDArray[np.int32] = self.predict_proba(X).argmax(axis=1).astype(np.int32)
        return labels

    def recut(self, k: int) -> NDArray[np.int32]:
        """Return labels for a different number of clusters, without training.

        Exact copies share a cluster, so there are at most as many clusters as different samples; a
        warning says if that is fewer than k. Clusters of a loaded run that a person has merged are
        not divided either. Unsure images are not counted among the k clusters: they keep a label of
        their own, the last one.
        """
        check_is_fitted(self)
        k = self._results.possible(k)
        if self._results.n_clusters == 0:
            return self.result_.labels
        return recut(self.result_, k, self._results.config, self._results.shelf)

    def report(self, images: NDArray | None = None, **options: Any) -> Report:
        """Make the page of the fitted model; a notebook displays it.

        Parameters
        ----------
        images
            The images that the model was fitted on; needed only if they were not saved with it.
        **options
            Keyword arguments of `jule.report.Report.of_results`.
        """
        check_is_fitted(self)
        shown = self._samples if images is None else images
        if shown is None:
            options = {"no_pictures": "pass the images to report()", **options}
        if self._encoder is not None:
            options = {"encoder": self._encoder.about, **options}
        return Report.of_results(self._results, shown, **options)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Save the fitted model as a run folder, as `jule cluster` does.

        The images that it was fitted on are saved as well, for the page and for exports.

        Parameters
        ----------
        folder
            The folder to write; it must not exist or be empty, unless `overwrite` is set.
        overwrite
            Whether to replace a run that is already in the folder.
        """
        check_is_fitted(self)
        path = Path(folder)
        if not overwrite and path.is_dir() and not is_empty(path):
            raise FileExistsError(
                f"{path} exists and is not empty: choose another folder, or save with "
                "overwrite=True to replace a run"
            )
        images = self._samples if len(self.sample_shape_) > 1 else None
        source = self._source if images is None else ""  # the images are in the run itself
        run = create_run(
            path,
            self._results.config,
            self._data,
            source=source,
            features=describe_encoder(self._encoder),
            overwrite=overwrite,
        )
        results = self._results
        with hold(run.home):
            if images is not None:
                write_atomic(run.path(IMAGES), arrays_bytes(images=images))
            copies = duplicates_csv(results.names, results.first_copies, results.indices)
            write_atomic(run.path(DUPLICATES), copies)
            if self._samples is not None:
                write_atomic(run.path(DIGESTS), array_bytes(digests_of(self._samples)))
            write_results(run, results, self.network_, self._map)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        network: nn.Module | None = None,
        features: Encoder | None = None,
        device: str = "auto",
    ) -> JULE:
        """Load a model that `save` or `jule cluster` wrote.

        Parameters
        ----------
        folder
            The run folder.
        network
            An instance of your own module, if the model was fitted with one.
        features
            Your own encoder, if the model was fitted with one.
        device
            ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
        """
        run = RunFolder(folder)
        results = read_results(run)
        settings = results.config.to_json()
        encoder = encoder_of(run, features)
        model = cls(
            settings.pop("n_clusters"),
            random_state=settings.pop("seed"),
            settings=settings,
            features=PIXELS if encoder is None else encoder,
            network=network,
            device=device,
        )
        model._encoder = encoder
        about = run.about()
        model._data, model._samples, model._source = about["data"], None, about["source"]
        # Saved with the model, and saved again with it. Removed images are only missed on the page.
        if IMAGES in run.manifest() and run.path(IMAGES).exists():
            model._samples = _read_images(run, tuple(about["data"]["shape"]))
        model.sample_shape_ = run.sample_shape()
        model.n_features_in_ = model.sample_shape_[0]
        embedder = read_network(run, network, device)
        model._set_fitted(results, embedder, read_map(run, results, device))
        return model


def _constraints(
    copies: NDArray[np.int64], must_link: ArrayLike | None, cannot_link: ArrayLike | None
) -> Constraints | None:
    """Return constraints that exact copies share; None if there are none."""
    if must_link is None and cannot_link is None:
        return None
    n = len(copies)
    given = Constraints.of(n, () if must_link is None else must_link)
    joined = np.concatenate(
        [np.column_stack((first, np.arange(n))) for first in (given.units, copies)]
    )
    return Constraints.of(n, joined, () if cannot_link is None else cannot_link)


def _read_images(run: RunFolder, shape: tuple[int, ...]) -> NDArray:
    images = read_run_array(run)
    if images.shape != shape:
        raise damaged(run.path(IMAGES), f"its shape is {images.shape} instead of {shape}")
    return images
