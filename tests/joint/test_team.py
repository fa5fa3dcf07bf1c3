"""What the first of several processes tells the others."""

import errno

import numpy as np
import pytest

from jule.forward import nearest_neighbors
from jule.images import load_dataset
from jule.joint import Config, init_network
from jule.joint.team import SINGLE, Team, serve
from jule.ranks import LostRankError, Ranks


class Recorder(Ranks):
    """Two processes of which the second only listens."""

    def __init__(self):
        super().__init__(0, 2, hosts=("here", "there"))
        self.told = []
        self.is_lost = False

    def tell(self, about, arrays=()):
        if self.is_lost:
            raise LostRankError("another process has ended")
        self.told.append(about["do"])

    def sum_(self, values):
        raise LostRankError("another process has ended")


class Orders(Ranks):
    """The second of two processes, which hears given orders."""

    def __init__(self, *orders):
        super().__init__(1, 2, hosts=("here", "there"))
        self.orders = list(orders)

    def hear(self):
        return self.orders.pop(0)


@pytest.fixture(scope="module")
def network():
    images = load_dataset("digits").images[:60]
    return images, init_network(images, Config())


@pytest.mark.parametrize("error", [None, OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_others_are_let_go_once_however_it_ends(error):
    ranks = Recorder()
    team = Team(ranks)

    def work():
        with team.leading():
            team.begin()
            if error is not None:
                raise error
            team.end()

    if error is None:
        work()
    else:
        with pytest.raises(type(error)):
            work()
    assert ranks.told == ["end"]


def test_in_the_middle_of_an_order_others_are_told_nothing(network):
    images, embedder = network
    ranks = Recorder()
    team = Team(ranks)
    how = {"n_steps": 1, "first_step": 0, "settings": Config().training(), "seed": [0, 0, 0]}
    team.begin()
    with pytest.raises(LostRankError), team.leading():
        team.train(embedder, images, np.arange(60) // 3, **how)
    assert ranks.told == ["train"]


def test_the_first_error_is_shown_even_if_others_are_gone():
    ranks = Recorder()
    ranks.is_lost = True
    with pytest.raises(ValueError, match="first"), Team(ranks).leading():
        raise ValueError("first")


def test_small_work_and_work_before_the_others_serve_is_done_alone(network):
    images, embedder = network
    ranks = Recorder()
    team = Team(ranks)
    points = np.random.default_rng(0).normal(size=(2000, 2))
    with team.searching():
        nearest_neighbors(points, k=3)
    team.embed(embedder, images[:5])
    team.begin()
    with team.searching():
        nearest_neighbors(points[:500], k=3)
    team.embed(embedder, images[:1])
    assert ranks.told == []


def test_a_single_process_has_nobody_to_tell(network):
    images, embedder = network
    with SINGLE.leading(), SINGLE.searching():
        SINGLE.begin()
        assert SINGLE.embed(embedder, images).shape == (60, 160)
        SINGLE.end()


@pytest.mark.parametrize("failed", [False, True])
def test_serving_ends_when_it_is_told_so_and_knows_why(network, failed):
    assert serve(Orders(({"do": "end", "failed": failed}, [])), *network) is not failed
