"""Joint unsupervised learning of deep representations and image clusters (JULE).

The public names are loaded when first used, so that ``import jule`` is quick:

>>> import jule
>>> data = jule.load_dataset("digits")
>>> labels = jule.GraphDegreeLinkage(n_clusters=10, preparation="l2").fit_predict(
...     data.images.reshape(len(data), -1)
... )
>>> jule.evaluation.nmi(data.labels, labels) > 0.8
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jule import backward, evaluation, forward, joint
    from jule.baselines import GraphDegreeLinkage
    from jule.estimator import JULE
    from jule.forward import MergeTree, agglomerate
    from jule.images import load_dataset, open_source, read_images
    from jule.run import Run

__version__ = "0.1.0"

__all__ = [
    "JULE",
    "GraphDegreeLinkage",
    "MergeTree",
    "Run",
    "agglomerate",
    "backward",
    "evaluation",
    "forward",
    "joint",
    "load_dataset",
    "open_source",
    "read_images",
]

_HOMES = {
    "JULE": "jule.estimator",
    "GraphDegreeLinkage": "jule.baselines",
    "MergeTree": "jule.forward",
    "Run": "jule.run",
    "agglomerate": "jule.forward",
    "load_dataset": "jule.images",
    "open_source": "jule.images",
    "read_images": "jule.images",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in __all__:
        return import_module(f"jule.{name}")
    raise AttributeError(f"module 'jule' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
