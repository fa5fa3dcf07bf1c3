"""`jule map`: a map of pictures or of a run, on its page, and for new pictures."""

import csv
import json
import re

import numpy as np
import pytest


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def shown_arrays(run):
    """The names of the arrays on the page of a run."""
    page = (run / "report.html").read_text(encoding="utf-8")
    data = re.search(r'<script [^>]*id="run"[^>]*>(.*?)</script>', page, re.DOTALL)[1]
    return set(json.loads(data)["arrays"])


@pytest.fixture(scope="module")
def mapped(trained, tmp_path_factory):
    """A copy of the trained run that got a map later, and what the command printed."""
    import shutil

    from tests.conftest import invoke

    run = tmp_path_factory.mktemp("map") / "run"
    shutil.copytree(trained.folder / "run", run)
    return run, invoke("map", run)


def test_a_run_gets_a_map_on_its_page_and_in_files(mapped, trained):
    run, done = mapped
    assert done.exit_code == 0, done.output
    assert f"{trained.n} images on the map: {run / 'map.csv'}" in done.stdout.replace("\n", "")
    table = rows(run / "map.csv")
    assert list(table[0]) == ["path", "x", "y", "index"]
    labels = rows(run / "labels.csv")
    assert [row["path"] for row in table] == [row["path"] for row in labels]
    assert np.load(run / "map.npy").shape == (trained.n, 2)
    assert "map" in shown_arrays(run)
    assert "map" not in shown_arrays(trained.folder / "run")


def test_new_pictures_are_placed_on_the_map(jule, mapped, trained, tmp_path):
    done = jule("predict", mapped[0], trained.folder / "new", "--out", tmp_path / "new.csv")
    assert done.exit_code == 0, done.output
    found = rows(tmp_path / "new.csv")
    assert list(found[0])[-2:] == ["x", "y"]
    same = jule("predict", mapped[0], trained.folder / "photos", "--out", tmp_path / "old.csv")
    assert same.exit_code == 0, same.output
    for new, old in zip(rows(tmp_path / "old.csv"), rows(mapped[0] / "map.csv"), strict=True):
        assert float(new["x"]) == pytest.approx(float(old["x"]), abs=1e-2)


def test_pictures_are_clustered_and_mapped_in_one_go(jule, trained, tmp_path):
    run = tmp_path / "run"
    done = jule("map", trained.folder / "new", "-k", "2", "--out", run)
    assert done.exit_code == 0, done.output
    assert json.loads((run / "config.json").read_text())["config"]["n_components"] == 2
    assert len(rows(run / "map.csv")) == 20
    assert "map" in shown_arrays(run)


def test_other_dimensions_leave_the_page_alone(jule, copied):
    before = (copied / "report.html").read_bytes()
    done = jule("map", copied, "--components", "3")
    assert done.exit_code == 0, done.output
    assert list(rows(copied / "map.csv")[0]) == ["path", "x", "y", "z", "index"]
    assert (copied / "report.html").read_bytes() == before


def test_a_map_that_is_replaced_is_not_shown_any_more(jule, copied):
    assert jule("map", copied).exit_code == 0
    assert "map" in shown_arrays(copied)
    assert jule("map", copied, "--components", "3").exit_code == 0
    assert "map" not in shown_arrays(copied)


def test_a_stopped_map_changes_nothing(jule, copied, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("jule.joint.lowdim.train_map", stop)
    done = jule("map", copied)
    assert done.exit_code == 130
    assert f"stopped; {copied} is unchanged" in done.stderr.replace("\n", "")
    assert not (copied / "map.csv").exists()


def test_seeds_are_whole_numbers(jule, trained):
    done = jule("map", trained.folder / "run", "--seed=-1")
    assert done.exit_code == 2
    assert "invalid value for '--seed': '-1' is not a whole number from 0" in done.output


def test_what_is_refused(refused, trained, tmp_path):
    run, photos = trained.folder / "run", trained.folder / "photos"
    assert "with --out RUN" in refused("map", photos)
    assert "--out is for pictures" in refused("map", run, "--out", tmp_path / "other")
    assert "--clusters is for pictures" in refused("map", run, "-k", "3")
    assert "--features is for pictures" in refused("map", run, "--features", "photos")
    assert "--source is for runs" in refused(
        "map", photos, "--source", photos, "--out", tmp_path / "other"
    )
    assert "does not exist" in refused("map", tmp_path / "gone", "--out", tmp_path / "other")
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "config.json").write_bytes((run / "config.json").read_bytes())
    assert "is not finished: run jule resume" in refused("map", tmp_path / "part")
    assert not (tmp_path / "other").exists()
