"""`jule info`, `jule cache` and the options for reading pictures."""

import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from jule.cli import app
from tests.images.pictures import file_of, pixels, write_pictures


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a folder with 12 pictures, one of them cut off."""
    sizes = [(40, 60), (41, 63), (40, 61), (41, 60)] * 3
    write_pictures(tmp_path / "photos", [pixels(n, *size) for n, size in enumerate(sizes)])
    content = file_of(pixels(50), "JPEG")
    (tmp_path / "photos" / "000.jpg").write_bytes(content[: len(content) // 2])
    (tmp_path / "photos" / "notes.txt").write_text("hello")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JULE_CACHE", str(tmp_path / "cache"))

    def run(*arguments):
        done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
        return done.exit_code, done.stdout, done.stderr

    return run


def test_info_prints_sizes_what_is_skipped_and_an_estimate(run):
    code, found, error = run("info", "photos", "-k", "3")
    assert (code, error) == (0, "")
    assert "photos: 13 pictures" in found
    assert "12 pictures examined: 12 PNG; with colour" in found
    assert "sizes from 60 x 40 to 63 x 41 pixels, median 60 x 40" in found  # whole pixels
    assert "000.jpg: it is damaged" in found
    assert "1 file of other kinds will be ignored" in found
    assert "all will be decoded to" in found
    assert "clustering will take about" in found
    assert "GB of memory; reading the pictures 1 s" in found


def test_info_counts_the_networks_of_an_ensemble(run, monkeypatch):
    monkeypatch.setattr("jule.runs.cost.products_per_second", lambda: 1e8)
    minutes = []
    for ensemble in ("1", "3"):
        code, found, _ = run("info", "photos", "-k", "3", "--size", "32", "--ensemble", ensemble)
        assert code == 0
        minutes.append(float(found.partition("will take about ")[2].split(" min")[0]))
    assert minutes[1] == pytest.approx(3 * minutes[0], rel=0.2)


def test_info_full_decodes_all_pictures_into_the_cache(run, tmp_path):
    assert "decoded pictures of 0 sources take 0.0 MB" in run("cache")[1]
    code, found, _ = run("info", "photos", "--size", "8", "--full")
    assert code == 0
    assert "1 picture skipped:" in found
    assert "decoded pictures of 1 source take" in run("cache")[1]
    assert "deleted 0.0 MB from" in run("cache", "--clear")[1]
    assert "decoded pictures of 0 sources" in run("cache")[1]


def test_info_knows_arrays_of_images_and_of_vectors(run, tmp_path):
    np.save("vectors.npy", np.random.default_rng(0).random((30, 7)))
    code, found, _ = run("info", "vectors.npy")
    assert code == 0
    assert "an array of float32, 7 per sample" in found
    np.save("images.npy", np.stack([pixels(n) for n in range(5)]))
    assert "an array of uint8, 24 x 32 x 3 per sample" in run("info", "images.npy")[1]
    found = run("info", "images.npy", "--size", "16x12")[1]
    assert "all will be decoded to 16 x 12 pixels, colour" in found


BAD = {
    "size": (["photos", "--size", "abc"], "64x48"),
    "aspect": (["photos", "--aspect", "zoom"], "unknown aspect 'zoom': choose one of crop"),
    "colour": (["photos", "--colour", "blue"], "unknown colour 'blue': choose one of auto"),
    "missing": (["photo"], "photo does not exist: did you mean 'photos'?"),
    "empty": (["void"], "there are no pictures in void"),
    "other files": (["texts"], "there are no pictures in texts, only 1 other file:"),
}

WITHOUT_TORCH = """
import sys
from typer.testing import CliRunner
from jule.cli import app
for line in sys.argv[1:]:
    done = CliRunner().invoke(app, line.split(","))
    print(done.exit_code, done.stderr.strip(), "torch" in sys.modules)
"""


def test_info_and_bad_input_do_not_load_torch(run, tmp_path):
    (tmp_path / "void").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("hello")
    lines = ["info,photos"]
    for arguments, _ in BAD.values():
        lines += [",".join(["info", *arguments]), ",".join(["cluster", *arguments, "--out", "x"])]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *lines], capture_output=True, text=True
    )
    found = done.stdout.splitlines()
    assert found[0] == "0  False", done.stderr
    for case, (_, message) in enumerate(BAD.values()):
        for line in found[1 + 2 * case : 3 + 2 * case]:
            assert line.startswith("1 jule: ")
            assert message in line
            assert line.endswith("False")
