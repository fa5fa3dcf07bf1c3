"""Progress of a run: names of stages, and the share of the whole."""

from jule.joint.config import Config
from jule.joint.stages import after_training, in_period
from jule.progress import OVERALL


def reported(done, config, stage, share):
    calls = []
    in_period(lambda *call: calls.append(call), done, config)(stage, share)
    return calls


def test_training_advances_the_whole():
    config = Config(rounds=2, n_periods=3)
    assert reported(3, config, "training", 0.5) == [
        ("period 4 of 6, training", 0.5),
        (OVERALL, 3.5 / 6),
    ]


def test_other_stages_do_not():
    assert reported(0, Config(rounds=1), "neighbours", 0.2) == [("period 1 of 3, neighbours", 0.2)]


def test_with_eta_the_number_of_periods_is_unknown():
    assert reported(4, Config(eta=0.9), "training", 1.0) == [("period 5, training", 1.0)]


def test_the_whole_never_passes_its_end():
    assert reported(3, Config(rounds=1, n_periods=3), "training", 1.0)[-1] == (OVERALL, 1.0)


def test_networks_of_an_ensemble_share_the_whole():
    config = Config(rounds=1, n_periods=3, ensemble=4)
    calls = []
    in_period(lambda *call: calls.append(call), 1, config, member=2)("training", 0.5)
    assert calls == [("network 3 of 4, period 2 of 3, training", 0.5), (OVERALL, 2.5 / 4)]
    assert after_training(None) is None


def test_without_progress_there_is_nothing_to_call():
    assert in_period(None, 0, Config()) is None
