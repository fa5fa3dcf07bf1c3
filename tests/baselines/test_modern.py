"""The methods of today: scikit-learn's own checks, noise, extras, edges, and real digits."""

import builtins
import importlib
import importlib.util
import random

import numpy as np
import pytest
import torch
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.cluster import HDBSCAN as SklearnHDBSCAN
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

from jule import load_dataset
from jule.baselines._base import BaseClusterer
from jule.baselines.modern import DCN, DEC, HDBSCAN, IDEC, MODERN, UMAPHDBSCAN, UMAPKMeans, Ward
from jule.evaluation import ari, nmi
from jule.forward import prepare


def why_not_clustpy():
    if importlib.util.find_spec("clustpy") is None:
        return "ClustPy is not installed"
    try:
        importlib.import_module("clustpy.deep")
    except (ImportError, RuntimeError) as error:
        return f"ClustPy cannot be imported: {error}"
    return ""


needs_umap = pytest.mark.skipif(
    importlib.util.find_spec("umap") is None, reason="umap-learn is not installed"
)
needs_clustpy = pytest.mark.skipif(bool(why_not_clustpy()), reason=why_not_clustpy() or "-")

UMAPS = [UMAPHDBSCAN, UMAPKMeans]
DEEP = [DEC, IDEC, DCN]


def blobs(n=200, centers=4):
    return make_blobs(n, 3, centers=centers, cluster_std=0.5, random_state=0)


def with_outlier(n=60):
    samples, labels = blobs(n)
    return np.concatenate([[[1e3, 1e3, 1e3]], samples]), np.concatenate([[-1], labels])


def test_names():
    assert list(MODERN) == [
        "HDBSCAN", "Ward", "UMAP + HDBSCAN", "UMAP + K-means", "DEC", "IDEC", "DCN",
    ]  # fmt: skip
    for method in MODERN.values():
        assert issubclass(method, BaseClusterer)
        assert method(n_clusters=3).n_clusters == 3


@parametrize_with_checks([HDBSCAN(), Ward()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", [HDBSCAN, Ward])
def test_finds_blobs(method):
    samples, labels = blobs()
    assert ari(labels, method(4).fit_predict(samples)) == 1.0


@pytest.mark.parametrize("method", [HDBSCAN, Ward])
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scaled_samples_have_the_same_clusters(method, scale):
    samples, labels = blobs()
    assert ari(labels, method(4).fit_predict(samples * scale)) == 1.0


@pytest.mark.parametrize("method", MODERN.values())
def test_identical_samples(method):
    with pytest.raises(ValueError, match="all 30 samples are identical"):
        method(2).fit(np.ones((30, 3)))


# HDBSCAN


def test_noise_stays_noise_and_clusters_are_numbered_by_their_first_samples():
    samples, labels = with_outlier()
    model = HDBSCAN(4).fit(samples)
    assert model.labels_[0] == -1
    assert model.n_clusters_ == 4
    assert model.labels_.dtype == np.int32
    _, firsts = np.unique(model.labels_[1:], return_index=True)
    assert (np.diff(firsts) > 0).all()
    assert ari(labels[1:], model.labels_[1:]) == 1.0


@pytest.mark.parametrize("n_features", [2, 70])
def test_same_clusters_and_noise_as_scikit_learn(n_features):
    samples = np.random.default_rng(0).normal(size=(200, 2)) @ np.eye(2, n_features)
    expected = SklearnHDBSCAN(min_cluster_size=5, copy=True).fit_predict(samples)
    found = HDBSCAN(8, min_cluster_size=5).fit_predict(samples)
    np.testing.assert_array_equal(found == -1, expected == -1)
    assert (expected == -1).any()
    assert ari(expected, found) == 1.0


def test_all_noise():
    samples = 2.0 ** np.arange(12)[:, None]
    model = HDBSCAN(2, min_cluster_size=6).fit(samples)
    assert model.labels_.tolist() == [-1] * 12
    assert model.n_clusters_ == 0


def test_the_number_of_clusters_sets_only_the_smallest_size(recwarn):
    samples, labels = blobs(400)
    for n_clusters in (1, 2, 20):  # smallest clusters of 20, 10 and 5 samples
        model = HDBSCAN(n_clusters, min_samples=5).fit(samples)
        assert model.n_clusters_ == 4
        assert ari(labels, model.labels_) == 1.0
    assert not [w for w in recwarn if "clusters instead of" in str(w.message)]


def test_copies_share_a_cluster_or_are_noise_together():
    samples, _ = with_outlier()
    labels = HDBSCAN(4).fit_predict(np.tile(samples, (2, 1)))
    np.testing.assert_array_equal(labels[:61], labels[61:])


def test_order_of_samples_does_not_matter():
    samples, _ = with_outlier()
    order = np.random.default_rng(0).permutation(61)
    first, second = HDBSCAN(4).fit_predict(samples), HDBSCAN(4).fit_predict(samples[order])
    assert ari(first[order], second) == 1.0
    np.testing.assert_array_equal(first[order] == -1, second == -1)


def test_hdbscan_of_two_samples():
    assert set(HDBSCAN(2).fit_predict([[0.0], [1.0]]).tolist()) <= {-1, 0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_cluster_size": 1}, "min_cluster_size must be 2 or more"),
        ({"min_cluster_size": 0}, "min_cluster_size must be an integer"),
        ({"min_samples": 0}, "min_samples must be an integer"),
    ],
)
def test_bad_parameters_of_hdbscan(options, message):
    with pytest.raises(ValueError, match=message):
        HDBSCAN(4, **options).fit(blobs()[0])


# Ward


@pytest.mark.parametrize("k", [1, 2, 7, 59, 60])
def test_same_clusters_as_scipy(k):
    samples = np.random.default_rng(0).normal(size=(60, 3))
    expected = fcluster(linkage(samples, "ward"), k, "maxclust")
    assert ari(expected, Ward(k).fit_predict(samples)) == 1.0


def test_ward_on_real_digits():
    data = load_dataset("digits")
    assert nmi(data.labels, Ward(10).fit_predict(prepare(data.images, "l2"))) > 0.8


def test_ward_stops_before_memory_is_full(monkeypatch):
    monkeypatch.setattr("jule.memory.available_memory", lambda: 1000)
    with pytest.raises(ValueError, match=r"Ward's method on 200 samples.* needs 320 kB"):
        Ward(4).fit(blobs()[0])


def test_ward_of_two_samples():
    assert Ward(2).fit_predict([[0.0], [1.0]]).tolist() == [0, 1]


# Extras


@pytest.mark.parametrize(
    ("method", "package", "command"),
    [(one, "umap", r'pip install "jule\[umap\]"') for one in UMAPS]
    + [(one, "clustpy", r'pip install "jule\[rivals\]"') for one in DEEP],
)
def test_a_missing_extra_is_named(monkeypatch, method, package, command):
    real_import, real_module = builtins.__import__, importlib.import_module

    def import_name(name, *args, **kwargs):
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real_import(name, *args, **kwargs)

    def import_module(name, *args):
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real_module(name, *args)

    monkeypatch.setattr(builtins, "__import__", import_name)
    monkeypatch.setattr(importlib, "import_module", import_module)
    with pytest.raises(ImportError, match=command):
        method(4).fit(blobs()[0])


def test_a_torchvision_of_another_torch_is_named(monkeypatch):
    def fail(name):
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(ImportError, match="install the torchvision that belongs to"):
        DEC(4).fit(blobs()[0])


@needs_umap
@pytest.mark.parametrize("method", UMAPS)
def test_umap_finds_blobs(method):
    samples, labels = blobs()
    model = method(4)
    first = model.fit_predict(samples)
    assert ari(labels, first) > 0.95
    np.testing.assert_array_equal(first, model.fit_predict(samples))


@needs_umap
@pytest.mark.parametrize("method", UMAPS)
@pytest.mark.parametrize("n", [2, 3, 5, 19, 20])
def test_umap_of_few_samples(method, n):
    samples = np.random.default_rng(0).normal(size=(n, 3))
    assert len(method(2).fit_predict(samples)) == n


@needs_umap
@pytest.mark.parametrize("options", [{"n_neighbors": 0}, {"n_components": 0}])
def test_bad_parameters_of_umap(options):
    with pytest.raises(ValueError, match="must be an integer of 1 or more"):
        UMAPKMeans(4, **options).fit(blobs()[0])


@needs_clustpy
@pytest.mark.parametrize("method", DEEP)
def test_deep_methods_find_blobs_in_silence_and_leave_the_seeds_alone(method, capsys):
    samples, labels = blobs(n=120)
    random.seed(7), torch.manual_seed(7), np.random.seed(7)  # noqa: NPY002
    expected = random.random(), torch.rand(1).item(), np.random.rand()  # noqa: NPY002
    random.seed(7), torch.manual_seed(7), np.random.seed(7)  # noqa: NPY002
    model = method(4, pretrain_epochs=5, clustering_epochs=2)
    first = model.fit_predict(samples)
    assert (random.random(), torch.rand(1).item(), np.random.rand()) == expected  # noqa: NPY002
    np.testing.assert_array_equal(first, model.fit_predict(samples))
    assert ari(labels, first) > 0.9
    assert capsys.readouterr() == ("", "")


@needs_clustpy
@pytest.mark.parametrize("options", [{"pretrain_epochs": 0}, {"clustering_epochs": 1.5}])
def test_bad_parameters_of_deep_methods(options):
    with pytest.raises(ValueError, match="must be an integer of 1 or more"):
        DEC(4, **options).fit(blobs()[0])
