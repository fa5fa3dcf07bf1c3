"""Names that try to control the terminal or to be markup, in every command, on a terminal."""

import io
import json
import os
import re
import shutil
import sys
from types import SimpleNamespace

import pytest
from PIL import Image

from jule.images import load_dataset
from jule.joint import Config
from tests.conftest import STEPS

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows forbids such names")

CONTROL = "\x1b[2J\x1b]0;x\x07\u202e\n"
PHOTOS = f"[/b]{CONTROL}photos"
CLASSES = ["[red]zero[/red]", f"[/b]{CONTROL}one"]
RUN = f"[/b]{CONTROL}run"
# What no output may contain. The bars and colours of rich use other sequences.
OBEYED = ("\x1b[2J", "\x1b]0;", "\x07", "\u202e", "\x1b[5n", "\x9b")
SHOWN = r"[/b]\x1b[2J\x1b]0;x\x07\u202e"


class Terminal(io.TextIOWrapper):
    """Standard output and error of a terminal."""

    def __init__(self):
        super().__init__(io.BytesIO(), encoding="utf-8", newline="")

    def isatty(self):
        return True


def on_terminal(*arguments, cwd):
    """Run a command whose output is a terminal; return its exit code and the output."""
    from jule.cli import app

    screen = Terminal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Config, "steps_per_period", lambda *_: STEPS)
        patch.setenv("COLUMNS", "400")
        patch.setenv("TERM", "xterm-256color")
        patch.setattr(sys, "stdout", screen)
        patch.setattr(sys, "stderr", screen)
        patch.chdir(cwd)
        with pytest.raises(SystemExit) as ended:
            app([str(one) for one in arguments])
    screen.flush()
    shown = screen.buffer.getvalue().decode()
    assert [one for one in OBEYED if one in shown] == []
    assert "Traceback" not in shown
    links = re.findall("\x1b]8;[^;]*;(.*?)\x1b\\\\", shown)
    assert all(re.fullmatch(r"[\w:/%.~-]*", link) for link in links), links
    return ended.value.code, shown


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A run whose folder, pictures and classes have such names, and what `cluster` printed."""
    folder = tmp_path_factory.mktemp("hostile")
    data = load_dataset("digits")
    for digit, name in enumerate(CLASSES):
        pictures = folder / PHOTOS / name
        pictures.mkdir(parents=True)
        for number, image in enumerate(data.images[data.labels == digit][:15]):
            Image.fromarray(image).save(pictures / f"={number}[b]\x1b[5n.png")
    (folder / PHOTOS / f"bad{CONTROL}.png").write_bytes(b"bad")
    arguments = [PHOTOS, "--folder-classes", "-k", 2, "--rounds", 1, "--out", RUN]
    code, shown = on_terminal("cluster", *arguments, cwd=folder)
    assert code == 0, shown
    return SimpleNamespace(folder=folder, run=folder / RUN, shown=shown)


@pytest.fixture
def copy(hostile, tmp_path):
    """A copy of that folder, to be changed."""
    shutil.copytree(hostile.folder, tmp_path / "copy")
    return tmp_path / "copy"


def test_cluster_shows_such_names_in_bars_tables_and_links(hostile):
    assert f"{SHOWN}\\nphotos: reading" in hostile.shown  # a bar
    assert "[red]zero[/red]" in hostile.shown  # a true class
    assert f"results: {SHOWN}\\nrun" in hostile.shown
    assert "page: \x1b]8;" in hostile.shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", PHOTOS],
        ["cut", RUN, "-k", 3],
        ["report", RUN, "--no-umap"],
        ["resume", RUN],
        ["export", RUN, "--to", f"sorted{CONTROL}"],
        ["plot", RUN, "--kind", "history"],
        ["similar", RUN, f"{PHOTOS}/{CLASSES[0]}/=0[b]\x1b[5n.png"],
        ["predict", RUN, PHOTOS],
        ["predict", RUN, PHOTOS, "--out", f"new{CONTROL}.csv"],
        ["cache"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_show_such_names(copy, arguments):
    if arguments[0] == "plot":
        pytest.importorskip("matplotlib")
    code, shown = on_terminal(*arguments, cwd=copy)
    assert code == 0, shown
    assert "\\x1b" in shown or arguments[0] == "cache"


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", f"gone{CONTROL}"],
        ["info", f"gone{CONTROL}*.png"],
        ["cluster", f"gone{CONTROL}", "--out", "x"],
        ["cluster", PHOTOS, "--size", f"[/b]{CONTROL}", "--out", "x"],
        ["cluster", PHOTOS, "--preset", f"[/b]{CONTROL}", "--out", "x"],
        ["cluster", PHOTOS, "--out", RUN],
        ["cluster", PHOTOS, "--strict", "--out", "x"],
        ["report", PHOTOS],
        ["resume", f"gone{CONTROL}"],
        ["similar", RUN, f"{PHOTOS}/bad{CONTROL}.png"],
        ["apply", RUN, f"gone{CONTROL}.json"],
        ["plot", RUN, "--kind", f"[/b]{CONTROL}"],
        ["export", RUN, "--to", f"{PHOTOS}/x", "--source", PHOTOS],
        ["cut", RUN, "-k", 3, "--out", f"gone{CONTROL}/x.csv"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_errors_show_such_names_on_one_line(copy, arguments):
    code, shown = on_terminal(*arguments, cwd=copy)
    assert code == 1, shown
    text = re.sub("\x1b\\[[0-9;?]*[a-zA-Z]|\r", "", shown)
    lines = [line for line in text.split("\n") if line.startswith("jule: ")]
    assert len(lines) == 1
    assert "\\x1b" in lines[0]


def test_errors_of_edits_show_such_names(copy):
    result = json.loads((copy / RUN / "result.json").read_text())
    edits = {"format": "jule-page-edits-3", "run": result["id"], "labels": CONTROL, "k": 2}
    for change in ({"moves": [CONTROL]}, {CONTROL: 1}, {"run": CONTROL}, {"names": {CONTROL: ""}}):
        (copy / "edits.json").write_text(json.dumps({**edits, **change}))
        code, shown = on_terminal("apply", RUN, "edits.json", cwd=copy)
        assert code == 1, shown


def test_export_lists_pictures_that_are_gone(copy):
    shutil.rmtree(copy / PHOTOS / CLASSES[1])
    arguments = ["--to", "sorted", "--how", "copy", "--source", PHOTOS]
    code, shown = on_terminal("export", RUN, *arguments, cwd=copy)
    assert code == 1
    assert "15 could not be read" in shown
    assert r"=0[b]\x1b[5n.png" in shown


def test_csv_in_a_pipe_has_the_exact_names(hostile, jule):
    done = jule("predict", RUN, PHOTOS, cwd=hostile.folder)
    assert done.exit_code == 0, done.output
    assert f"{CLASSES[0]}/=0[b]\x1b[5n.png,".encode() in done.stdout_bytes
    assert f'"{CLASSES[1]}/=0[b]\x1b[5n.png",'.encode() in done.stdout_bytes
