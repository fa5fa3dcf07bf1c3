"""A sample of the campaigns that kill commands and fill the disk: `make torture` runs them all."""

import errno

import pytest
from torture.errors_at import FullDisk
from torture.injection import NO_COMPILER, Fault, build_library, has_compiler
from torture.kills import Kills
from torture.lanes import Lane
from torture.scenarios import CLUSTER, SCENARIOS, STARTS

pytestmark = pytest.mark.skipif(not has_compiler(), reason=NO_COMPILER)
SAMPLED = (
    "cluster --overwrite, pictures inside",
    "apply",
    "cut",
    "export (copy)",
    "report, sheets",
)


@pytest.fixture(scope="module")
def lane(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    (folder / "lane").mkdir()
    lane = Lane(folder / "lane", build_library(folder), STARTS)
    yield lane
    lane.close()


def some(campaign, lane, n_cases):
    """Run some cases of a campaign; return what went wrong, and how many there are in all."""
    cases, wrong = campaign.all_cases(lane)
    for case in campaign.sample(cases, n_cases, seed=0):
        wrong += [f"{case}: {text}" for text in campaign.check_all(lane, case)]
    return wrong, len(cases)


def sampled():
    return tuple(one for one in SCENARIOS if one.name in SAMPLED)


def test_killed_commands_lose_nothing_and_end_the_same_when_run_again(lane):
    wrong, n_points = some(Kills(scenarios=sampled()), lane, 15)
    assert wrong == []
    assert n_points > 500


def test_on_a_full_or_broken_disk_commands_say_which_file_and_lose_nothing(lane):
    wrong, n_points = some(FullDisk(scenarios=sampled()), lane, 15)
    assert wrong == []
    assert n_points > 800


def test_operations_are_counted_and_one_of_them_kills_or_fails(lane):
    lane.restore("nothing")
    whole = lane.server.run(CLUSTER, lane.case, fault=Fault())
    assert whole.code == 0
    assert [one.number for one in whole.operations] == [*range(1, len(whole.operations) + 1)]
    assert {"create", "write", "fsync", "rename", "mkdir"} <= {one.kind for one in whole.operations}

    first = next(
        one
        for one in whole.operations
        if one.kind == "write" and one.path.endswith(".part") and "/run/" in one.path
    )
    for mode, share in (("before", 0), ("middle", 0.5), ("after", 1)):
        lane.restore("nothing")
        killed = lane.server.run(CLUSTER, lane.case, fault=Fault(first.number, mode))
        assert killed.code == -9
        assert len(killed.operations) == first.number
        written = [path.stat().st_size for path in lane.case.rglob("*.part")]
        assert written == [int(first.size * share)]

    lane.restore("nothing")
    full = lane.server.run(CLUSTER, lane.case, fault=Fault(first.number, "once", errno.ENOSPC))
    assert full.code == 1
    assert "No space left on device" in full.stderr
    assert list(lane.case.rglob("*.part")) == []
