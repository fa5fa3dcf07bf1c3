"""Damaged files of runs: a sample of the campaign, and the kinds of damage."""

import json

import numpy as np
import pytest
from torture.mutations import ANY, STRUCTURES, any_file, by_structure


def test_a_sample_of_damaged_files_is_refused_or_without_effect(sample):
    found = sample("damage", 120)
    assert found["failures"] == []
    assert found["cases"] == 120
    assert found["counts"]["refused"] > 60
    assert found["counts"]["identical"] > 40


CONTENT = {
    "json": b'{"n_samples": 40, "sizes": [20, 20]}',
    "csv": b"path,cluster\r\na.png,0\r\nb.png,1\r\n",
    "html": b"<p>page</p>",
}


@pytest.mark.parametrize("suffix", [*CONTENT, *STRUCTURES])
def test_every_kind_of_damage_changes_a_file(suffix):
    content = CONTENT.get(suffix, bytes(range(256)))
    rng = np.random.default_rng(0)
    kinds = set()
    for _ in range(200):
        for kind, change in (any_file(rng), by_structure(f"a.{suffix}", rng)):
            damaged = change(content, rng)
            assert isinstance(damaged, bytes)
            kinds.add((kind, damaged != content))
    assert {kind for kind, changed in kinds if changed} == {*ANY, *STRUCTURES.get(suffix, ())}


def test_an_edited_run_without_its_manifest_is_not_trained_again(jule, refused, copied, tmp_path):
    from torture.workshop import some_edits

    (tmp_path / "edits.json").write_text(json.dumps(some_edits(copied)))
    assert jule("apply", copied, tmp_path / "edits.json").exit_code == 0
    edited = (copied / "labels.csv").read_bytes()
    (copied / "manifest.json").unlink()
    for line in (["resume", copied], ["cut", copied, "-k", "2"]):
        assert "manifest.json is missing" in refused(*line)
    assert (copied / "labels.csv").read_bytes() == edited
