"""The rows of the clustering tables: which method runs with which settings and preparation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from jule.baselines import METHODS
from jule.baselines._base import BaseClusterer
from jule.baselines.modern import MODERN
from jule.forward.prepare import Preparation
from jule.paper.raw_gdl import FACES

Features = Literal["raw", "learned"]

CENTRED = ("K-means", "SC-NJW", "SC-ST", "SC-LS", "AC-Link", "AC-Zell", "AC-GDL", "AC-PIC")
# Besides faces, the cells of the paper that are only reproduced without centring.
NOT_CENTRED = {("AC-Link", "coil20")}


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes
    ----------
    name
        Name of the row in the table.
    method
        Name of the method in `METHODS` or `MODERN`.
    parameters
        Parameters of the estimator, besides the number of clusters and the seed.
    is_paper
        Whether the row has the settings of the paper and is compared with its numbers.
    left_out
        Data sets on which it is not measured, because it takes too long.
    left_out_learned
        The same on the learned representation, where every seed has samples of its own.
    raw, learned
        Parameters that differ on intensities and on the learned representation.
    only_learned
        Whether it is measured on the learned representation alone.
    """

    name: str
    method: str
    parameters: dict[str, Any] = field(default_factory=dict)
    is_paper: bool = True
    left_out: tuple[str, ...] = ()
    left_out_learned: tuple[str, ...] = ()
    raw: dict[str, Any] = field(default_factory=dict)
    learned: dict[str, Any] = field(default_factory=dict)
    only_learned: bool = False

    @property
    def slug(self) -> str:
        """The name as part of a path.

        Examples
        --------
        >>> Row("UMAP + K-means", "UMAP + K-means").slug
        'umap-k-means'
        """
        words = "".join(one if one.isalnum() else " " for one in self.name.lower()).split()
        return "-".join(words)

    @property
    def is_random(self) -> bool:
        """Whether the result depends on the seed."""
        return self._estimator()(**self.parameters)._is_random()

    def _estimator(self) -> type[BaseClusterer]:
        return (METHODS | MODERN)[self.method]

    def parameters_on(self, features: Features) -> dict[str, Any]:
        """Return the parameters of the estimator.

        Examples
        --------
        >>> Row("SC-ST", "SC-ST", learned={"scale_neighbor": 75}).parameters_on("raw")
        {}
        """
        return self.parameters | (self.raw if features == "raw" else self.learned)

    def leaves_out(self, features: Features, dataset: str) -> bool:
        """Return whether a data set is not measured, because it takes too long.

        Examples
        --------
        >>> Row("AC-Link", "AC-Link", left_out_learned=("mnist",)).leaves_out("raw", "mnist")
        False
        """
        is_learned = features == "learned" and dataset in self.left_out_learned
        return dataset in self.left_out or is_learned

    def make(self, features: Features, n_clusters: int, seed: int) -> BaseClusterer:
        """Return the estimator."""
        estimator = self._estimator()(**self.parameters_on(features))
        estimator.set_params(n_clusters=n_clusters)
        if self.is_random:
            estimator.set_params(random_state=seed)
        return estimator

    @property
    def is_rotation_invariant(self) -> bool:
        """Whether only the distances between samples matter to the method."""
        return self._estimator()._is_rotation_invariant

    @property
    def is_non_negative(self) -> bool:
        """Whether the method refuses negative values."""
        return self._estimator()._non_negative

    def preparation(self, dataset: str) -> Preparation:
        """Return how intensities are scaled: the way that gives the paper's numbers.

        Examples
        --------
        >>> row = Row("AC-PIC", "AC-PIC")
        >>> row.preparation("usps"), row.preparation("umist")
        ('center-l2', 'l2')
        """
        if not self.is_paper or dataset in FACES or self.method not in CENTRED:
            return "l2"
        return "l2" if (self.method, dataset) in NOT_CENTRED else "center-l2"

    def settings(self, features: Features, dataset: str) -> dict[str, Any]:
        """Return everything that identifies a measurement of the row, besides the seed."""
        how = self.preparation(dataset) if features == "raw" else "none"
        return {
            "method": self.method,
            "parameters": self.parameters_on(features),
            "preparation": how,
        }
