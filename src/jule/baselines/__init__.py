"""The methods that the paper compares with, each a scikit-learn estimator."""

from jule.baselines._base import BaseClusterer
from jule.baselines.average_linkage import AverageLinkage
from jule.baselines.deep_semi_nmf import DeepSemiNMF
from jule.baselines.graph_degree_linkage import GraphDegreeLinkage
from jule.baselines.kmeans import KMeans
from jule.baselines.landmark_spectral import LandmarkSpectralClustering
from jule.baselines.locality_preserving_nmf import LocalityPreservingNMF
from jule.baselines.njw_spectral import NJWSpectralClustering
from jule.baselines.normalized_cuts import NormalizedCuts
from jule.baselines.path_integral_linkage import PathIntegralLinkage
from jule.baselines.self_tuning_spectral import SelfTuningSpectralClustering
from jule.baselines.task_specific_deep import TaskSpecificDeepClustering
from jule.baselines.zeta_linkage import ZetaLinkage

METHODS: dict[str, type[BaseClusterer]] = {  # keyed by the paper's names, in its order
    "K-means": KMeans,
    "SC-NJW": NJWSpectralClustering,
    "SC-ST": SelfTuningSpectralClustering,
    "SC-LS": LandmarkSpectralClustering,
    "N-Cuts": NormalizedCuts,
    "AC-Link": AverageLinkage,
    "AC-Zell": ZetaLinkage,
    "AC-GDL": GraphDegreeLinkage,
    "AC-PIC": PathIntegralLinkage,
    "NMF-LP": LocalityPreservingNMF,
    "NMF-D": DeepSemiNMF,
    "TSC-D": TaskSpecificDeepClustering,
}

__all__ = [
    "METHODS",
    "AverageLinkage",
    "DeepSemiNMF",
    "GraphDegreeLinkage",
    "KMeans",
    "LandmarkSpectralClustering",
    "LocalityPreservingNMF",
    "NJWSpectralClustering",
    "NormalizedCuts",
    "PathIntegralLinkage",
    "SelfTuningSpectralClustering",
    "TaskSpecificDeepClustering",
    "ZetaLinkage",
]
