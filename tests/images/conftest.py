"""Fixtures of all tests of images."""

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_fsync():
    """Do not wait for the disk: that only matters after a power cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
