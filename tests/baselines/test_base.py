"""What all baselines share: parameters are checked whatever the samples, and fits leave nothing."""

import numpy as np
import pytest

from jule.baselines import METHODS, NJWSpectralClustering

SAMPLES = np.arange(12.0)[:, None] ** 2


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("K-means", {"n_init": -3}),
        ("SC-NJW", {"scale": "wide"}),
        ("SC-NJW", {"graph": "full"}),
        ("SC-ST", {"min_width": None, "n_neighbors": 2.5}),
        ("SC-LS", {"n_nearest": 1}),
        ("N-Cuts", {"scale": -1.0}),
        ("AC-Zell", {"a": 0.0}),
        ("NMF-LP", {"lam": "x"}),
        ("NMF-D", {"layers": 5}),
        ("TSC-D", {"alpha": "x"}),
    ],
)
@pytest.mark.parametrize("n_clusters", [1, 3, len(SAMPLES)])
def test_bad_parameters_are_refused_for_any_number_of_clusters(method, options, n_clusters):
    with pytest.raises(ValueError, match=next(reversed(options))):
        METHODS[method](n_clusters, **options).fit(SAMPLES)


def test_equal_samples_share_a_cluster_whatever_the_sign_of_their_zeros():
    with pytest.warns(UserWarning, match="3"):
        labels = METHODS["K-means"](4).fit_predict([[0.0, 1], [-0.0, 1], [5, 5], [9, 9]])
    assert labels.tolist() == [0, 0, 1, 2]


def test_the_global_random_state_is_not_touched():
    samples = np.random.default_rng(0).normal(size=(40, 3))
    for method in METHODS.values():
        np.random.seed(1)  # noqa: NPY002
        method(3).fit(np.abs(samples))
        after = np.random.random()  # noqa: NPY002
        np.random.seed(1)  # noqa: NPY002
        assert after == np.random.random(), method  # noqa: NPY002


def test_nothing_is_left_of_an_earlier_fit():
    model = NJWSpectralClustering(3).fit(SAMPLES)
    assert model.scale_ > 0
    model.set_params(n_clusters=1).fit(SAMPLES)
    assert not hasattr(model, "scale_")
    assert model.n_clusters_ == 1
