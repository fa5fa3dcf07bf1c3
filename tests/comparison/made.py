"""Methods that do what real ones should not: crash, hang, print, refuse."""

import os
import signal
import time
import warnings
from pathlib import Path

import numpy as np


class Halves:
    """The first half of the samples against the second, whatever they are."""

    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters

    def _is_random(self):
        return hasattr(self, "random_state")

    def fit(self, vectors):
        self.labels_ = np.arange(len(vectors)) * self.n_clusters // len(vectors)
        return self


class Dice(Halves):
    """Random clusters."""

    def __init__(self, n_clusters=2, random_state=0):
        super().__init__(n_clusters)
        self.random_state = random_state

    def fit(self, vectors):
        rng = np.random.default_rng(self.random_state)
        self.labels_ = rng.integers(self.n_clusters, size=len(vectors))
        return self


class OwnNumber:
    """Finds its number of clusters itself, and leaves samples out."""

    def _is_random(self):
        return False

    def fit(self, vectors):
        self.labels_ = np.arange(len(vectors)) % 4 - 1
        return self


class Positive(Halves):
    """Refuses negative values."""

    _non_negative = True

    def fit(self, vectors):
        if vectors.min() < 0:
            raise ValueError("negative values")
        return super().fit(vectors)


class Chatty(Halves):
    """Prints and warns, as libraries do."""

    def fit(self, vectors):
        print("{epoch 1}")  # noqa: T201
        os.system("echo from a program")
        warnings.warn("n_jobs is ignored", UserWarning, stacklevel=1)
        warnings.warn("fewer clusters", UserWarning, stacklevel=2)
        return super().fit(vectors)


class Writer(Halves):
    """Writes into the samples that it is given, and uses memory."""

    def fit(self, vectors):
        vectors[:] = 0
        np.ones(50_000_000 // 8)
        return super().fit(vectors)


class Refuses(Halves):
    def fit(self, vectors):
        raise ValueError("it needs\nother samples")


class NotInstalled(Halves):
    def fit(self, vectors):
        raise ImportError('UMAP needs umap-learn: pip install "jule[umap]"')


class Killed(Halves):
    def fit(self, vectors):
        os.kill(os.getpid(), signal.SIGKILL)


class Crashes(Halves):
    def fit(self, vectors):
        os.abort()


class SecondSeedFails(Dice):
    def fit(self, vectors):
        if self.random_state == 1:
            raise KeyError("seed")
        return super().fit(vectors)


class Hangs(Halves):
    """Says that it has started, and does not end."""

    def fit(self, vectors):
        Path(os.environ["JULE_TEST_STARTED"]).write_text(str(os.getpid()))
        time.sleep(600)


class Features(Halves):
    """Labels every sample with its number of features."""

    _is_rotation_invariant = True

    def fit(self, vectors):
        self.labels_ = np.full(len(vectors), vectors.shape[1])
        return self


class OwnFeatures(Features):
    """The same, and the single features matter."""

    _is_rotation_invariant = False
