"""The operations into which `benchmarks.step_profile` divides a training step."""

import pytest
from benchmarks.step_profile import operations_of
from benchmarks.training import BATCH, flops_per_image


@pytest.mark.parametrize("side", [16, 28])
def test_the_operations_have_all_products_of_a_step(side):
    operations = operations_of(side)
    total = sum(operation.gflop for operation in operations)
    assert total == pytest.approx(1e-9 * BATCH * flops_per_image(side))
    names = [operation.name for operation in operations]
    assert len(set(names)) == len(names)
    assert "convolution 1, gradient by input" not in names  # pixels need no gradient


def test_only_products_have_a_plain_rate():
    for operation in operations_of(16):
        assert operation.seconds > 0
        assert (operation.plain_rate > 0) == (operation.gflop > 0)
