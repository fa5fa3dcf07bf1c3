"""A short sample of a campaign, in a process of its own: a campaign changes the whole process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = """
import json, sys
from dataclasses import asdict
from torture.registry import load
found = load(sys.argv[1]).run(int(sys.argv[2]), int(sys.argv[3]), lambda *_: None)
print(json.dumps(asdict(found)))
"""


@pytest.fixture
def sample():
    """Run some cases of a campaign; return its outcome as a dict."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the campaigns need Linux")

    def run(name, n_cases, seed=0):
        done = subprocess.run(
            [sys.executable, "-c", SAMPLE, name, str(n_cases), str(seed)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run
