"""Everything that decides a run, in one frozen dataclass: every default with its reason."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from jule.backward.batches import BATCHES, Batches
from jule.backward.loss import NEGATIVES, Negatives
from jule.backward.train import Training
from jule.forward.agglomerate import First
from jule.forward.prepare import PREPARATIONS, Preparation

Preset = Literal["default", "paper"]


@dataclass(frozen=True)
class Config:
    """What a run does. `preset` gives the two that are measured; `replace` changes one thing.

    Examples
    --------
    >>> Config(n_clusters=10).eta is None, preset("paper").eta
    (True, 0.9)
    """

    n_clusters: int | None = None  # K; None lets the merge tree suggest one
    seed: int = 0  # of first weights, batches, negatives, augmentation
    rounds: int = 2  # the second starts from the learned representation's first clusters

    # Forward pass.
    preparation: Preparation = "l2"  # of raw intensities; the network's outputs have norm 1
    n_neighbors: int = 20  # K_s, as in the paper and in GDL
    a: float = 1.0  # scales sigma^2 of Eq. 4; the paper's
    first: First = "nearest"  # the paper's first clusters
    n_near: int = 5  # K_c of Eq. 7; the paper's
    lam: float = 1.0  # lambda of Eq. 7; the paper's
    eta: float | None = None  # unrolling rate; None spreads the merges over n_periods
    n_periods: int = 3  # of a round, when eta is None: no data set needs a rate of its own
    min_cluster_size: int | None = None  # smaller ones do not count towards K; None is n / (20 K)

    # Backward pass.
    max_side: int | None = 32  # larger images are averaged down: far less work, hardly worse
    level: bool = True  # the network, like the first clustering, sees images of norm 1
    epochs: float = 2.4  # a period; cluster-aware batches need no 20
    least_images: int = 24_000  # a period of a small set: 2.4 epochs of 575 images teach nothing
    most_images: int = 70_000  # a period of a large set, if that is an epoch or more
    learning_rate: float = 0.001  # the authors' 0.01, damped by 1 - momentum in their optimiser
    momentum: float = 0.9
    weight_decay: float = 5e-5
    decay: float = 1e-4  # inverse policy: rate * (1 + decay * step) ** -decay_power
    decay_power: float = 0.75
    gamma: float = 1.0  # weight of the positive pair in the triplet loss; the authors' code
    margin: float = 0.2
    negatives: Negatives = "nearest"  # random ones are soon too easy; the paper's own choice
    n_negatives: int = 20  # fewer can collapse a network that knows nothing yet
    batches: Batches = "clusters"  # a random batch has hardly any pairs to learn from
    batch_size: int = 100
    per_cluster: int = 4  # samples of a cluster that meet in a batch
    augment: bool = True  # small shifts, turns, scalings and shears, where they do no harm

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ValueError(problem)

    def training(self, warp: bool = False) -> Training:
        """Give the part that `jule.backward.train` needs, and whether images are warped.

        Examples
        --------
        >>> Config(margin=0.3).training().margin
        0.3
        """
        names = {field.name for field in fields(Training)} - {"warp"}
        return Training(warp=float(warp), **{name: getattr(self, name) for name in names})

    def steps_a_period(self, n_samples: int) -> int:
        """Count the batches of a period: epochs, but enough for few images, not too many for many.

        Examples
        --------
        >>> [Config().steps_a_period(n) for n in (575, 10_000, 70_000)]
        [240, 240, 700]
        """
        most = max(self.most_images, n_samples)
        images = min(max(self.epochs * n_samples, self.least_images), most)
        return math.ceil(images / self.batch_size)

    def to_json(self) -> dict[str, Any]:
        """Give the settings as plain values.

        Examples
        --------
        >>> Config.from_json(Config(seed=3).to_json()).seed
        3
        """
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Config:
        """Read what `to_json` gave; unknown names are refused."""
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}")
        return cls(**values)


def preset(name: Preset = "default", **changes: Any) -> Config:
    """Give one of the two measured configurations, with changes.

    ``"default"``: ours. ``"paper"``: as the authors ran it: one round, eta 0.9 (they used 0.2 for
    faces), random batches, 20 epochs a period, images as they are, no augmentation.

    Examples
    --------
    >>> preset("paper", n_clusters=20, eta=0.2).epochs
    20.0
    """
    if name == "default":
        return replace(Config(), **changes)
    if name == "paper":
        as_published: dict[str, Any] = {
            "rounds": 1,
            "eta": 0.9,
            "max_side": None,
            "level": False,
            "epochs": 20.0,
            "least_images": 0,
            "most_images": 10**12,
            "batches": "random",
            "negatives": "random",
            "augment": False,
        }
        return replace(Config(), **(as_published | changes))
    raise ValueError(f"unknown preset {name!r}: choose 'default' or 'paper'")


def _problems(config: Config) -> list[str]:
    """List what is wrong with the settings, in words for the user."""
    problems = []
    k = config.n_clusters
    if k is not None and k < 1:
        problems.append(f"n_clusters must be 1 or more, or None, got {k}")
    for name in ("rounds", "n_neighbors", "n_near", "n_periods", "n_negatives", "per_cluster"):
        if getattr(config, name) < 1:
            problems.append(f"{name} must be 1 or more, got {getattr(config, name)}")
    for name in ("a", "epochs", "learning_rate", "gamma"):
        if not getattr(config, name) > 0:
            problems.append(f"{name} must be positive, got {getattr(config, name)}")
    for name in ("lam", "momentum", "weight_decay", "decay", "margin", "seed"):
        if not getattr(config, name) >= 0:
            problems.append(f"{name} must be 0 or more, got {getattr(config, name)}")
    if config.eta is not None and not 0 < config.eta <= 1:
        problems.append(f"eta must lie above 0 and at most at 1, got {config.eta}")
    if config.batch_size < 2:
        problems.append(f"batch_size must be 2 or more, got {config.batch_size}")
    if config.max_side is not None and config.max_side < 1:
        problems.append(f"max_side must be 1 or more, or None, got {config.max_side}")
    choices: dict[str, tuple[str, ...]] = {
        "preparation": PREPARATIONS,
        "negatives": NEGATIVES,
        "batches": BATCHES,
        "first": ("nearest", "kmeans"),
    }
    for name, allowed in choices.items():
        if getattr(config, name) not in allowed:
            given = getattr(config, name)
            problems.append(f"unknown {name} {given!r}: choose one of {', '.join(allowed)}")
    return problems
