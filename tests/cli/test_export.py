"""export, through the installed command once, and else inside this process, which is quicker."""

import io
import json
import os
import shutil

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from jule.cli import app
from jule.cli.export import file_of, folder_names
from jule.images import ArraySource, fingerprint, load_dataset, read_images
from jule.joint import Config
from jule.runs import Run, create_run, go
from jule.runs.tables import ranks_in_clusters, read_labels
from tests.cli.test_cli import jule

POSIX = pytest.mark.skipif(os.name == "nt", reason="makes links")
N = 60


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run on an array of digits, and the same digits as files."""
    folder = tmp_path_factory.mktemp("made")
    data = load_dataset("digits")
    images = data.images[data.labels < 3][:N]
    names = [f"part {number % 2}/{number}.png" for number in range(N)]
    np.savez(folder / "digits.npz", images=images, names=names)
    for name, image in zip(names, images, strict=True):
        (folder / "digits" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "digits" / name).write_bytes(png_of(image))
    config = Config(n_clusters=3, rounds=1, epochs=0.2)
    run = create_run(folder / "run", config, fingerprint(images), source=str(folder / "digits.npz"))
    go(run, images, names=names)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """A copy of all that, to be changed."""
    shutil.copytree(made, tmp_path / "made")
    set_about(tmp_path / "made" / "run", source=str(tmp_path / "made" / "digits.npz"))
    return tmp_path / "made"


@pytest.fixture
def of_files(folder):
    """The run, as if its source were the folder of files."""
    set_about(folder / "run", source=str(folder / "digits"))
    return folder


def png_of(image):
    return file_of(ArraySource(image[None]), 0)


def set_about(run, **changes):
    about = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(about | changes))


def sorted_files(to):
    return {str(path.relative_to(to)): path for path in to.rglob("*") if not path.is_dir()}


@pytest.fixture
def export(monkeypatch):
    """Run the command in a folder."""

    def run(*arguments, cwd):
        monkeypatch.chdir(cwd)
        return CliRunner().invoke(app, ["export", *arguments])

    return run


def one_line(done):
    assert done.exit_code == 1
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    return done.stderr


def test_an_array_is_copied_as_png_files(folder):
    done = jule("export", "run", "--to", "sorted", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{N} pictures lie in 3 folders in sorted\n"
    found = sorted_files(folder / "sorted")
    names, labels, _ = read_labels(folder / "run" / "labels.csv")
    images = read_images(folder / "digits.npz").samples
    assert len(found) == N
    for name, label, image in zip(names, labels, images, strict=True):
        path = found[f"cluster-{label:02d}/{name.split('/')[1]}"]
        np.testing.assert_array_equal(np.asarray(Image.open(path)), image)
    again = jule("export", "run", "--to", "sorted", "--how", "copy", cwd=folder)
    assert (again.returncode, again.stderr) == (0, "")
    assert f"({N} were there before)" in again.stdout


@POSIX
def test_files_are_linked_into_named_folders(export, of_files):
    (of_files / "run" / "cluster_names.json").write_text(
        '{"names": {"1": "cats/../dogs", "2": " "}}'
    )
    done = export("run", "--to", "sorted", cwd=of_files)
    assert done.exit_code == 0, done.stderr
    found = sorted_files(of_files / "sorted")
    assert {name.split("/")[0] for name in found} == {
        "cluster-00",
        "cluster-01 cats_.._dogs",
        "cluster-02",
    }
    for path in found.values():
        assert path.is_symlink()
        assert path.resolve().is_relative_to(of_files.resolve() / "digits")


def test_conflicts_and_vanished_pictures_are_listed_and_counted(export, of_files):
    assert export("run", "--to", "to", "--how", "copy", cwd=of_files).exit_code == 0
    for path in list(sorted_files(of_files / "to").values())[:2]:
        path.write_text("mine")
    for number in range(30, 45):
        (of_files / "digits" / f"part {number % 2}" / f"{number}.png").unlink()
    done = export("run", "--to", "to", "--how", "copy", cwd=of_files)
    assert done.exit_code == 1
    assert "another file is there" in done.stderr
    assert "15 could not be read" in done.stderr
    assert "... and 5 more" in done.stderr
    assert len(done.stderr.splitlines()) <= 2 + 2 + 10 + 1
    assert "were there before" in done.stdout


def test_network_and_table(folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    done = jule("export", "run", "--onnx", "net.onnx", "--parquet", "labels.parquet", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "net.onnx" in done.stdout
    names, labels, confidence = read_labels(folder / "run" / "labels.csv")
    assert parquet.read_table(folder / "labels.parquet").to_pydict() == {
        "path": names,
        "cluster": labels.tolist(),
        "confidence": confidence.tolist(),
        "rank": ranks_in_clusters(labels, confidence).tolist(),
    }
    session = runtime.InferenceSession(folder / "net.onnx", providers=["CPUExecutionProvider"])
    images = read_images(folder / "digits.npz").samples
    (found,) = session.run(None, {"images": images[:, None].astype(np.float32)})
    expected = np.load(folder / "run" / "embedding.npy")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


BAD = {
    "nothing to export": (["run"], "jule export photos-run --to sorted"),
    "links to an array": (["run", "--to", "x", "--how", "link"], "use --how copy"),
    "another way": (["run", "--to", "x", "--how", "move"], "'move'"),
    "no run": (["digits", "--to", "x"], "is not a run"),
    "no folder": (["run", "--onnx", "x/net.onnx"], "make it first"),
    "a folder for a file": (["run", "--parquet", "digits"], "name of a file"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line(export, made, case):
    arguments, message = BAD[case]
    assert message in one_line(export(*arguments, cwd=made))
    assert not (made / "x").exists()


def test_sorting_among_the_originals_is_one_clear_line(export, of_files):
    done = export("run", "--to", "digits/sorted", "--how", "copy", cwd=of_files)
    assert "originals" in one_line(done)
    assert not (of_files / "digits" / "sorted").exists()


def test_names_that_are_not_in_the_source_are_missing(export, of_files):
    path = of_files / "run" / "labels.csv"
    path.write_text(path.read_text().replace("part 0/0.png", "../secret.png", 1))
    (of_files / "secret.png").write_bytes(b"secret")
    done = export("run", "--to", "out", cwd=of_files)
    assert done.exit_code == 1
    assert "secret.png" in done.stderr
    assert not list((of_files / "out").rglob("secret*"))


def test_a_run_without_a_source_is_refused(export, folder):
    set_about(folder / "run", source="")
    assert "where its pictures are" in one_line(export("run", "--to", "out", cwd=folder))


def test_moved_pictures_are_found_where_they_are_said_to_be(export, of_files):
    (of_files / "digits").rename(of_files / "moved")
    done = export("run", "--to", "out", "--source", "moved", cwd=of_files)
    assert done.exit_code == 0, done.stderr
    assert len(sorted_files(of_files / "out")) == N


def test_an_array_that_changed_is_refused(export, folder):
    np.savez(folder / "digits.npz", images=np.zeros((N, 8, 8), np.uint8))
    assert "any more" in one_line(export("run", "--to", "out", cwd=folder))


def test_vectors_are_no_pictures(export, folder):
    vectors = np.zeros((N, 5), np.float32)
    np.save(folder / "vectors.npy", vectors)
    set_about(folder / "run", source=str(folder / "vectors.npy"), data=fingerprint(vectors))
    assert "vectors" in one_line(export("run", "--to", "out", cwd=folder))


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 1), (3, 4, 3), (3, 4, 4)])
def test_a_png_holds_the_pixels(shape):
    image = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    found = np.asarray(Image.open(io.BytesIO(png_of(image))))
    np.testing.assert_array_equal(found.reshape(shape), image)


def test_folder_names_have_as_many_digits_as_needed(tmp_path):
    assert folder_names(Run(tmp_path), 101)[7] == "cluster-007"
    assert folder_names(Run(tmp_path), 1) == ["cluster-00"]


@pytest.mark.parametrize("text", ["{", "[]", '{"1": 2}', '{"names": {"a": "b"}}'])
def test_bad_cluster_names_are_named(tmp_path, text):
    (tmp_path / "cluster_names.json").write_text(text)
    with pytest.raises(ValueError, match="cluster_names"):
        folder_names(Run(tmp_path), 2)


def test_ranks_begin_at_one_in_every_cluster():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 200)
    confidence = rng.integers(0, 4, 200) / 4  # many ties
    ranks = ranks_in_clusters(labels, confidence)
    for cluster in range(5):
        inside = np.flatnonzero(labels == cluster)
        expected = sorted(inside, key=lambda i: -confidence[i])  # stable
        assert inside[np.argsort(ranks[inside])].tolist() == expected
        assert sorted(ranks[inside]) == list(range(1, len(inside) + 1))
    assert ranks_in_clusters(labels[:0], confidence[:0]).tolist() == []
