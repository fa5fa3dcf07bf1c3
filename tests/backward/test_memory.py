"""Freed memory is kept inside the block and handed back at its end."""

import subprocess
import sys

import pytest

from jule.backward.memory import keep_freed_memory

# A process of its own: what malloc holds depends on everything that ran before.
PROGRAM = """
import numpy as np
from jule.backward.memory import keep_freed_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def use(n_bytes):
    np.ones(n_bytes, np.uint8).sum()

before = resident()
with keep_freed_memory():
    use(2**28)
    inside = resident()
after = resident()
assert inside - before > 2**27, (before, inside)
assert after - before < 2**26, (before, after)
use(2**28)
assert resident() - before < 2**26
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc can be told")
def test_memory_is_kept_inside_and_handed_back_after():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=600)


def test_errors_pass_through():
    with pytest.raises(KeyError), keep_freed_memory():
        raise KeyError
