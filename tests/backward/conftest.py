"""What the tests of the backward pass share."""

import pytest
import torch


@pytest.fixture(autouse=True)
def calm():
    """The same weights every time, and one thread: more only get in each other's way here."""
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
