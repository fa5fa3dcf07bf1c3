"""Stored vectors: found again, never wrong, whatever happened to the files."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.features.store import (
    ENTRY,
    INDEX,
    VECTORS,
    FeatureStore,
    clear_stores,
    features_folder,
    list_stores,
    picture_ids,
)

DIGEST = "d" * 64
RNG = np.random.default_rng(0)


def ids_of(*numbers):
    return [bytes([number]) * 16 for number in numbers]


def vectors_of(*numbers):
    return np.array([[number, -number, 0.5] for number in numbers], np.float32)


def found(folder, *numbers):
    return FeatureStore(folder, DIGEST).find(ids_of(*numbers))


@given(batches=st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=5), max_size=6))
@settings(max_examples=30, deadline=None)
def test_what_was_added_is_found(tmp_path_factory, batches):
    folder = tmp_path_factory.mktemp("store")
    added = set()
    for batch in batches:
        FeatureStore(folder, DIGEST).add(ids_of(*batch), vectors_of(*batch))
        added |= set(batch)
    numbers = range(21)
    result = found(folder, *numbers)
    assert set(result) == added
    for position, vector in result.items():
        np.testing.assert_array_equal(vector, vectors_of(position)[0])


def test_encoders_do_not_share_vectors(tmp_path):
    FeatureStore(tmp_path, DIGEST).add(ids_of(1), vectors_of(1))
    assert FeatureStore(tmp_path, "e" * 64).find(ids_of(1)) == {}


@pytest.mark.parametrize("name", [INDEX, VECTORS])
def test_files_cut_off_anywhere_give_no_wrong_vector(tmp_path, name):
    FeatureStore(tmp_path, DIGEST).add(ids_of(1, 2, 3), vectors_of(1, 2, 3))
    path = next(tmp_path.glob(f"*/{name}"))
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        for position, vector in found(tmp_path, 1, 2, 3).items():
            np.testing.assert_array_equal(vector, vectors_of(position + 1)[0])


def test_a_changed_vector_is_not_used(tmp_path):
    FeatureStore(tmp_path, DIGEST).add(ids_of(1, 2), vectors_of(1, 2))
    path = next(tmp_path.glob(f"*/{VECTORS}"))
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    assert set(found(tmp_path, 1, 2)) == {1}


def test_vectors_of_a_killed_process_are_overwritten(tmp_path):
    FeatureStore(tmp_path, DIGEST).add(ids_of(1), vectors_of(1))
    path = next(tmp_path.glob(f"*/{VECTORS}"))
    with path.open("ab") as file:  # the entry in the index is missing
        file.write(vectors_of(9).tobytes()[:7])
    FeatureStore(tmp_path, DIGEST).add(ids_of(2), vectors_of(2))
    assert set(found(tmp_path, 1, 2, 9)) == {0, 1}
    np.testing.assert_array_equal(found(tmp_path, 2)[0], vectors_of(2)[0])


def test_a_damaged_length_costs_one_vector(tmp_path):
    FeatureStore(tmp_path, DIGEST).add(ids_of(1, 2, 3), vectors_of(1, 2, 3))
    path = next(tmp_path.glob(f"*/{INDEX}"))
    content = bytearray(path.read_bytes())
    content[ENTRY.itemsize + 20] ^= 1  # of the second
    path.write_bytes(content)
    assert set(found(tmp_path, 1, 2, 3)) == {0, 2}


def test_an_index_of_no_use_is_begun_again(tmp_path):
    FeatureStore(tmp_path, DIGEST).add(ids_of(1, 2), vectors_of(1, 2))
    next(tmp_path.glob(f"*/{VECTORS}")).write_bytes(b"")
    for _ in range(3):
        FeatureStore(tmp_path, DIGEST).add(ids_of(1), vectors_of(1))
    assert next(tmp_path.glob(f"*/{INDEX}")).stat().st_size <= 3 * ENTRY.itemsize
    assert set(found(tmp_path, 1)) == {0}
    next(tmp_path.glob(f"*/{VECTORS}")).write_bytes(b"")
    store = FeatureStore(tmp_path, DIGEST)
    for number in (3, 4, 5):
        store.add(ids_of(number), vectors_of(number))
    assert set(found(tmp_path, 3, 4, 5)) == {0, 1, 2}


@pytest.mark.skipif(os.name == "nt", reason="makes links")
@pytest.mark.parametrize("name", [INDEX, VECTORS])
def test_files_with_another_name_are_not_written(tmp_path, name):
    FeatureStore(tmp_path, DIGEST).add(ids_of(1), vectors_of(1))
    path = next(tmp_path.glob(f"*/{name}"))
    os.link(path, tmp_path / "elsewhere")
    before = path.read_bytes()
    with pytest.raises(OSError, match=r"not an ordinary file"):
        FeatureStore(tmp_path, DIGEST).add(ids_of(2), vectors_of(2))
    assert path.read_bytes() == before


@pytest.mark.skipif(os.name == "nt", reason="makes links")
def test_links_are_not_followed(tmp_path):
    FeatureStore(tmp_path, DIGEST).add(ids_of(1), vectors_of(1))
    path = next(tmp_path.glob(f"*/{VECTORS}"))
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    assert found(tmp_path, 1) == {}
    with pytest.raises(OSError, match=VECTORS):
        FeatureStore(tmp_path, DIGEST).add(ids_of(2), vectors_of(2))
    assert elsewhere.read_bytes() == before


def test_only_the_user_can_read_the_files(tmp_path):
    FeatureStore(tmp_path, DIGEST).add(ids_of(1), vectors_of(1))
    if os.name == "posix":
        modes = {path.stat().st_mode & 0o077 for path in tmp_path.rglob("*.bin")}
        assert modes == {0}
    assert ENTRY.itemsize == 24


def test_pictures_of_other_shapes_have_other_ids():
    flat = RNG.integers(0, 256, (1, 4, 6), dtype=np.uint8)
    assert picture_ids(flat) != picture_ids(flat.reshape(1, 6, 4))
    assert picture_ids(flat) == picture_ids(np.asfortranarray(flat))


def test_stored_vectors_are_listed_and_cleared(tmp_path, monkeypatch):
    monkeypatch.setenv("JULE_CACHE", str(tmp_path))
    assert list_stores() == []
    FeatureStore(features_folder(), DIGEST).add(ids_of(1), vectors_of(1))
    other = features_folder() / "not a store"
    other.mkdir()
    ((home, size),) = list_stores()
    assert size == ENTRY.itemsize + vectors_of(1).nbytes
    assert clear_stores() == size
    assert not home.exists()
    assert other.exists()
