"""All settings of a run in one frozen dataclass, with the reasons for the defaults."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from jule.backward.plan import MOST_MEMBERS
from jule.backward.settings import BATCHES, NEGATIVES, Batches, Negatives, Training
from jule.forward.agglomerate import INITS, Init
from jule.forward.prepare import PREPARATIONS, Preparation
from jule.joint.values import is_number, is_whole, plain, shortened

Preset = Literal["default", "paper"]
Kind = Literal["images", "encoded", "vectors"]
NeighborSearch = Literal["auto", "exact", "approximate"]
NEIGHBOR_SEARCHES = ("auto", "exact", "approximate")

MOST = 2**31 - 1  # of whatever is counted
MOST_SIDE = 2**14  # of an image, in pixels
MOST_COMPONENTS = 2**10  # of a map


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
    ensemble: int = 1  # networks side by side, trained with the seeds seed, seed + 1, ...
    rounds: int = 2  # the second one starts from initial clusters of the learned representation
    ends_at: float = 1.0  # a round ends at so many times K clusters, which merge without training

    # Forward pass.
    preparation: Preparation = "l2"  # of raw intensities; the network's outputs have norm 1
    n_neighbors: int = 20  # K_s, as in the paper and in GDL; fewer for fewer than 400 samples
    neighbors: NeighborSearch = "auto"  # exact up to 200,000 samples, approximate beyond
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
    max_epochs: float = 100.0  # per period, for `min_images`: 80 images are done within a minute
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

    n_components: int | None = None  # dimensions of a map, learned last; None learns none

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ValueError(problem)
        for field in _FIELDS:
            object.__setattr__(self, field.name, plain(getattr(self, field.name)))

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

        A period has `epochs` epochs, but at least `min_images` images or `max_epochs` epochs,
        whichever is less, and at most `max_images` images or one epoch, whichever is more.

        Examples
        --------
        >>> [Config().steps_per_period(n) for n in (80, 575, 10_000, 70_000)]
        [80, 240, 240, 700]
        """
        least = min(self.min_images, self.max_epochs * n_samples)
        most = max(self.max_images, n_samples)
        images = min(max(self.epochs * n_samples, least), most)
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
    def from_json(cls, values: Any) -> Config:
        """Build a configuration from the values of `to_json`; missing ones get the defaults.

        Raises
        ------
        ValueError
            If the value is not an object, or if a setting is unknown, has the wrong type or is out
            of range.
        """
        if not isinstance(values, dict):
            raise ValueError(
                f"settings must be an object of names and values, got {shortened(values)}"
            )
        unknown = sorted(str(name) for name in set(values) - {field.name for field in fields(cls)})
        if unknown:
            raise ValueError(f"unknown settings: {shortened(', '.join(unknown), quotes=False)}")
        return cls(**values)


def kind_of(shape: tuple[int, ...], *, encoded: bool = False) -> Kind:
    """Return the kind of samples of a shape, for `preset`.

    Examples
    --------
    >>> kind_of((28, 28)), kind_of((13,)), kind_of((1280,), encoded=True)
    ('images', 'vectors', 'encoded')
    """
    if encoded:
        return "encoded"
    return "vectors" if len(shape) == 1 else "images"


def preset(name: Preset = "default", *, of: Kind = "images", **changes: Any) -> Config:
    """Return one of the two measured configurations, with changes.

    ``"paper"`` trains as the authors did: one round, eta 0.9 (they used 0.2 for faces), random
    batches, 20 epochs per period, images at their own size, no augmentation.

    Parameters
    ----------
    name
        ``"default"`` or ``"paper"``.
    of
        The kind of samples, from `kind_of`. Vectors, whether ``"encoded"`` by a pretrained encoder
        or the user's own (``"vectors"``), are a representation already: by default, a head that
        starts as the identity is trained on them for one short round.
    **changes
        Fields that differ.

    Examples
    --------
    >>> preset("paper", n_clusters=20, eta=0.2).epochs
    20.0
    """
    if name == "default" and of != "images":
        gentle: dict[str, Any] = {
            "network": "residual",
            "rounds": 1,
            "min_images": 0,  # more epochs on a small set make it worse than no training
            "learning_rate": 1.0,  # the head's gradients are small: its outputs have 1,000 values
            "augment": False,
        }
        if of == "vectors":
            gentle["preparation"] = "none"  # the lengths of a user's vectors mean something
        else:
            gentle["ends_at"] = 2.0  # clusters that an encoder keeps apart are not trained as one
        return replace(Config(), **(gentle | changes))
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


def _problems(config: Config) -> Iterator[str]:
    """Yield a message for each setting of the wrong type, or else for each that is out of range."""
    wrong = [_wrong_type(field.name, field.type, getattr(config, field.name)) for field in _FIELDS]
    if any(wrong):
        yield from filter(None, wrong)
        return
    k = config.n_clusters
    if k is not None and not 1 <= k <= MOST:
        yield f"n_clusters must be 1 or more, or None, got {k}"
    if not 1 <= config.ensemble <= MOST_MEMBERS:
        yield f"ensemble must be 1 or more, and at most {MOST_MEMBERS}, got {config.ensemble}"
    for name in ("rounds", "n_neighbors", "n_near", "n_periods", "n_negatives", "per_cluster"):
        if not 1 <= getattr(config, name) <= MOST:
            yield f"{name} must be 1 or more, and at most {MOST}, got {getattr(config, name)}"
    for name in ("a", "epochs", "max_epochs", "learning_rate", "gamma"):
        if not 0 < getattr(config, name) < math.inf:
            yield f"{name} must be positive and finite, got {getattr(config, name)}"
    for name in ("lam", "momentum", "weight_decay", "decay", "margin"):
        if not 0 <= getattr(config, name) < math.inf:
            yield f"{name} must be 0 or more and finite, got {getattr(config, name)}"
    if not 1 <= config.ends_at < math.inf:
        yield f"ends_at must be 1 or more and finite, got {config.ends_at}"
    if not math.isfinite(config.decay_power):
        yield f"decay_power must be finite, got {config.decay_power}"
    for name in ("seed", "min_images", "max_images"):
        if not 0 <= getattr(config, name) < 2**63:
            yield f"{name} must be 0 or more, and below 2^63, got {getattr(config, name)}"
    if config.eta is not None and not 0 < config.eta <= 1:
        yield f"eta must be above 0 and at most 1, got {config.eta}"
    if not 2 <= config.batch_size <= MOST:
        yield f"batch_size must be 2 or more, and at most {MOST}, got {config.batch_size}"
    for name, most in (
        ("min_side", MOST_SIDE),
        ("max_side", MOST_SIDE),
        ("min_cluster_size", MOST),
        ("n_components", MOST_COMPONENTS),
    ):
        value = getattr(config, name)
        if value is not None and not 1 <= value <= most:
            yield f"{name} must be 1 or more, and at most {most}, or None, got {value}"
    choices: dict[str, tuple[str, ...]] = {
        "preparation": PREPARATIONS,
        "neighbors": NEIGHBOR_SEARCHES,
        "negatives": NEGATIVES,
        "batches": BATCHES,
        "init": INITS,
    }
    for name, allowed in choices.items():
        if getattr(config, name) not in allowed:
            given = getattr(config, name)
            yield f"unknown {name} {shortened(given)}: choose one of {', '.join(allowed)}"


def _wrong_type(name: str, annotation: Any, value: Any) -> str | None:
    """Return a message if a value is not of the type that a setting is declared with."""
    kind, _, optional = str(annotation).partition(" | ")
    if value is None and optional:
        return None
    if kind == "bool":
        fits, wanted = isinstance(value, bool | np.bool_), "true or false"
    elif kind == "int":
        fits, wanted = is_whole(value), "a whole number"
    elif kind == "float":
        fits, wanted = is_number(value), "a number"
    else:
        fits, wanted = isinstance(value, str), "text"
    return None if fits else f"{name} must be {wanted}, got {shortened(value)}"


_FIELDS = fields(Config)
