"""The methods that the paper compares with, each a scikit-learn estimator."""

from jule.baselines.graph_degree_linkage import GraphDegreeLinkage

__all__ = ["GraphDegreeLinkage"]
