"""Commands on a finished run: predict, similar, cut, report, apply, plot, export."""

import csv
import json
import os

import numpy as np
import pytest
from PIL import Image

from jule.runs.folder import RunFolder
from jule.runs.page_edits import labels_id
from jule.runs.results import read_results

POSIX = pytest.mark.skipif(os.name == "nt", reason="makes links")


@pytest.fixture(scope="module")
def run(trained):
    return trained.folder / "run"


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def page_of(run):
    return f"page: {(run / 'report.html').resolve().as_uri()}"


# predict


def test_predict_prints_a_table_or_writes_it(jule, run, trained, tmp_path):
    new = trained.folder / "new"
    done = jule("predict", run, new, "--out", tmp_path / "new.csv")
    assert done.exit_code == 0, done.output
    assert "1 picture skipped" in done.stderr
    assert "1 x it is not an image" in done.stderr
    found = rows(tmp_path / "new.csv")
    assert list(found[0]) == ["path", "cluster", "confidence", "rank", "name", "index"]
    assert [row["path"] for row in found] == [f"{number:03}.png" for number in range(20)]
    assert {row["cluster"] for row in found} <= {"0", "1", "2"}
    shown = jule("predict", run, new)
    assert shown.stdout == (tmp_path / "new.csv").read_text().replace("\r", "")


def test_predict_takes_every_kind_of_source(jule, run, trained, tmp_path):
    names = [trained.folder / "new" / f"{number:03}.png" for number in range(20)]
    (tmp_path / "new.txt").write_text("\n".join(map(str, names)))
    np.save(tmp_path / "new.npy", [np.asarray(Image.open(name)) for name in names])

    def clusters(source):
        return [row.split(",")[1] for row in jule("predict", run, source).stdout.split()]

    found = clusters(trained.folder / "new")
    assert len(found) == 21
    for source in ("new.txt", "new.npy"):
        assert clusters(tmp_path / source) == found


def test_predict_sorts_pictures_into_folders(jule, run, trained, tmp_path):
    arguments = [run, trained.folder / "new", "--to", tmp_path / "sorted", "--how", "copy"]
    done = jule("predict", *arguments)
    assert done.exit_code == 0, done.output
    assert "20 pictures in " in done.stdout
    assert len(list((tmp_path / "sorted").rglob("*.png"))) == 20


def test_predict_can_keep_decoded_pictures_elsewhere(jule, run, trained, tmp_path):
    done = jule("predict", run, trained.folder / "new", "--cache", tmp_path / "mine")
    assert done.exit_code == 0, done.output
    assert len(list((tmp_path / "mine").rglob("pixels.bin"))) == 1


def test_predict_refuses_bad_input(refused, run, trained, tmp_path):
    assert "1 of the pictures" in refused("predict", run, trained.folder / "new", "--strict")
    assert "does not exist" in refused("predict", run, tmp_path / "nowhere")
    np.save(tmp_path / "vectors.npy", np.zeros((3, 9)))
    refused("predict", run, tmp_path / "vectors.npy")


# similar


def test_similar_finds_a_picture_and_its_copy_first(jule, run, trained):
    done = jule("similar", run, trained.folder / "photos" / "007.png", "-n", 4)
    assert done.exit_code == 0, done.output
    found = [line for line in done.stdout.splitlines() if ".png" in line]
    assert len(found) == 4
    assert "007.png" in found[0]
    assert "copy [red].png" in found[1]
    assert "1.000" in found[0]


def test_similar_refuses_bad_input(jule, refused, run, trained):
    assert "gone.png does not exist" in refused("similar", run, "gone.png")
    text = trained.folder / "photos" / "text.jpg"
    assert "it is not an image" in refused("similar", run, text)
    assert jule("similar", run, text, "-n", 0).exit_code == 2


# cut


def test_cut_writes_another_number_of_clusters(jule, run, tmp_path):
    done = jule("cut", run, "-k", 6, "--out", tmp_path / "six.csv")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("6 clusters with ")
    found = {row["path"]: row["cluster"] for row in rows(tmp_path / "six.csv")}
    assert len(set(found.values())) == 6
    assert found["007.png"] == found["b/copy [red].png"]


def test_cut_into_one_cluster_and_into_too_many(jule, refused, copied):
    done = jule("cut", copied, "-k", 1)
    assert done.stdout.startswith("1 cluster with 121 images")
    assert len({row["cluster"] for row in rows(copied / "labels-1.csv")}) == 1
    said = refused("cut", copied, "-k", 122)
    assert f"{copied} has 121 images, so 122 clusters cannot be made of them" in said
    assert said.rstrip().endswith("give -k between 1 and 121")


# report and apply


def test_report_makes_the_page_and_prints_a_link_to_it(jule, copied):
    (copied / "report.html").unlink()
    done = jule("report", copied, "--no-umap")
    assert done.exit_code == 0, done.output
    assert page_of(copied) in done.stdout
    assert done.stderr == ""
    assert (copied / "report.html").stat().st_size > 10_000
    assert json.loads((copied / "report.json").read_text())["images"] == 121


def test_report_opens_the_page_if_told(jule, copied, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert jule("report", copied, "--no-umap", "--open").exit_code == 0
    assert opened == [(copied / "report.html").resolve().as_uri()]


def test_apply_writes_edits_and_makes_the_page_again(jule, refused, copied, tmp_path):
    results = read_results(RunFolder(copied))
    image = int(np.flatnonzero(results.result.labels == 0)[-1])
    edits = {
        "format": "jule-page-edits-3",
        "run": results.id,
        "labels": labels_id(results.result.labels),
        "k": 3,
        "names": {"2": "twos"},
        "moves": [{"image": image, "path": results.names[image], "cluster": 1}],
    }
    path = tmp_path / "edits.json"
    path.write_text(json.dumps(edits))
    done = jule("apply", copied, path)
    assert done.exit_code == 0, done.output
    assert "3 clusters, 1 image moved, 1 cluster named" in done.stdout
    assert page_of(copied) in done.stdout
    assert "twos" in (copied / "report.html").read_text()
    before = (copied / "labels.csv").read_bytes()
    path.write_text(json.dumps(edits | {"run": "another"}))
    assert "another run" in refused("apply", copied, path)
    path.write_text("{")
    assert "is not JSON" in refused("apply", copied, path)
    (tmp_path / "empty").mkdir()
    for missing in ("nothing.json", "empty"):
        assert "does not exist: give edits.json of" in refused("apply", copied, tmp_path / missing)
    assert (copied / "labels.csv").read_bytes() == before


# plot


@pytest.mark.parametrize("kind", ["pca3d", "map", "gallery", "history"])
def test_plot_draws_a_figure(jule, run, kind, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    done = jule("plot", run, "--kind", kind, "--out", tmp_path / "figure.png")
    assert done.exit_code == 0, done.output
    pixels = np.asarray(Image.open(tmp_path / "figure.png").convert("L"))
    assert min(pixels.shape) > 200
    assert pixels.std() > 3


def test_an_unknown_figure_is_refused(refused, run):
    assert "pca3d, map, gallery, history" in refused("plot", run, "--kind", "pie")


# export


@POSIX
def test_export_links_pictures_and_adds_what_is_missing(jule, run, tmp_path):
    done = jule("export", run, "--to", tmp_path / "sorted")
    assert done.exit_code == 0, done.output
    assert done.stdout == f"121 pictures in 3 folders in {tmp_path / 'sorted'}\n"
    for row in rows(run / "labels.csv"):
        folder = tmp_path / "sorted" / f"cluster-{int(row['cluster']):02}"
        assert (folder / os.path.basename(row["path"])).is_symlink()
    again = jule("export", run, "--to", tmp_path / "sorted")
    assert "(121 were there before)" in again.stdout


def test_export_with_another_number_of_clusters(jule, run, tmp_path):
    done = jule("export", run, "--to", tmp_path / "one", "-k", 1, "--how", "copy")
    assert done.stdout.startswith("121 pictures in 1 folder in ")
    done = jule("export", run, "--to", tmp_path / "seven", "-k", 7, "--how", "copy")
    assert "in 7 folders in" in done.stdout


def test_export_lists_conflicts_and_vanished_pictures(jule, copied, trained, tmp_path):
    photos, to = tmp_path / "photos", tmp_path / "to"
    photos.mkdir()
    for path in (trained.folder / "photos").glob("[0-9]*.png"):
        if int(path.stem) >= 15:
            (photos / path.name).write_bytes(path.read_bytes())
    arguments = [copied, "--to", to, "--how", "copy", "--source", photos]
    assert jule("export", *arguments).exit_code == 1
    for path in sorted(to.rglob("*.png"))[:2]:
        path.write_text("mine")
    done = jule("export", *arguments)
    assert done.exit_code == 1
    assert "2 not written, because another file has that name" in done.stderr
    assert "16 could not be read" in done.stderr  # with the copy
    assert "... and 6 more" in done.stderr
    assert len(done.stderr.splitlines()) == 1 + 2 + 1 + 10 + 1
    assert "103 were there before" in done.stdout


def test_export_of_the_network_names_its_input_with_channels_first(jule, run, trained, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    done = jule("export", run, "--onnx", tmp_path / "net.onnx")
    assert done.exit_code == 0, done.output
    assert "input `images` of n x 1 x 8 x 8, output `embedding`" in done.stdout
    session = runtime.InferenceSession(
        tmp_path / "net.onnx", providers=["CPUExecutionProvider"]
    )  # fmt: skip
    (found,) = session.run(None, {"images": trained.images[:5, None].astype(np.float32)})
    np.testing.assert_allclose(found, np.load(run / "embedding.npy")[:5], rtol=0, atol=1e-5)


@pytest.mark.parametrize("k", [None, 5])
def test_export_of_the_table(jule, run, tmp_path, k):
    parquet = pytest.importorskip("pyarrow.parquet")
    chosen = [] if k is None else ["-k", k]
    done = jule("export", run, "--parquet", tmp_path / "labels.parquet", *chosen)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("121 rows: ")
    found = parquet.read_table(tmp_path / "labels.parquet").to_pydict()
    assert found == read_results(RunFolder(run)).columns(k)


BAD = {
    "nothing to export": ([], "jule export photos-run --to sorted"),
    "another way": (["--to", "x", "--how", "move"], "'move'"),
    "no folder": (["--onnx", "x/net.onnx"], "create it first"),
    "a folder for a file": (["--parquet", "."], "name of a file"),
    "too many clusters": (["--to", "x", "-k", "999"], "between 1 and 121"),
    "no source": (["--to", "x", "--source", "nowhere"], "nowhere does not exist"),
}


@pytest.mark.parametrize("case", BAD)
def test_export_refuses_bad_input(refused, run, tmp_path, case):
    arguments, message = BAD[case]
    assert message in refused("export", run, *arguments, cwd=tmp_path)
    assert os.listdir(tmp_path) == []
