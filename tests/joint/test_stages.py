"""What a run says of its progress."""

from jule.joint.config import Config
from jule.joint.stages import WHOLE, in_period


def told(done, config, stage, share):
    heard = []
    show = in_period(lambda *said: heard.append(said), done, config)
    show(stage, share)
    return heard


def test_training_moves_the_whole():
    config = Config(rounds=2, n_periods=3)
    assert told(3, config, "training", 0.5) == [
        ("period 4 of 6, training", 0.5),
        (WHOLE, 3.5 / 6),
    ]


def test_other_stages_leave_the_whole_alone():
    assert told(0, Config(rounds=1), "neighbours", 0.2) == [("period 1 of 3, neighbours", 0.2)]


def test_with_eta_nobody_knows_how_many_periods_there_will_be():
    assert told(4, Config(eta=0.9), "training", 1.0) == [("period 5, training", 1.0)]


def test_the_whole_never_passes_its_end():
    assert told(3, Config(rounds=1, n_periods=3), "training", 1.0)[-1] == (WHOLE, 1.0)


def test_nobody_listens():
    assert in_period(None, 0, Config()) is None
