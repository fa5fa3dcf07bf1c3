"""Large arrays in files without a name."""

import errno
import os

import numpy as np
import pytest

from jule import scratch
from jule.backward import embed
from jule.forward import nearest_neighbors, prepare
from jule.joint import Config, init_network
from jule.scratch import scratch_array


@pytest.fixture
def _everything_is_large(monkeypatch, tmp_path):
    monkeypatch.setattr(scratch, "LARGE", 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def mapped_files():
    with open("/proc/self/maps") as lines:
        return [line for line in lines if "(deleted)" in line]


@pytest.mark.usefixtures("_everything_is_large")
def test_large_arrays_are_files_that_have_no_name(tmp_path):
    array = scratch_array((3, 4), np.float32)
    array[:] = 7
    assert array.sum() == 84
    assert type(array) is np.ndarray
    assert any(str(tmp_path) in line for line in mapped_files())
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    del array
    assert not any(str(tmp_path) in line for line in mapped_files())


def test_small_arrays_are_not(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    scratch_array((1000,), np.float64)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("_everything_is_large")
def test_a_full_disk_leaves_an_ordinary_array(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    array = scratch_array((3,), np.int32)
    array[:] = 1
    assert array.base is None


@pytest.mark.usefixtures("_everything_is_large")
def test_results_do_not_depend_on_where_arrays_are(monkeypatch):
    images = np.random.default_rng(0).integers(0, 255, (60, 16, 16), np.uint8)
    network = init_network(images, Config())
    large = prepare(images), embed(network, images), nearest_neighbors(prepare(images), 5).indices
    monkeypatch.setattr(scratch, "LARGE", 2**30)
    small = prepare(images), embed(network, images), nearest_neighbors(prepare(images), 5).indices
    for one, other in zip(large, small, strict=True):
        np.testing.assert_array_equal(one, other)
