"""cluster and resume: a folder with unreadable files in it, arrays, and all that is refused."""

import csv
import json
import os

import numpy as np
import pytest
from PIL import Image

from jule.images import load_dataset
from jule.runs.folder import RunFolder
from jule.runs.results import read_results

POSIX = pytest.mark.skipif(os.name == "nt", reason="the folder has links and pipes")
SKIPPED = {
    "cut.png": "damaged", "empty.jpg": "it is empty", "text.jpg": "it is not an image",
    "pipe.jpg": "it is not a", "broken.jpg": "",
    "loop.jpg": "symbolic links", "caf\\udce9.png": "its name is not UTF-8",
    "notes.txt": "",
}  # fmt: skip


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@POSIX
def test_what_was_read_and_found_is_printed(trained):
    shown = trained.done.stdout
    assert "7 pictures skipped, listed in run/skipped.csv" in shown
    assert "1 file of other kinds ignored" in shown
    assert "1 exact duplicate; copies share one label" in shown
    assert f"{trained.n} pictures, resized to 8 x 8 pixels" in shown
    assert "jule export run --to DIR" in shown
    page = (trained.folder / "run" / "report.html").resolve().as_uri()
    assert page.startswith("file:///")
    assert f"page: {page}" in shown
    assert trained.done.stderr == ""


@POSIX
def test_every_skipped_file_is_listed_with_its_reason(trained):
    found = {row["path"]: row["reason"] for row in rows(trained.folder / "run" / "skipped.csv")}
    assert set(found) == set(SKIPPED)
    for name, reason in SKIPPED.items():
        assert reason in found[name]


def test_every_picture_has_a_row_and_copies_have_one_label(trained):
    run = trained.folder / "run"
    found = {row["path"]: row for row in rows(run / "labels.csv")}
    assert len(found) == trained.n
    assert list(found) == sorted(found)
    assert {row["cluster"] for row in found.values()} == {"0", "1", "2"}
    assert all(0 <= float(row["confidence"]) <= 1 for row in found.values())
    assert found["007.png"]["cluster"] == found["b/copy [red].png"]["cluster"]
    (copy,) = rows(run / "duplicates.csv")
    assert (copy["path"], copy["same_as"]) == ("b/copy [red].png", "007.png")
    for column, path in (("index", "path"), ("same_as_index", "same_as")):
        assert copy[column] == found[copy[path]]["index"]


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arrays")
    data = load_dataset("digits")
    few = data.labels < 3
    np.savez(folder / "digits.npz", images=data.images[few][:60], labels=data.labels[few][:60])
    np.save(folder / "same.npy", np.zeros((3, 9, 9), np.uint8))
    np.save(folder / "one.npy", np.zeros((1, 9, 9), np.uint8))
    np.save(folder / "vectors.npy", np.random.default_rng(0).normal(size=(40, 5)))
    (folder / "broken.npz").write_bytes(b"PK\x03\x04 broken")
    (folder / "list.txt").write_text("hello.png")
    (folder / "void").mkdir()
    (folder / "bad").mkdir()
    for number in range(3):
        (folder / "bad" / f"{number}.jpg").write_bytes(b"")
    return folder


def test_labels_of_the_source_score_the_result(jule, arrays, tmp_path):
    done = jule("cluster", "digits.npz", "-k", 3, "--rounds", 1, "--out", tmp_path, cwd=arrays)
    assert done.exit_code == 0, done.output
    assert "SF: NMI" in done.stdout
    assert "true classes" in done.stdout
    scores = json.loads((tmp_path / "result.json").read_text())["scores"]
    assert set(scores) == {"labels", "sf", "rc"}


def test_folders_can_be_the_true_classes(jule, tmp_path):
    data = load_dataset("digits")
    for digit in range(3):
        folder = tmp_path / "photos" / str(digit)
        folder.mkdir(parents=True)
        for number, image in enumerate(data.images[data.labels == digit][:15]):
            Image.fromarray(image).save(folder / f"{number}.png")
    arguments = ["photos", "--folder-classes", "-k", 3, "--rounds", 1, "--out", "run"]
    done = jule("cluster", *arguments, cwd=tmp_path)
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "run" / "result.json").read_text())["scores"]["sf"]["nmi"] > 0


def test_one_cluster_trains_nothing(jule, arrays, tmp_path):
    done = jule("cluster", "digits.npz", "-k", 1, "--out", tmp_path, cwd=arrays)
    assert done.exit_code == 0, done.output
    assert {period.steps for period in read_results(RunFolder(tmp_path)).history} == {0}
    assert {row["cluster"] for row in rows(tmp_path / "labels.csv")} == {"0"}


def test_an_open_number_of_clusters_is_suggested(jule, arrays, tmp_path):
    done = jule("cluster", "vectors.npy", "--rounds", 1, "--out", tmp_path, cwd=arrays)
    assert done.exit_code == 0, done.output
    results = read_results(RunFolder(tmp_path))
    assert f"suggested number of clusters: {results.result.choice.k}" in done.stdout
    assert results.result.n_clusters == results.result.choice.k


def test_several_networks_are_trained_and_sort_new_images(jule, arrays, tmp_path):
    run = tmp_path / "run"
    options = ["-k", 3, "--rounds", 1, "--ensemble", 2, "--out", run]
    done = jule("cluster", "digits.npz", *options, cwd=arrays)
    assert done.exit_code == 0, done.output
    results = read_results(RunFolder(run))
    assert (results.config.ensemble, len(results.result.member_trees)) == (2, 2)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "This run trained 2 networks one after another" in page
    assert "<td>all</td>" in page
    done = jule("predict", run, "digits.npz", "--to", tmp_path / "sorted", cwd=arrays)
    assert done.exit_code == 0, done.output
    done = jule("cut", run, "-k", 5)
    assert done.exit_code == 0, done.output
    assert {row["cluster"] for row in rows(run / "labels-5.csv")} == set("01234")


def test_a_run_is_replaced_if_told(jule, refused, copied, arrays):
    arguments = ["cluster", "digits.npz", "-k", 2, "--rounds", 1, "--out", copied]
    assert "--overwrite" in refused(*arguments, cwd=arrays)
    assert jule(*arguments, "--overwrite", cwd=arrays).exit_code == 0
    assert read_results(RunFolder(copied)).result.n_clusters == 2


def test_a_folder_that_is_no_run_is_not_replaced(refused, arrays, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    message = refused("cluster", "digits.npz", "--out", tmp_path, "--overwrite", cwd=arrays)
    assert "is not replaced" in message
    assert os.listdir(tmp_path) == ["thesis.tex"]


BAD = {
    "nothing there": (["nowhere"], "nowhere does not exist"),
    "an empty folder": (["void"], "there are no pictures in void"),
    "a list of nothing": (["list.txt"], "hello.png"),
    "a broken file": (["broken.npz"], "broken.npz"),
    "nothing readable": (["bad"], "none of 3 files in bad can be read"),
    "one image": (["one.npy"], "at least 2 samples"),
    "identical images": (["same.npy", "-k", "2"], "all 3 samples are identical"),
    "too many clusters": (
        ["digits.npz", "-k", "61"],
        "has 60 images: 61 clusters cannot be made of them",
    ),
    "a bad size": (["digits.npz", "--size", "big"], "64x48"),
    "a bad colour": (["digits.npz", "--colour", "sepia"], "sepia"),
    "a bad aspect": (["digits.npz", "--aspect", "squeeze"], "squeeze"),
    "an unknown preset": (["digits.npz", "--preset", "fast"], "choose 'default' or 'paper'"),
    "a bad eta": (["digits.npz", "--eta", "2"], "eta must be above 0"),
    "no folder of classes": (["digits.npz", "--folder-classes"], "folder"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_message_and_leaves_no_run(refused, arrays, tmp_path, case):
    arguments, message = BAD[case]
    assert message in refused("cluster", *arguments, "--out", tmp_path / "run", cwd=arrays)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("option", [["-k", "0"], ["--device", "tpu"], ["--ensemble", "0"]])
def test_impossible_options_are_usage_errors(jule, arrays, tmp_path, option):
    done = jule("cluster", "digits.npz", *option, "--out", tmp_path / "run", cwd=arrays)
    assert done.exit_code == 2
    assert option[0] in done.stderr
    assert not (tmp_path / "run").exists()


@POSIX
def test_strict_stops_at_unreadable_pictures(refused, trained, tmp_path):
    arguments = [trained.folder / "photos", "--strict", "--out", tmp_path / "run"]
    assert "7 of the pictures cannot be read" in refused("cluster", *arguments)
    assert not (tmp_path / "run").exists()


def test_ctrl_c_while_reading_leaves_no_run(jule, arrays, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("jule.images.read_images", interrupt)
    done = jule("cluster", "digits.npz", "-k", 3, "--out", tmp_path / "run", cwd=arrays)
    assert done.exit_code == 130
    assert not (tmp_path / "run").exists()


# resume


def test_a_finished_run_has_nothing_to_resume(jule, trained):
    done = jule("resume", trained.folder / "run")
    assert done.exit_code == 0
    assert "there is nothing to resume" in done.stdout


@POSIX
def test_a_resumed_run_ends_with_the_same_files(jule, trained, tmp_path, monkeypatch):
    from jule.joint import loop

    real = loop.next_period

    def interrupted(state, *arguments):
        if state.n_periods == 1:
            raise KeyboardInterrupt
        return real(state, *arguments)

    photos, run = trained.folder / "photos", tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(loop, "next_period", interrupted)
        done = jule("cluster", photos, "-k", 3, "--rounds", 1, "--out", run)
    assert done.exit_code == 130
    assert f"resume with: jule resume {run}" in done.stderr
    assert not (run / "labels.csv").exists()
    done = jule("resume", run)
    assert done.exit_code == 0, done.output
    for name in ("labels.csv", "skipped.csv", "duplicates.csv", "labels_sf.npy", "labels_rc.npy"):
        assert (run / name).read_bytes() == (trained.folder / "run" / name).read_bytes(), name


def test_other_data_is_not_resumed(jule, refused, arrays, copied):
    for name in ("manifest.json", "result.json"):  # as if it were not finished
        (copied / name).unlink()
    message = refused("resume", copied, "--source", arrays / "digits.npz")
    assert "the data differs from that of" in message


def test_the_memory_of_a_large_run_is_said_before_it_starts(jule, tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).integers(0, 255, (30, 8, 8), np.uint8))
    monkeypatch.setattr("jule.runs.cost.estimate_memory", lambda *_, **__: 5.1e9)
    monkeypatch.setattr("jule.memory.available_memory", lambda: 10**10)

    def stopped(*_, **__):
        raise ValueError("enough")

    monkeypatch.setattr("jule.runs.folder.create_run", stopped)
    done = jule("cluster", tmp_path / "a.npy", "-k", 3, "--out", tmp_path / "run")
    assert "clustering will take about 5.1 GB of memory" in done.output
    assert "enough" in done.output


def test_a_run_that_does_not_fit_into_memory_is_not_started(refused, tmp_path, monkeypatch):
    np.save(tmp_path / "images.npy", np.random.default_rng(0).integers(0, 255, (30, 8, 8), "u1"))
    monkeypatch.setattr("jule.memory.available_memory", lambda: 10**8)
    message = refused("cluster", tmp_path / "images.npy", "-k", 2, "-o", tmp_path / "run")
    assert "clustering 30 images needs 600 MB of memory, but only 100 MB are available" in message
    assert not (tmp_path / "run").exists()
