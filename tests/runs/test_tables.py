"""The tables of a run: columns, ranks, hostile names that come back, damage that is refused."""

import csv
import io
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.forward.assign import centre_distances
from jule.images import Skipped
from jule.runs.plain_tables import split_plain
from jule.runs.tables import (
    SKIPPED_HEAD,
    _any_labels,
    _csv_columns,
    _plain_labels,
    csv_text,
    duplicates_csv,
    label_columns,
    labels_csv,
    parse_first_copies,
    parse_labels,
    parse_skipped,
    ranks_in_clusters,
    skipped_csv,
)
from jule.text import defuse

HOSTILE = [
    "a.jpg", "a,b.jpg", 'say "x".jpg', "two\nlines.jpg", "cr\r.jpg", "crlf\r\n.jpg", " é ✓.jpg",
    "=1+1", "'=1+1", "''@x", "'tis", "-", "+1", "@SUM(A1)", "\t=1", "\r", "[red]", "nul\0.png",
    "caf\udce9.png", "\ud800", "\ud83d\ude00", "\u202egpj.exe", "</script>", "x" * 200_000,
    "", "name", "'", "a;b\tc",
]  # fmt: skip
any_text = st.text(st.characters() | st.sampled_from("'=+-@\t\r\n\",\0\ud800\udce9"), max_size=8)


def table(names, labels, confidence=None, distances=None, cluster_names=None, indices=None):
    n = len(names)
    return label_columns(
        names,
        np.asarray(labels, np.int32),
        np.ones(n) if confidence is None else np.asarray(confidence),
        np.zeros(n) if distances is None else np.asarray(distances),
        cluster_names,
        indices,
    )


def test_the_columns_of_labels():
    columns = table(["a.jpg", "b.jpg"], [0, 0], [0.25, 1 / 3], [2.0, 1.0], {0: "cats"})
    assert csv_text(columns) == (
        "path,cluster,confidence,rank,name,index\r\n"
        "a.jpg,0,0.2500,2,cats,0\r\nb.jpg,0,0.3333,1,cats,1\r\n"
    )
    head = labels_csv(columns, np.zeros(2, bool)).split(b"\r\n")[0]
    assert head == b"path,cluster,confidence,rank,name,by_hand,index"


def test_hostile_names_of_samples_and_of_clusters_come_back():
    n = len(HOSTILE)
    labels, confidence = np.arange(n), np.linspace(0, 1, n)
    names = {number: name for number, name in enumerate(reversed(HOSTILE)) if name}
    by_hand, indices = np.arange(n) % 3 == 0, 5 + 2 * np.arange(n)
    columns = table(HOSTILE, labels, confidence, cluster_names=names, indices=indices)
    found = parse_labels(labels_csv(columns, by_hand), "labels.csv")
    assert found.names == HOSTILE
    assert found.cluster_names == names
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_allclose(found.confidence, confidence, atol=5e-5)
    np.testing.assert_array_equal(found.by_hand, by_hand)
    np.testing.assert_array_equal(found.indices, indices)
    assert (found.labels.dtype, found.indices.dtype) == (np.int32, np.int64)


@given(st.lists(any_text, min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_any_text_comes_back(names):
    n = len(names)
    content = labels_csv(table(names, [0] * n), np.zeros(n, bool))
    assert parse_labels(content, "labels.csv").names == names


@given(st.lists(any_text, min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_no_cell_of_text_is_a_formula(names):
    n = len(names)
    skipped = [Skipped(name, name) for name in names]
    for content, columns in (
        (labels_csv(table(names, range(n), cluster_names=dict(enumerate(names)))), (0, 4)),
        (skipped_csv(skipped), (0, 1)),
        (duplicates_csv(names, np.zeros(n, int)), (0, 1)),
    ):
        text = content.decode("utf-8", "surrogatepass")
        for row in csv.reader(io.StringIO(text, newline="")):
            for column in columns:
                assert not row[column].startswith(tuple("=+-@\t\r"))


def test_the_limit_of_the_csv_module_is_left_as_it_was():
    before = csv.field_size_limit()
    columns = table(["x" * 200_000], [0])
    assert parse_labels(labels_csv(columns, np.zeros(1, bool)), "x").names == ["x" * 200_000]
    assert csv.field_size_limit() == before


HEAD = "path,cluster,confidence,rank,name,by_hand,index\r\n"
DAMAGE = {
    "nothing": "",
    "zeros": "\0" * 400,
    "no rows": HEAD,
    "a column is missing": "path,cluster,confidence,rank,name,by_hand\r\na,0,1,1,,0\r\n",
    "other columns": "path,reason\r\na,b\r\n",
    "a cell is missing": HEAD + "a,0,1.0000,1,,0\r\n",
    "a cell too many": HEAD + "a,0,1.0000,1,,0,0,0\r\n",
    "an empty line": HEAD + "a,0,1.0000,1,,0,0\r\n\r\n",
    "cut off": HEAD + "a,0,1.0000,1,,0,0\r\nb,0,1.0",
    "cut off in quotes": HEAD + '"a,0,1.0000,1,,0,0\r\n',
    "text after quotes": HEAD + '"a"b,0,1.0000,1,,0,0\r\n',
    "zeros at the end": HEAD + "a,0,1.0000,1,,0,0\r\n" + "\0" * 50,
    "a number with a zero byte": HEAD + "a,0\0,1.0000,1,,0,0\r\n",
    "a cluster that is no number": HEAD + "a,x,1.0000,1,,0,0\r\n",
    "a cluster that is no whole number": HEAD + "a,0.0,1.0000,1,,0,0\r\n",
    "a negative cluster": HEAD + "a,-2,1.0000,1,,0,0\r\n",
    "a huge cluster": HEAD + "a,2147483648,1.0000,1,,0,0\r\n",
    "a cluster beyond 32 bits": HEAD + "a,4294967296,1.0000,1,,0,0\r\n",
    "a cluster of 5,000 digits": HEAD + f"a,{'9' * 5000},1.0000,1,,0,0\r\n",
    "foreign digits": HEAD + "a,٠,1.0000,1,,0,0\r\n",
    "confidence nan": HEAD + "a,0,nan,1,,0,0\r\n",
    "confidence inf": HEAD + "a,0,inf,1,,0,0\r\n",
    "confidence above 1": HEAD + "a,0,1.0001,1,,0,0\r\n",
    "confidence below 0": HEAD + "a,0,-0.1,1,,0,0\r\n",
    "no confidence": HEAD + "a,0,,1,,0,0\r\n",
    "no rank": HEAD + "a,0,1.0000,,,0,0\r\n",
    "by hand 2": HEAD + "a,0,1.0000,1,,2,0\r\n",
    "an index that is no number": HEAD + "a,0,1.0000,1,,0,\r\n",
    "an index beyond 64 bits": HEAD + f"a,0,1.0000,1,,0,{2**64}\r\n",
    "an index twice": HEAD + "a,0,1.0000,1,,0,3\r\nb,0,1.0000,2,,0,3\r\n",
    "a cluster with two names": HEAD + "a,0,1.0000,1,x,0,0\r\nb,0,1.0000,2,y,0,1\r\n",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_table_is_refused_and_named(damage):
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"^run/labels\.csv is damaged: .") as caught:
        parse_labels(DAMAGE[damage].encode(), "run/labels.csv")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2_000_000
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


def test_bytes_that_are_not_text_are_refused():
    for parse in (parse_labels, parse_skipped):
        with pytest.raises(ValueError, match=r"^x\.csv is damaged"):
            parse(b"path\xff", "x.csv")
    with pytest.raises(ValueError, match=r"^x\.csv is damaged"):
        parse_first_copies(b"path\xff", np.arange(2), "x.csv")


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_any_damage_is_refused_or_leaves_a_table(data):
    names = ["a", "=b", 'c"', "d\n", "é"]
    labels, by_hand = [0, 0, 1, 1, 0], np.zeros(5, bool)
    content = bytearray(labels_csv(table(names, labels, cluster_names={1: "x"}), by_hand))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]
    try:
        found = parse_labels(bytes(content), "labels.csv")
    except ValueError as error:  # and nothing else
        said = str(error)
    else:
        assert 0 <= found.labels.min() <= found.labels.max() < len(found.names)
        return
    assert said.startswith("labels.csv is damaged")


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


def test_skipped_files_are_listed_with_their_reasons():
    skipped = [Skipped(name, f"because, {number}") for number, name in enumerate(HOSTILE)]
    found = parse_skipped(skipped_csv(skipped), "skipped.csv")
    assert found == [(one.name, one.reason) for one in skipped]
    assert skipped_csv([]) == b"path,reason\r\n"
    assert parse_skipped(skipped_csv([]), "skipped.csv") == []
    with pytest.raises(ValueError, match=r"^skipped\.csv is damaged: its columns must be path, re"):
        parse_skipped(b"path\r\na\r\n", "skipped.csv")


def test_copies_come_back():
    first, indices = np.arange(len(HOSTILE)), 3 * np.arange(len(HOSTILE))
    first[[2, 5]], first[4] = 0, 1
    content = duplicates_csv(HOSTILE, first, indices)
    assert content.startswith(b"path,same_as,index,same_as_index\r\n")
    np.testing.assert_array_equal(parse_first_copies(content, indices, "d"), first)
    none = duplicates_csv(HOSTILE, np.arange(len(HOSTILE)))
    assert parse_first_copies(none, indices, "d").tolist() == list(range(len(HOSTILE)))


def test_samples_of_one_name_keep_their_originals():
    first = np.array([0, 1, 0, 1, 4])
    content = duplicates_csv(["a"] * 5, first, np.array([9, 2, 3, 7, 5]))
    found = parse_first_copies(content, np.array([9, 2, 3, 7, 5]), "duplicates.csv")
    assert found.tolist() == first.tolist()


@pytest.mark.parametrize(
    "row", ["b,a,1,7", "b,a,7,0", "a,a,0,0", "b,a,1,0\r\nb,a,1,0", "b,a,1,0\r\nc,b,2,1", "b,a,1,",
            "b,a,-1,0", "b,a,1000000000,0", "b,a,1", "b,a,1,99999999999999999999"],
)  # fmt: skip
def test_damaged_lists_of_copies_are_refused_and_named(row):
    content = f"path,same_as,index,same_as_index\r\n{row}\r\n".encode()
    with pytest.raises(ValueError, match=r"^run/duplicates\.csv is damaged"):
        parse_first_copies(content, np.arange(3), "run/duplicates.csv")


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(any_text, any_text), max_size=4), st.text("a,\r\n'", max_size=12))
def test_tables_are_written_and_split_as_the_csv_module_does_it(rows, more):
    columns = {"path": [one for one, _ in rows], "reason": [other for _, other in rows]}
    expected = io.StringIO(newline="")
    writer = csv.writer(expected)
    writer.writerow(columns)
    writer.writerows((defuse(one), defuse(other)) for one, other in rows)
    assert csv_text(columns) == expected.getvalue()
    text = expected.getvalue() + more
    plain = split_plain(text.encode("utf-8", "surrogatepass"), b"path,reason")
    if plain is not None:
        found = {name: plain.texts(place) for place, name in enumerate(SKIPPED_HEAD)}
        assert found == _csv_columns(text, SKIPPED_HEAD)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_plain_tables_of_labels_are_read_like_any_other(data):
    n = data.draw(st.integers(1, 6))
    names = data.draw(
        st.lists(st.sampled_from(["a.jpg", "é ✓", "=1", "'", ""]), min_size=n, max_size=n)
    )
    labels = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n)))
    confidence = np.array(data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    indices = np.cumsum(data.draw(st.lists(st.integers(1, 10**7), min_size=n, max_size=n)))
    columns = table(names, labels, confidence, cluster_names={0: "@x"}, indices=indices)
    content = labels_csv(columns, labels % 2 == 0)
    plain, slow = _plain_labels(content), _any_labels(content)
    assert plain is not None
    for name in ("labels", "confidence", "by_hand", "indices"):
        one, other = getattr(plain, name), getattr(slow, name)
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()
    assert (plain.names, plain.cluster_names) == (slow.names, slow.cluster_names)


@pytest.mark.parametrize("damage", sorted(set(DAMAGE) - {"a cluster with two names"}))
def test_a_damaged_table_is_not_plain(damage):
    assert _plain_labels(DAMAGE[damage].encode()) is None
