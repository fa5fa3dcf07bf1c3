"""Processes of a group: what they exchange, and what each of them gets from a fit."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jule.evaluation import accuracy
from jule.images import load_dataset

SIZE = 2
SECONDS = 900  # after which processes count as hanging


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the processes of tests/group_program.py report, in the order of their ranks."""
    out = tmp_path_factory.mktemp("group") / "found"
    program = Path(__file__).with_name("group_program.py")
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={SIZE}"]
    done = subprocess.run(
        [sys.executable, *launcher, str(program), str(out)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(Path(f"{out}-{rank}.json").read_text()) for rank in range(SIZE)]


def test_rows_are_gathered_in_the_order_of_the_ranks(found):
    assert found[0]["gathered"] == [[0, 1], [10, 11], [12, 13]]
    assert found[0]["none"] == [[0, 1]]
    assert found[1]["gathered"] is found[1]["none"] is None


def test_every_process_gets_the_rows_it_owns_from_all(found):
    assert [each["owned"] for each in found] == [
        [[0], [10]],
        [[1, 2], [11, 12]],
    ]


def test_sums_texts_and_orders_reach_everybody(found):
    told = [
        ["float64", [], 3.5],
        ["int16", [2, 2], [[0, 1], [4, 5]]],
        ["float64", [0, 4], []],
    ]
    for each in found:
        assert each["total"] == [2, 1]
        assert each["texts"] == ["", "é"]
        assert each["told"] == [{"do": "x"}, told]


def test_all_processes_have_the_same_fitted_model(found):
    labels = load_dataset("digits").labels[:1200]
    assert accuracy(labels, np.array(found[0]["labels"])) > 0.7
    for each in found:
        for name in ("labels", "steps", "predicted"):
            assert each[name] == found[0][name]


def test_processes_with_other_samples_are_refused_everywhere(found):
    for each in found:
        assert each["message"].startswith("X is ")
        assert f"on rank 1 of 2 ({socket.gethostname()})" in each["message"]


def test_knowing_that_one_is_alone_loads_nothing_heavy():
    code = (
        "import sys, jule.ranks; print(jule.ranks.launched(), {'torch', 'numpy'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "(0, 1) set()", done.stderr
