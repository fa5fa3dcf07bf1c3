"""jule demo, with little training."""

import os
from importlib import import_module


def test_demo_keeps_the_best_of_several_seeds_beside_k_means(jule, tmp_path, monkeypatch):
    little = {"min_images": 200, "epochs": 0.05, "rounds": 1}
    monkeypatch.setattr(import_module("jule.cli.demo"), "SETTINGS", little)
    done = jule("demo", "--out", "run", "--no-open", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    for method in ("joint learning, best of", "graph degree linkage", "K-means"):
        assert method in done.stdout
    assert "is kept" in done.stdout
    assert (tmp_path / "run" / "report.html").resolve().as_uri() in done.stdout
    assert os.listdir(tmp_path) == ["run"]
    assert jule("report", "run", cwd=tmp_path).exit_code == 0  # it knows where its images are
    assert jule("demo", "--out", "run", cwd=tmp_path).exit_code == 1


def test_demo_replaces_nothing_but_a_run(jule, tmp_path):
    (tmp_path / "jule-demo").mkdir()
    (tmp_path / "jule-demo" / "mine.txt").write_text("precious")
    assert jule("demo", cwd=tmp_path).exit_code == 1
    assert (tmp_path / "jule-demo" / "mine.txt").read_text() == "precious"
