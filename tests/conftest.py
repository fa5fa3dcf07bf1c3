"""What several test files need."""

import os

import pytest


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real data sets; tests that need it skip where it is not."""
    folder = os.environ.get("JULE_DATA", "")
    if not os.path.isdir(folder):
        pytest.skip("the real data sets are not here: set JULE_DATA to their folder")
    return folder
