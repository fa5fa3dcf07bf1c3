"""From images to features: patches, what is learned on them, their codes, and sums over quadrants.

What takes long is saved in a folder, so that an interrupted run is resumed.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from jule.backward import Embedder
from jule.backward.embedder import get_weights, set_weights
from jule.files import array_bytes, make_folder, write_atomic
from jule.images import fingerprint
from jule.joint import Config, init_network, joint_learning
from jule.joint.state import load_state, save_state
from jule.paper.codes import QUADRANTS, encode, learn_codes, principal_directions
from jule.paper.patches import (
    SIDE,
    ConvolutionalLayers,
    Describe,
    PatchNet,
    Rows,
    fit_whitening,
    normalize_contrast,
    random_patches,
    set_batch_statistics,
)
from jule.progress import Progress

IMAGES_PER_FILE = 1000  # features are saved in such parts: an interrupted run loses one at most


class PatchPipeline:
    """The pipeline of Coates, Ng and Lee, with or without a network that is learned on the patches.

    Parameters
    ----------
    images
        The images that random patches are cut from.
    n_patches
        The number of patches.
    seed
        Random seed of patches, network and codes.
    folder
        Where the states of joint learning, the codes and the features are saved.
    progress
        Called with the name of a stage and the fraction of it that is done.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> images = np.random.default_rng(0).integers(0, 255, (30, 8, 8), np.uint8)
    >>> with TemporaryDirectory() as folder:
    ...     pipeline = PatchPipeline(
    ...         images, n_patches=100, seed=0, folder=Path(folder), progress=lambda *_: None
    ...     )
    ...     dimensions = pipeline.learn_codes(5)
    ...     dimensions, pipeline.features(images).shape
    ([36], (30, 20))
    """

    def __init__(
        self,
        images: NDArray[np.uint8],
        *,
        n_patches: int,
        seed: int,
        folder: Path,
        progress: Progress,
    ) -> None:
        self._seed, self._folder, self._progress = seed, folder, progress
        self._patches = normalize_contrast(random_patches(images, n_patches, seed))
        self._whitening = fit_whitening(self._patches)
        self._describe: Describe = lambda patches: [self._whitening(patches)]
        self._codebooks: list[Rows] = []

    def learn_network(
        self, config: Config, *, is_trained: bool, variance: float
    ) -> list[dict[str, Any]]:
        """Replace whitened patches by the convolutional layers of a network; return its history.

        Parameters
        ----------
        config
            The settings of joint learning.
        is_trained
            Whether to train it; otherwise the network keeps its random weights.
        variance
            The share of the variance of each layer that is kept, in its principal components.
        """
        patches = self._whitening(self._patches).reshape(len(self._patches), SIDE, SIDE, -1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed)
            network = init_network(patches, config, PatchNet(patches.shape[-1]))
        history = []
        if is_trained:
            history = self._train(network, patches, config)
        else:
            set_batch_statistics(network, patches)
        layers = ConvolutionalLayers(self._whitening, network)
        directions = [principal_directions(each, variance) for each in layers(self._patches)]
        self._describe = lambda some: [
            each @ kept for each, kept in zip(layers(some), directions, strict=True)
        ]
        return history

    def _train(self, network: Embedder, patches: NDArray, config: Config) -> list[dict[str, Any]]:
        """Run joint learning, or resume it, and return its history."""
        identity = {"config": config.to_json(), "data": fingerprint(patches)}
        states = make_folder(self._folder / "states")
        state = load_state(states, identity, network=get_weights(network))
        for after in joint_learning(patches, network, config, state=state, progress=self._progress):
            state = after
            save_state(states, state, identity)
        assert state is not None  # there is at least one period
        set_weights(network, state.network)
        return [asdict(period) for period in state.history]

    def learn_codes(self, n_codes: int) -> list[int]:
        """Learn codes for each representation of the patches; return their dimensions.

        Codes that were saved are read.
        """
        vectors = self._describe(self._patches)
        for number, each in enumerate(vectors):
            self._progress("codes", number / len(vectors))
            path = self._folder / f"codes-{number}.npy"
            codes = _read_leftover(path, (n_codes, each.shape[1]))
            if codes is None:
                codes = learn_codes(each, n_codes, self._seed)
                write_atomic(path, array_bytes(codes))
            self._codebooks.append(codes)
        return [each.shape[1] for each in vectors]

    def features(self, images: NDArray[np.uint8]) -> Rows:
        """Return the features of images; those that were saved are read."""
        width = QUADRANTS * sum(map(len, self._codebooks))
        features = np.empty((len(images), width), np.float32)
        for start in range(0, len(images), IMAGES_PER_FILE):
            part = images[start : start + IMAGES_PER_FILE]
            path = self._folder / f"features-{start:06d}.npy"
            coded = _read_leftover(path, (len(part), width))
            if coded is None:
                show = partial(self._show_features, start, len(part), len(images))
                coded = encode(part, self._describe, self._codebooks, show)
                write_atomic(path, array_bytes(coded))
            features[start : start + len(part)] = coded
        return features

    def _show_features(self, start: int, n: int, n_images: int, share: float) -> None:
        self._progress("features", (start + share * n) / n_images)


def _read_leftover(path: Path, shape: tuple[int, int]) -> Rows | None:
    """Read an array that an interrupted run has saved; None if it is not there, or damaged."""
    try:
        found: Rows = np.load(path, allow_pickle=False)
    except (OSError, EOFError, ValueError):
        return None
    return found if found.shape == shape and found.dtype == np.float32 else None
