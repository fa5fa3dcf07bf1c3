"""The estimator: scikit-learn's own checks, edges, and real digits."""

import warnings

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from jule import GraphDegreeLinkage, load_dataset
from jule.evaluation import ari, nmi
from jule.forward import merge_clusters, nearest_neighbor_components, nearest_neighbors
from jule.forward.affinity import local_affinity_graph
from jule.forward.agglomerate import grow_tree


@parametrize_with_checks([GraphDegreeLinkage()])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # The checks use fewer samples than K_s, which is worth a warning and no more.
        warnings.filterwarnings("ignore", message="n_neighbors=20", category=UserWarning)
        check(estimator)


def blobs(seed=0, centers=4, n=200):
    return make_blobs(n, 3, centers=centers, cluster_std=0.5, random_state=seed)


@pytest.mark.parametrize("n_near", [1, 5])
@pytest.mark.parametrize("init", ["nearest", "kmeans"])
@pytest.mark.parametrize(
    ("update", "alpha"), [("exact", 0.0), ("ratio", 0.0), ("alpha", 0.1), ("alpha", -0.2)]
)
def test_finds_blobs_in_every_way(n_near, init, update, alpha):
    samples, labels = blobs()
    model = GraphDegreeLinkage(4, n_near=n_near, init=init, update=update, alpha=alpha)
    assert ari(labels, model.fit_predict(samples)) == 1.0


def test_labels_and_tree_belong_together():
    samples, _ = blobs()
    model = GraphDegreeLinkage(4, min_cluster_size=1).fit(samples)
    assert model.n_clusters_ == 4
    assert len(model.tree_.merges) == len(samples) - 1
    np.testing.assert_array_equal(model.labels_, model.tree_.cut(4))
    assert ari(model.labels_, fcluster(model.tree_.to_scipy(), 4, "maxclust")) == 1.0


def test_works_in_a_pipeline_and_clones():
    samples, labels = blobs()
    model = clone(GraphDegreeLinkage(4, preparation="none"))
    assert ari(labels, make_pipeline(StandardScaler(), model).fit_predict(samples)) == 1.0


def test_twice_the_same():
    samples, _ = blobs(seed=3)
    first = GraphDegreeLinkage(4, init="kmeans", random_state=5).fit(samples)
    second = GraphDegreeLinkage(4, init="kmeans", random_state=5).fit(samples)
    np.testing.assert_array_equal(first.tree_.merges, second.tree_.merges)


def test_real_digits():
    data = load_dataset("digits")
    model = GraphDegreeLinkage(10, preparation="l2")
    assert nmi(data.labels, model.fit_predict(data.images.reshape(len(data), -1))) > 0.85


@pytest.mark.parametrize("n_clusters", [1, 2, 5, 29, 30])
def test_any_number_of_clusters(n_clusters):
    samples, _ = blobs(n=30)
    model = GraphDegreeLinkage(n_clusters).fit(samples)
    assert len(np.unique(model.labels_)) == n_clusters


def test_two_samples():
    with pytest.warns(UserWarning, match="using 1"):
        model = GraphDegreeLinkage(2).fit([[0.0], [1.0]])
    assert model.labels_.tolist() == [0, 1]


def test_groups_of_duplicates():
    # Every distance to the 20 neighbours is 0, so sigma is too; the groups are plain all the same.
    samples = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 7.0]], 25, axis=0)
    labels = GraphDegreeLinkage(3).fit_predict(samples)
    np.testing.assert_array_equal(labels, np.repeat([0, 1, 2], 25))


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        (np.empty((0, 3)), {}, "0 sample"),
        (np.ones((1, 3)), {}, "1 sample"),
        (np.ones((30, 3)), {}, "all 30 samples are identical"),
        (np.array([[0.0], [np.nan], [1.0]]), {}, "NaN"),
        (np.array([[0.0], [np.inf], [1.0]]), {}, "infinity"),
        (np.arange(30.0), {}, "Expected 2D array"),
        (np.arange(8.0).reshape(2, 2, 2), {}, "dim 3"),
        (np.array([["a", "b"], ["c", "d"]]), {}, "could not convert string"),
        (np.arange(30.0)[:, None], {"n_clusters": 31}, "cannot be made of n_samples=30"),
        (np.arange(30.0)[:, None], {"n_clusters": 0}, "of 1 or more, got 0"),
        (np.arange(30.0)[:, None], {"n_clusters": 2.5}, "an integer"),
        (
            np.arange(30.0)[:, None],
            {"n_neighbors": 0},
            "n_neighbors must be an integer",
        ),
        (np.arange(30.0)[:, None], {"a": 0.0}, "a must be positive"),
        (np.arange(30.0)[:, None], {"preparation": "zca"}, "l2, center-l2, none"),
        (np.arange(30.0)[:, None], {"kernel": "flat"}, "choose one of global, local"),
        (np.arange(30.0)[:, None], {"init": "random"}, "choose one of nearest, kmeans"),
        (np.arange(30.0)[:, None], {"method": "fast"}, "'exact' or 'approximate'"),
        (
            np.arange(30.0)[:, None],
            {"min_cluster_size": 0},
            "min_cluster_size must be",
        ),
    ],
)
def test_bad_input(samples, options, message):
    with pytest.raises(ValueError, match=message):
        GraphDegreeLinkage(**{"n_clusters": 2, **options}).fit(samples)


# A bandwidth per sample


def test_finds_blobs_with_a_bandwidth_per_sample():
    samples, labels = blobs()
    assert ari(labels, GraphDegreeLinkage(4, kernel="local").fit_predict(samples)) == 1.0


def test_local_kernel_is_used():
    samples = np.random.default_rng(0).normal(size=(200, 3))
    local = GraphDegreeLinkage(4, n_neighbors=8, kernel="local", min_cluster_size=1).fit(samples)
    found = nearest_neighbors(samples, 8)
    merges, affinities = merge_clusters(
        local_affinity_graph(found), nearest_neighbor_components(found), n_near=1
    )
    tree = grow_tree(
        samples, found, nearest_neighbor_components(found), merges, affinities, n_joins=0
    )
    np.testing.assert_array_equal(local.labels_, tree.cut(4))


def test_real_digits_with_a_bandwidth_per_sample():
    data = load_dataset("digits")
    model = GraphDegreeLinkage(10, preparation="l2", kernel="local")
    assert nmi(data.labels, model.fit_predict(data.images.reshape(len(data), -1))) > 0.85


def test_groups_of_duplicates_with_a_bandwidth_per_sample():
    samples = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 7.0]], 15, axis=0)
    labels = GraphDegreeLinkage(3, kernel="local").fit_predict(samples)
    np.testing.assert_array_equal(labels, np.repeat([0, 1, 2], 15))


# Copies


def test_fewer_different_samples_than_clusters():
    samples = np.tile([[0.0, 1.0], [5.0, 2.0]], (50, 1))
    with pytest.warns(UserWarning, match="^2 clusters instead of 5: there are only 2 different"):
        model = GraphDegreeLinkage(5).fit(samples)
    assert model.n_clusters_ == 2
    assert model.labels_.tolist() == [0, 1] * 50


@pytest.mark.parametrize("init", ["nearest", "kmeans"])
@pytest.mark.parametrize("k", [3, 39, 40, 41, 90])
@pytest.mark.filterwarnings("ignore:.*there are only 40 different")
def test_copies_share_a_label_and_labels_have_no_gap(init, k):
    different = np.random.default_rng(0).normal(size=(40, 3))
    which = np.concatenate([np.arange(40), np.random.default_rng(1).integers(40, size=60)])
    model = GraphDegreeLinkage(k, init=init, min_cluster_size=1).fit(different[which])
    assert model.n_clusters_ == min(k, 40)
    assert np.unique(model.labels_).tolist() == list(range(min(k, 40)))
    np.testing.assert_array_equal(model.labels_, model.labels_[np.arange(100)[:40]][which])


def test_enough_different_samples_give_no_warning():
    samples = np.tile(np.random.default_rng(0).normal(size=(30, 2)), (2, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert GraphDegreeLinkage(30).fit(samples).n_clusters_ == 30


# Values that squares cannot hold, and masks


@pytest.mark.parametrize("scale", [1e298, 1e-310])
@pytest.mark.parametrize("preparation", ["none", "l2", "center-l2"])
def test_scaled_samples_have_the_same_clusters(scale, preparation):
    samples, _ = blobs()
    model = GraphDegreeLinkage(4, preparation=preparation)
    expected = model.fit_predict(samples)
    np.testing.assert_array_equal(model.fit_predict(samples * scale), expected)


def test_masks_are_refused():
    samples, _ = blobs()
    masked = np.ma.array(samples, mask=samples > 1)
    with pytest.raises(ValueError, match="masked values"):
        GraphDegreeLinkage(4).fit(masked)
