"""jule demo, with little training."""


def test_demo_shows_clusters_beside_k_means(jule, tmp_path):
    done = jule("demo", "--out", "run", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    for method in ("joint learning", "graph degree linkage", "K-means"):
        assert method in done.stdout
    assert (tmp_path / "run" / "labels.csv").exists()
    assert (tmp_path / "run" / "report.html").resolve().as_uri() in done.stdout
