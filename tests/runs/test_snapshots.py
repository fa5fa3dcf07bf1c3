"""Snapshots: principal components against scikit-learn, files that are read back."""

import io
import os
import warnings

import numpy as np
import pytest
from sklearn.decomposition import PCA

from jule.runs.snapshots import (
    load_snapshots,
    principal_components,
    save_snapshot,
    shown_samples,
    take_snapshot,
)


@pytest.mark.parametrize("shape", [(200, 30), (40, 700), (90, 2000), (5, 3), (2, 1)])
def test_principal_components_are_those_of_scikit_learn(shape):
    vectors = np.random.default_rng(0).normal(size=shape) * np.linspace(9, 1, shape[1]) ** 2
    count = min(3, shape[0] - 1, shape[1])
    found = principal_components(vectors, 3)
    expected = PCA(count, svd_solver="full").fit_transform(vectors)
    assert found.shape == (shape[0], 3)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(
        np.abs(found[:, :count]), np.abs(expected), atol=1e-3 * scale
    )  # the sign is free
    assert np.abs(found[:, count:]).max(initial=0) < 1e-6 * scale


def test_vectors_that_are_all_the_same_lie_in_one_point():
    assert not principal_components(np.ones((6, 4)), 3).any()


def test_images_are_vectors_too():
    assert principal_components(np.random.default_rng(0).normal(size=(9, 4, 4)), 3).shape == (9, 3)


def test_large_sets_are_seen_through_two_thousand_samples():
    shown = shown_samples(70_000)
    assert len(np.unique(shown)) == 2000
    assert shown.max() < 70_000
    assert set(np.diff(shown).tolist()) == {35}


def written(folder, period=0, n=60, k=7):
    vectors = np.random.default_rng(0).normal(size=(n, 5))
    return save_snapshot(folder, take_snapshot(period, vectors, np.arange(n) % k))


def load(folder, n_samples=60):
    return load_snapshots(
        lambda name: (folder / name).read_bytes(),
        sorted(path.name for path in folder.iterdir()),
        n_samples,
    )


def test_snapshots_are_read_back_in_the_order_of_the_periods(tmp_path):
    for period in (2, 0, 11):
        written(tmp_path / "snapshots", period)
    (tmp_path / "snapshots" / "notes.txt").write_text("not ours")
    found = load(tmp_path / "snapshots")
    assert [shot.period for shot in found] == [0, 2, 11]
    assert found[0].n_clusters == 7
    np.testing.assert_array_equal(found[0].labels, np.arange(60) % 7)
    np.testing.assert_array_equal(found[0].positions, found[1].positions)


def changed(content, **arrays):
    with np.load(io.BytesIO(content)) as archive:
        before = {name: archive[name] for name in archive.files}
    file = io.BytesIO()
    np.savez(file, **{name: array for name, array in (before | arrays).items() if array.size})
    return file.getvalue()


def far_away(value):
    positions = np.zeros((60, 3), np.float32)
    positions[7, 1] = value
    return positions


DAMAGE = {
    "a period that is no number": {"period": np.array("x")},
    "a period for each": {"period": np.arange(3)},
    "a negative period": {"period": np.int64(-1)},
    "no clusters": {"n_clusters": np.int64(0)},
    "more clusters than samples": {"n_clusters": np.int64(61)},
    "fewer clusters than labels": {"n_clusters": np.int64(6)},
    "no labels": {"labels": np.empty(0)},
    "too few labels": {"labels": np.zeros(59, np.int32)},
    "labels of another type": {"labels": np.zeros(60)},
    "a negative label": {"labels": np.full(60, -1, np.int32)},
    "samples out of range": {"samples": np.full(60, 60, np.int32)},
    "negative samples": {"samples": np.full(60, -1, np.int32)},
    "flat positions": {"positions": np.zeros((60, 2), np.float32)},
    "positions of another type": {"positions": np.zeros((60, 3))},
    "a position that is not a number": {"positions": far_away(np.nan)},
    "a position at infinity": {"positions": far_away(np.inf)},
    "huge": {"positions": np.zeros((10_000, 3))},
}


@pytest.mark.parametrize("damage", [*DAMAGE, "empty", "text", "cut off", "a bomb", "gone"])
def test_a_damaged_snapshot_is_left_out_with_a_word(tmp_path, damage):
    good, bad = written(tmp_path, 0), written(tmp_path, 1)
    content = bad.read_bytes()
    if damage in DAMAGE:
        bad.write_bytes(changed(content, **DAMAGE[damage]))
    elif damage == "gone":
        bad.unlink()
        bad.mkdir()
    elif damage == "a bomb":
        file = io.BytesIO()
        np.savez_compressed(file, positions=np.zeros(10**7, np.uint8))
        bad.write_bytes(file.getvalue())
    else:
        bad.write_bytes({"empty": b"", "text": b"hello", "cut off": content[:900]}[damage])
    with pytest.warns(UserWarning, match=r"^left out: .*snapshot-0001\.npz."):
        found = load(tmp_path)
    assert [shot.period for shot in found] == [0]
    assert good.exists()


def test_any_flipped_byte_leaves_a_snapshot_or_a_word(tmp_path):
    path = written(tmp_path)
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert len(load(tmp_path)) <= 1


def test_a_snapshot_of_another_run_is_left_out(tmp_path):
    written(tmp_path)
    with pytest.warns(UserWarning, match="left out"):
        assert load(tmp_path, n_samples=61) == []


@pytest.mark.skipif(os.name == "nt", reason="makes links")
def test_snapshots_are_not_written_through_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "snapshots").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotADirectoryError):
        written(tmp_path / "snapshots")
    assert list((tmp_path / "elsewhere").iterdir()) == []
