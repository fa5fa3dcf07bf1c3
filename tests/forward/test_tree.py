"""Merge trees: cuts against sets of samples, conversion for scipy, files."""

import contextlib
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import dendrogram, fcluster, is_valid_linkage

from jule.forward import MergeTree, default_min_cluster_size
from tests.oracles import tree as oracle


def random_tree(seed, n, chain=0.0, n_clusters=1):
    """A tree of random merges; `chain` is how often the newest cluster takes part again.

    Chains make one large cluster and many samples that join it late: outliers.
    """
    rng = np.random.default_rng(seed)
    alive = list(range(n))
    merges = []
    while len(alive) > n_clusters:
        newest = merges and rng.random() < chain
        a = alive.pop() if newest else alive.pop(rng.integers(len(alive)))
        b = alive.pop(rng.integers(len(alive)))
        alive.append(n + len(merges))
        merges.append((a, b))
    return MergeTree(n, np.array(merges, int).reshape(-1, 2), rng.random(len(merges)))


def trees(smallest=1, largest=30):
    return st.builds(
        random_tree,
        seed=st.integers(0, 10**6),
        n=st.integers(smallest, largest),
        chain=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    )


def same_partition(a, b):
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


# Cuts


@given(tree=trees())
@settings(max_examples=50, deadline=None)
def test_cut_against_sets_at_every_k(tree):
    merges = tree.merges.tolist()
    for k in range(1, tree.n_samples + 1):
        assert tree.cut(k).tolist() == oracle.cut(tree.n_samples, merges, k)


@given(tree=trees())
@settings(max_examples=30, deadline=None)
def test_every_cut_refines_the_one_above(tree):
    for k in range(2, tree.n_samples + 1):
        fine, coarse = tree.cut(k), tree.cut(k - 1)
        pairs = set(zip(fine.tolist(), coarse.tolist(), strict=True))
        assert len(pairs) == k  # no cluster of the fine cut lies in two of the coarse one


@given(tree=trees())
@settings(max_examples=30, deadline=None)
def test_the_ends_of_a_whole_tree(tree):
    n = tree.n_samples
    assert tree.n_clusters == 1
    np.testing.assert_array_equal(tree.cut(n), np.arange(n))
    np.testing.assert_array_equal(tree.cut(1), np.zeros(n))


def test_labels_are_small_integers():
    assert random_tree(0, 10).cut(3).dtype == np.int32


def test_a_single_sample():
    tree = MergeTree(1, np.empty((0, 2), int), np.empty(0))
    assert tree.n_clusters == tree.n_initial == 1
    assert tree.cut(1).tolist() == [0]
    assert tree.cut(1, min_cluster_size=5).tolist() == [0]


@pytest.mark.parametrize("k", [-1, 0, 11, 100])
def test_k_out_of_range(k):
    with pytest.raises(ValueError, match=f"between 1 and 10.*got {k}"):
        random_tree(0, 10).cut(k)


@given(seed=st.integers(0, 10**6), n=st.integers(3, 20), data=st.data())
@settings(max_examples=30, deadline=None)
def test_cuts_of_an_incomplete_tree(seed, n, data):
    n_clusters = data.draw(st.integers(2, n))
    tree = random_tree(seed, n, n_clusters=n_clusters)
    assert tree.n_clusters == n_clusters
    for k in range(n_clusters, n + 1):
        assert tree.cut(k).tolist() == oracle.cut(n, tree.merges.tolist(), k)
    with pytest.raises(ValueError, match=f"between {n_clusters} and {n}.*got {n_clusters - 1}"):
        tree.cut(n_clusters - 1)


def test_an_incomplete_tree_has_no_sizes_to_go_by():
    tree = random_tree(0, 10, n_clusters=3)
    with pytest.raises(ValueError, match=r"needs a complete tree.*stopped at 3 clusters"):
        tree.cut(5, min_cluster_size=2)
    assert tree.cut(5, min_cluster_size=1).max() == 4


def test_initial_clusters_are_counted_by_affinities_that_are_missing():
    tree = MergeTree(4, np.array([[0, 1], [2, 3], [4, 5]]), np.array([np.nan, np.nan, 0.5]))
    assert tree.n_initial == 2


# Cuts that leave out small clusters


@given(tree=trees(1, 20), size=st.integers(2, 25), data=st.data())
@settings(max_examples=100, deadline=None)
def test_min_cluster_size_against_sets(tree, size, data):
    k = data.draw(st.integers(1, tree.n_samples))
    labels = tree.cut(k, min_cluster_size=size)
    expected = oracle.cut_without_small(tree.n_samples, tree.merges.tolist(), k, size)
    assert labels.tolist() == expected


@given(tree=trees(1, 40), size=st.integers(1, 50))
@settings(max_examples=50, deadline=None)
def test_there_are_always_k_clusters_numbered_by_first_sample(tree, size):
    for k in range(1, tree.n_samples + 1):
        labels = tree.cut(k, min_cluster_size=size)
        first_seen = list(dict.fromkeys(labels.tolist()))
        assert first_seen == list(range(k))


@given(tree=trees(1, 40), size=st.integers(1, 12))
@settings(max_examples=50, deadline=None)
def test_no_cluster_is_smaller_than_asked_where_that_is_possible(tree, size):
    n = tree.n_samples
    for k in range(1, n + 1):
        possible = oracle.last_moment(n, tree.merges.tolist(), k, size) is not None
        if possible:
            assert np.bincount(tree.cut(k, min_cluster_size=size)).min() >= size


@given(tree=trees())
@settings(max_examples=30, deadline=None)
def test_min_cluster_size_of_one_changes_nothing(tree):
    for k in range(1, tree.n_samples + 1):
        np.testing.assert_array_equal(tree.cut(k, min_cluster_size=1), tree.cut(k))


def test_an_outlier_does_not_take_the_place_of_a_cluster():
    # Two pairs, and a sample that joins them last.
    tree = MergeTree(5, np.array([[0, 1], [2, 3], [5, 6], [4, 7]]), np.zeros(4))
    assert tree.cut(2).tolist() == [0, 0, 0, 0, 1]
    assert tree.cut(2, min_cluster_size=2).tolist() == [0, 0, 1, 1, 0]


def test_an_outlier_goes_to_the_largest_cluster_of_its_branch():
    # {0, 1} and {2, 3, 4} merge before the outlier 5 comes.
    tree = MergeTree(6, np.array([[0, 1], [2, 3], [4, 7], [6, 8], [5, 9]]), np.zeros(5))
    assert tree.cut(2, min_cluster_size=2).tolist() == [0, 0, 1, 1, 1, 1]


def test_an_outlier_goes_with_its_branch_not_with_the_largest_cluster_of_all():
    # The outlier 5 joins {0, 1} before that meets {2, 3, 4}.
    tree = MergeTree(6, np.array([[0, 1], [2, 3], [4, 7], [5, 6], [8, 9]]), np.zeros(5))
    assert tree.cut(2, min_cluster_size=2).tolist() == [0, 0, 1, 1, 1, 0]


def test_outliers_that_join_each_other_go_on_together():
    # 6 and 7 merge with each other, which makes a third cluster of two, but not one of three.
    merges = [[6, 7], [0, 1], [2, 9], [3, 4], [5, 11], [8, 10], [12, 13]]
    tree = MergeTree(8, np.array(merges), np.zeros(7))
    assert tree.cut(2, min_cluster_size=3).tolist() == [0, 0, 0, 1, 1, 1, 0, 0]
    assert tree.cut(3, min_cluster_size=2).tolist() == [0, 0, 0, 1, 1, 1, 2, 2]


def test_a_size_that_is_never_reached_is_lowered_just_as_far_as_needed():
    # Pairs {0, 1} and {2, 3} and then a chain: at no time do two clusters of three exist.
    tree = MergeTree(5, np.array([[0, 1], [2, 3], [5, 6], [4, 7]]), np.zeros(4))
    for size in (3, 4, 5, 1000):
        np.testing.assert_array_equal(tree.cut(2, size), tree.cut(2, 2))
    assert tree.cut(5, 1000).tolist() == [0, 1, 2, 3, 4]
    assert tree.cut(1, 1000).tolist() == [0, 0, 0, 0, 0]


@pytest.mark.parametrize("size", [0, -3])
def test_min_cluster_size_below_one(size):
    with pytest.raises(ValueError, match=f"min_cluster_size must be 1 or more, got {size}"):
        random_tree(0, 10).cut(2, min_cluster_size=size)


@pytest.mark.parametrize(
    ("n_samples", "k", "size"),
    [
        (70_000, 10, 350),
        (2000, 10, 10),
        (2001, 10, 11),
        (2200, 10, 11),
        (200, 10, 1),
        (201, 10, 2),
        (20, 1, 1),
        (21, 1, 2),
        (1, 1, 1),
        (5, 5, 1),
    ],
)
def test_default_min_cluster_size_is_a_twentieth_of_the_average_rounded_up(n_samples, k, size):
    assert default_min_cluster_size(n_samples, k) == size


# scipy


@given(tree=trees(2, 30))
@settings(max_examples=30, deadline=None)
def test_scipy_reads_the_tree(tree):
    linkage = tree.to_scipy()
    assert is_valid_linkage(linkage, throw=True)
    assert sorted(dendrogram(linkage, no_plot=True)["leaves"]) == list(range(tree.n_samples))


@given(tree=trees(2, 30))
@settings(max_examples=30, deadline=None)
def test_scipy_cuts_the_tree_the_same_way(tree):
    linkage = tree.to_scipy()
    for k in range(1, tree.n_samples + 1):
        assert same_partition(fcluster(linkage, k, criterion="maxclust"), tree.cut(k))


def test_scipy_does_not_know_incomplete_trees():
    with pytest.raises(ValueError, match=r"complete tree.*stopped at 3 clusters"):
        random_tree(0, 10, n_clusters=3).to_scipy()


# Files


@given(tree=trees(), missing=st.integers(0, 10))
@settings(max_examples=30, deadline=None)
def test_save_and_load(tmp_path_factory, tree, missing):
    affinities = tree.affinities.copy()
    affinities[:missing] = np.nan
    tree = MergeTree(tree.n_samples, tree.merges, affinities)
    path = tmp_path_factory.mktemp("trees") / "tree.npz"
    tree.save(path)
    loaded = MergeTree.load(path)
    assert loaded.n_samples == tree.n_samples
    assert loaded.n_initial == tree.n_initial
    np.testing.assert_array_equal(loaded.merges, tree.merges)
    np.testing.assert_array_equal(loaded.affinities, tree.affinities)
    assert loaded.merges.dtype == np.int64
    assert [file.name for file in path.parent.iterdir()] == ["tree.npz"]


def test_the_name_of_the_file_is_kept_as_it_is(tmp_path):
    random_tree(0, 10).save(str(tmp_path / "tree"))
    assert [file.name for file in tmp_path.iterdir()] == ["tree"]
    assert MergeTree.load(str(tmp_path / "tree")).n_samples == 10


def test_saving_replaces_an_older_file(tmp_path):
    path = tmp_path / "tree.npz"
    random_tree(0, 30).save(path)
    random_tree(1, 10).save(path)
    assert MergeTree.load(path).n_samples == 10
    assert [file.name for file in tmp_path.iterdir()] == ["tree.npz"]


def test_load_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        MergeTree.load(tmp_path / "tree.npz")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_load_a_truncated_file(tmp_path, share):
    path = tmp_path / "tree.npz"
    random_tree(0, 100).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match=r"tree\.npz is not a saved merge tree"):
        MergeTree.load(path)


@pytest.mark.parametrize("content", [b"", b"once upon a time", b"PK", b"\x00" * 1000])
def test_load_a_file_of_another_kind(tmp_path, content):
    path = tmp_path / "story.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"story\.txt is not a saved merge tree"):
        MergeTree.load(path)


GOOD = {
    "format": np.int64(1),
    "n_samples": np.int64(3),
    "merges": np.array([[0, 2], [1, 3]]),
    "affinities": np.array([0.5, 0.1]),
}


def test_the_parts_of_a_file_make_a_tree(tmp_path):
    np.savez(tmp_path / "tree.npz", **GOOD)
    assert MergeTree.load(tmp_path / "tree.npz").cut(2).tolist() == [0, 1, 0]


@pytest.mark.parametrize("key", list(GOOD))
def test_load_an_archive_without_one_of_its_parts(tmp_path, key):
    np.savez(tmp_path / "other.npz", **{k: v for k, v in GOOD.items() if k != key})
    with pytest.raises(ValueError, match=rf"other\.npz is not a saved merge tree.*{key}"):
        MergeTree.load(tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": np.int64(2)}, "unknown format 2"),
        ({"format": np.array([1, 1])}, ""),
        ({"n_samples": np.int64(2)}, "2 samples allow 1 merges, got 2"),
        ({"merges": np.array([[0, 2], [0, 3]])}, "a node is merged twice"),
        ({"merges": np.array(["ab", "cd"])}, "whole numbers"),
        ({"affinities": np.zeros(1)}, "2 merges need as many affinities"),
    ],
)
def test_load_an_archive_whose_parts_make_no_tree(tmp_path, change, message):
    np.savez(tmp_path / "other.npz", **(GOOD | change))
    with pytest.raises(ValueError, match=rf"other\.npz is not a saved merge tree.*{message}"):
        MergeTree.load(tmp_path / "other.npz")


def test_load_never_unpickles(tmp_path):
    objects = np.array([[0, 2], [1, 3]], dtype=object)
    np.savez(tmp_path / "other.npz", **(GOOD | {"merges": objects}))
    with pytest.raises(ValueError, match=r"other\.npz is not a saved merge tree.*allow_pickle"):
        MergeTree.load(tmp_path / "other.npz")


def test_load_an_array_instead_of_an_archive(tmp_path):
    np.save(tmp_path / "array.npy", np.arange(10))
    with pytest.raises(ValueError, match=r"array\.npy is not a saved merge tree"):
        MergeTree.load(tmp_path / "array.npy")


# What is not a tree


@pytest.mark.parametrize(
    ("n_samples", "merges", "message"),
    [
        (0, np.empty((0, 2), int), "n_samples is 0"),
        (-1, np.empty((0, 2), int), "n_samples is -1"),
        (4, [[0, 1], [0, 2]], "a node is merged twice"),
        (4, [[0, 1], [2, 4], [3, 4]], "a node is merged twice"),
        (4, [[2, 2]], "a node is merged twice"),
        (4, [[0, 4]], "does not exist yet"),
        (4, [[0, 1], [2, 5]], "does not exist yet"),
        (4, [[0, 100]], "does not exist yet"),
        (4, [[-1, 0]], "does not exist yet"),
        (2, [[0, 1], [2, 3]], "2 samples allow 1 merges, got 2"),
        (1, [[0, 1]], "1 samples allow 0 merges, got 1"),
        (4, [[0.0, 1.0]], "whole numbers"),
        (4, [[True, False]], "whole numbers"),
        (4, [0, 1], "shape"),
        (4, [[0, 1, 2]], "shape"),
        (4, [[[0, 1]]], "shape"),
    ],
)
def test_merges_that_make_no_tree(n_samples, merges, message):
    merges = np.array(merges)
    with pytest.raises(ValueError, match=f"not a tree of merges: .*{message}"):
        MergeTree(n_samples, merges, np.zeros(len(merges)))


@pytest.mark.parametrize(
    "affinities", [np.zeros(1), np.zeros(3), np.zeros((2, 1)), np.array(["a", "b"])]
)
def test_affinities_that_do_not_fit(affinities):
    with pytest.raises(ValueError, match="2 merges need as many affinities"):
        MergeTree(3, np.array([[0, 2], [1, 3]]), affinities)


def test_merges_are_kept_smaller_node_first():
    tree = MergeTree(3, np.array([[2, 0], [3, 1]], np.uint8), np.array([1, 0]))
    assert tree.merges.tolist() == [[0, 2], [1, 3]]
    assert tree.merges.dtype == np.int64
    assert tree.affinities.dtype == np.float64


def test_a_failed_save_leaves_nothing(tmp_path):
    target = tmp_path / "folder-in-the-way.npz"
    target.mkdir()
    with pytest.raises(OSError, match="folder-in-the-way"):
        MergeTree(2, np.array([[0, 1]]), np.zeros(1)).save(target)
    assert list(tmp_path.iterdir()) == [target]


def test_a_flipped_bit_is_harmless_or_raises_an_error_with_the_path(tmp_path):
    path = tmp_path / "tree.npz"
    MergeTree(4, np.array([[0, 1], [2, 3], [4, 5]]), np.array([0.5, 0.25, 0.125])).save(path)
    whole = path.read_bytes()
    errors = []
    for bit in range(0, 8 * len(whole), 31):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            MergeTree.load(path)
        except ValueError as error:
            errors.append(str(error))
    assert errors
    assert all("tree.npz" in message for message in errors)


def test_k_must_be_an_integer():
    tree = MergeTree(2, np.array([[0, 1]]), np.zeros(1))
    with pytest.raises(TypeError, match="integer"):
        tree.cut(1.5)


# Damaged files


def archive_of(**changes):
    """The content of a tree file, with some of its arrays replaced, or left out if None."""
    arrays = {
        "format": np.int64(1),
        "n_samples": np.int64(4),
        "merges": np.array([[0, 1], [2, 3], [4, 5]]),
        "affinities": np.array([np.nan, 0.5, 0.1]),
        "n_copies": np.int64(0),
    }
    kept = {name: value for name, value in (arrays | changes).items() if value is not None}
    content = io.BytesIO()
    np.savez(content, **kept)
    return content.getvalue()


def test_bytes_are_those_of_the_file(tmp_path):
    tree = MergeTree(4, np.array([[0, 1], [2, 3], [4, 5]]), np.array([np.nan, 0.5, 0.1]), 1)
    tree.save(tmp_path / "tree.npz")
    assert (tmp_path / "tree.npz").read_bytes() == tree.to_bytes()
    found = MergeTree.from_bytes(tree.to_bytes())
    assert (found.n_copies, found.n_different) == (1, 3)
    np.testing.assert_array_equal(found.merges, tree.merges)


def test_a_file_without_the_number_of_copies_has_none():
    assert MergeTree.from_bytes(archive_of(n_copies=None)).n_copies == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"format": np.int64(2)},
        {"format": None},
        {"format": np.array([1, 1])},
        {"n_samples": np.int64(0)},
        {"n_samples": np.int64(10**15), "merges": np.array([[0, 10**14], [1, 2], [3, 10**14]])},
        {"n_samples": np.float64(4)},
        {"n_samples": np.array("4")},
        {"merges": None},
        {"merges": np.zeros((3, 2))},
        {"merges": np.array([["0", "1"]] * 3)},
        {"merges": np.array([[0, 1], [2, 3]])},
        {"merges": np.array([0, 1, 2])},
        {"merges": np.array([[0, 1], [0, 2], [3, 4]])},
        {"merges": np.array([[0, 5], [1, 2], [3, 4]])},
        {"merges": np.array([[-1, 1], [2, 3], [4, 5]])},
        {"merges": np.array([[0, 1], [2, 3], [4, 2**64 - 1]], np.uint64)},
        {"affinities": None},
        {"affinities": np.array([np.nan, 0.5])},
        {"affinities": np.array([0.5, np.nan, 0.1])},
        {"affinities": np.array([0.5, 0.1, -0.1])},
        {"affinities": np.array([np.nan, np.inf, 0.1])},
        {"affinities": np.array([1j, 0, 0])},
        {"n_copies": np.int64(-1)},
        {"n_copies": np.int64(4)},
        {"n_copies": np.array(None, object)},
    ],
)
def test_a_file_that_is_no_tree_is_refused(changes, tmp_path):
    content = archive_of(**changes)
    with pytest.raises(ValueError, match="not a saved merge tree"):
        MergeTree.from_bytes(content)
    (tmp_path / "tree.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"tree\.npz is not a saved merge tree"):
        MergeTree.load(tmp_path / "tree.npz")


def test_a_tree_of_another_number_of_samples_is_refused_before_memory_is_taken_for_them(
    monkeypatch,
):
    n = 10**9
    merges = np.array([[0, n - 1], [1, 2], [3, 4]])
    content = archive_of(n_samples=np.int64(n), merges=merges)
    monkeypatch.setattr(np, "bincount", lambda *_: pytest.fail("it counts nodes"))
    with pytest.raises(ValueError, match="it has 1000000000 samples instead of 4"):
        MergeTree.from_bytes(content, 4)


def test_a_small_file_does_not_become_a_large_array():
    content = io.BytesIO()
    np.savez_compressed(content, merges=np.zeros((10**6, 2), np.int64))
    with pytest.raises(ValueError, match="larger than the file"):
        MergeTree.from_bytes(content.getvalue())


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_any_damage_is_a_value_error_or_does_no_harm(data):
    content = bytearray(archive_of())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(0, len(content))) :]
    with contextlib.suppress(ValueError):
        tree = MergeTree.from_bytes(bytes(content))
        assert tree.n_samples > len(tree.merges)
