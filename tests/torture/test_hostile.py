"""Hostile edits, names, links and sources: a sample of the campaign."""

import os
import sys

import pytest
from torture.children import Watch, run_cases

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the campaigns need Linux")


def test_a_sample_of_hostile_input_does_no_harm(sample):
    found = sample("hostile", 40)
    assert found["failures"] == []
    assert sum(found["counts"].values()) == 40


@LINUX
def test_a_case_that_hangs_or_crashes_is_reported_and_the_rest_goes_on():
    def run(number):
        if number == 1:
            os.kill(os.getpid(), 9)
        if number == 2:
            os.read(os.pipe()[0], 1)  # for ever
        if number == 3:
            raise KeyError(number)
        return number

    ended = {number: (result, problem) for number, result, problem in _run(run, 5, longest=3)}
    assert ended[0] == (0, "")
    assert ended[4] == (4, "")
    assert ended[1] == (None, "the process ended: -9")
    assert ended[2] == (None, "it took more than 3 s")
    assert "KeyError: 3" in ended[3][1]


def _run(run, n_cases, longest=600.0):
    return run_cases(run, range(n_cases), n_workers=2, longest=longest)


@LINUX
def test_what_is_touched_outside_is_noted(tmp_path):
    """In a child, because an audit hook stays for ever."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside / "file")

    def run(_):
        watch = Watch()
        watch.install()
        with watch.only(inside) as noted:
            (inside / "own").write_text("x")
            (inside / "link").write_text("x")
            (outside / "folder").mkdir()
            os.rename(inside / "own", outside / "own")
        return noted

    [(_, noted, problem)] = _run(run, 1)
    assert problem == ""
    assert noted == [
        f"open {outside}/file",
        f"os.mkdir {outside}/folder",
        f"os.rename {outside}/own",
    ]


def test_pictures_are_found_after_a_change_of_the_current_folder(tmp_path, monkeypatch):
    """Workers that are kept for a while were started in another folder."""
    from PIL import Image

    from jule.images import read_images

    for name in ("first", "second"):
        (tmp_path / name / "photos").mkdir(parents=True)
        for number in range(3):
            picture = Image.new("L", (8, 8), 50 * number)
            picture.save(tmp_path / name / "photos" / f"{name}{number}.png")
        monkeypatch.chdir(tmp_path / name)
        assert read_images("photos").names == [f"{name}{number}.png" for number in range(3)]
