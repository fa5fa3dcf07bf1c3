"""The methods that the paper compares with, each a scikit-learn estimator."""

from jule.baselines._base import BaseClusterer
from jule.baselines.graph_degree_linkage import GraphDegreeLinkage

METHODS: dict[str, type[BaseClusterer]] = {"AC-GDL": GraphDegreeLinkage}  # by the paper's names

__all__ = ["METHODS", "GraphDegreeLinkage"]
