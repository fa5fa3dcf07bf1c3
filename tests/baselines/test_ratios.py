"""The kernels of NMF-LP against plain matrix products."""

import numpy as np
import pytest

from jule.baselines._ratios import CHUNK, ROWS, ratios_times_factors, ratios_times_parts


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize(("n", "d", "p"), [(1, 1, 1), (3, 5, 2), (2 * ROWS + 2, 2 * CHUNK + 3, 4)])
def test_products_with_quotients(n, d, p, dtype, rtol):
    rng = np.random.default_rng(0)
    samples, factors = (rng.random(shape).astype(dtype) for shape in ((n, d), (n, p)))
    parts, weights = rng.random((p, d)).astype(dtype), rng.random(n).astype(dtype)
    quotients = samples / np.maximum(factors @ parts, 0.3)
    found = ratios_times_parts(samples, factors, parts, 0.3)
    np.testing.assert_allclose(found, quotients @ parts.T, rtol=rtol)
    found = ratios_times_factors(samples, factors, parts, weights, 0.3)
    expected = (weights[:, None] * factors).T @ quotients
    np.testing.assert_allclose(found, expected, rtol=rtol)
    assert found.dtype == dtype
