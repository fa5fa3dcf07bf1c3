"""New pictures and a finished run: read in its look, sorted, and compared."""

import numpy as np
import pytest
from PIL import Image

from jule.images import ArraySource, ImageSpec, fingerprint, load_dataset, open_source, read_images
from jule.joint import Config
from jule.runs import create_run, go, read_results
from jule.runs.predict import most_similar, predict_labels, read_for

N = 60


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("digits")
    return data.images[data.labels < 3][: N + 10]


@pytest.fixture(scope="module")
def run(digits, tmp_path_factory):
    """A run on digits that are files, of 8 x 8 grey pixels."""
    folder = tmp_path_factory.mktemp("sorting")
    (folder / "photos").mkdir()
    for number, image in enumerate(digits[:N]):
        Image.fromarray(image).save(folder / "photos" / f"{number:02}.png")
    data = read_images(folder / "photos", ImageSpec(8, 8, 1))
    config = Config(n_clusters=3, rounds=1, epochs=0.2)
    made = create_run(folder / "run", config, fingerprint(data.samples), look=data.look)
    go(made, data.samples, names=data.names)
    return made


@pytest.fixture(scope="module")
def vectors_run(tmp_path_factory):
    """A run on vectors, which has no look."""
    random = np.random.default_rng(0)
    vectors = np.concatenate([random.normal(3 * k, 1, (20, 8)) for k in range(3)])
    vectors = vectors.astype(np.float32)
    config = Config(n_clusters=3, rounds=1, epochs=0.2)
    made = create_run(tmp_path_factory.mktemp("vectors") / "run", config, fingerprint(vectors))
    go(made, vectors)
    return made


def test_new_pictures_are_brought_to_the_look_of_the_run(run, tmp_path):
    Image.new("RGB", (100, 50), "red").save(tmp_path / "wide.png")
    Image.new("L", (8, 8), 9).save(tmp_path / "small.png")
    found = read_for(run, open_source(tmp_path))
    assert found.samples.shape == (2, 8, 8)
    assert found.look == ImageSpec(8, 8, 1)


def test_bad_pictures_are_left_out_unless_told_otherwise(run, tmp_path):
    Image.new("L", (8, 8), 9).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"")
    found = read_for(run, open_source(tmp_path))
    assert found.names == ["a.png"]
    assert [one.reason for one in found.skipped] == ["it is empty"]
    with pytest.raises(ValueError, match="1 of the pictures cannot be read"):
        read_for(run, open_source(tmp_path), strict=True)


def test_arrays_of_another_size_are_brought_to_the_look_too(run):
    found = read_for(run, ArraySource(np.zeros((3, 16, 20, 3), np.uint8)))
    assert found.samples.shape == (3, 8, 8)


def test_pictures_are_refused_by_a_run_on_vectors(vectors_run, tmp_path):
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    with pytest.raises(ValueError, match=r"made with arrays of shape \(8,\), not with pictures"):
        read_for(vectors_run, open_source(tmp_path))


def test_vectors_of_another_length_are_refused(vectors_run):
    assert len(read_for(vectors_run, ArraySource(np.zeros((2, 8))))) == 2
    with pytest.raises(ValueError, match=r"samples of shape \(9,\), the run was made with \(8,\)"):
        read_for(vectors_run, ArraySource(np.zeros((2, 9))))


def test_pictures_of_the_run_are_sorted_as_they_were(run, digits):
    finished = read_results(run)
    labels, confidence = predict_labels(finished, digits[:N])
    assert (labels == finished.result.labels).mean() > 0.8
    assert ((confidence >= 0) & (confidence <= 1)).all()


def test_one_picture_is_sorted_as_it_is_among_others(run, digits):
    finished = read_results(run)
    labels, _ = predict_labels(finished, digits[N:])
    alone = [predict_labels(finished, image[None])[0][0] for image in digits[N:]]
    assert labels.tolist() == alone


def test_a_picture_of_the_run_is_most_similar_to_itself(run, digits):
    finished = read_results(run)
    for number in (0, 17, N - 1):
        nearest, cosines = most_similar(finished, digits[number], 5)
        assert nearest[0] == number
        assert cosines[0] == pytest.approx(1, abs=1e-5)
        assert (np.diff(cosines) <= 0).all()
        assert len(set(nearest.tolist())) == 5


def test_as_many_are_listed_as_there_are(run, digits):
    nearest, _ = most_similar(read_results(run), digits[0], 1000)
    assert sorted(nearest.tolist()) == list(range(N))


@pytest.mark.parametrize("count", [0, -1])
def test_fewer_than_one_similar_picture_is_refused(run, digits, count):
    with pytest.raises(ValueError, match="at least 1"):
        most_similar(read_results(run), digits[0], count)
