"""Kernels are compiled when they are first called, with the kernels that they call."""

import subprocess
import sys
from threading import Thread

import numpy as np

from jule.jit import IS_COMPILED, njit, prange


@njit
def double(x):
    return 2 * x


@njit
def countdown(n):
    return 0 if n == 0 else 1 + countdown(n - 1)


@njit(parallel=True)
def doubled(values):
    found = np.empty_like(values)
    for place in prange(values.shape[0]):
        found[place] = double(values[place])
    return found


def test_a_kernel_may_call_others_and_itself_from_several_threads():
    values, found = np.arange(5.0), []
    threads = [Thread(target=lambda: found.append(doubled(values))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.tolist() for one in found] == [[0.0, 2.0, 4.0, 6.0, 8.0]] * 2
    assert countdown(3) == 3
    assert hasattr(double, "py_func") == IS_COMPILED  # numba's own by now


def test_importing_the_command_and_the_packages_loads_neither_numba_nor_torch():
    program = (
        "import sys, jule.cli, jule.runs.edits, jule.joint.result\n"
        "print(*{'numba', 'torch', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("", "")
