"""The pictures of a run sorted into folders: linked, copied, named, recut."""

import io
import os
import shutil

import numpy as np
import pytest
from PIL import Image

from jule.export.pictures import export_new_pictures, export_pictures, folder_names
from jule.images import ArraySource, ImageSpec, load_dataset, open_source, read_images
from jule.runs.predict import Prediction
from jule.runs.results import read_results
from tests.report.made import run_of

POSIX = pytest.mark.skipif(os.name == "nt", reason="makes links")
N = 60


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of an array of digits, and the same digits as files."""
    folder = tmp_path_factory.mktemp("made")
    data = load_dataset("digits")
    images = data.images[data.labels < 3][:N]
    names = [f"part {number % 2}/{number}.png" for number in range(N)]
    np.savez(folder / "digits.npz", images=images, names=names)
    for name, image in zip(names, images, strict=True):
        (folder / "digits" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / "digits" / name)
    run = run_of(folder / "run", images, 3, names, source=folder / "digits.npz")
    return folder, run, read_results(run)


def files_in(to):
    return {str(path.relative_to(to)): path for path in to.rglob("*") if not path.is_dir()}


def test_an_array_is_copied_as_png_files(made, tmp_path):
    folder, run, results = made
    done = export_pictures(run, results, tmp_path / "to")
    assert (done.made, done.n_folders, done.missing, done.conflicts) == (N, 3, (), ())
    found = files_in(tmp_path / "to")
    images = read_images(folder / "digits.npz").samples
    for name, label, image in zip(results.names, results.result.labels, images, strict=True):
        path = found[f"cluster-{label:02d}/{name.split('/')[1]}"]
        np.testing.assert_array_equal(np.asarray(Image.open(path)), image)
    assert export_pictures(run, results, tmp_path / "to").already_there == N


@POSIX
def test_files_are_linked(made, tmp_path):
    folder, run, results = made
    export_pictures(run, results, tmp_path / "to", source=str(folder / "digits"))
    found = files_in(tmp_path / "to")
    assert len(found) == N
    for path in found.values():
        assert path.is_symlink()
        assert path.resolve().is_relative_to(folder.resolve() / "digits")


def test_a_recut_has_its_own_folders_and_keeps_names(made, tmp_path):
    from dataclasses import replace

    folder, run, results = made
    named = replace(results, cluster_names={0: "zeros", 1: "ones", 2: "cats/../dogs"})
    done = export_pictures(
        run, named, tmp_path / "to", k=6, how="copy", source=str(folder / "digits")
    )
    assert done.n_folders == 6
    found = sorted(path.name for path in (tmp_path / "to").iterdir())
    assert [name[:10] for name in found] == [f"cluster-{number:02d}" for number in range(6)]
    assert sorted(name[11:] for name in found if name[11:]) == ["cats_.._dogs", "ones", "zeros"]


def test_a_name_that_is_not_in_the_source_is_missing(made, tmp_path):
    from dataclasses import replace

    folder, run, results = made
    (tmp_path / "secret.png").write_bytes(b"secret")
    names = ["../secret.png", *results.names[1:]]
    wrong = replace(results, names=names)
    done = export_pictures(run, wrong, tmp_path / "to", source=str(folder / "digits"))
    assert [one.split(":")[0] for one in done.missing] == ["../secret.png"]
    assert done.made == N - 1
    assert not list((tmp_path / "to").rglob("secret*"))


def test_sorting_among_the_originals_is_refused(made, tmp_path):
    folder, run, results = made
    shutil.copytree(folder / "digits", tmp_path / "digits")
    to = tmp_path / "digits" / "sorted"
    with pytest.raises(ValueError, match="originals"):
        export_pictures(run, results, to, source=str(tmp_path / "digits"))
    assert not to.exists()


def test_an_array_that_changed_is_refused(made, tmp_path):
    _, run, results = made
    np.savez(tmp_path / "digits.npz", images=np.zeros((N, 8, 8), np.uint8))
    with pytest.raises(ValueError, match="has changed since"):
        export_pictures(run, results, tmp_path / "to", source=str(tmp_path / "digits.npz"))


def test_vectors_are_no_pictures(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    run = run_of(tmp_path / "run", vectors, 2)
    with pytest.raises(ValueError, match="holds vectors, not pictures"):
        export_pictures(run, read_results(run), tmp_path / "to")


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 1), (3, 4, 3), (3, 4, 4)])
def test_a_png_holds_the_pixels(tmp_path, shape):
    image = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    source = ArraySource(image[None])
    data = read_images(source, ImageSpec(2, 2, 1))
    one = Prediction(["0"], np.zeros(1, np.int32), np.ones(1), np.zeros(1), {0: "all"})
    done = export_new_pictures(source, data, one, 1, tmp_path / "to")
    assert done.made == 1
    content = (tmp_path / "to" / "cluster-00 all" / "0.png").read_bytes()
    found = np.asarray(Image.open(io.BytesIO(content)))
    np.testing.assert_array_equal(found.reshape(shape), image)


def test_new_pictures_go_to_their_predicted_folders(tmp_path):
    for name in ("a.png", "b.png", "c.png"):
        (tmp_path / "new").mkdir(exist_ok=True)
        Image.new("L", (8, 8), ord(name[0])).save(tmp_path / "new" / name)
    (tmp_path / "new" / "b.png").write_bytes(b"bad")
    source = open_source(tmp_path / "new")
    data = read_images(source)
    found = Prediction(data.names, np.array([1, 0], np.int32), np.ones(2), np.zeros(2), {})
    export_new_pictures(source, data, found, 2, tmp_path / "to", how="copy")
    assert sorted(files_in(tmp_path / "to")) == ["cluster-00/c.png", "cluster-01/a.png"]


def test_folder_names_have_as_many_digits_as_needed():
    assert folder_names(101, {})[7] == "cluster-007"
    assert folder_names(1, {0: " "}) == ["cluster-00"]
