"""Joint learning (Algorithm 1): the forward and the backward pass in alternation.

The public names are loaded when first used, so that results can be read without importing torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jule.joint.choose import Choice, choose_n_clusters
    from jule.joint.clustering import Representation, represent
    from jule.joint.config import Config, preset
    from jule.joint.loop import init_network, joint_learning
    from jule.joint.result import Result, finish, recut
    from jule.joint.state import Period, State

__all__ = [
    "Choice",
    "Config",
    "Period",
    "Representation",
    "Result",
    "State",
    "choose_n_clusters",
    "finish",
    "init_network",
    "joint_learning",
    "preset",
    "recut",
    "represent",
]

_HOMES = {
    "Choice": "choose",
    "Config": "config",
    "Period": "state",
    "Representation": "clustering",
    "Result": "result",
    "State": "state",
    "choose_n_clusters": "choose",
    "finish": "result",
    "init_network": "loop",
    "joint_learning": "loop",
    "preset": "config",
    "recut": "result",
    "represent": "clustering",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"jule.joint.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'jule.joint' has no attribute {name!r}")
