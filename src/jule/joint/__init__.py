"""Algorithm 1: the only place that knows both passes."""

from jule.joint.choose import Choice, choose_n_clusters
from jule.joint.config import Config, preset
from jule.joint.finish import Result, finish
from jule.joint.loop import first_network, joint_learning
from jule.joint.state import Period, State

__all__ = [
    "Choice",
    "Config",
    "Period",
    "Result",
    "State",
    "choose_n_clusters",
    "finish",
    "first_network",
    "joint_learning",
    "preset",
]
