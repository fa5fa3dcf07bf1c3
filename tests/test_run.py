"""jule.Run: a run folder as a Python object."""

import io
import json
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest
from PIL import Image

import jule
from jule.images import open_source
from jule.joint import Config
from jule.locks import LockedError
from jule.runs.edits import parse_edits
from jule.runs.execute import execute
from jule.runs.folder import create_run
from jule.runs.page_edits import labels_id
from jule.runs.tables import parse_labels


@pytest.fixture(scope="module")
def run(trained):
    return jule.Run(str(trained.folder / "run"), device="cpu")


@pytest.fixture
def own(copied):
    """A run of the test's own, to be changed."""
    return jule.Run(str(copied), device="cpu")


def edits_for(run, /, **changes):
    edits = {
        "format": "jule-page-edits-3",
        "run": run.results.id,
        "labels": labels_id(run.labels),
        "k": run.results.result.n_clusters,
    }
    return edits | changes


def test_labels_and_names_are_those_of_the_table(run, trained):
    table = parse_labels(run.read("labels.csv"), "labels.csv")
    np.testing.assert_array_equal(run.labels, table.labels)
    assert run.names == table.names
    assert run.cluster_names == {}
    assert repr(run) == f"Run({str(trained.folder / 'run')!r})"


def test_recut(run):
    np.testing.assert_array_equal(run.recut(3), run.labels)
    for k in (1, 2, 7):
        assert len(np.unique(run.recut(k))) == k
    for k in (0, 1000):
        with pytest.raises(ValueError, match="k must be between 1 and 121"):
            run.recut(k)


def test_predict_takes_arrays_and_folders(run, trained, tmp_path):
    reading, stages = [], []
    found = run.predict(
        str(trained.folder / "new"),
        cache=tmp_path,  # nothing is decoded there yet
        reading=lambda *call: reading.append(call),
        progress=lambda *call: stages.append(call),
    )
    assert found.names == [f"{number:03}.png" for number in range(20)]
    array = run.predict(trained.images[120:140])
    np.testing.assert_array_equal(array.labels, found.labels)
    assert found.labels.max() < 3
    assert list(found.columns()) == ["path", "cluster", "confidence", "rank", "name", "index"]
    assert found.columns()["index"] == list(range(20))
    assert reading[-1] == (21, 21)
    assert {stage for stage, _ in stages} == {"embedding"}


def test_predict_refuses_unreadable_files_if_strict(run, trained):
    with pytest.raises(ValueError, match="1 of the pictures cannot be read"):
        run.predict(trained.folder / "new", strict=True)


def test_similar(run, trained, tmp_path):
    found = run.similar(str(trained.folder / "photos" / "007.png"), count=3)
    assert {found[0].path, found[1].path} == {"007.png", "b/copy [red].png"}
    assert found[0].similarity == found[1].similarity == pytest.approx(1, abs=1e-5)
    assert found[0].cluster == run.labels[run.names.index("007.png")]
    names = open_source(trained.folder / "photos").names
    assert [names[one.index] for one in found] == [one.path for one in found]
    assert len(found) == 3
    with pytest.raises(ValueError, match="count must be 1 or more"):
        run.similar(trained.folder / "photos" / "007.png", count=0)
    (tmp_path / "x.png").write_text("x")
    with pytest.raises(ValueError, match=r"x\.png cannot be read"):
        run.similar(tmp_path / "x.png")


@pytest.mark.parametrize("k", [None, 5])
def test_export_folders(run, tmp_path, k):
    shares = []
    done = run.export_folders(str(tmp_path / "sorted"), k=k, how="copy", progress=shares.append)
    assert (done.made, done.n_folders) == (121, k or 3)
    assert shares[-1] == 1.0
    labels = run.labels if k is None else run.recut(k)
    sizes = [len(list(each.iterdir())) for each in sorted((tmp_path / "sorted").iterdir())]
    assert sizes == np.bincount(labels).tolist()


def test_apply_takes_a_file_a_dict_or_edits(own, tmp_path):
    image = int(np.flatnonzero(own.labels == 0)[-1])
    move = {"image": image, "path": own.names[image], "cluster": 1}
    path = tmp_path / "edits.json"
    path.write_text(json.dumps(edits_for(own, names={"0": "zeros"}, moves=[move])))
    assert own.apply(str(path)) in (1, 2)  # it may have a copy
    assert own.labels[image] == 1
    assert own.cluster_names == {0: "zeros"}
    assert own.apply(edits_for(own, names={"1": "ones"})) == 0
    assert own.apply(parse_edits(edits_for(own, names={"2": "twos"}))) == 0
    assert own.cluster_names == {0: "zeros", 1: "ones", 2: "twos"}
    np.testing.assert_array_equal(jule.Run(own.folder).labels, own.labels)
    with pytest.raises(ValueError, match="another run"):
        own.apply(edits_for(own, run="00000000"))
    new = own.predict(np.zeros((1, 8, 8), np.uint8))
    assert new.columns()["name"][0] in ("zeros", "ones", "twos")
    done = own.export_folders(tmp_path / "sorted", how="copy")
    assert done.n_folders == 3
    assert (tmp_path / "sorted" / "cluster-01 ones").is_dir()


@pytest.mark.parametrize("edits", [[], 7, {}, [{"format": "jule-page-edits-3"}]])
def test_apply_refuses_anything_else(own, edits):
    with pytest.raises(ValueError, match="not a file of edits"):
        own.apply(edits)


def test_apply_to_no_run_says_so(run, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        jule.Run(tmp_path / "nowhere").apply(edits_for(run))


def test_one_at_a_time_changes_a_run(own):
    code = (
        "import sys; from pathlib import Path; from jule.locks import hold\n"
        "with hold(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    edits, report = edits_for(own, names={"0": "zeros"}), own.report(umap=False)
    before = own.read("labels.csv"), own.read("report.html")
    with subprocess.Popen(
        [sys.executable, "-c", code, str(own.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(LockedError, match=f"process {other.pid}"):
            own.apply(edits)
        with pytest.raises(LockedError, match=f"process {other.pid}"):
            report.write(own)
        other.stdin.close()
    assert (own.read("labels.csv"), own.read("report.html")) == before
    own.apply(edits)
    assert own.cluster_names == {0: "zeros"}


def test_pictures_of_one_name_are_told_apart(tmp_path, trained):
    images = trained.images[:40]
    names = ["same.png"] * 20 + [f"{number}.png" for number in range(20)]
    np.savez(tmp_path / "a.npz", images=images, names=names)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names that repeat
        for image in images:
            content = io.BytesIO()
            Image.fromarray(image).save(content, "PNG")
            archive.writestr("same.png", content.getvalue())
    data = jule.read_images(tmp_path / "a.npz")
    run = create_run(
        tmp_path / "run",
        Config(n_clusters=2, rounds=1, min_images=100, n_periods=1),
        data.fingerprint,
        source=str(tmp_path / "a.npz"),
    )
    execute(run, data.samples, names=data.names, indices=data.indices)
    run = jule.Run(run.folder, device="cpu")
    Image.fromarray(images[13]).save(tmp_path / "13.png")
    assert run.similar(tmp_path / "13.png", 1)[0].index == 13
    assert run.similar(tmp_path / "13.png", 1)[0].path == "same.png"
    found = run.predict(tmp_path / "a.zip")
    assert found.names == ["same.png"] * 40
    assert found.indices.tolist() == list(range(40))
    move = {"image": 13, "path": "same.png", "cluster": 1 - int(run.labels[13])}
    before = run.labels.copy()
    assert run.apply(edits_for(run, moves=[move])) == 1
    assert np.flatnonzero(run.labels != before).tolist() == [13]
    assert run.export_folders(tmp_path / "to").made == 40


def test_report(run):
    report = run.report(umap=False)
    assert report.sheets is not None
    assert len(report.names) == 121


def test_errors_are_in_the_words_of_python(own, tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a run folder"):
        _ = jule.Run(str(tmp_path)).labels
    own.path("result.json").unlink()
    with pytest.raises(ValueError, match=r"result\.json is missing"):
        _ = jule.Run(own.folder).labels
    own.path("manifest.json").unlink()
    with pytest.raises(ValueError, match="is not finished"):
        _ = jule.Run(own.folder).labels


def test_a_run_of_vectors_compares_no_pictures(tmp_path):
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(c, 0.2, (15, 4)) for c in (-2, 2)]).astype(np.float32)
    model = jule.JULE(2, rounds=1, settings={"min_images": 100, "n_periods": 1}).fit(points)
    model.save(tmp_path / "run")
    run = jule.Run(tmp_path / "run")
    np.testing.assert_array_equal(run.predict(points).labels, model.predict(points))
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="was not made from pictures"):
        run.similar(tmp_path / "a.png")
    with pytest.raises(ValueError, match="does not say where its images are"):
        run.export_folders(tmp_path / "sorted")
