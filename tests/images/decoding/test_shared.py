"""Several machines that decode the pictures of one source together."""

import json
import zlib

import numpy as np
import pytest
from PIL import Image

from jule.images import open_source
from jule.images.decoding import cache, shared
from jule.images.decoding.cache import JOURNAL, decode_source
from jule.images.decoding.shared import BLOCK, SharedDecoding
from jule.images.decoding.spec import ImageSpec
from jule.ranks import DisagreementError, LostRankError
from tests.made_ranks import together

SPEC = ImageSpec(4, 4, 3)
BROKEN = 5


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder with three blocks of pictures, one of which cannot be read."""
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for number in range(2 * BLOCK + 7):
        image = Image.fromarray(rng.integers(0, 255, (6, 6, 3), np.uint8))
        image.save(folder / f"{number:03d}.png")
    (folder / f"{BROKEN:03d}.png").write_bytes(b"no picture")
    return folder


@pytest.fixture
def decoded(monkeypatch):
    """The indices of the pictures that each machine decodes itself, in the order of decoding."""
    found = []
    decode_blocks = shared.decode_blocks

    def recorded(source, spec, blocks, workers):
        own = list(blocks)
        found.append([index for block in own for index in block])
        return decode_blocks(source, spec, own, workers)

    monkeypatch.setattr(shared, "decode_blocks", recorded)
    return found


def decode_on(machine, folder, where, workers=1):
    """Decode pictures as one of several machines, into a cache of its own."""
    return decode_source(
        open_source(where), SPEC, folder=folder / str(machine.rank), workers=workers,
        shared=SharedDecoding(machine),
    )  # fmt: skip


def assert_same(found, wanted):
    np.testing.assert_array_equal(found.images, wanted.images)
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.digests, wanted.digests)
    assert (found.skipped, found.checksum) == (wanted.skipped, wanted.checksum)


def test_every_machine_decodes_a_part_and_has_all(pictures, tmp_path, decoded):
    alone = decode_source(open_source(pictures), SPEC, folder=tmp_path / "alone", workers=1)
    assert list(alone.skipped) == [BROKEN]
    for found in together(2, lambda machine: decode_on(machine, tmp_path, pictures)):
        assert_same(found, alone)
    n = len(open_source(pictures))
    assert sorted(map(len, decoded)) == [BLOCK, n - BLOCK]
    assert sorted(decoded[0] + decoded[1]) == list(range(n))


def test_other_processes_of_a_machine_listen(pictures, tmp_path):
    def work(machine):
        if machine.rank == 1:
            return SharedDecoding(machine).listen()
        return decode_on(machine, tmp_path, pictures)

    first, none, second = together(3, work)
    assert none is None
    assert_same(first, second)


def test_machines_go_on_where_the_slowest_one_was_interrupted(pictures, tmp_path, decoded):
    whole = together(2, lambda machine: decode_on(machine, tmp_path, pictures))
    for rank, n_lines in enumerate((2, 1)):  # blocks that were done; the files are cut later
        (home,) = (tmp_path / str(rank)).iterdir()
        (home / "whole.json").unlink()
        lines = journal_of(whole[rank])[:n_lines]
        (home / JOURNAL).write_bytes(b"".join(lines))
    decoded.clear()
    for found in together(2, lambda machine: decode_on(machine, tmp_path, pictures)):
        assert_same(found, whole[0])
    n = len(open_source(pictures))
    assert sorted(decoded[0] + decoded[1]) == list(range(BLOCK, n))


def journal_of(found):
    """The journal of pictures that were decoded in shared blocks."""
    lines, pixels, digests, rows = [], 0, 0, 0
    n = len(found.indices) + len(found.skipped)
    for start in range(0, n, BLOCK):
        end = min(start + BLOCK, n)
        own = (found.indices >= start) & (found.indices < end)
        pixels = zlib.crc32(found.images[own].tobytes(), pixels)
        digests = zlib.crc32(found.digests[own].tobytes(), digests)
        rows += int(own.sum())
        bad = [[index, why] for index, why in found.skipped.items() if start <= index < end]
        lines.append(json.dumps([end, rows, pixels, digests, bad]).encode() + b"\n")
    return lines


def test_a_machine_that_has_everything_leaves_the_others_alone(pictures, tmp_path, decoded):
    alone = decode_source(open_source(pictures), SPEC, folder=tmp_path / "1", workers=1)

    def work(machine):
        if machine.rank == 1:
            SharedDecoding(machine).decline()
            return decode_source(open_source(pictures), SPEC, folder=tmp_path / "1", workers=1)
        return decode_on(machine, tmp_path, pictures)

    for found in together(2, work):
        assert_same(found, alone)
    assert decoded == []


def test_machines_with_other_pictures_decode_alone(pictures, tmp_path, decoded):
    other = tmp_path / "other"
    other.mkdir()
    Image.new("RGB", (6, 6)).save(other / "one.png")
    places = [pictures, other]
    first, second = together(2, lambda machine: decode_on(machine, tmp_path, places[machine.rank]))
    assert len(second.images) == 1
    assert len(first.images) == 2 * BLOCK + 6
    assert decoded == []


def test_a_lost_machine_is_not_taken_for_a_full_disk(pictures, tmp_path):
    class Lost(SharedDecoding):
        def compare(self, source, spec, done):
            raise LostRankError("gone")

    source = open_source(pictures)
    with pytest.raises(LostRankError, match="gone"):
        decode_source(source, SPEC, folder=tmp_path, shared=Lost(None))


@pytest.mark.parametrize("n", [1, 2, BLOCK, BLOCK + 1])
def test_any_number_of_pictures_can_be_shared(n, tmp_path):
    images = np.random.default_rng(n).integers(0, 255, (n, 6, 6, 3), np.uint8)
    source = open_source(images)
    alone = list(cache.decode_batches(source, SPEC))

    def work(machine):
        decoding = SharedDecoding(machine)
        assert decoding.compare(source, SPEC, 0) == [0, 0]
        return list(decoding.batches(source, SPEC, 0, 1))

    wanted = np.concatenate([batch.images for batch in alone])
    for found in together(2, work):
        np.testing.assert_array_equal(np.concatenate([one.images for one in found]), wanted)
        assert [i for one in found for i in one.indices] == list(range(n))


def test_a_picture_that_differs_at_the_same_size_is_named(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, (BLOCK + 1, 6, 6, 3), np.uint8)

    def work(machine):
        own = images + machine.rank  # the same names and shapes
        decoding = SharedDecoding(machine)
        assert decoding.compare(open_source(own), SPEC, 0) == [0, 0]
        return list(decoding.batches(open_source(own), SPEC, 0, 1))

    with pytest.raises(DisagreementError, match="0 in an array is not the picture that another"):
        together(2, work)


def test_files_of_another_size_are_not_shared(pictures, tmp_path, decoded):
    other = tmp_path / "other"
    other.mkdir()
    for path in pictures.iterdir():
        Image.new("RGB", (9, 9)).save(other / path.name)
    places = [pictures, other]
    first, second = together(2, lambda machine: decode_on(machine, tmp_path, places[machine.rank]))
    assert decoded == []
    assert first.checksum != second.checksum


def test_large_images_are_sent_in_smaller_blocks(tmp_path):
    large = ImageSpec(4096, 4096, 3)
    source = open_source(np.zeros((3, 6, 6, 3), np.uint8))

    def work(machine):
        decoding = SharedDecoding(machine)
        if machine.rank == 1:
            return decoding.listen()
        assert decoding.compare(source, large, 0) == [0, 0]
        return [len(batch.images) for batch in decoding.batches(source, large, 0, 1)]

    assert together(3, work) == [[1, 1, 1], None, [1, 1, 1]]
