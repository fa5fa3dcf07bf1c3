"""A folder of pictures with rubbish in between, through the installed command from end to end."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from jule.cli import app
from jule.images import load_dataset
from tests.cli.test_cli import JULE, jule

POSIX = pytest.mark.skipif(os.name == "nt", reason="makes links and pipes, and kills")
QUICK = ("-k", "3", "--rounds", "1", "--epochs", "0.2")
N = 300
RUBBISH = {
    "cut.png": "damaged", "empty.jpg": "it is empty", "text.jpg": "it is not an image",
    "pipe.jpg": "it is not a plain file", "broken.jpg": "it vanished before it was read",
    "loop.jpg": "symbolic links", "caf\\udce9.png": "its name is not UTF-8",
    "notes.txt": "it is not a picture file",
}  # fmt: skip


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_digits(folder, images, name="{:03}.png"):
    folder.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(images):
        Image.fromarray(image).save(folder / name.format(number))


@pytest.fixture
def inside(files, monkeypatch):
    """Run a command inside this process, which is quicker."""
    monkeypatch.chdir(files)
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Digits of three classes, two copies, and rubbish; new ones in a folder of their own."""
    folder = tmp_path_factory.mktemp("files")
    data = load_dataset("digits")
    images = data.images[data.labels < 3]
    photos = folder / "photos"
    write_digits(photos, images[:N])
    write_digits(folder / "new", images[N : N + 20])
    (folder / "new" / "bad.png").write_bytes(b"bad")
    (photos / "b").mkdir()
    shutil.copy(photos / "007.png", photos / "b" / "copy [red].png")
    (photos / "cut.png").write_bytes((photos / "000.png").read_bytes()[:60])
    (photos / "empty.jpg").write_bytes(b"")
    (photos / "text.jpg").write_text("hello")
    (photos / "notes.txt").write_text("hello")
    (photos / ".hidden.png").write_bytes(b"")
    if os.name != "nt":
        os.mkfifo(photos / "pipe.jpg")
        (photos / "broken.jpg").symlink_to("nowhere")
        (photos / "loop.jpg").symlink_to("loop.jpg")
        with open(os.path.join(os.fsencode(photos), b"caf\xe9.png"), "wb") as file:
            file.write((photos / "000.png").read_bytes())
    return folder


@pytest.fixture(scope="module")
def run(files):
    done = jule("cluster", "photos", "--out", "run", *QUICK, cwd=files)
    assert done.returncode == 0, done.stderr
    assert "7 pictures left out, listed in run/skipped.csv" in done.stdout
    assert "1 file of other kinds passed over" in done.stdout
    assert "1 exact duplicate" in done.stdout
    assert f"{N + 1} pictures, brought to 8 x 8 pixels, grey, crop" in done.stdout
    return files / "run"


@POSIX
def test_every_bad_file_is_listed_with_its_reason(run):
    found = {row["path"]: row["reason"] for row in rows(run / "skipped.csv")}
    assert set(found) == set(RUBBISH)
    for name, reason in RUBBISH.items():
        assert reason in found[name]


def test_every_good_picture_has_a_row_and_copies_have_one_label(run):
    found = {row["path"]: row for row in rows(run / "labels.csv")}
    assert len(found) == N + 1
    assert list(found) == sorted(found)
    assert found["007.png"]["cluster"] == found["b/copy [red].png"]["cluster"]
    assert rows(run / "duplicates.csv") == [{"path": "b/copy [red].png", "same_as": "007.png"}]


@POSIX
def test_info_says_what_would_be_skipped(run, files, inside):
    done = jule("info", "photos", "-k", "3", cwd=files)
    assert done.returncode == 0, done.stderr
    assert "photos: 307 pictures" in done.stdout
    assert "all are 8 x 8 pixels" in done.stdout
    assert "caf\\udce9.png: its name is not UTF-8" in done.stdout
    assert "clustering would take about" in done.stdout
    whole = inside("info", "photos", "--full")
    assert "7 pictures left out" in whole.stdout
    assert "1 exact duplicate" in whole.stdout


def test_predict_writes_a_table_and_says_what_was_left_out(run, files, inside):
    done = jule("predict", "run", "new", "--out", "new.csv", cwd=files)
    assert done.returncode == 0, done.stderr
    found = rows(files / "new.csv")
    assert [row["path"] for row in found] == [f"{number:03}.png" for number in range(20)]
    assert {row["cluster"] for row in found} <= {"0", "1", "2"}
    assert "1 x it is not an image" in done.stderr
    shown = inside("predict", "run", "new")
    assert shown.stdout == (files / "new.csv").read_text().replace("\r", "")


def test_predict_takes_other_kinds_of_source(run, files, inside):
    names = [f"new/{number:03}.png" for number in range(20)]
    (files / "new.txt").write_text("\n".join(names))
    np.save(files / "new.npy", [np.asarray(Image.open(files / name)) for name in names])

    def sorted_by(source):
        return [row.split(",", 1)[1] for row in inside("predict", "run", source).stdout.split()]

    found = sorted_by("new")
    assert len(found) == 21
    for source in ("new.txt", "new.npy", "new/*[0-9].png"):
        assert sorted_by(source) == found


def test_predict_sorts_pictures_into_folders(run, files, inside):
    done = inside("predict", "run", "new", "--to", "new-sorted", "--how", "copy")
    assert done.exit_code == 0, done.stderr
    assert len(list((files / "new-sorted").rglob("*.png"))) == 20


def test_export_sorts_every_picture_into_the_folder_of_its_cluster(run, files):
    done = jule("export", "run", "--to", "sorted", cwd=files)
    assert done.returncode == 0, done.stderr
    found = {path.name: path.parent.name for path in (files / "sorted").rglob("*.png")}
    assert len(found) == N + 1
    for row in rows(run / "labels.csv"):
        if "/" not in row["path"]:
            assert found[row["path"]] == f"cluster-{int(row['cluster']):02}"


def test_similar_finds_a_picture_and_its_copy_first(run, files):
    done = jule("similar", "run", "photos/007.png", "-n", "4", cwd=files)
    assert done.returncode == 0, done.stderr
    found = [line for line in done.stdout.splitlines() if ".png" in line]
    assert len(found) == 4
    assert "007.png" in found[0]
    assert "copy [red].png" in found[1]
    assert "1.000" in found[0]


def test_cut_keeps_copies_together(run, files):
    done = jule("cut", "run", "-k", "6", "--out", "six.csv", cwd=files)
    assert done.returncode == 0, done.stderr
    found = {row["path"]: row["cluster"] for row in rows(files / "six.csv")}
    assert len(set(found.values())) == 6
    assert found["007.png"] == found["b/copy [red].png"]


def test_cache_says_how_much_it_keeps_and_frees_it(run, inside, tmp_path, monkeypatch):
    monkeypatch.setenv("JULE_CACHE", str(tmp_path / "cache"))
    assert "0 sets of pictures" in jule("cache").stdout
    assert inside("predict", "run", "new").exit_code == 0
    assert "1 sets of pictures" in inside("cache").stdout
    assert "freed" in inside("cache", "--clear").stdout
    assert "0 sets of pictures" in inside("cache").stdout


def test_the_cache_can_be_named_on_the_line(run, inside, tmp_path):
    done = inside("predict", "run", "new", "--cache", tmp_path / "mine")
    assert done.exit_code == 0, done.stderr
    assert len(list(tmp_path.rglob("pixels.bin"))) == 1


def test_folders_that_are_classes_give_scores(inside, tmp_path):
    data = load_dataset("digits")
    for digit in range(3):
        write_digits(tmp_path / "sorted" / str(digit), data.images[data.labels == digit][:30])
    sorted_already, out = tmp_path / "sorted", tmp_path / "run"
    done = inside("cluster", sorted_already, "--folder-classes", "--out", out, *QUICK)
    assert done.exit_code == 0, done.stderr
    assert "NMI" in done.stdout
    scores = json.loads((tmp_path / "run" / "result.json").read_text())["scores"]
    assert scores["labels"]["nmi"] > 0


# -- errors --------------------------------------------------------------------------------------

BAD = {
    "strict": (["cluster", "photos", "--strict", *QUICK, "--out", "x"], "7 of the pictures"),
    "an empty folder": (["cluster", "void", "--out", "x"], "there are no pictures in void"),
    "nothing that can be read": (["cluster", "bad", "--out", "x"], "none of 3 files in bad"),
    "no info on nothing": (["info", "void"], "there is nothing in void"),
    "not there": (["cluster", "nowhere", "--out", "x"], "nowhere is not there"),
    "strict when sorting": (["predict", "run", "new", "--strict"], "1 of the pictures"),
    "no such size": (["cluster", "photos", "--size", "big", "--out", "x"], "64x48"),
    "no such colour": (["cluster", "photos", "--colour", "sepia", "--out", "x"], "sepia"),
    "no such aspect": (["cluster", "photos", "--aspect", "squeeze", "--out", "x"], "squeeze"),
    "no place for the cache": (
        ["cluster", "photos", "--cache", "photos/notes.txt", "--out", "x"], "name another folder",
    ),
    "similar to nothing": (["similar", "run", "gone.png"], "gone.png"),
    "similar to rubbish": (["similar", "run", "photos/text.jpg"], "it is not an image"),
    "similar to too few": (["similar", "run", "photos/000.png", "-n", "0"], "at least 1"),
    "no folder for classes": (
        ["cluster", "a.zip", "--folder-classes", "--out", "x"], "not a folder",
    ),
}  # fmt: skip


@POSIX
@pytest.mark.parametrize("case", BAD)
def test_an_error_is_told_in_words_and_leaves_no_run(run, files, inside, case):
    (files / "void").mkdir(exist_ok=True)
    (files / "bad").mkdir(exist_ok=True)
    for number in range(3):
        (files / "bad" / f"{number}.jpg").write_bytes(b"")
    arguments, message = BAD[case]
    done = inside(*arguments)
    assert done.exit_code == 1
    assert message in done.stderr
    assert done.stderr.startswith("jule: ")
    assert "Traceback" not in done.stderr
    assert not (files / "x").exists()


@pytest.mark.parametrize("at", [0, 4])
def test_debug_may_stand_anywhere_and_shows_the_traceback(files, at):
    arguments = ["cluster", "nowhere", "--out", "x"]
    arguments.insert(at, "--debug")
    done = jule(*arguments, cwd=files)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "nowhere is not there" in done.stderr


def test_without_it_there_is_none(files):
    done = jule("cluster", "nowhere", "--out", "x", cwd=files)
    assert done.returncode == 1
    assert done.stderr.startswith("jule: nowhere is not there")
    assert "Traceback" not in done.stderr


# -- a kill in the middle ------------------------------------------------------------------------


@POSIX
def test_a_run_killed_in_the_middle_ends_as_if_nothing_had_happened(files, tmp_path):
    settings = ("-k", "3", "--rounds", "1", "--seed", "3")
    whole = jule("cluster", "photos", "--out", tmp_path / "whole", *settings, cwd=files)
    assert whole.returncode == 0, whole.stderr
    command = [JULE, "cluster", "photos", "--out", tmp_path / "killed", *settings]
    with subprocess.Popen(
        command, cwd=files, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while not any((tmp_path / "killed").glob("state/*")):
            assert process.poll() is None, "it was over before it could be killed"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "killed" / "labels.csv").exists()
    done = jule("resume", tmp_path / "killed", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("labels.csv", "skipped.csv", "duplicates.csv", "labels_sf.npy", "labels_rc.npy"):
        once = (tmp_path / "whole" / name).read_bytes()
        assert (tmp_path / "killed" / name).read_bytes() == once, name


KILLED_READING = """
import os, signal, sys
import jule.images.decoding.cache as cache
whole = cache._fill
def killed(home, source, look, workers, progress):
    def show(done, total):
        os.kill(os.getpid(), signal.SIGKILL)
    whole(home, source, look, workers, show)
cache._fill = killed
sys.argv = ["jule", *sys.argv[1:]]
from jule.cli import main
main()
"""


@POSIX
def test_a_run_killed_while_it_reads_leaves_no_run_and_can_be_started_again(run, files, tmp_path):
    line = ["cluster", "photos", "--out", tmp_path / "run", *QUICK, "--cache", tmp_path / "cache"]
    done = subprocess.run([sys.executable, "-c", KILLED_READING, *line], cwd=files)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "run").exists()
    assert len(list(tmp_path.glob("cache/*/journal.txt"))) == 1
    again = jule(*line, cwd=files)
    assert again.returncode == 0, again.stderr
    once = (run / "labels.csv").read_bytes()
    assert (tmp_path / "run" / "labels.csv").read_bytes() == once
