"""Table 8 in small: codes of patches on digits, resumed, and rendered from fixed records."""

import json
import shlex
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from jule.joint import Config
from jule.locks import LockedError
from jule.paper import cifar10, patch_pipeline
from jule.paper.cifar10 import Cifar10, settings_of
from jule.paper.experiment import Context, Request
from jule.paper.numbers import paper_score
from jule.paper.records import write_record


@pytest.fixture
def measure(tmp_path, monkeypatch):
    """Measure a method on digits, with little training; returns the cell and its record."""
    monkeypatch.setattr(Config, "steps_per_period", lambda *_: 10)
    monkeypatch.setattr(cifar10, "CANDIDATES", (10.0, 100.0))

    def measure(method, seed=0, progress=lambda *_: None):
        cells = Cifar10().cells(Request(("digits",), seeds=seed + 1, methods=(method,)))
        record = Cifar10().measure(cells[-1], Context(tmp_path / "work", tmp_path, progress))
        return cells[-1], json.loads(json.dumps(record))

    return measure


def test_kmeans_codes_classify_digits(measure):
    cell, record = measure("K-means")
    assert Cifar10().is_current(cell, record)
    found = record["rows"]["K-means"]
    assert list(found) == ["300", "1200"]
    assert 0.8 < found["300"]["accuracy"] < found["1200"]["accuracy"] < 1
    for row in found.values():
        assert list(row["held-out accuracies"]) == ["10", "100"]
        assert row["C"] in (10, 100)
    assert set(record["seconds of the stages"]) == {"codes", "features", "svm"}
    assert min(record["peak memory of the stages in MiB"].values()) > 50
    assert "300 0.8" in Cifar10().summary(record)


def test_codes_can_be_learned_on_more_patches(measure):
    _, record = measure("K-means of more patches")
    assert record["settings"]["n_patches"] == 15_000
    assert list(record["rows"]["K-means, ten times the patches"]) == ["300", "1200"]


def test_layers_of_the_network_classify_digits(measure, tmp_path):
    cell, record = measure("JULE", seed=1)
    assert list(record["rows"]) == ["conv1", "conv2", "conv1&2"]
    for found in record["rows"].values():
        assert list(found) == ["300", "1200"]
        assert found["300"]["accuracy"] > 0.7
    history = record["history"]
    assert history[-1]["clusters_after"] == 10
    assert all(kept < size for kept, size in zip(record["dimensions"], (450, 200), strict=True))
    assert Config.from_json(record["settings"]["joint"]).seed == 1
    assert Cifar10().is_current(cell, record)
    record["settings"]["joint"]["n_near"] = 4
    assert not Cifar10().is_current(cell, record)


def test_an_untrained_network_has_features_too(measure):
    _, record = measure("untrained")
    assert record["history"] == []
    assert list(record["rows"]) == ["conv1, untrained", "conv2, untrained", "conv1&2, untrained"]
    assert record["rows"]["conv1&2, untrained"]["300"]["accuracy"] > 0.7


def test_an_interrupted_run_is_resumed(measure, tmp_path, monkeypatch):
    _, whole = measure("JULE")
    monkeypatch.setattr(patch_pipeline, "IMAGES_PER_FILE", 500)
    (tmp_path / "work" / "settings.json").unlink()  # begin again

    def interrupt(stage, share):
        if stage == "features" and share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure("JULE", progress=interrupt)
    saved = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").rglob("*.*")}
    del saved[tmp_path / "work" / "usage.json"]  # which counts on
    assert sum(path.name.startswith("features") for path in saved) == 1
    stages = set()
    _, resumed = measure("JULE", progress=lambda stage, _: stages.add(stage))
    assert not any("training" in stage for stage in stages)
    assert all(path.stat().st_mtime_ns == time for path, time in saved.items())
    for column, found in whole["rows"].items():
        for size, row in found.items():
            assert resumed["rows"][column][size]["accuracy"] == row["accuracy"]


def test_classifiers_that_were_trained_are_not_trained_again(measure):
    def interrupt(stage, share):
        if stage == "SVM on 1,200 images, K-means":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure("K-means", progress=interrupt)
    stages = set()
    _, resumed = measure("K-means", progress=lambda stage, _: stages.add(stage))
    assert [stage for stage in stages if "SVM" in stage] == ["SVM on 1,200 images, K-means"]
    assert list(resumed["rows"]["K-means"]) == ["300", "1200"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("usage.json", b"[]"),
        ("rows.json", b"{}"),
        ("rows.json", b'{"K-means": '),
        ("codes-0.npy", b"\x93NUMPY"),
        ("features-000000.npy", b""),
    ],
)
def test_damaged_leftovers_are_measured_again(measure, tmp_path, name, content):
    _, whole = measure("K-means")
    (tmp_path / "work" / name).write_bytes(content)
    _, again = measure("K-means")
    for size, row in whole["rows"]["K-means"].items():
        assert again["rows"]["K-means"][size]["accuracy"] == row["accuracy"]


def test_features_of_fewer_images_are_computed_again(measure, tmp_path):
    _, whole = measure("K-means")
    path = tmp_path / "work" / "features-000000.npy"
    np.save(path, np.load(path)[:10])
    (tmp_path / "work" / "rows.json").unlink()
    assert measure("K-means")[1]["rows"]["K-means"].keys() == whole["rows"]["K-means"].keys()
    assert len(np.load(path)) == 1000


def test_two_processes_do_not_share_a_folder(measure, tmp_path):
    def second(stage, share):
        with ThreadPoolExecutor(1) as pool, pytest.raises(LockedError):
            pool.submit(measure, "K-means").result()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure("K-means", progress=second)


def test_what_other_settings_left_behind_is_not_used(measure, tmp_path):
    measure("K-means")
    first = np.load(tmp_path / "work" / "features-000000.npy")
    measure("untrained")
    assert np.load(tmp_path / "work" / "features-000000.npy").shape[1] == 2 * first.shape[1]


def test_cells_are_all_methods_and_seeds():
    cells = Cifar10().cells(Request())
    assert len({cell.path for cell in cells}) == len(cells) == 3 + 3 + 1 + 1
    assert cells[0].path == "cifar10/kmeans/cifar10-0.json"
    assert {settings_of(cell)["sizes"] for cell in cells} == {(5000, 10_000, 25_000, 50_000)}
    with pytest.raises(ValueError, match="cifar10 runs on cifar10, digits, not on 'usps'"):
        Cifar10().cells(Request(datasets=("usps",)))
    with pytest.raises(ValueError, match="unknown method 'conv'"):
        Cifar10().cells(Request(methods=("conv",)))


def test_the_command_of_a_cell_measures_it():
    for cell in Cifar10().cells(Request()):
        words = shlex.split(cell.command("cifar10"))
        options = dict(zip(words[3::2], words[4::2], strict=True))
        request = Request(
            tuple(options["--datasets"].split(",")),
            int(options["--seeds"]),
            methods=tuple(options["--methods"].split(",")),
        )
        assert cell in Cifar10().cells(request)


def test_the_papers_table():
    assert paper_score("K-means", "50000", "cifar10").ac == 0.7659
    assert paper_score("conv1&2", "50000", "cifar10").ac == 0.7855
    assert paper_score("conv2", "5000", "cifar10").ac == 0.6310


def test_the_table_is_rendered_from_records(tmp_path):
    def write(slug, seed, **columns):
        rows = {
            name.replace("_", "&"): {str(size): {"accuracy": value} for size, value in sizes}
            for name, sizes in columns.items()
        }
        write_record(tmp_path / "cifar10" / slug / f"cifar10-{seed}.json", {"rows": rows})

    write("jule", 0, conv1_2=[(5000, 0.625), (50_000, 0.775)])
    write("jule", 1, conv1_2=[(5000, 0.635)])
    assert Cifar10().render(tmp_path)["cifar10"] == "\n".join(
        [
            "| training images | conv1&2 | seeds |",
            "|---|---:|---:|",
            "| 5,000 | 0.630 ± 0.005 (0.635) | 2 |",
            "| 50,000 | 0.775 (0.785) | 1 |",
        ]
    )


def test_nothing_measured_is_an_empty_table(tmp_path):
    assert Cifar10().render(tmp_path)["cifar10"] == "| training images | seeds |\n|---|---:|"
