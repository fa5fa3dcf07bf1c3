"""All experiments at a glance, from records with known scores."""

from dataclasses import dataclass, field

import pytest

from jule.paper.experiment import Comparison
from jule.paper.overview import overview
from jule.paper.records import write_record
from jule.paper.registry import EXPERIMENTS


@dataclass
class Known:
    """An experiment with known numbers."""

    name = "known"
    title: str
    found: list[Comparison] = field(default_factory=list)

    def comparisons(self, results):
        del results
        return self.found


def test_numbers_are_counted_by_how_far_they_fall_below(tmp_path):
    found = [
        Comparison("better", 0.9, 0.8),
        Comparison("equal to three digits", 0.7996, 0.8),
        Comparison("close", 0.78, 0.8),
        Comparison("far", 0.7, 0.8),
        Comparison("an error that is smaller", 0.1, 0.2, is_error=True),
        Comparison("an error that is larger", 0.25, 0.2, is_error=True),
    ]
    shown = overview([Known("Table 1", found), Known("a figure")], tmp_path).splitlines()
    assert shown[2:] == ["| Table 1 | 6 | 3 | 1 | 2 | far: 0.700 (0.800) |"]


def test_nothing_is_named_if_all_numbers_are_reached(tmp_path):
    known = Known("Table 1", [Comparison("better", 0.9, 0.8)])
    assert overview([known], tmp_path).endswith("| Table 1 | 1 | 1 | 0 | 0 | - |")


def test_joint_learning_is_compared_by_the_mean_over_seeds(tmp_path):
    for seed, nmi in enumerate((0.95, 0.97)):
        scores = {which: {"nmi": nmi, "ac": 0.98} for which in ("sf", "rc", "labels")}
        write_record(tmp_path / f"joint/default/usps-{seed}.json", {"scores": scores})
    found = {one.what: one for one in EXPERIMENTS["joint"].comparisons(tmp_path)}
    assert set(found) == {f"USPS, {w}, {s}" for w in ("SF", "RC") for s in ("NMI", "AC")}
    assert found["USPS, RC, NMI"].ours == pytest.approx(0.96)
    assert found["USPS, RC, NMI"].papers == 0.913


def test_methods_are_compared_where_the_paper_has_a_number(tmp_path):
    record = {"scores": {"nmi": 0.5, "ac": 0.4}}
    write_record(tmp_path / "clustering/raw/k-means/usps-0.json", record)
    write_record(tmp_path / "clustering/raw/ward/usps-0.json", record)
    for name, score in (("table3", 0.5), ("table10", 0.4)):
        (only,) = EXPERIMENTS[name].comparisons(tmp_path)
        assert (only.what, only.ours) == ("USPS, K-means", score)


def test_layers_are_compared_where_networks_have_them(tmp_path):
    layers = {"top": {"scores": {"nmi": 0.8}}}
    write_record(tmp_path / "transfer-digits/usps-to-mnist-test-0.json", {"layers": layers})
    (only,) = EXPERIMENTS["transfer-digits"].comparisons(tmp_path)
    assert (only.what, only.ours) == ("USPS → MNIST-test, top", 0.8)


def test_accuracies_are_compared_by_the_number_of_training_images(tmp_path):
    rows = {"K-means": {"5000": {"accuracy": 0.7}}, "conv1&2, untrained": {"5000": {"accuracy": 1}}}
    write_record(tmp_path / "cifar10/kmeans/cifar10-0.json", {"rows": rows})
    (only,) = EXPERIMENTS["cifar10"].comparisons(tmp_path)
    assert (only.what, only.ours) == ("K-means, 5,000 images", 0.7)
