"""The page of a run of several networks: their votes in the browser as in Python."""

from dataclasses import replace

import numpy as np
import pytest

from jule.joint.ensemble import cluster_members, member_votes
from jule.joint.result import recut
from jule.report.summary import doubtful_samples
from tests.report.made import labels_in, page_of, results_of

KS = (2, 5, 8, 40)


@pytest.fixture(scope="module")
def results(images):
    """Results of three networks, which are different parts of the images."""
    single = results_of(images, 8)
    config = replace(single.config, ensemble=3)
    rows = images.reshape(len(images), 8, 8)[:, :6].reshape(len(images), 3, 16)
    trees = cluster_members(rows.reshape(len(images), 48).astype(np.float32), config)
    result = replace(single.result, member_trees=trees)
    result = replace(result, confidence=result.confidence_in(result.labels))
    return replace(single, config=config, result=result)


def test_networks_vote_in_the_browser_as_in_python(visit, results, images, tmp_path):
    with visit(page_of(tmp_path, results, images)) as shown:
        for k in KS:
            shown.evaluate(f"jule.show({k})")
            labels = recut(results.result, k, results.config)
            np.testing.assert_array_equal(labels_in(shown), labels)
            votes = shown.evaluate("jule.votes.map((vote) => Array.from(vote))")
            np.testing.assert_array_equal(votes, member_votes(results.result.member_trees, labels))
        shown.evaluate("jule.show(8)")
        assert "more like another cluster" in shown.inner_text("#doubts-hint")
        shown.evaluate("jule.open(5)")
        assert "% sure" in shown.inner_text("#image-dialog")


def test_doubts_count_the_votes(results):
    result = results.result
    samples, others = doubtful_samples(result)
    assert len(samples)
    assert (others != result.labels[samples]).all()
    alone = replace(result, member_trees=())
    without = doubtful_samples(replace(alone, confidence=alone.confidence_in(alone.labels)))[0]
    assert set(samples.tolist()) != set(without.tolist())
