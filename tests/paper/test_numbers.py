"""The paper's numbers: complete, and as printed."""

import pytest

from jule.paper.numbers import DISPLAY, Score, initial_clusters, paper_methods, paper_score

FOR_BOTH = {
    "K-means", "SC-NJW", "SC-ST", "SC-LS", "N-Cuts",
    "AC-Link", "AC-Zell", "AC-GDL", "AC-PIC", "NMF-LP",
}  # fmt: skip


def test_both_tables_have_all_methods():
    assert set(paper_methods("learned")) == FOR_BOTH
    assert set(paper_methods("raw")) == FOR_BOTH | {"NMF-D", "TSC-D", "OURS-SF", "OURS-RC"}


@pytest.mark.parametrize("table", ["raw", "learned"])
def test_every_cell_is_a_pair_of_scores(table):
    for method in set(paper_methods(table)) - {"NMF-D", "TSC-D"}:
        for dataset in DISPLAY:
            nmi, ac, _ = paper_score(method, dataset, table)
            assert 0 < nmi <= 1
            assert 0 < ac <= 1


@pytest.mark.parametrize(
    ("method", "dataset", "table", "score"),
    [
        ("K-means", "coil20", "raw", Score(0.775, 0.665)),
        ("SC-NJW", "mnist-test", "raw", Score(0.528, 0.220, reported_nmi=0.755)),
        ("NMF-D", "cmu-pie", "raw", Score(0.983, None, reported_nmi=0.910)),
        ("TSC-D", "mnist", "raw", Score(None, None, reported_nmi=0.651)),
        ("TSC-D", "usps", "raw", Score()),
        ("OURS-RC", "cmu-pie", "raw", Score(1.0, 1.0)),
        ("AC-GDL", "mnist", "learned", Score(0.913, 0.878)),
        ("NMF-LP", "ytf", "learned", Score(0.788, 0.575)),
        ("K-means", "digits", "raw", Score()),
    ],
)
def test_scores_are_those_of_the_paper(method, dataset, table, score):
    assert paper_score(method, dataset, table) == score


def test_an_unknown_method_is_named():
    with pytest.raises(ValueError, match="'raw' has no method 'k-means', only K-means, SC-NJW"):
        paper_score("k-means", "usps")


def test_initial_clusters_of_all_sets():
    assert [initial_clusters(dataset) for dataset in DISPLAY] == [
        421, 2162, 2232, 1762, 11521, 188, 775, 775, 2814,
    ]  # fmt: skip
    assert initial_clusters("digits") is None
