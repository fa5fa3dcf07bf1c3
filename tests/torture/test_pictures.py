"""A sample of the campaigns on damaged pictures and hostile archives."""

from torture.archives import KINDS, HostileArchives, make_case
from torture.pictures import DamagedPictures, make_pictures


def no_progress(done, total):
    pass


def test_damaged_pictures_are_read_or_listed():
    outcome = DamagedPictures().run(600, 7, no_progress)
    assert outcome.failures == []
    assert sum(outcome.counts.values()) == outcome.cases == 600
    assert outcome.counts["read"] > 50
    assert outcome.counts["skipped: it is damaged"] > 50


def test_there_are_pictures_of_every_format():
    kinds = {kind.split()[0] for kind in make_pictures()}
    assert kinds >= {"JPEG", "PNG", "WebP", "GIF", "TIFF", "BMP", "PPM", "MPO"}


def test_hostile_archives_are_read_or_refused():
    outcome = HostileArchives().run(20 * len(KINDS), 7, no_progress)
    assert outcome.failures == []
    assert sum(outcome.counts.values()) == outcome.cases == 20 * len(KINDS)
    assert {name.split(":")[0] for name in outcome.counts} == set(KINDS)


def test_a_case_is_the_same_again():
    for number in range(len(KINDS)):
        assert make_case(3, number).content == make_case(3, number).content
