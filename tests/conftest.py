"""What several test files need: the data folder, `jule` in this process, and one trained run."""

import os
import shutil
import signal
import sys

# Started in the background of a plain shell, a process ignores Ctrl-C, as would all its children.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests run in parallel, one per core: more threads would only wait for each other. Set before
# anything loads torch, and inherited by every process that a test starts.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The kernels of numba have a thread per core anyway. Where others use the cores, a thread that
# spins while it waits takes many times as long as a small kernel.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from types import SimpleNamespace

import pytest

STEPS = 12  # training batches per period of `jule` in tests


def pytest_runtest_setup():
    """Give torch its number of threads again, which parallel kernels of numba change."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real data sets; tests that need it skip where it is not."""
    folder = os.environ.get("JULE_DATA", "")
    if not os.path.isdir(folder):
        pytest.skip("the real data sets are not here: set JULE_DATA to their folder")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory):
    """Keep decoded pictures and the key of runs out of the user's folders, and test runs apart."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JULE_CACHE", str(tmp_path_factory.mktemp("cache")))
        for name in ("XDG_CONFIG_HOME", "APPDATA"):
            patch.setenv(name, str(tmp_path_factory.mktemp("config")))
        yield


def invoke(*arguments, cwd=None):
    """Run a `jule` command in this process, with little training."""
    from typer.testing import CliRunner

    from jule.cli import app
    from jule.joint import Config

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Config, "steps_per_period", lambda *_: STEPS)
        patch.setattr("jule.joint.lowdim.FEWEST_STEPS", STEPS)
        patch.setenv("COLUMNS", "120")
        if cwd is not None:
            patch.chdir(cwd)
        return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def jule():
    """Run a `jule` command in this process; the result has exit_code, stdout and stderr."""
    return invoke


@pytest.fixture
def refused(jule):
    """Run a command that must fail, and return its message."""

    def run(*arguments, cwd=None):
        done = jule(*arguments, cwd=cwd)
        assert done.exit_code == 1, done.output
        assert done.stderr.startswith("jule: ")
        assert "Traceback" not in done.stderr
        return done.stderr

    return run


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """`jule cluster` on a folder of digits with unreadable files and a copy among them.

    Has `folder` with photos/, new/ (20 more, one unreadable) and run/, `n` and `done`: the result
    of the command. Not to be changed: see `copied`.
    """
    from PIL import Image

    from jule.images import load_dataset

    folder = tmp_path_factory.mktemp("trained")
    data = load_dataset("digits")
    images, n = data.images[data.labels < 3], 120
    photos, new = folder / "photos", folder / "new"
    for where, some in ((photos, images[:n]), (new, images[n : n + 20])):
        where.mkdir()
        for number, image in enumerate(some):
            Image.fromarray(image).save(where / f"{number:03}.png")
    (new / "bad.png").write_bytes(b"bad")
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
    done = invoke(
        "cluster", "photos", "-k", "3", "--rounds", "1", "--out", "run", cwd=folder
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return SimpleNamespace(folder=folder, n=n + 1, done=done, images=images)


@pytest.fixture
def copied(trained, tmp_path):
    """A copy of the trained run, to be changed; its pictures stay where they are."""
    shutil.copytree(trained.folder / "run", tmp_path / "run")
    return tmp_path / "run"
