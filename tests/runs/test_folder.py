"""Run folders: created, recognised, replaced only where they are runs."""

import json
import os

import numpy as np
import pytest

from jule.files import checked_json, parse_checked_json
from jule.images import ImageSpec, fingerprint
from jule.joint import Config
from jule.runs.folder import RunFolder, check_new_folder, create_run, unfinished_run
from jule.runs.update import replace_run

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


def finished(folder, seed=7):
    """A run that counts as finished, with little in it."""
    run = create_run(folder, Config(n_clusters=2, seed=seed), DATA)
    run.update({"result.json": b"{}", "labels.csv": b"old"})
    return run


def test_an_existing_run_is_replaced_only_if_told_and_when_the_new_one_is_finished(tmp_path):
    run = finished(tmp_path / "run")
    with pytest.raises(FileExistsError, match=r"not empty.*--overwrite"):
        create_run(run.folder, CONFIG, DATA)
    new = create_run(run.folder, Config(seed=8), DATA, overwrite=True)
    assert new.folder == run.folder / ".jule-next"
    assert new.home == run.folder
    assert (new.config().seed, run.config().seed) == (8, 7)
    assert run.is_finished
    assert run.read("labels.csv") == b"old"
    assert unfinished_run(run.folder).folder == new.folder
    new.update({"result.json": b"{}"})
    replace_run(run.folder)
    assert run.config().seed == 8
    assert sorted(os.listdir(run.folder)) == ["config.json", "manifest.json", "result.json"]
    assert unfinished_run(run.folder) is None


def test_replacing_a_run_removes_only_its_own_files(tmp_path):
    run = finished(tmp_path / "run")
    mine = {"photos/a.jpg", "snapshots/a.jpg", "labels-3.csv", "thesis.tex", "labels_auto.csv"}
    for name in mine:
        run.path(name).parent.mkdir(exist_ok=True)
        run.path(name).write_text("precious")
    create_run(run.folder, CONFIG, DATA, overwrite=True).update({"result.json": b"{}"})
    replace_run(run.folder)
    assert not run.path("labels.csv").exists()
    assert all(run.path(name).read_text() == "precious" for name in mine)


def test_an_unfinished_run_is_replaced_by_the_names_of_its_files(tmp_path):
    run = create_run(tmp_path / "run", CONFIG, DATA)
    for name in ("state/state-0001.safetensors", "state/mine.txt", "skipped.csv"):
        run.path(name).parent.mkdir(exist_ok=True)
        run.path(name).write_text("")
    create_run(run.folder, CONFIG, DATA, overwrite=True).update({"result.json": b"{}"})
    replace_run(run.folder)
    assert os.listdir(run.path("state")) == ["mine.txt"]
    assert not run.path("skipped.csv").exists()


def test_a_second_replacement_forgets_the_first(tmp_path):
    run = finished(tmp_path / "run")
    create_run(run.folder, Config(seed=8), DATA, overwrite=True).path("state").mkdir()
    new = create_run(run.folder, Config(seed=9), DATA, overwrite=True)
    assert new.config().seed == 9
    assert os.listdir(new.folder) == ["config.json"]


@pytest.mark.parametrize("left", [[], [".jule-0123456789abcdef.part"], [".jule-lock"]])
def test_a_run_killed_before_it_began_is_begun_again(tmp_path, left):
    for name in left:
        (tmp_path / name).write_text("")
    with pytest.raises(FileNotFoundError, match="no run in it yet: run jule cluster again"):
        RunFolder(tmp_path).about()
    check_new_folder(tmp_path)
    assert create_run(tmp_path, CONFIG, DATA).config() == CONFIG


def test_a_run_without_its_config_is_not_finished_and_can_be_replaced(tmp_path):
    run = finished(tmp_path / "run")
    run.path("config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"config\.json is missing"):
        run.manifest()
    create_run(run.folder, CONFIG, DATA, overwrite=True)


def test_a_run_of_which_no_description_is_readable_can_be_replaced(tmp_path):
    run = finished(tmp_path / "run")
    for name in ("config.json", "manifest.json"):
        run.path(name).write_text("{")
    new = create_run(run.folder, CONFIG, DATA, overwrite=True)
    assert new.home == run.folder


def test_changed_settings_are_noticed_before_a_run_is_finished(tmp_path):
    run = create_run(tmp_path / "run", CONFIG, DATA)
    path = run.path("config.json")
    path.write_text(path.read_text().replace('"seed": 7', '"seed": 6'))
    with pytest.raises(ValueError, match=r"config\.json is damaged \(its checksum is wrong\)"):
        run.config()


@pytest.mark.parametrize(
    "change",
    [
        {"source": 3},
        {"data": None},
        {"data": {"shape": [3], "dtype": "uint8"}},
        {"data": {"shape": [3, -1], "dtype": "uint8"}},
        {"data": {"shape": [3, 2]}},
        {"config": []},
        {"folder_classes": "yes"},
        {"image_spec": {"height": 2}},
        {"image_spec": {"height": "2", "width": 2, "channels": 1}},
        {"signature": None},
    ],
)
def test_wrong_entries_of_a_config_are_damage(tmp_path, change):
    run = create_run(tmp_path / "run", CONFIG, DATA)
    path = run.path("config.json")
    path.write_bytes(checked_json(parse_checked_json(path.read_bytes()) | change))
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        run.about()


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_run_is_private(tmp_path):
    run = finished(tmp_path / "run")
    paths = [run.folder, *run.folder.iterdir()]
    assert {path.stat().st_mode & 0o077 for path in paths} == {0}


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
    create_run(tmp_path, CONFIG, DATA, overwrite=True).update({"result.json": b"{}"})
    replace_run(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["config.json", "manifest.json", "result.json"]


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        (None, FileNotFoundError, r"is not a run folder: it has no config\.json"),
        ('{"format": "jule-run-3"}', ValueError, "its checksum is wrong"),
        ("{", ValueError, "is damaged"),
        ("{}", ValueError, "does not belong to a run: its format is None"),
        ("[]", ValueError, "does not belong to a run"),
        ('{"format": "jule-run-9"}', ValueError, "its format is 'jule-run-9'"),
    ],
)
def test_other_folders_are_refused(tmp_path, config, error, message):
    (tmp_path / "thesis.tex").write_text("")
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
