"""New pictures and a finished run: read as the run was, sorted, and compared."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from jule.backward import embed
from jule.images import ArraySource, ImageSpec, fingerprint, open_source
from jule.joint import Config
from jule.runs.execute import execute
from jule.runs.folder import RunFolder, create_run
from jule.runs.predict import most_similar, predict_samples, read_for_run
from jule.runs.results import read_network, read_results


@pytest.fixture(scope="module")
def run(trained):
    return RunFolder(trained.folder / "run")


@pytest.fixture(scope="module")
def results(run):
    return read_results(run)


@pytest.fixture(scope="module")
def network(run):
    return read_network(run, device="cpu")


@pytest.fixture(scope="module")
def samples(trained, run):
    return read_for_run(run, open_source(trained.folder / "photos")).samples


@pytest.fixture(scope="module")
def vectors_run(tmp_path_factory):
    random = np.random.default_rng(0)
    vectors = np.concatenate([random.normal(3 * k, 1, (20, 8)) for k in range(3)])
    vectors = vectors.astype(np.float32)
    config = Config(n_clusters=3, rounds=1, min_images=200)
    made = create_run(tmp_path_factory.mktemp("vectors") / "run", config, fingerprint(vectors))
    execute(made, vectors)
    return made


def test_new_pictures_get_the_size_and_colour_of_the_run(run, tmp_path):
    Image.new("RGB", (100, 50), "red").save(tmp_path / "wide.png")
    Image.new("L", (8, 8), 9).save(tmp_path / "small.png")
    found = read_for_run(run, open_source(tmp_path))
    assert found.samples.shape == (2, 8, 8)
    assert found.spec == ImageSpec(8, 8, 1)
    array = read_for_run(run, ArraySource(np.zeros((3, 16, 20, 3), np.uint8)))
    assert array.samples.shape == (3, 8, 8)


def test_unreadable_pictures_are_skipped_unless_strict(run, tmp_path):
    Image.new("L", (8, 8), 9).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"")
    found = read_for_run(run, open_source(tmp_path))
    assert found.names == ["a.png"]
    assert [one.reason for one in found.skipped] == ["it is empty"]
    with pytest.raises(ValueError, match="1 of the pictures cannot be read"):
        read_for_run(run, open_source(tmp_path), strict=True)


def test_a_run_of_vectors_takes_vectors_of_the_same_length_only(vectors_run, tmp_path):
    assert len(read_for_run(vectors_run, ArraySource(np.zeros((2, 8))))) == 2
    with pytest.raises(ValueError, match=r"shape \(9,\), but the run was made from .* \(8,\)"):
        read_for_run(vectors_run, ArraySource(np.zeros((2, 9))))
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    with pytest.raises(ValueError, match=r"made from arrays of shape \(8,\), not from pictures"):
        read_for_run(vectors_run, open_source(tmp_path))


def test_a_vote_says_no_more_than_the_confidence_of_its_voter(results, network, samples):
    doubtful = replace(results.result, confidence=results.result.confidence * 0.5)
    sure = predict_samples(results, network, samples[:20], results.names[:20])
    less = predict_samples(replace(results, result=doubtful), network, samples[:20], results.names)
    np.testing.assert_array_equal(sure.labels, less.labels)
    np.testing.assert_allclose(less.confidence, sure.confidence / 2)


def test_the_confidence_of_predictions_is_a_weighted_share(results, network, samples):
    found = predict_samples(results, network, samples[:5], results.names[:5])
    result, vectors = results.result, embed(network, samples[:5]).astype(np.float64)
    for vector, label, confidence in zip(vectors, found.labels, found.confidence, strict=True):
        apart = ((result.embedding - vector) ** 2).sum(axis=1)
        nearest = np.argsort(apart, kind="stable")[: result.neighbors.k]
        weights = np.exp(-apart[nearest] / result.sigma2)
        votes = weights * result.confidence[nearest] * (result.labels[nearest] == label)
        assert confidence == pytest.approx(votes.sum() / weights.sum(), abs=1e-6)


def test_pictures_of_the_run_are_sorted_as_they_were(results, network, samples):
    found = predict_samples(results, network, samples, results.names)
    assert (found.labels == results.result.labels).mean() > 0.8
    assert ((found.confidence >= 0) & (found.confidence <= 1)).all()
    assert (found.distances >= 0).all()


def test_pictures_alone_in_their_clusters_are_not_sure_of_others(results, network, samples):
    n = len(samples)
    alone = replace(results.result, labels=np.arange(n, dtype=np.int32), confidence=np.zeros(n))
    found = predict_samples(
        replace(results, result=alone, numbers=()), network, samples, results.names
    )
    assert (found.confidence == 0).all()
    # Among others, they count like these on average.
    labels = np.minimum(np.arange(n), n - 10).astype(np.int32)
    confidence = np.where(labels == n - 10, 0.6, 0.0)
    some = replace(results.result, labels=labels, confidence=confidence)
    found = predict_samples(
        replace(results, result=some, numbers=()), network, samples, results.names
    )
    assert (found.confidence <= 0.6 + 1e-9).all()
    assert found.confidence.max() > 0


def test_one_picture_is_sorted_as_it_is_among_others(results, network, trained):
    new = trained.images[-12:]
    names = [str(number) for number in range(len(new))]
    together = predict_samples(results, network, new, names).labels
    alone = [predict_samples(results, network, image[None], ["x"]).labels[0] for image in new]
    assert together.tolist() == alone


def test_a_picture_of_the_run_is_most_similar_to_itself(results, network, samples):
    for number in (0, 17, len(samples) - 2):
        nearest, cosines = most_similar(results, network, samples[number], 5)
        assert nearest[0] == number
        assert cosines[0] == pytest.approx(1, abs=1e-5)
        assert (np.diff(cosines) <= 0).all()
        assert len(set(nearest.tolist())) == 5


def test_no_more_are_listed_than_there_are(results, network, samples):
    nearest, _ = most_similar(results, network, samples[0], 1000)
    assert sorted(nearest.tolist()) == list(range(len(samples)))


@pytest.mark.parametrize("count", [0, -1])
def test_fewer_than_one_similar_picture_is_refused(results, network, samples, count):
    with pytest.raises(ValueError, match="count must be 1 or more"):
        most_similar(results, network, samples[0], count)
