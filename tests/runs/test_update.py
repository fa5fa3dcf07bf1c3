"""Several files of a run change at once, and names of other files are never touched."""

import os
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jule.runs.manifest import (
    DamagedError,
    describe,
    manifest_bytes,
    own_files,
    parse_manifest,
    read_listed,
    read_manifest,
)
from jule.runs.names import is_own_name
from jule.runs.update import recover, update_files

OLD = {"config.json": b"{}", "labels.csv": b"old", "report_pictures/0000.jpg": b"old sheet"}
NEW = {"labels.csv": b"new", "labels-3.csv": b"three", "report_pictures/0001.jpg": b"sheet"}


@pytest.fixture
def run(tmp_path):
    """A folder with a run and a file of the user."""
    (tmp_path / "run").mkdir()
    update_files(tmp_path / "run", OLD)
    (tmp_path / "run" / "thesis.tex").write_text("precious")
    return tmp_path / "run"


def content(folder):
    return {
        os.path.relpath(path, folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_an_update_writes_removes_and_lists(run):
    update_files(run, NEW, remove=["report_pictures/0000.jpg", "never-there.csv"])
    found = content(run)
    manifest = parse_manifest(found.pop("manifest.json"))
    assert found == {"config.json": b"{}", **NEW, "thesis.tex": b"precious"}
    assert manifest == {name: describe(found[name]) for name in ("config.json", *NEW)}
    assert read_listed(run, "labels.csv", manifest) == b"new"


OPERATIONS = ("replace", "unlink", "mkdir", "rmdir", "fsync", "open")


@pytest.mark.parametrize("step", range(60))
def test_killed_at_any_step_a_run_is_as_before_or_as_after(run, step, tmp_path):
    before = content(run)
    after = content(_updated(run, tmp_path / "other"))
    pid = os.fork()
    if pid == 0:
        try:
            _die_at(step)
            update_files(run, NEW, remove=["report_pictures/0000.jpg"])
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    recover(run)
    found = {name: value for name, value in content(run).items() if not name.startswith(".jule-")}
    assert found in (before, after)
    update_files(run, NEW, remove=["report_pictures/0000.jpg"])
    assert content(run) == after


def _updated(run, other):
    shutil.copytree(run, other)
    update_files(other, NEW, remove=["report_pictures/0000.jpg"])
    return other


def _die_at(step):
    """End this process without any clean-up before the operation of this number."""
    calls = 0
    for name in OPERATIONS:
        real = getattr(os, name)

        def instead(*args, real=real, **more):
            nonlocal calls
            calls += 1
            if calls > step:
                os._exit(1)
            return real(*args, **more)

        setattr(os, name, instead)


@pytest.mark.parametrize(
    "name", ["../victim", "photos/a.jpg", "/etc/passwd", "state/../../victim", ".jule-next", ""]
)
def test_no_other_file_can_be_written_or_listed(run, name):
    with pytest.raises(ValueError, match="not a file of a run"):
        update_files(run, {name: b""})
    listed = manifest_bytes({name: describe(b"")})
    with pytest.raises(ValueError, match="not a file of a run"):
        parse_manifest(listed)
    assert content(run)["thesis.tex"] == b"precious"


@given(st.text(max_size=30))
def test_own_names_stay_in_the_folder(name):
    if is_own_name(name):
        assert ".." not in name.split("/")
        assert not name.startswith(("/", "."))


@pytest.mark.parametrize("name", ["labels.csv", "report_pictures"])
def test_what_is_in_the_way_is_named_before_anything_changes(run, name):
    before = content(run)
    path = run / name
    if path.is_dir():
        shutil.rmtree(path)
        path.write_text("mine")
        before = content(run)
    else:
        path.unlink()
        path.mkdir()
        del before[name]
    with pytest.raises(OSError, match=f"{name} is a .*remove it"):
        update_files(run, NEW)
    assert content(run) == before


def test_folders_that_are_links_are_refused_and_left_alone(run, tmp_path):
    shutil.rmtree(run / "report_pictures")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "0000.jpg").write_text("precious")
    (run / "report_pictures").symlink_to(tmp_path / "photos")
    with pytest.raises(NotADirectoryError, match="report_pictures is a link"):
        update_files(run, NEW)
    with pytest.raises(DamagedError, match="report_pictures is a link"):
        read_listed(run, "report_pictures/0000.jpg", read_manifest(run))
    update_files(run, {"labels.csv": b"new"}, remove=["report_pictures/0000.jpg"])
    assert (tmp_path / "photos" / "0000.jpg").read_text() == "precious"


@pytest.mark.parametrize("place", [".jule-update", ".jule-next"])
def test_a_planted_link_is_neither_followed_nor_completed(run, tmp_path, place):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "manifest.json").write_bytes(manifest_bytes({}))
    (run / place).symlink_to(tmp_path / "elsewhere")
    before = content(run)
    recover(run)
    assert content(run) == before
    update_files(run, {"labels.csv": b"new"})
    assert os.listdir(tmp_path / "elsewhere") == ["manifest.json"]


@pytest.mark.parametrize("place", [".jule-update", ".jule-next"])
def test_a_link_among_staged_files_moves_nothing_of_others(run, tmp_path, place):
    other = tmp_path / "other"
    other.mkdir()
    (other / "snapshot-0001.npz").write_text("precious")
    (run / place).mkdir()
    (run / place / "snapshots").symlink_to(other)
    listed = {"snapshots/snapshot-0001.npz": describe(b"precious"), "result.json": describe(b"")}
    (run / place / "manifest.json").write_bytes(manifest_bytes(listed))
    recover(run)
    assert (other / "snapshot-0001.npz").read_text() == "precious"


def test_files_keep_their_permissions(run):
    (run / "labels.csv").chmod(0o644)
    update_files(run, NEW)
    assert (run / "labels.csv").stat().st_mode & 0o777 == 0o644
    assert (run / "labels-3.csv").stat().st_mode & 0o777 == 0o600


def test_a_damaged_manifest_is_an_error_that_names_it(run):
    (run / "manifest.json").write_text("{}")
    with pytest.raises(DamagedError, match=r"manifest\.json is damaged"):
        read_manifest(run)


def test_without_a_config_or_a_manifest_nothing_belongs_to_a_run(tmp_path):
    (tmp_path / "labels.csv").write_text("mine")
    assert own_files(tmp_path) == set()
