"""Where the pictures of a run are is believed only if this user made the run."""

import os
from pathlib import Path

import numpy as np
import pytest

from jule.files import arrays_bytes
from jule.images import fingerprint
from jule.joint import Config
from jule.runs.folder import create_run
from jule.runs.reading import UntrustedSourceError, read_again, trusted_source
from jule.runs.trust import is_signed

DATA = fingerprint(np.zeros((3, 2)))


@pytest.fixture(autouse=True)
def user(tmp_path, monkeypatch):
    """A user with a configuration folder of their own."""

    def become(name):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / name))

    become("me")
    return become


def run_from(folder, source):
    return create_run(folder, Config(n_clusters=2), DATA, source=source)


def test_a_run_of_this_user_may_say_where_its_pictures_are(tmp_path):
    run = run_from(tmp_path / "run", "/photos")
    assert trusted_source(run) == "/photos"
    run.folder.rename(tmp_path / "moved")
    assert trusted_source(type(run)(tmp_path / "moved")) == "/photos"


@pytest.mark.parametrize("source", ["hf:beans", "/etc", "photos", "//host/share"])
def test_a_run_of_somebody_else_may_not(tmp_path, user, source):
    user("somebody")
    run = run_from(tmp_path / "run", source)
    user("me")
    with pytest.raises(UntrustedSourceError, match="not made by you") as caught:
        read_again(run)
    assert caught.value.source == source


def test_images_among_the_files_of_a_run_come_with_it(tmp_path, user):
    user("somebody")
    run = run_from(tmp_path / "run", "")
    content = arrays_bytes(images=np.zeros((3, 2), np.float32))
    run.update({"images.npz": content, "result.json": b"{}"})
    user("me")
    assert trusted_source(run) == str(run.path("images.npz"))
    assert read_again(run).samples.shape == (3, 2)


def test_a_list_in_a_strangers_run_folder_can_name_any_file_so_it_is_not_read(tmp_path, user):
    user("somebody")
    run = run_from(tmp_path / "run", str(tmp_path / "run" / "list.txt"))
    run.path("list.txt").write_text("/etc/passwd")
    user("me")
    with pytest.raises(UntrustedSourceError):
        read_again(run)


def test_the_key_is_private_and_made_once(tmp_path):
    runs = [run_from(tmp_path / name, "/photos") for name in ("a", "b")]
    key = tmp_path / "me" / "jule" / "key"
    assert key.stat().st_mode & 0o077 == 0
    assert os.listdir(key.parent) == ["key"]
    assert len({run.about()["signature"] for run in runs}) == 1


def test_a_damaged_key_is_replaced(tmp_path):
    first = run_from(tmp_path / "a", "/photos")
    key = tmp_path / "me" / "jule" / "key"
    key.write_bytes(b"short")
    assert not is_signed(first.about())
    assert is_signed(run_from(tmp_path / "b", "/photos").about())


def test_without_a_place_for_a_key_the_source_is_asked_for(tmp_path, user):
    (tmp_path / "file").write_text("")
    user("file")
    with pytest.warns(UserWarning, match="key cannot be written.*you will be asked"):
        run = run_from(tmp_path / "run", "/photos")
    assert run.about()["signature"] == ""
    with pytest.raises(UntrustedSourceError):
        trusted_source(run)
    assert Path(tmp_path / "file").read_text() == ""
