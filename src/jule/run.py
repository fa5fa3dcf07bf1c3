"""Use a run folder from Python: `Run`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jule.corrections.edits import EditLog
from jule.export.folders import Exported
from jule.export.pictures import export_pictures
from jule.images import Samples, open_source
from jule.images.read import read_one
from jule.progress import Progress
from jule.report import Report
from jule.runs.edits import apply_edits, parse_edits, read_edits
from jule.runs.encoding import ENCODING, encode, encoder_of
from jule.runs.execute import make_map
from jule.runs.folder import RunFolder
from jule.runs.maps import read_map
from jule.runs.page_edits import PageEdits
from jule.runs.predict import Prediction, most_similar, predict_samples, read_for_run
from jule.runs.results import RunResults, check_finished, read_network, read_results

if TYPE_CHECKING:
    from jule.backward import Embedder
    from jule.features import Encoder
    from jule.joint.lowdim import Map


@dataclass(frozen=True)
class Similar:
    """An image of a run that is similar to a given one.

    Attributes
    ----------
    path
        Its path or name; several images may have the same.
    cluster
        Its cluster.
    similarity
        The cosine of both representations, up to 1.
    index
        Its position in the source of the run, which identifies it.
    """

    path: str
    cluster: int
    similarity: float
    index: int


class Run(RunFolder):
    """A finished run, written by `jule cluster` or `JULE.save`.

    Parameters
    ----------
    folder
        The run folder.
    network
        An instance of your own module, if the run was made with one; only `predict` and `similar`
        need it.
    features
        The encoder of the run, if it is your own or was moved; only `predict` and `similar` need
        it.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import jule
    >>> points = np.random.default_rng(0).normal(size=(40, 2))
    >>> with TemporaryDirectory() as folder:
    ...     jule.JULE(n_clusters=2, settings={"min_images": 100}).fit(points).save(folder)
    ...     run = jule.Run(folder)
    ...     run.labels.shape, run.recut(3).max().item(), run.predict(points[:5]).labels.shape
    ((40,), 2, (5,))
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        network: Any = None,
        features: str | Encoder | None = None,
        device: str = "auto",
    ) -> None:
        super().__init__(folder)
        self._body = network
        self._features = features
        self._device = device

    @cached_property
    def results(self) -> RunResults:
        """All results of the run."""
        return read_results(self)

    @cached_property
    def network(self) -> Embedder:
        """The trained network."""
        return read_network(self, self._body, self._device)

    @cached_property
    def learned_map(self) -> Map | None:
        """The map of the run, with the network that places images on it; None if it has none."""
        return read_map(self, self.results, self._device)

    @cached_property
    def encoder(self) -> Encoder | None:
        """The encoder of the pictures; None for pixels."""
        return encoder_of(self, self._features)

    @property
    def labels(self) -> NDArray[np.int32]:
        """The cluster of every sample, by its number in labels.csv; -1 if it is unsure."""
        return self.results.labels

    @property
    def names(self) -> list[str]:
        """The path or name of every sample."""
        return self.results.names

    @property
    def cluster_names(self) -> dict[int, str]:
        """The names of the clusters that have one, by cluster."""
        return self.results.recut()[1]

    def recut(self, k: int) -> NDArray[np.int32]:
        """Return labels for a different number of clusters, without training; -1 if unsure."""
        return self.results.recut(k)[0]

    def predict(
        self,
        source: Any,
        *,
        strict: bool = False,
        cache: Path | None = None,
        reading: Callable[[int, int], None] | None = None,
        progress: Progress | None = None,
    ) -> Prediction:
        """Predict the clusters of new images.

        Parameters
        ----------
        source
            Anything that `jule.read_images` accepts.
        strict
            Whether to raise an error if a file cannot be read, instead of skipping it.
        cache
            The folder for decoded images; by default the user's cache folder.
        reading
            Called with the number of images read so far and the total.
        progress
            Called with the name of a stage and the fraction of it that is done.
        """
        data = self.read_new(source, strict=strict, cache=cache, progress=reading)
        return self.predict_read(data, progress, cache=cache)

    def read_new(self, source: Any, **options: Any) -> Samples:
        """Read new images at the size and colour mode of the run."""
        return read_for_run(self, open_source(source), **options)

    def predict_read(
        self, data: Samples, progress: Progress | None = None, *, cache: Path | None = None
    ) -> Prediction:
        """Predict the clusters of images that `read_new` returned."""
        show = None if progress is None else partial(progress, ENCODING)
        vectors = encode(self.encoder, data.samples, cache=cache, progress=show)
        return predict_samples(
            self.results,
            self.network,
            vectors,
            data.names,
            progress,
            indices=data.indices,
            learned_map=self.learned_map,
        )

    @property
    def positions(self) -> NDArray[np.float32] | None:
        """The place of every sample on the map of the run; None if it has none."""
        return self.results.positions

    def learn_map(
        self, n_components: int = 2, *, seed: int = 0, progress: Progress | None = None
    ) -> NDArray[np.float32]:
        """Learn a map of the run, write it into its folder, and return `positions`.

        Parameters
        ----------
        n_components
            Number of dimensions; the page shows maps of two.
        seed
            Random seed.
        progress
            Called with the name of a stage and the fraction of it that is done.
        """
        self.results = make_map(
            self, n_components, seed=seed, device=self._device, progress=progress
        )
        self.__dict__.pop("learned_map", None)  # an earlier one
        assert self.results.positions is not None
        return self.results.positions

    def similar(self, picture: str | os.PathLike[str], count: int = 10) -> list[Similar]:
        """Return the images of the run that are most similar to a picture, most similar first."""
        spec = self.image_spec()
        if spec is None:
            raise ValueError(f"{self.folder} was not made from pictures, so none can be compared")
        pixels = read_one(Path(picture), spec)
        vector = encode(self.encoder, pixels[None])[0]
        nearest, cosines = most_similar(self.results, self.network, vector, count)
        indices = self.results.indices
        return [
            Similar(self.names[at], int(self.labels[at]), float(cosine), int(indices[at]))
            for at, cosine in zip(nearest.tolist(), cosines, strict=True)
        ]

    def export_folders(
        self,
        to: str | os.PathLike[str],
        *,
        k: int | None = None,
        how: str | None = None,
        source: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Exported:
        """Sort the pictures of the run into one folder per cluster.

        Parameters
        ----------
        to
            The folder to sort into. Existing files in it are never changed.
        k
            Number of clusters, if it differs from that of the run.
        how
            ``"link"`` or ``"copy"``; by default links where possible.
        source
            Where the pictures are, if they have been moved since the run.
        progress
            Called with the fraction that is done.
        """
        return export_pictures(
            self, self.results, Path(to), k=k, how=how, source=source, progress=progress
        )

    def apply(
        self, edits: str | os.PathLike[str] | dict[str, Any] | EditLog | PageEdits | None = None
    ) -> int:
        """Apply edits and write labels.csv; return the number of images that were moved.

        Parameters
        ----------
        edits
            The JSON file that the page downloads, edits.json of another run, or the content of
            such a file. By default, the edits that the run has already.
        """
        if isinstance(edits, str | os.PathLike):
            edits = read_edits(Path(edits))
        elif edits is not None and not isinstance(edits, EditLog | PageEdits):
            edits = parse_edits(edits)
        check_finished(self)
        self.results, n_moved = apply_edits(self, edits)
        return n_moved

    def report(self, **options: Any) -> Report:
        """Make the page of the run; a notebook displays it.

        Keyword arguments are those of `jule.report.Report.of_run`.
        """
        return Report.of_run(self, **{"results": self.results, **options})
