"""The three spectral estimators: plain oracles, broken graphs, edges, and real digits."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.random import RandomState
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

from jule import load_dataset
from jule.baselines import _eigenvectors, _spectral
from jule.baselines._cosine_kmeans import cosine_kmeans, scatter_ratio, wide_angle_rows
from jule.baselines._discretize import discretize, first_rotation
from jule.baselines._eigenvectors import filtered_subspace, leading_eigenvectors
from jule.baselines._spectral import (
    find_neighbors,
    normalize,
    squared_distances,
    unit_rows,
)
from jule.baselines.njw_spectral import (
    NJWSpectralClustering,
    _check_scales,
    dense_gaussian,
    neighbor_gaussian,
    within_scatter,
)
from jule.baselines.normalized_cuts import (
    NormalizedCuts,
    cut_vectors,
    dense_quartic,
    neighbor_quartic,
)
from jule.baselines.self_tuning_spectral import (
    SelfTuningSpectralClustering,
    dense_self_tuning,
    neighbor_self_tuning,
)
from jule.evaluation import ari, nmi
from jule.forward import prepare

ALL = [NJWSpectralClustering, SelfTuningSpectralClustering, NormalizedCuts]
every_method = pytest.mark.parametrize("method", ALL)
every_graph = pytest.mark.parametrize("graph", ["dense", "neighbors"])


@parametrize_with_checks([method() for method in ALL])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # The checks ask for 8 clusters of noise, where a method may find fewer.
        warnings.filterwarnings("ignore", message=".*found no more", category=UserWarning)
        check(estimator)


def blobs(seed=0, centers=4, n=200):
    return make_blobs(n, 3, centers=centers, cluster_std=0.5, random_state=seed)


def noise(n=12, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


# Oracles: the affinities


def distance_table(samples):
    return np.array([[sum((x - y) ** 2) for y in samples] for x in samples])


def linked(distances, k):
    """Pairs of which one is among the k nearest of the other."""
    n = len(distances)
    nearest = [
        sorted((j for j in range(n) if j != i), key=distances[i].__getitem__)[:k] for i in range(n)
    ]
    return np.array([[j in nearest[i] or i in nearest[j] for j in range(n)] for i in range(n)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [4, 512])
def test_squared_distances(dtype, block, monkeypatch):
    monkeypatch.setattr(_spectral, "BLOCK", block)
    samples = noise(11).astype(dtype) + 1000
    found = squared_distances(samples)
    np.testing.assert_allclose(found, distance_table(samples.astype(float)), atol=1e-9)
    np.testing.assert_array_equal(found.diagonal(), 0.0)


def test_gaussian_affinities():
    samples = noise()
    distances = distance_table(samples)
    expected = np.exp(-distances / (0.3 * distances.mean()))
    np.fill_diagonal(expected, 0.25)
    found = dense_gaussian(distances, 0.3, 0.25, np.empty_like(distances))
    np.testing.assert_allclose(found, expected)
    neighbors = find_neighbors(samples, 3)
    expected = np.exp(-distances / (0.3 * neighbors.distances.mean())) * linked(distances, 3)
    np.fill_diagonal(expected, 0.25)
    np.testing.assert_allclose(neighbor_gaussian(neighbors, 0.3, 0.25).toarray(), expected)


@pytest.mark.parametrize("min_width", [0.0, 2.0])
def test_self_tuning_affinities(min_width):
    distances = distance_table(noise())
    kth = [sorted(row)[4] for row in distances]  # the first is the sample itself
    expected = np.zeros_like(distances)
    for i in range(12):
        for j in range(12):
            if i != j:
                width = max(np.sqrt(kth[i]) * np.sqrt(kth[j]), min_width)
                expected[i, j] = np.exp(-distances[i, j] / width)
    found = dense_self_tuning(distances.copy(), 4, min_width)
    np.testing.assert_allclose(found, expected)
    for n_neighbors in (3, 6):
        neighbors = find_neighbors(noise(), max(n_neighbors, 4))
        found = neighbor_self_tuning(neighbors, n_neighbors, 4, min_width).toarray()
        np.testing.assert_allclose(found, expected * linked(distances, n_neighbors))


def test_quartic_affinities():
    distances = distance_table(noise())
    expected = np.exp(-((distances / (0.2 * distances.max())) ** 2))
    expected[expected < 1e-6] = 0
    assert (expected == 0).any()
    np.testing.assert_allclose(dense_quartic(distances.copy(), 0.2), expected)
    neighbors = find_neighbors(noise(), 3)
    expected = np.exp(-((distances / (0.5 * neighbors.distances.mean())) ** 2))
    expected[(expected < 1e-6) | ~(linked(distances, 3) | np.eye(12, dtype=bool))] = 0
    np.testing.assert_allclose(neighbor_quartic(neighbors, 0.5).toarray(), expected)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_cut_vectors(form):
    affinity = np.exp(-distance_table(noise()))
    degrees = affinity.sum(axis=1) + 1
    regular = affinity + 0.5 * np.eye(12)
    _, vectors = np.linalg.eigh(regular / np.sqrt(np.outer(degrees, degrees)))
    expected = vectors[:, ::-1][:, :4] / np.sqrt(degrees)[:, None]
    expected *= np.sqrt(12) / np.sqrt((expected**2).sum(axis=0)) * -np.sign(expected[0])
    np.testing.assert_allclose(cut_vectors(form(affinity.copy()), 4), expected, atol=1e-9)


def test_normalize_of_a_sample_without_edges():
    affinity = np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    expected = [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    np.testing.assert_allclose(normalize(affinity.copy(), affinity.sum(axis=1)), expected)
    graph = sparse.csr_array(affinity)
    np.testing.assert_allclose(normalize(graph, affinity.sum(axis=1)).toarray(), expected)


# Oracles: the eigenvectors


def projector(vectors):
    return vectors @ vectors.T


@pytest.mark.parametrize("order", ["LA", "LM"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_filtered_subspace(order, form):
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.normal(size=(300, 300)))[0]
    values = np.linspace(-0.8, 0.5, 300)
    values[:5] = [1.0, 1.0, 1 - 1e-9, -0.95, 0.9]  # equal, nearly equal and negative ones
    matrix = vectors * values @ vectors.T
    kept = [0, 1, 2, 3] if order == "LM" else [0, 1, 2, 4]
    found, columns, has_converged = filtered_subspace(form(matrix), 4, order)
    assert has_converged
    np.testing.assert_allclose(sorted(found), sorted(values[kept]), atol=1e-9)
    np.testing.assert_allclose(projector(columns), projector(vectors[:, kept]), atol=1e-5)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n", [30, 400])
@pytest.mark.filterwarnings("ignore:the leading eigenvectors are inaccurate")  # not those of 1
def test_components_have_their_own_eigenvectors(form, n, monkeypatch):
    monkeypatch.setattr(_eigenvectors, "SMALL", 50)
    monkeypatch.setattr(_eigenvectors, "MAX_COMPLETE", 50)
    rng = np.random.default_rng(0)
    sizes = [n, n // 2, n // 3]
    blocks = [np.exp(rng.uniform(-2, 0, (size, size))) for size in sizes]
    affinity = sparse.block_diag([block + block.T for block in blocks]).toarray()
    order = rng.permutation(sum(sizes))
    degrees = affinity.sum(axis=1)[order]
    normalized = normalize(form(affinity[np.ix_(order, order)]), degrees)
    group = np.repeat([0, 1, 2], sizes)[order]
    vectors = leading_eigenvectors(normalized, 2)
    for column, component in enumerate((0, 1)):  # of equal eigenvalues, the larger component's
        expected = np.sqrt(degrees * (group == component))
        expected /= np.linalg.norm(expected)
        np.testing.assert_allclose(np.abs(vectors[:, column]), expected, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_negligible_edges_do_not_link_components(form):
    affinity = np.kron(np.eye(3), np.ones((4, 4)) / 4) + 1e-14
    given = form(affinity.copy())
    vectors = leading_eigenvectors(given, 3)
    np.testing.assert_allclose(projector(vectors), np.kron(np.eye(3), np.ones((4, 4)) / 4))
    np.testing.assert_array_equal(given if form is np.asarray else given.toarray(), affinity)


def test_nearly_equal_eigenvalues_are_in_order():
    values = 1 - 1e-9 * np.array([3, 1, 4, 0, 5, 2])
    assert np.abs(leading_eigenvectors(np.diag(values), 3)).argmax(axis=0).tolist() == [3, 1, 5]


def test_eigenvectors_of_a_bipartite_graph():
    star = np.zeros((5, 5))
    star[0, 1:] = star[1:, 0] = 1.0
    normalized = normalize(star.copy(), star.sum(axis=1))
    largest = leading_eigenvectors(normalized, 2, "LM")
    np.testing.assert_allclose(np.diag(largest.T @ normalized @ largest), [1, -1], atol=1e-9)
    largest = leading_eigenvectors(normalized, 2, "LA")
    np.testing.assert_allclose(np.diag(largest.T @ normalized @ largest), [1, 0], atol=1e-9)


def test_graph_that_almost_falls_apart(monkeypatch):
    path = np.eye(200, k=1) + np.eye(200, k=-1)
    matrix = np.eye(200) + 1e-4 * path  # 200 eigenvalues near 1
    monkeypatch.setattr(_eigenvectors, "SMALL", 50)
    monkeypatch.setattr(_eigenvectors, "NO_EDGE", 0.0)
    monkeypatch.setattr(_eigenvectors, "MAX_PRODUCTS", 1)
    expected = np.linalg.eigh(matrix)[1][:, -3:]
    found = leading_eigenvectors(sparse.csr_array(matrix), 3)
    np.testing.assert_allclose(projector(found), projector(expected), atol=1e-6)
    monkeypatch.setattr(_eigenvectors, "MAX_COMPLETE", 50)
    with pytest.warns(UserWarning, match="almost falls apart"):
        leading_eigenvectors(matrix, 3)


# Oracles: the rounding


def naive_discretize(vectors, seed, max_rounds=20):
    """Yu and Shi's discretisation by loops; no row is zero."""
    rows = np.array([row / np.sqrt(sum(row**2)) for row in vectors])
    n, k = rows.shape
    rotation = np.zeros((k, k))
    rotation[:, 0] = rows[RandomState(seed).randint(n)]
    for column in range(1, k):
        sums = [sum(abs(row @ rotation[:, c]) for c in range(column)) for row in rows]
        rotation[:, column] = rows[int(np.argmin(sums))]
    last = np.inf
    for _ in range(max_rounds):
        labels = np.array([int(np.argmax(row @ rotation)) for row in rows])
        one_hot = np.eye(k)[labels]
        u, s, qt = np.linalg.svd(one_hot.T @ rows)
        cut = 2 * (n - s.sum())
        if abs(cut - last) < np.finfo(float).eps:
            break
        last, rotation = cut, qt.T @ u.T
    return labels


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(5, 30))
def test_discretize(seed, k, n):
    vectors = noise(n, k, seed)
    first = discretize(vectors, RandomState(seed), 1)
    np.testing.assert_array_equal(first, naive_discretize(vectors, seed, 1))
    assume(len(np.unique(first)) == k)  # the axis of an empty cluster is any that is left
    np.testing.assert_array_equal(
        discretize(vectors, RandomState(seed), 2), naive_discretize(vectors, seed, 2)
    )


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_discretize_undoes_a_rotation(seed):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(4), rng.integers(4, size=20)])
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    found = discretize(np.eye(4)[labels] @ rotation, RandomState(0))
    # The absolute inner products forget the sign, so an axis may be found backwards at first.
    assert ari(labels, found) == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_discretize_ignores_rows_of_zeros(seed):
    vectors = np.zeros((8, 2))
    vectors[3:5, 0] = vectors[6:, 1] = 1.0
    labels = discretize(vectors, RandomState(seed))
    assert labels[3] == labels[4] != labels[6] == labels[7]
    assert np.abs(first_rotation(vectors, RandomState(seed))).sum() == 2


def test_wide_angle_rows():
    rows = unit_rows(noise(20, 4))
    chosen = [5]
    for _ in range(3):
        largest = [max(abs(row @ rows[c]) for c in chosen) for row in rows]
        chosen.append(int(np.argmin(largest)))
    np.testing.assert_array_equal(wide_angle_rows(rows, 4, 5), rows[chosen])


def test_scatters():
    rows, labels = noise(20, 4), np.arange(20) % 3
    means = np.array([rows[labels == c].mean(axis=0) for c in range(3)])
    within = sum(((rows[i] - means[labels[i]]) ** 2).sum() for i in range(20))
    outside = sum(
        ((rows[i] - means[c]) ** 2).sum() for i in range(20) for c in range(3) if c != labels[i]
    )
    found = scatter_ratio((rows**2).sum(), rows.sum(axis=0), np.bincount(labels), means)
    assert found == pytest.approx(within / outside)
    assert within_scatter(rows, labels) == pytest.approx(within)


def naive_cosine_kmeans(rows, k, seed, n_init, max_iter):
    random_state = RandomState(seed)
    best = (np.inf, None)
    for _ in range(n_init):
        centers = wide_angle_rows(rows, k, random_state.randint(len(rows)))
        for _ in range(max_iter):
            labels = np.array([np.argmin([((x - c) ** 2).sum() for c in centers]) for x in rows])
            centers = np.array(
                [rows[labels == c].mean(axis=0) if c in labels else centers[c] for c in range(k)]
            )
            squared = ((rows[:, None] - centers) ** 2).sum(axis=2)
            within = squared[np.arange(len(rows)), labels].sum()
            ratio = within / (squared.sum() - within)
            if ratio < best[0]:
                best = (ratio, labels)
    return best[1]


@pytest.mark.parametrize("seed", range(5))
def test_cosine_kmeans(seed):
    rows = unit_rows(noise(40, 3, seed))
    found = cosine_kmeans(rows, 3, RandomState(seed), n_init=4, max_iter=5)
    np.testing.assert_array_equal(found, naive_cosine_kmeans(rows, 3, seed, 4, 5))


# The estimators


@every_method
@every_graph
def test_finds_blobs(method, graph):
    samples, labels = blobs()
    assert ari(labels, method(4, graph=graph).fit_predict(samples)) == 1.0


@pytest.mark.parametrize("method", ALL[:2])
def test_finds_blobs_as_in_the_paper(method):
    samples, labels = blobs()
    assert ari(labels, method(4, preset="jule-paper").fit_predict(samples)) == 1.0


@every_method
@pytest.mark.parametrize(("graph", "least"), [("dense", 0.6), ("neighbors", 0.75)])
def test_real_digits(method, graph, least):
    data = load_dataset("digits")
    samples, labels = prepare(data.images[:900], "l2"), data.labels[:900]
    assert nmi(labels, method(10, graph=graph).fit_predict(samples)) > least


@every_method
@every_graph
def test_disconnected_graph(method, graph):
    """Every group is too far from the others for any edge."""
    samples = np.concatenate([noise(60, 2, seed) + 1000 * seed for seed in range(4)])
    labels = np.repeat(np.arange(4), 60)
    assert ari(labels, method(4, graph=graph).fit_predict(samples)) == 1.0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*found no more", category=UserWarning)
        found = method(3, graph=graph).fit_predict(samples)  # fewer than components
    assert all(len(np.unique(found[labels == group])) == 1 for group in range(4))


@every_method
@every_graph
def test_order_of_samples_does_not_matter(method, graph):
    samples, _ = blobs(seed=1)
    order = np.random.default_rng(0).permutation(len(samples))
    labels = method(4, graph=graph).fit_predict(samples)
    assert ari(labels[order], method(4, graph=graph).fit_predict(samples[order])) == 1.0


@every_method
@every_graph
@pytest.mark.parametrize("scale", [1e150, 1e-150, 1e300])
def test_scaled_samples_have_the_same_clusters(method, graph, scale):
    samples, _ = blobs()
    model = method(4, graph=graph)
    expected = model.fit_predict(samples)
    np.testing.assert_array_equal(model.fit_predict(samples * scale), expected)


@every_method
@every_graph
def test_float32(method, graph):
    samples, labels = blobs()
    found = method(4, graph=graph).fit_predict(samples.astype(np.float32))
    assert ari(labels, found) == 1.0


@every_method
@every_graph
def test_twice_the_same(method, graph):
    samples = noise(150)
    first = method(5, graph=graph, random_state=3).fit_predict(samples)
    np.testing.assert_array_equal(
        first, method(5, graph=graph, random_state=3).fit_predict(samples)
    )


@every_method
@every_graph
@pytest.mark.filterwarnings("ignore:.*found no more")
@pytest.mark.parametrize("k", [1, 2, 29, 30])
def test_any_number_of_clusters(method, graph, k):
    samples, _ = blobs(n=30)
    model = method(k, graph=graph, n_neighbors=5).fit(samples)
    assert 1 <= model.n_clusters_ <= k
    if k in (1, 2, 30):
        assert model.n_clusters_ == k


@every_method
@every_graph
def test_two_samples(method, graph):
    assert method(2, graph=graph).fit_predict([[0.0], [1.0]]).tolist() == [0, 1]
    assert method(1, graph=graph).fit_predict([[0.0], [1.0]]).tolist() == [0, 0]


@every_method
@every_graph
def test_groups_of_copies(method, graph):
    """Every distance to a neighbour is 0, so no width can be read off them."""
    samples = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 7.0], [7.0, 7.0]], 25, axis=0)
    labels = method(3, graph=graph).fit_predict(samples)
    assert all(len(set(labels[i : i + 25])) == 1 for i in range(0, 100, 25))


def test_njw_tries_a_scale_that_is_given_twice_once():
    samples = noise(60, 3)
    once, twice = (
        NJWSpectralClustering(3, graph="dense", scale=scales).fit(samples)
        for scales in ((0.05, 0.4), (0.4, 0.05, 0.4))
    )
    assert set(_check_scales((0.4, 0.05, 0.4))) == {0.05, 0.4}
    assert once.scale_ == twice.scale_


def test_njw_keeps_the_scale_with_the_tightest_clusters():
    samples = noise(80)
    scatters = {}
    for scale in (0.05, 0.5, 2.0):
        distances = squared_distances(samples)
        affinity = dense_gaussian(distances, scale, 0.0, distances)
        rows = unit_rows(leading_eigenvectors(normalize(affinity, affinity.sum(axis=1)), 3))
        labels = NJWSpectralClustering(3, scale=scale).fit_predict(samples)
        scatters[scale] = within_scatter(rows, labels)
    model = NJWSpectralClustering(3, scale=list(scatters)).fit(samples)
    assert model.scale_ == min(scatters, key=scatters.get)


@every_method
def test_too_many_samples_for_all_pairs(method, monkeypatch):
    monkeypatch.setattr("jule.memory.available_memory", lambda: 10_000)
    with pytest.raises(ValueError, match=r"all pairs of 200 samples \(graph='neighbors' needs"):
        method(4).fit(blobs()[0])


@every_method
def test_auto_takes_neighbors_beyond_a_size(method, monkeypatch):
    samples, _ = blobs()
    monkeypatch.setattr(_spectral, "MAX_DENSE", 199)
    monkeypatch.setattr("jule.memory.available_memory", lambda: 10_000)
    np.testing.assert_array_equal(
        method(4).fit_predict(samples), method(4, graph="neighbors").fit_predict(samples)
    )


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        *[(method, {"graph": "full"}, "'auto', 'dense', 'neighbors'") for method in ALL],
        *[(m, {"graph": "neighbors", "n_neighbors": 0}, "n_neighbors must be") for m in ALL],
        *[(m, {"n_clusters": 31}, "cannot be made of n_samples=30") for m in ALL],
        (NJWSpectralClustering, {"scale": 0.0}, "scale must be positive, got 0.0"),
        (NJWSpectralClustering, {"scale": (0.1, -1.0)}, "scale must be positive, got -1.0"),
        (NJWSpectralClustering, {"scale": ()}, "scale must be a positive number"),
        (
            NJWSpectralClustering,
            {"self_affinity": -1.0},
            "self_affinity must be a number of 0 or more",
        ),
        (NJWSpectralClustering, {"n_init": 0}, "n_init must be an integer of 1 or more"),
        (NJWSpectralClustering, {"preset": "ours"}, "choose one of 'original', 'jule-paper'"),
        (SelfTuningSpectralClustering, {"scale_neighbor": 0}, "scale_neighbor must be"),
        (
            SelfTuningSpectralClustering,
            {"min_width": -1.0},
            "min_width must be a number of 0 or more",
        ),
        (SelfTuningSpectralClustering, {"n_init": 1.5}, "n_init must be an integer"),
        (NormalizedCuts, {"scale": np.inf}, "scale must be positive"),
    ],
)
def test_bad_parameters(method, options, message):
    with pytest.raises(ValueError, match=message):
        method(**{"n_clusters": 2, **options}).fit(np.arange(30.0)[:, None])


@every_method
def test_identical_samples_are_refused(method):
    with pytest.raises(ValueError, match="all 30 samples are identical"):
        method(2).fit(np.ones((30, 3)))
