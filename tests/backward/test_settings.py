"""Settings are read without torch, which takes seconds to import."""

import inspect
import subprocess
import sys

from jule.backward import Training, weighted_triplet_loss

PROGRAM = """
import sys
import jule.backward.batches, jule.backward.settings
assert "torch" not in sys.modules
"""


def test_settings_need_no_torch():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=600)


def test_the_loss_has_the_defaults_of_training():
    parameters = inspect.signature(weighted_triplet_loss).parameters
    for name in ("gamma", "margin", "negatives", "n_negatives"):
        assert parameters[name].default == getattr(Training(), name)
