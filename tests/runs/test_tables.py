"""The tables of a run: columns, ranks, and hostile names that come back as they were."""

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.forward.assign import centre_distances
from jule.images import Skipped
from jule.runs.tables import (
    csv_text,
    label_columns,
    ranks_in_clusters,
    read_first_copies,
    read_labels,
    read_skipped,
    write_duplicates,
    write_labels,
    write_skipped,
)

HOSTILE = [
    "a.jpg", "a,b.jpg", 'say "x".jpg', "two\nlines.jpg", "cr\r.jpg", "crlf\r\n.jpg", " é ✓.jpg",
    "=1+1", "[red]", "caf\udce9.png", "", "name", "'", "a;b\tc",
]  # fmt: skip


def table(names, labels, confidence=None, distances=None, cluster_names=None):
    n = len(names)
    return label_columns(
        names,
        np.asarray(labels, np.int32),
        np.ones(n) if confidence is None else np.asarray(confidence),
        np.zeros(n) if distances is None else np.asarray(distances),
        cluster_names,
    )


def test_the_columns_of_labels():
    columns = table(["a.jpg", "b.jpg"], [0, 0], [0.25, 1 / 3], [2.0, 1.0], {0: "cats"})
    assert csv_text(columns) == (
        "path,cluster,confidence,rank,name\r\na.jpg,0,0.2500,2,cats\r\nb.jpg,0,0.3333,1,cats\r\n"
    )


def test_hostile_names_of_samples_and_of_clusters_come_back(tmp_path):
    n = len(HOSTILE)
    labels, confidence = np.arange(n), np.linspace(0, 1, n)
    names = {number: name for number, name in enumerate(reversed(HOSTILE)) if name}
    by_hand = np.arange(n) % 3 == 0
    columns = table(HOSTILE, labels, confidence, cluster_names=names)
    write_labels(tmp_path / "labels.csv", columns, by_hand)
    found = read_labels(tmp_path / "labels.csv")
    assert found.names == HOSTILE
    assert found.cluster_names == names
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_allclose(found.confidence, confidence, atol=5e-5)
    np.testing.assert_array_equal(found.by_hand, by_hand)
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]


@given(st.lists(st.text(max_size=8), min_size=1, max_size=8))
@settings(max_examples=30, deadline=None)
def test_any_text_comes_back(tmp_path_factory, names):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    write_labels(path, table(names, [0] * len(names)))
    assert read_labels(path).names == names


@pytest.mark.parametrize(
    "text", ["path,cluster\r\na,0\r\n", "path,cluster,confidence\r\na,x,1\r\n", "path\r\na\r\n"]
)
def test_a_damaged_table_is_named(tmp_path, text):
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(ValueError, match=r"labels\.csv is damaged"):
        read_labels(tmp_path / "labels.csv")


# Ranks


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1)), min_size=1, max_size=40))
def test_ranks_are_a_strict_order_from_the_nearest_to_the_farthest(pairs):
    labels, distances = (np.array(values) for values in zip(*pairs, strict=True))
    ranks = ranks_in_clusters(labels, distances)
    for label in set(labels.tolist()):
        inside = labels == label
        assert sorted(ranks[inside].tolist()) == list(range(1, inside.sum() + 1))
        assert (np.diff(distances[inside][np.argsort(ranks[inside])]) >= 0).all()


def test_rank_1_is_the_sample_nearest_to_the_centre_of_its_cluster():
    rng = np.random.default_rng(0)
    embedding, labels = rng.normal(size=(60, 5)), rng.integers(0, 4, 60)
    ranks = ranks_in_clusters(labels, centre_distances(embedding, labels))
    for label in range(4):
        inside = np.flatnonzero(labels == label)
        centre = embedding[inside].mean(axis=0)
        nearest = inside[np.linalg.norm(embedding[inside] - centre, axis=1).argmin()]
        assert ranks[nearest] == 1


def test_ranks_do_not_depend_on_the_order_of_files_where_confidence_is_equal():
    rng = np.random.default_rng(0)
    embedding, labels = rng.normal(size=(40, 3)), np.repeat([0, 1], 20)
    names = [f"{number}.jpg" for number in range(40)]

    def rank_of_names(order):
        distances = centre_distances(embedding[order], labels[order])
        columns = table([names[i] for i in order], labels[order], distances=distances)
        return dict(zip(columns["path"], columns["rank"], strict=True))

    assert rank_of_names(np.arange(40)) == rank_of_names(rng.permutation(40))


# Skipped files and duplicates


def test_skipped_files_are_listed_with_their_reasons(tmp_path):
    plain = [name for name in HOSTILE if "\udce9" not in name]
    skipped = [Skipped(name, f"because, {number}") for number, name in enumerate(plain)]
    write_skipped(tmp_path / "skipped.csv", skipped)
    assert read_skipped(tmp_path / "skipped.csv") == [(one.name, one.reason) for one in skipped]
    write_skipped(tmp_path / "skipped.csv", [])
    assert (tmp_path / "skipped.csv").read_bytes() == b"path,reason\r\n"
    assert read_skipped(tmp_path / "nowhere.csv") == []


def test_copies_come_back(tmp_path):
    first = np.arange(len(HOSTILE))
    first[[2, 5]], first[4] = 0, 1
    write_duplicates(tmp_path / "duplicates.csv", HOSTILE, first)
    with open(tmp_path / "duplicates.csv", newline="") as file:
        assert next(csv.DictReader(file)) == {"path": HOSTILE[2], "same_as": HOSTILE[0]}
    np.testing.assert_array_equal(read_first_copies(tmp_path / "duplicates.csv", HOSTILE), first)


def test_a_name_that_is_listed_twice_is_nobody_elses_copy(tmp_path):
    names = ["a", "b", "a"]
    write_duplicates(tmp_path / "d.csv", names, np.array([0, 1, 0]))
    assert read_first_copies(tmp_path / "d.csv", names)[:2].tolist() == [0, 1]
