"""All settings of a run in one frozen dataclass, with the reasons for the defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from jule.backward.settings import BATCHES, NEGATIVES, Batches, Negatives, Training
from jule.forward.agglomerate import INITS, Init
from jule.forward.prepare import PREPARATIONS, Preparation

Preset = Literal["default", "paper"]


@dataclass(frozen=True)
class Config:
    """All settings of a run.

    `preset` returns one of the two measured configurations; `dataclasses.replace` changes single
    fields. The defaults for training are those of `jule.backward.Training`.

    Examples
    --------
    >>> Config(n_clusters=10).eta is None, preset("paper").eta
    (True, 0.9)
    """

    n_clusters: int | None = None  # K; None lets the merge tree suggest one
    seed: int = 0  # random seed
    rounds: int = 2  # the second one starts from initial clusters of the learned representation

    # Forward pass.
    preparation: Preparation = "l2"  # of raw intensities; the network's outputs have norm 1
    n_neighbors: int = 20  # K_s, as in the paper and in GDL
    a: float = 1.0  # scales sigma^2 of Eq. 4; as in the paper
    init: Init = "nearest"  # the paper's initial clusters
    n_near: int = 5  # K_c of Eq. 7; as in the paper
    lam: float = 1.0  # lambda of Eq. 7; as in the paper
    eta: float | None = None  # unrolling rate; None spreads the merges over n_periods
    n_periods: int = 3  # per round, if eta is None; no data set needs its own rate
    min_cluster_size: int | None = None  # smaller ones do not count towards K; None: n / (20 K)

    # Backward pass.
    network: str = "auto"  # a name of jule.backward.networks.NETWORKS; auto: by the sample shape
    min_side: int | None = 16  # smaller images are enlarged; the paper's smallest are 16 x 16
    max_side: int | None = 32  # larger images are averaged down: far less work, hardly worse
    normalize: bool = True  # divide each image by the RMS of its pixels, like preparation "l2"
    epochs: float = 2.4  # per period; cluster-aware batches do not need the paper's 20
    min_images: int = 24_000  # per period; 2.4 epochs of 575 images would hardly train the network
    max_images: int = 70_000  # per period, but never less than one epoch
    learning_rate: float = Training.learning_rate
    momentum: float = Training.momentum
    weight_decay: float = Training.weight_decay
    decay: float = Training.decay
    decay_power: float = Training.decay_power
    gamma: float = Training.gamma
    margin: float = Training.margin
    negatives: Negatives = Training.negatives
    n_negatives: int = Training.n_negatives
    batches: Batches = Training.batches
    batch_size: int = Training.batch_size
    per_cluster: int = Training.per_cluster
    augment: bool = True  # small shifts, rotations, scalings and shears, where they do no harm

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ValueError(problem)

    def training(self, warp: bool = False) -> Training:
        """Return the settings of `jule.backward.train`.

        Examples
        --------
        >>> Config(margin=0.3).training().margin
        0.3
        """
        names = {field.name for field in fields(Training)} - {"warp"}
        return Training(warp=float(warp), **{name: getattr(self, name) for name in names})

    def steps_per_period(self, n_samples: int) -> int:
        """Return the number of batches per period.

        A period has `epochs` epochs, but at least `min_images` images, and at most `max_images`
        images or one epoch, whichever is more.

        Examples
        --------
        >>> [Config().steps_per_period(n) for n in (575, 10_000, 70_000)]
        [240, 240, 700]
        """
        most = max(self.max_images, n_samples)
        images = min(max(self.epochs * n_samples, self.min_images), most)
        return math.ceil(images / self.batch_size)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain values.

        Examples
        --------
        >>> Config.from_json(Config(seed=3).to_json()).seed
        3
        """
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Config:
        """Build a configuration from the values of `to_json`; missing ones get the defaults."""
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}")
        return cls(**values)


def preset(name: Preset = "default", **changes: Any) -> Config:
    """Return one of the two measured configurations, with changes.

    ``"paper"`` trains as the authors did: one round, eta 0.9 (they used 0.2 for faces), random
    batches, 20 epochs per period, images at their own size, no augmentation.

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
            "min_side": None,
            "max_side": None,
            "normalize": False,
            "epochs": 20.0,
            "min_images": 0,
            "max_images": 10**12,
            "batches": "random",
            "negatives": "random",
            "augment": False,
        }
        return replace(Config(), **(as_published | changes))
    raise ValueError(f"unknown preset {name!r}: choose 'default' or 'paper'")


def _problems(config: Config) -> list[str]:
    """Return a message for each setting that is out of range."""
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
        problems.append(f"eta must be above 0 and at most 1, got {config.eta}")
    if config.batch_size < 2:
        problems.append(f"batch_size must be 2 or more, got {config.batch_size}")
    for name in ("min_side", "max_side"):
        side = getattr(config, name)
        if side is not None and side < 1:
            problems.append(f"{name} must be 1 or more, or None, got {side}")
    choices: dict[str, tuple[str, ...]] = {
        "preparation": PREPARATIONS,
        "negatives": NEGATIVES,
        "batches": BATCHES,
        "init": INITS,
    }
    for name, allowed in choices.items():
        if getattr(config, name) not in allowed:
            given = getattr(config, name)
            problems.append(f"unknown {name} {given!r}: choose one of {', '.join(allowed)}")
    return problems
