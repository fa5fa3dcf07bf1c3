"""What several test files need."""

import os

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
