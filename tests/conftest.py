"""What several test files need."""

import os
import signal

# Started in the background of a plain shell, a process ignores Ctrl-C, and so would all it starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests run side by side, one a core: threads beyond that would only wait for each other. Set before
# anything loads torch, and inherited by every process that a test starts.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real data sets; tests that need it skip where it is not."""
    folder = os.environ.get("JULE_DATA", "")
    if not os.path.isdir(folder):
        pytest.skip("the real data sets are not here: set JULE_DATA to their folder")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Keep decoded pictures out of the user's cache, and runs of the tests apart."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JULE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
