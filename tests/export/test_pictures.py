"""The pictures of a run sorted into folders: linked, copied, named, recut."""

import io
import os
import shutil
import warnings
import zipfile

import numpy as np
import pytest
from PIL import Image

from jule.export.pictures import export_new_pictures, export_pictures, folder_names
from jule.images import ArraySource, ImageSpec, load_dataset, open_source, read_images
from jule.runs.predict import Prediction
from jule.runs.reading import UntrustedSourceError
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


# Names that repeat


def drawn(count):
    """As many different digits."""
    data = load_dataset("digits")
    images = (16 * data.images[data.labels < 3][:count]).clip(0, 255).astype(np.uint8)
    assert len(np.unique(images, axis=0)) == count
    return images


def as_png(image):
    content = io.BytesIO()
    Image.fromarray(image).save(content, "PNG")
    return content.getvalue()


def run_from(folder, source):
    """A run of all pictures of a source, as `jule cluster` would make it."""
    data = read_images(source)
    run = run_of(
        folder, data.samples, 2, data.names, indices=data.indices, source=source, spec=data.spec
    )
    return run, read_results(run)


def zip_of(path, pictures):
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names that repeat
        for name, content in pictures:
            archive.writestr(name, content)
    return path


def check_every_picture_once(results, images, to):
    """Each folder must hold the pixels of its cluster's images, all of them, once each."""
    for cluster in range(2):
        found = [np.asarray(Image.open(path)) for path in (to / f"cluster-0{cluster}").iterdir()]
        expected = images[results.result.labels == cluster]
        assert sorted(each.tobytes() for each in found) == sorted(
            each.tobytes() for each in expected
        )


def test_members_of_a_zip_file_with_one_name_are_each_exported(tmp_path):
    images = drawn(30)
    source = zip_of(tmp_path / "a.zip", [("cat.png", as_png(image)) for image in images])
    run, results = run_from(tmp_path / "run", source)
    assert results.names == ["cat.png"] * 30
    done = export_pictures(run, results, tmp_path / "to")
    assert (done.made, done.missing, done.conflicts) == (30, (), ())
    check_every_picture_once(results, images, tmp_path / "to")
    assert export_pictures(run, results, tmp_path / "to").already_there == 30


def test_images_of_an_array_with_one_name_are_each_exported(tmp_path):
    images = drawn(30)
    np.savez(tmp_path / "a.npz", images=images, names=["cat.png"] * 30)
    run, results = run_from(tmp_path / "run", tmp_path / "a.npz")
    assert export_pictures(run, results, tmp_path / "to").made == 30
    check_every_picture_once(results, images, tmp_path / "to")


def test_an_array_that_was_resized_is_exported_as_it_was(tmp_path):
    images = drawn(30)
    np.save(tmp_path / "a.npy", images)
    data = read_images(tmp_path / "a.npy", ImageSpec(4, 4, 1))
    run = run_of(
        tmp_path / "run", data.samples, 2, data.names, source=tmp_path / "a.npy", spec=data.spec
    )
    results = read_results(run)
    assert export_pictures(run, results, tmp_path / "to").made == 30
    check_every_picture_once(results, images, tmp_path / "to")
    np.save(tmp_path / "a.npy", images[::-1])
    with pytest.raises(ValueError, match="has changed since"):
        export_pictures(run, results, tmp_path / "again")


@pytest.fixture
def listed(tmp_path):
    """A list that names some of its files several times."""
    images, photos = drawn(12), tmp_path / "photos"
    photos.mkdir()
    for number, image in enumerate(images):
        Image.fromarray(image).save(photos / f"{number}.png")
    numbers = [*range(12), 3, 3, 7]
    listing = photos / "list.txt"
    listing.write_text("".join(f"{number}.png\n" for number in numbers))
    run, results = run_from(tmp_path / "run", listing)
    return listing, run, results, images[numbers]


@pytest.mark.parametrize("how", [pytest.param("link", marks=POSIX), "copy"])
def test_a_list_that_names_a_file_several_times(listed, tmp_path, how):
    _, run, results, images = listed
    assert export_pictures(run, results, tmp_path / "to", how=how).made == 15
    check_every_picture_once(results, images, tmp_path / "to")


def test_a_list_that_has_changed_still_means_the_same_files(listed, tmp_path):
    listing, run, results, images = listed
    listing.write_text("11.png\n" + listing.read_text().replace("5.png\n", ""))
    done = export_pictures(run, results, tmp_path / "to", how="copy")
    assert (done.made, done.missing) == (14, ("5.png: it is no longer there",))
    for path in (tmp_path / "to").rglob("3*.png"):
        np.testing.assert_array_equal(np.asarray(Image.open(path)), images[3])


@pytest.mark.parametrize("change", ["added", "removed", "renamed"])
def test_a_zip_file_that_has_changed(tmp_path, change):
    images = drawn(30)
    pictures = [(f"{number:02d}.png", as_png(image)) for number, image in enumerate(images)]
    pictures[10:13] = [("same.png", content) for _, content in pictures[10:13]]
    source = zip_of(tmp_path / "a.zip", pictures)
    run, results = run_from(tmp_path / "run", source)
    if change == "added":
        pictures.append(("00 first.png", pictures[0][1]))
    elif change == "removed":
        del pictures[5]
    else:
        pictures[5] = ("000.png", pictures[5][1])
    zip_of(source, pictures)
    done = export_pictures(run, results, tmp_path / "to")
    why = "it cannot be told apart from others with its name, because the source has changed"
    gone = () if change == "added" else ("05.png: it is no longer there",)
    assert sorted(done.missing) == sorted([*gone, *[f"same.png: {why}"] * 3])
    assert done.made == 27 - len(gone)
    for path in (tmp_path / "to").rglob("[0-9]*.png"):
        expected = images[int(path.stem)]
        np.testing.assert_array_equal(np.asarray(Image.open(path)), expected)


def test_a_name_that_came_to_be_twice_is_not_guessed(tmp_path):
    images = drawn(30)
    pictures = [(f"{number:02d}.png", as_png(image)) for number, image in enumerate(images)]
    source = zip_of(tmp_path / "a.zip", pictures)
    run, results = run_from(tmp_path / "run", source)
    zip_of(source, [("00.png", as_png(images[9])), *pictures])
    done = export_pictures(run, results, tmp_path / "to")
    assert [one.split(":")[0] for one in done.missing] == ["00.png"]
    assert done.made == 29


def test_files_that_were_added_or_skipped_do_not_shift_the_others(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    images = drawn(30)
    for number, image in enumerate(images):
        Image.fromarray(image).save(photos / f"b{number:02d}.png")
    (photos / "a.png").write_bytes(b"bad")
    run, results = run_from(tmp_path / "run", photos)
    assert results.indices.tolist() == list(range(1, 31))
    assert export_pictures(run, results, tmp_path / "to", how="copy").made == 30
    check_every_picture_once(results, images, tmp_path / "to")
    Image.fromarray(images[0]).save(photos / "0.png")
    assert export_pictures(run, results, tmp_path / "to", how="copy").already_there == 30


def test_the_pictures_of_somebody_elses_run_are_not_looked_for(made, tmp_path, monkeypatch):
    folder, run, results = made
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another user"))
    monkeypatch.setenv("APPDATA", str(tmp_path / "another user"))
    monkeypatch.setenv("HOME", str(tmp_path / "another user"))
    with pytest.raises(UntrustedSourceError, match="--source"):
        export_pictures(run, results, tmp_path / "to")
    assert not (tmp_path / "to").exists()
    done = export_pictures(run, results, tmp_path / "to", source=str(folder / "digits.npz"))
    assert done.made == N


# Bad requests


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


@pytest.mark.parametrize("k", [0, N + 1])
def test_an_impossible_number_of_clusters_is_refused(made, tmp_path, k):
    _, run, results = made
    with pytest.raises(ValueError, match=f"between 1 and {N}"):
        export_pictures(run, results, tmp_path / "to", k=k)
    assert not (tmp_path / "to").exists()


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
    one = Prediction(
        ["0"], np.zeros(1, np.int32), np.ones(1), np.zeros(1), {0: "all"}, data.indices
    )
    done = export_new_pictures(source, data, one, [0], tmp_path / "to")
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
    labels = np.array([1, 0], np.int32)
    found = Prediction(data.names, labels, np.ones(2), np.zeros(2), {}, data.indices)
    export_new_pictures(source, data, found, [0, 1], tmp_path / "to", how="copy")
    assert sorted(files_in(tmp_path / "to")) == ["cluster-00/c.png", "cluster-01/a.png"]


def test_folder_names_have_as_many_digits_as_needed():
    assert folder_names(range(101), {})[7] == "cluster-007"
    assert folder_names([0], {0: " "}) == {0: "cluster-00"}
