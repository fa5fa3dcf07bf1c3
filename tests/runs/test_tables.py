"""The tables of a run: written, read back, and ranks."""

import csv

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jule.images import Skipped
from jule.runs.tables import (
    csv_of_labels,
    label_rows,
    ranks_in_clusters,
    read_first_copies,
    read_labels,
    write_duplicates,
    write_labels,
    write_skipped,
)

ODD = ["a.jpg", "a,b.jpg", 'say "x".jpg', "two\nlines.jpg", "cr\r.jpg", " é ✓.jpg", "=1+1", "[red]"]


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_labels_come_back_as_they_were(tmp_path):
    labels = np.arange(len(ODD), dtype=np.int32) % 3
    confidence = np.linspace(0, 1, len(ODD))
    write_labels(tmp_path / "labels.csv", ODD, labels, confidence)
    names, clusters, sure = read_labels(tmp_path / "labels.csv")
    assert names == ODD
    np.testing.assert_array_equal(clusters, labels)
    np.testing.assert_allclose(sure, confidence, atol=5e-5)
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]


def test_the_columns_of_labels():
    text = csv_of_labels(["a.jpg", "b.jpg"], np.array([0, 0]), np.array([0.25, 1 / 3]))
    assert text == "path,cluster,confidence,rank\r\na.jpg,0,0.2500,2\r\nb.jpg,0,0.3333,1\r\n"
    columns = label_rows(["a"], np.array([4]), np.array([0.5]))
    assert columns == {"path": ["a"], "cluster": [4], "confidence": [0.5], "rank": [1]}


def test_what_was_skipped_is_listed_with_its_reason(tmp_path):
    skipped = [Skipped(name, f"because, {number}") for number, name in enumerate(ODD)]
    write_skipped(tmp_path / "skipped.csv", skipped)
    found = [(row["path"], row["reason"]) for row in rows(tmp_path / "skipped.csv")]
    assert found == [(one.name, one.reason) for one in skipped]


def test_nothing_skipped_is_a_table_with_a_head_alone(tmp_path):
    write_skipped(tmp_path / "skipped.csv", [])
    assert (tmp_path / "skipped.csv").read_bytes() == b"path,reason\r\n"


def test_copies_come_back_as_they_were(tmp_path):
    first = np.array([0, 1, 0, 3, 1, 0, 6, 7])
    write_duplicates(tmp_path / "duplicates.csv", ODD, first)
    assert rows(tmp_path / "duplicates.csv")[0] == {"path": ODD[2], "same_as": ODD[0]}
    np.testing.assert_array_equal(read_first_copies(tmp_path / "duplicates.csv", ODD), first)


def test_without_a_table_of_copies_there_are_none(tmp_path):
    assert read_first_copies(tmp_path / "gone.csv", ["a", "b"]).tolist() == [0, 1]


def test_names_that_are_listed_twice_do_not_lead_astray(tmp_path):
    names = ["a", "b", "a"]
    write_duplicates(tmp_path / "d.csv", names, np.array([0, 1, 0]))
    found = read_first_copies(tmp_path / "d.csv", names)
    assert found[0] == 0
    assert found[1] == 1


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.floats(0, 1, allow_nan=False)), min_size=1, max_size=40
    )
)
def test_ranks_number_each_cluster_from_the_surest(pairs):
    labels = np.array([label for label, _ in pairs])
    confidence = np.array([sure for _, sure in pairs])
    ranks = ranks_in_clusters(labels, confidence)
    for label in set(labels.tolist()):
        inside = labels == label
        assert sorted(ranks[inside].tolist()) == list(range(1, inside.sum() + 1))
        by_rank = confidence[inside][np.argsort(ranks[inside])]
        assert (np.diff(by_rank) <= 0).all()


def test_equally_sure_samples_keep_their_order():
    assert ranks_in_clusters(np.zeros(3, int), np.ones(3)).tolist() == [1, 2, 3]
