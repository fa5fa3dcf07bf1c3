"""Run folders: created, recognised, replaced only where they are runs."""

import json
import os

import numpy as np
import pytest

from jule.images import ImageSpec, fingerprint
from jule.joint import Config
from jule.runs.folder import RunFolder, check_new_folder, create_run

CONFIG = Config(n_clusters=2, seed=7)
DATA = fingerprint(np.zeros((3, 2)))


def test_settings_and_origin_are_read_back(tmp_path):
    spec = ImageSpec(8, 6, 3, "fit")
    images = fingerprint(np.zeros((3, 8, 6, 3), np.uint8))
    made = create_run(str(tmp_path / "run"), CONFIG, images, source="photos", spec=spec)
    again = RunFolder(str(tmp_path / "run"))
    assert made.config() == again.config() == CONFIG
    assert again.image_spec() == spec
    assert again.sample_shape() == (8, 6, 3)
    about = again.about()
    assert (about["source"], about["data"], about["folder_classes"]) == ("photos", images, False)
    assert not again.is_finished
    assert not again.is_edited


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((8, 6), np.uint8, ImageSpec(8, 6, 1)),
        ((8, 6, 3), np.uint8, ImageSpec(8, 6, 3)),
        ((8, 6, 4), np.uint8, None),
        ((8, 6), np.float32, None),
        ((8,), np.uint8, None),
    ],
)
def test_arrays_of_bytes_are_pictures(tmp_path, shape, dtype, expected):
    run = create_run(tmp_path / "run", CONFIG, fingerprint(np.zeros((2, *shape), dtype)))
    assert run.image_spec() == expected


def test_an_existing_run_is_replaced_only_if_told(tmp_path):
    run = create_run(tmp_path / "run", CONFIG, DATA)
    run.path("result.json").write_text("{}")
    with pytest.raises(FileExistsError, match=r"not empty.*--overwrite"):
        create_run(run.folder, CONFIG, DATA)
    assert create_run(run.folder, Config(seed=8), DATA, overwrite=True).config().seed == 8
    assert os.listdir(run.folder) == ["config.json"]


def test_replacing_a_run_removes_only_its_own_files(tmp_path):
    run = create_run(tmp_path / "run", CONFIG, DATA)
    (run.folder / "photos").mkdir()
    (run.folder / "photos" / "a.jpg").write_bytes(b"precious")
    (run.folder / "snapshots").symlink_to(run.folder / "photos")
    run.path("labels.csv").write_text("old")
    create_run(run.folder, CONFIG, DATA, overwrite=True)
    assert (run.folder / "photos" / "a.jpg").read_bytes() == b"precious"
    assert not run.path("labels.csv").exists()


@pytest.mark.parametrize("config", [None, "{", "[]", '{"format": "other-1"}', '{"format": 3}'])
def test_a_folder_that_is_no_run_is_never_overwritten(tmp_path, config):
    (tmp_path / "thesis.tex").write_text("years of work")
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    with pytest.raises(FileExistsError, match="not a run, so it is not replaced"):
        create_run(tmp_path, CONFIG, DATA, overwrite=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_run_of_an_earlier_version_is_named_and_can_be_replaced(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"format": "jule-run-1"}))
    (tmp_path / "labels.csv").write_text("old")
    with pytest.raises(ValueError, match=r"earlier version of jule .*: run jule cluster again"):
        RunFolder(tmp_path).about()
    create_run(tmp_path, CONFIG, DATA, overwrite=True)
    assert os.listdir(tmp_path) == ["config.json"]


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        (None, FileNotFoundError, r"is not a run folder: it has no config\.json"),
        ("{", ValueError, "is damaged"),
        ("{}", ValueError, "does not belong to a run: its format is None"),
        ("[]", ValueError, "does not belong to a run"),
        ('{"format": "jule-run-9"}', ValueError, "its format is 'jule-run-9'"),
    ],
)
def test_other_folders_are_refused(tmp_path, config, error, message):
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    with pytest.raises(error, match=message):
        RunFolder(tmp_path).about()


def test_a_file_in_place_of_the_folder_is_an_error_and_left_alone(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="is a file"):
        check_new_folder(tmp_path / "file")
    with pytest.raises(OSError, match="file"):
        create_run(tmp_path / "file" / "run", CONFIG, DATA)
    with pytest.raises(OSError, match="file"):
        create_run(tmp_path / "file", CONFIG, DATA, overwrite=True)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("was_there", [True, False])
def test_a_full_disk_leaves_no_new_folder_behind(tmp_path, monkeypatch, was_there):
    if was_there:
        (tmp_path / "run").mkdir()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("jule.files.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        create_run(tmp_path / "run", CONFIG, DATA)
    assert os.listdir(tmp_path) == (["run"] if was_there else [])
