"""Commands and damage: locks, strangers' runs, killed processes, fewer clusters than asked for."""

import csv
import json
import os
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image

from jule.files import checked_json, parse_checked_json
from jule.locks import hold
from jule.runs.folder import RunFolder
from jule.runs.page_edits import labels_id
from jule.runs.results import read_results
from jule.runs.trust import sign

POSIX = pytest.mark.skipif(os.name == "nt", reason="makes links and pipes")
RANDOM = np.random.default_rng(0)


def clusters(path):
    with open(path, encoding="utf-8", newline="") as file:
        return {row["cluster"] for row in csv.DictReader(file)}


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def write_edits(run, path):
    results = read_results(RunFolder(run))
    start = {"run": results.id, "labels": labels_id(results.result.labels)}
    edits = {"format": "jule-page-edits-3", **start, "k": 3, "names": {"0": "zeros"}}
    path.write_text(json.dumps(edits))
    return path


# One process at a time


@contextmanager
def held_elsewhere(folder):
    """Hold the lock of a folder outside of this thread."""
    ready, done = threading.Event(), threading.Event()

    def work():
        with hold(folder):
            ready.set()
            done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("command", ["cluster", "resume", "report", "apply", "cut", "plot"])
def test_a_run_that_is_in_use_is_left_alone(refused, copied, tmp_path, command):
    np.save(tmp_path / "new.npy", RANDOM.random((20, 5)))
    arguments = {
        "cluster": [tmp_path / "new.npy", "--overwrite", "--rounds", 1, "--out", copied],
        "apply": [copied, write_edits(copied, tmp_path / "edits.json")],
        "cut": [copied, "-k", 2],
    }
    if command == "plot":
        pytest.importorskip("matplotlib")
    before = files(copied)
    with held_elsewhere(copied):
        message = refused(command, *arguments.get(command, [copied]))
    assert f"{copied} is in use by process {os.getpid()}" in message
    assert files(copied) == before


def test_results_can_be_read_while_the_run_is_in_use(jule, copied, tmp_path):
    with held_elsewhere(copied):
        assert jule("cut", copied, "-k", 2, "--out", tmp_path / "two.csv").exit_code == 0
        assert jule("export", copied, "--to", tmp_path / "sorted").exit_code == 0


# Runs of strangers


def name_source(run, source, *, signed=False):
    """Let a run say that its pictures are elsewhere."""
    about = parse_checked_json((run / "config.json").read_bytes())
    signature = sign(str(source), about["data"]) if signed else "0" * 64
    about |= {"source": str(source), "signature": signature}
    RunFolder(run).update({"config.json": checked_json(about)})


@pytest.fixture(params=["a folder", "hf:stranger/pictures"])
def strange(request, copied, tmp_path):
    """A run that somebody else made; its source must not be opened."""
    source = request.param
    if source == "a folder":
        source = str(tmp_path / "private")
        os.mkdir(source)
        if os.name != "nt":
            os.mkfifo(os.path.join(source, "a.npy"))
    name_source(copied, source)
    return copied


def test_pages_of_a_strangers_run_are_made_without_its_pictures(jule, strange, tmp_path):
    (strange / "report.html").unlink()
    done = jule("report", strange, "--no-umap")
    assert done.exit_code == 0, done.output
    assert "no pictures: " in done.stderr
    assert "was not made by you on this machine" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    done = jule("apply", strange, write_edits(strange, tmp_path / "edits.json"))
    assert done.exit_code == 0, done.output
    assert "was not made by you on this machine" in done.stderr


def test_exports_and_resumes_of_a_strangers_run_need_a_source(jule, refused, strange, tmp_path):
    message = refused("export", strange, "--to", tmp_path / "sorted")
    assert "was not made by you on this machine" in message
    assert "--source" in message
    assert not (tmp_path / "sorted").exists()
    for name in ("manifest.json", "result.json"):  # as if it were not finished
        (strange / name).unlink()
    message = refused("resume", strange)
    assert "was not made by you on this machine" in message
    assert "--source" in message


def test_a_source_that_is_given_is_read(jule, strange, trained, tmp_path):
    photos = trained.folder / "photos"
    done = jule("report", strange, "--no-umap", "--source", photos)
    assert (done.exit_code, done.stderr) == (0, "")
    done = jule("export", strange, "--to", tmp_path / "sorted", "--source", photos)
    assert done.stdout.startswith("121 pictures in 3 folders")


@pytest.mark.parametrize(("answer", "read"), [("y\n", True), ("\n", False)])
@pytest.mark.skipif(os.name == "nt", reason="starts a pseudo-terminal")
def test_on_a_terminal_the_user_is_asked(copied, trained, answer, read):
    import pty
    import sys

    name_source(copied, trained.folder / "photos")
    (copied / "report.html").unlink()
    command = [os.path.join(os.path.dirname(sys.executable), "jule"), "report", str(copied)]
    process, terminal = pty.fork()
    if process == 0:
        os.execve(command[0], [*command, "--no-umap"], {**os.environ, "COLUMNS": "400"})
    shown = b""
    while True:
        try:
            part = os.read(terminal, 10_000)
        except OSError:  # the process has ended
            break
        if not part:
            break
        if b"[y/N]" in part:
            os.write(terminal, answer.encode())
        shown += part
    os.close(terminal)
    assert os.waitpid(process, 0)[1] == 0, shown.decode()
    asked = f"{copied} was not made by you on this machine; it says that its pictures are in "
    assert asked + f"{trained.folder / 'photos'}. Read them? [y/N]" in shown.decode()
    assert (b"no pictures" not in shown) is read


def test_report_tells_when_the_images_are_gone_and_finds_them_elsewhere(
    jule, refused, copied, trained
):
    name_source(copied, copied.parent / "gone", signed=True)
    before = (copied / "report.html").read_bytes()
    said = refused("report", copied, "--no-umap")
    assert "report.html is kept: a new one would have no pictures" in said
    assert "gone does not exist" in said
    assert (copied / "report.html").read_bytes() == before
    (copied / "report.html").unlink()
    assert "gone does not exist" in jule("report", copied, "--no-umap").stderr
    done = jule("report", copied, "--no-umap", "--source", trained.folder / "photos")
    assert (done.exit_code, done.stderr) == (0, "")


# Killed processes


@pytest.mark.parametrize("name", ["report.html", "report.json"])
def test_resume_makes_a_page_that_is_missing_or_damaged(jule, copied, name):
    (copied / name).unlink()
    done = jule("resume", copied)
    assert done.exit_code == 0, done.output
    assert "is finished, except for its page" in done.stdout
    assert (copied / name).stat().st_size > 100
    (copied / name).write_bytes((copied / name).read_bytes()[:-1] + b"?")
    assert "is finished, except for its page" in jule("resume", copied).stdout
    assert "there is nothing to resume" in jule("resume", copied).stdout


def test_resume_removes_what_killed_processes_left(jule, copied):
    before = sorted(os.listdir(copied))
    (copied / "state").mkdir()
    (copied / "state" / "state-0001.safetensors").write_bytes(b"")
    (copied / ".jule-0123456789abcdef.part").write_bytes(b"")
    (copied / ".jule-lock").write_bytes(b"")
    assert jule("resume", copied).exit_code == 0
    assert sorted(os.listdir(copied)) == before


def test_a_folder_with_nothing_but_leftovers_is_new(jule, tmp_path):
    np.save(tmp_path / "new.npy", RANDOM.random((20, 5)))
    run = tmp_path / "run"
    run.mkdir()
    (run / ".jule-0123456789abcdef.part").write_bytes(b"{")
    done = jule("cluster", tmp_path / "new.npy", "-k", 2, "--rounds", 1, "--out", run)
    assert done.exit_code == 0, done.output
    assert clusters(run / "labels.csv") == {"0", "1"}


def test_pictures_inside_of_a_replaced_run_are_kept(jule, copied, trained):
    inside = copied / "mypics"
    inside.mkdir()
    for number in range(20):
        content = (trained.folder / "photos" / f"{number:03}.png").read_bytes()
        (inside / f"{number:03}.png").write_bytes(content)
    (copied / "notes.txt").write_text("mine")
    before = files(inside)
    done = jule("cluster", inside, "-k", 2, "--rounds", 1, "--out", copied, "--overwrite")
    assert done.exit_code == 0, done.output
    assert f"results: {copied}\n" in done.stdout
    assert files(inside) == before
    assert (copied / "notes.txt").read_text() == "mine"
    assert not (copied / ".jule-next").exists()
    assert len(read_results(RunFolder(copied)).names) == 20
    assert json.loads((copied / "report.json").read_text())["images"] == 20


def test_a_run_that_cannot_be_created_leaves_no_folder(refused, tmp_path):
    np.save(tmp_path / "new.npy", RANDOM.random((20, 5)))
    (tmp_path / "file").write_text("mine")
    for out in ("file", "file/run"):
        refused("cluster", tmp_path / "new.npy", "--out", out, "--overwrite", cwd=tmp_path)
    assert (tmp_path / "file").read_text() == "mine"


# Fewer clusters than asked for


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """60 different images, each twice, clustered."""
    from tests.conftest import invoke

    folder = tmp_path_factory.mktemp("copies")
    images = RANDOM.integers(0, 255, (60, 8, 8), dtype=np.uint8)
    np.save(folder / "copies.npy", np.repeat(images, 2, axis=0))
    done = invoke("cluster", "copies.npy", "-k", 3, "--rounds", 1, "--out", "run", cwd=folder)
    assert done.exit_code == 0, done.output
    return folder / "run"


def test_fewer_clusters_than_different_images_are_told_by_cluster(jule, tmp_path):
    images = RANDOM.integers(0, 255, (2, 8, 8), dtype=np.uint8)
    np.save(tmp_path / "two.npy", np.repeat(images, 50, axis=0))
    done = jule("cluster", "two.npy", "-k", 5, "--rounds", 1, "--out", "run", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    assert "2 clusters instead of 5: there are only 2 different samples" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert clusters(tmp_path / "run" / "labels.csv") == {"0", "1"}
    page = (tmp_path / "run" / "report.html").read_text()
    assert "5 clusters were asked for, but only 2 of the images differ from each other." in page


def test_fewer_clusters_are_told_by_cut_and_the_file_agrees(jule, refused, copies):
    done = jule("cut", copies, "-k", 100)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("60 clusters (100 were asked for) with 2, 2, ")
    assert done.stdout.endswith(f"{copies / 'labels-60.csv'}\n")
    assert "60 clusters instead of 100: there are only 60 different samples" in done.stderr
    assert clusters(copies / "labels-60.csv") == {str(number) for number in range(60)}
    assert not (copies / "labels-100.csv").exists()
    assert "between 1 and 120" in refused("cut", copies, "-k", 121)


def test_fewer_clusters_are_told_by_export(jule, copies, tmp_path):
    done = jule("export", copies, "--to", tmp_path / "sorted", "-k", 100)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("120 pictures in 60 folders")
    assert "60 clusters instead of 100" in done.stderr
    assert len(list((tmp_path / "sorted").iterdir())) == 60


# A cut is a file of the run, if it is in its folder


def test_a_cut_in_the_run_folder_is_listed_in_the_manifest(jule, refused, copied):
    assert jule("cut", copied, "-k", 2).exit_code == 0
    assert "labels-2.csv" in RunFolder(copied).manifest()
    assert jule("cut", copied, "-k", 4, "--out", copied / "labels-2.csv").exit_code == 0
    RunFolder(copied).read("labels-2.csv")
    assert jule("cut", copied, "-k", 4, "--out", copied / "mine.csv").exit_code == 0
    assert "mine.csv" not in RunFolder(copied).manifest()
    message = refused("cut", copied, "-k", 2, "--out", copied / "labels.csv")
    assert "is a file of the run itself" in message


@POSIX
def test_cut_writes_through_no_link(jule, copied, tmp_path):
    (tmp_path / "victim").write_text("precious")
    for name in ("labels-2.csv", "labels-2.csv.part"):
        (copied / name).symlink_to(tmp_path / "victim")
    assert jule("cut", copied, "-k", 2).exit_code == 0
    assert (tmp_path / "victim").read_text() == "precious"


# Options that nothing can be done with, before any picture is read


@pytest.mark.parametrize(
    "option",
    [["--epochs", "inf"], ["--epochs", "nan"], ["--eta", "nan"], ["--rounds", "0"],
     ["--device", "cuda:99"]],
    ids=" ".join,
)  # fmt: skip
def test_impossible_settings_are_one_line_and_read_no_picture(refused, tmp_path, option):
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    message = refused("cluster", ".", *option, "--out", "run", cwd=tmp_path)
    assert option[0][2:] in message
    assert len(message.splitlines()) == 1
    assert not (tmp_path / "run").exists()
