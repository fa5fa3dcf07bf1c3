"""`jule compare`: the table, the files, and everything that can go wrong."""

import csv
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from tests.comparison import made

METHODS = {
    "K-means": made.Halves,
    "SC-NJW": made.Dice,
    "HDBSCAN": made.OwnNumber,
    "UMAP + K-means": made.NotInstalled,
    "DEC": made.Killed,
}


@pytest.fixture
def methods(monkeypatch):
    """Replace the real methods, which take seconds to load."""
    monkeypatch.setattr("jule.comparison.methods.known_methods", lambda: METHODS)
    return METHODS


@pytest.fixture
def vectors(tmp_path):
    """Two groups of vectors, without and with labels."""
    points = np.random.default_rng(0).normal(size=(24, 3)) + np.repeat([[0], [9]], 12, axis=0)
    np.save(tmp_path / "plain.npy", points)
    np.savez(tmp_path / "labelled.npz", images=points, labels=np.repeat([0, 1], 12))
    return tmp_path


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.usefixtures("methods")
def test_with_labels_the_best_nmi_is_first_and_files_are_written(jule, vectors):
    done = jule(
        "compare", "labelled.npz", "-k", 2, "--methods", "all", "--seeds", 2, "--out", "found",
        cwd=vectors,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "24 vectors, each divided by its L2 norm; 2 clusters" in done.stdout
    assert "NMI and AC" in done.stdout
    assert "±" in done.stdout
    assert 'UMAP + K-means failed: UMAP needs umap-learn: pip install "jule[umap]"' in done.stdout
    assert "DEC failed: it was killed" in done.stdout
    assert "3 + 25% noise" in done.stdout
    rows = table(vectors / "found" / "scores.csv")
    assert rows[0]["method"] == "K-means"
    assert (rows[0]["nmi"], rows[0]["clusters"], rows[0]["seeds"]) == ("1.000000", "2", "1")
    assert {row["method"] for row in rows[-2:]} == {"UMAP + K-means", "DEC"}
    labels = table(vectors / "found" / "labels.csv")
    assert list(labels[0])[:3] == ["path", "index", "K-means"]
    assert [row["K-means"] for row in labels] == ["0"] * 12 + ["1"] * 12
    assert {row["HDBSCAN"] for row in labels} == {"-1", "0", "1", "2"}
    pytest.importorskip("matplotlib")
    with Image.open(vectors / "found" / "agreement.png") as picture:
        assert min(picture.size) > 300


@pytest.mark.usefixtures("methods")
def test_without_labels_scores_are_internal_and_slow_methods_are_left_out(jule, vectors):
    done = jule("compare", "plain.npy", "-k", 2, cwd=vectors)
    assert done.exit_code == 0, done.output
    assert "left out because they may take minutes: DEC; to run them, too: --methods" in done.stdout
    assert "silhouette" in done.stdout
    assert "They favour methods" in done.stdout
    lines = [line for line in done.stdout.splitlines() if line.startswith("│")]
    assert lines[0].split()[1] == "K-means"
    assert sorted(os.listdir(vectors)) == ["labelled.npz", "plain.npy"]


@pytest.mark.usefixtures("methods")
def test_pictures_with_a_broken_one_among_them(jule, tmp_path):
    for label, level in (("dark", 30), ("light", 220)):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(3):
            image = Image.new("RGB", (9, 9), (level, 90 + number, 9))
            image.save(tmp_path / "photos" / label / f"={number}.png")
    (tmp_path / "photos" / "zz.png").write_bytes(b"bad")
    done = jule(
        "compare", "photos", "-k", 2, "--methods", "KMEANS", "--folder-classes", "--out", "found",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "1 picture skipped" in done.stdout
    assert "6 images resized to 9 x 9 pixels" in done.stdout
    assert table(tmp_path / "found" / "scores.csv")[0]["nmi"] == "1.000000"
    assert table(tmp_path / "found" / "labels.csv")[0]["path"] == "dark/=0.png"


@pytest.mark.usefixtures("methods")
def test_the_features_of_a_run_need_no_source_and_show_its_own_clusters(jule, trained, tmp_path):
    run = trained.folder / "run"
    done = jule("compare", "--features", run, "--methods", "k-means", "--out", tmp_path / "found")
    assert done.exit_code == 0, done.output
    assert f"121 samples as represented by {run}; 3 clusters" in done.stdout
    assert "The row JULE is the run itself" in done.stdout
    labels = table(tmp_path / "found" / "labels.csv")
    own = table(run / "labels.csv")
    assert [row["JULE"] for row in labels] == [row["cluster"] for row in own]
    assert [(row["path"], row["index"]) for row in labels] == [
        (row["path"], row["index"]) for row in own
    ]
    done = jule(
        "compare", trained.folder / "photos", "--features", run, "-k", 5, "--methods", "dec"
    )
    assert done.exit_code == 1
    assert "5 clusters" in done.stdout
    assert "no method finished" in done.stderr


@pytest.mark.usefixtures("methods")
def test_a_source_that_is_not_that_of_the_run_is_refused(refused, trained):
    run = trained.folder / "run"
    message = refused("compare", trained.folder / "new", "--features", run)
    assert "is not what" in message


@pytest.mark.usefixtures("methods")
def test_errors_say_what_to_do(refused, trained, vectors):
    def failed(*arguments):
        return refused("compare", *arguments, cwd=vectors)

    np.save(vectors / "one.npy", np.ones((1, 3)))
    np.save(vectors / "same.npy", np.ones((5, 3)))
    assert "a SOURCE, or --features RUN" in failed("-k", 3)
    assert "(-k)" in failed("plain.npy")
    assert "24 samples: 99 clusters cannot be made" in failed("plain.npy", "-k", 99)
    assert "needs at least 2" in failed("one.npy", "-k", 1)
    assert "all 5 samples are identical" in failed("same.npy", "-k", 2)
    unknown = failed("plain.npy", "-k", 2, "--methods", "k-meens")
    assert "unknown method 'k-meens'. Did you mean 'K-means'" in unknown
    assert "needs names, or all" in failed("plain.npy", "-k", 2, "--methods", ",")
    assert "is neither" in failed("--features", "pixel")
    assert "--size applies to pixels" in failed("--features", trained.folder / "run", "--size", 9)
    assert "--features" in failed(trained.folder / "run", "-k", 2)
    assert "gone.npy" in failed("gone.npy", "-k", 2)
    run = trained.folder / "run"
    assert "--strict applies to pixels" in failed("--features", run, "--strict")


@pytest.mark.usefixtures("methods")
def test_what_would_lose_the_results_is_refused_before_the_methods_run(refused, vectors):
    def failed(*arguments):
        return refused("compare", *arguments, cwd=vectors)

    (vectors / "file").touch()
    out = ("--out", "file/sub")
    assert "is a file: choose another folder for --out" in failed("plain.npy", "-k", 2, *out)
    images = np.random.default_rng(0).integers(0, 256, (6, 4, 4), dtype=np.uint8)
    np.savez(vectors / "holes.npz", images=images, labels=[0, 1, np.nan, 0, 1, 1])
    assert "without a true class (NaN)" in failed("holes.npz", "-k", 2)
    np.save(vectors / "grey.npy", np.ones((5, 3)) * np.arange(1, 6)[:, None])
    assert "differ only in brightness" in failed("grey.npy", "-k", 2)
    (vectors / "pictures").mkdir()
    assert "is inside pictures" in failed("pictures", "-k", 2, "--out", "pictures/out")


@pytest.mark.usefixtures("methods")
@pytest.mark.parametrize(("k", "modularity"), [(1, "0.000"), (2, "-0.500")])
def test_two_samples_are_enough(jule, tmp_path, k, modularity):
    np.save(tmp_path / "two.npy", np.eye(2))
    done = jule("compare", tmp_path / "two.npy", "-k", k, "--methods", "k-means")
    assert done.exit_code == 0, done.output
    assert modularity in done.stdout


@pytest.mark.usefixtures("methods")
def test_files_of_others_are_never_replaced(jule, refused, vectors, trained):
    def to(folder, *more):
        return "compare", "plain.npy", "-k", 2, "--methods", "k-means", "--out", folder, *more

    assert jule(*to("found"), cwd=vectors).exit_code == 0
    assert "an earlier comparison" in refused(*to("found"), cwd=vectors)
    assert jule(*to("found", "--overwrite"), cwd=vectors).exit_code == 0
    (vectors / "found" / "mine.txt").write_text("mine")
    assert "other files" in refused(*to("found", "--overwrite"), cwd=vectors)
    (vectors / "other").mkdir()
    (vectors / "other" / "labels.csv").write_text("mine")
    assert "other files" in refused(*to("other", "--overwrite"), cwd=vectors)
    assert "other files" in refused(*to(trained.folder / "run", "--overwrite"), cwd=vectors)
    assert "is a file" in refused(*to("plain.npy"), cwd=vectors)


@pytest.mark.usefixtures("methods")
def test_without_matplotlib_there_is_a_word_and_no_picture(jule, vectors, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = jule(
        "compare", "plain.npy", "-k", 2, "--methods", "k-means", "--out", "found", cwd=vectors
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert 'no agreement.png: figures need matplotlib: pip install "jule[plot]"' in done.stderr
    assert sorted(os.listdir(vectors / "found")) == ["labels.csv", "scores.csv"]


HANGING = """
import jule.comparison.methods as methods
from tests.comparison import made
methods.known_methods = lambda: {"K-means": made.Halves, "SC-NJW": made.Hangs}
from jule.cli import main
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM], ids=lambda stop: stop.name)
def test_ctrl_c_shows_and_writes_what_is_done(stop, vectors, monkeypatch):
    started = vectors / "started"
    monkeypatch.setenv("JULE_TEST_STARTED", str(started))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    process = subprocess.Popen(
        [sys.executable, "-c", HANGING, "compare", "labelled.npz", "-k", "2", "--out", "found"],
        cwd=vectors, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    while not (started.exists() and started.read_text()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    os.kill(process.pid, stop)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert "K-means" in out
    assert "1.000" in out
    assert "stopped; 1 of 2 methods were run" in err
    assert [row["method"] for row in table(vectors / "found" / "scores.csv")] == ["K-means"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)
