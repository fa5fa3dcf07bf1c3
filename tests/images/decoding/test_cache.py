"""The cache: pictures are decoded once; kills, damage and other processes do no harm."""

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import tracemalloc

import numpy as np
import pytest

from jule.images import ArraySource, ImageSource, ImageSpec, open_source
from jule.images.decoding import cache, decode, pipeline
from jule.images.decoding.cache import clear_caches, decode_source, list_caches
from jule.images.decoding.pool import close_idle_workers
from jule.locks import hold
from tests.images.pictures import NoSource, file_of, pixels

SPEC = ImageSpec(24, 32, 3)
N, BAD = 60, (5, 27, 59)
GOOD = N - len(BAD)
POSIX = pytest.mark.skipif(os.name == "nt", reason="kills and locks")


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    """Sixty pictures in several chunks."""
    monkeypatch.setattr(pipeline, "CHUNK", 16)


@pytest.fixture
def photos(tmp_path):
    """A folder of 60 pictures, three of them bad."""
    (tmp_path / "photos").mkdir()
    files = [file_of(pixels(n)) for n in range(7)]
    for number in range(N):
        (tmp_path / "photos" / f"{number:03}.png").write_bytes(files[number % 7])
    for number in BAD:
        (tmp_path / "photos" / f"{number:03}.png").write_bytes(b"bad")
    return tmp_path / "photos"


@pytest.fixture
def homes(tmp_path):
    return tmp_path / "cache"


def content(folder):
    """Every file of a cache that is complete, by name."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".jule-lock"]
    return {path.name: path.read_bytes() for path in files}


def same(one, other):
    np.testing.assert_array_equal(one.images, other.images)
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_array_equal(one.digests, other.digests)
    assert one.skipped == other.skipped


# -- read once -----------------------------------------------------------------------------------


def test_what_is_read_is_right(photos, homes):
    found = decode_source(open_source(photos), SPEC, folder=homes)
    assert found.indices.tolist() == [n for n in range(N) if n not in BAD]
    np.testing.assert_array_equal(found.images, [pixels(n % 7) for n in found.indices])
    assert found.skipped == dict.fromkeys(BAD, "it is not an image")
    assert set(content(homes)) >= {"pixels.bin", "digests.bin", "whole.json"}


def test_the_second_time_nothing_is_decoded(photos, homes):
    source = open_source(photos)
    first = decode_source(source, SPEC, folder=homes)
    same(decode_source(NoSource(source), SPEC, folder=homes), first)
    same(decode_source(NoSource(open_source(photos)), SPEC, folder=homes), first)


def test_the_pixels_cannot_be_changed_by_mistake(photos, homes):
    found = decode_source(open_source(photos), SPEC, folder=homes)
    with pytest.raises(ValueError, match="read-only"):
        found.images[0] = 0


@pytest.mark.parametrize(
    "spec",
    [
        ImageSpec(24, 31, 3),
        ImageSpec(24, 32, 1),
        ImageSpec(12, 16, 3, "fit"),
        ImageSpec(24, 32, 3, "stretch"),
    ],
)
def test_another_spec_is_decoded_anew(photos, homes, spec):
    source = open_source(photos)
    decode_source(source, SPEC, folder=homes)
    with pytest.raises(AssertionError, match="was read"):
        decode_source(NoSource(source), spec, folder=homes)
    assert decode_source(source, spec, folder=homes).images.shape == (GOOD, *spec.shape)


def _touched(folder):
    os.utime(folder / "003.png", ns=(1, 1))


def _grown(folder):
    about = os.stat(folder / "003.png")
    (folder / "003.png").write_bytes(file_of(pixels(50)))
    os.utime(folder / "003.png", ns=(about.st_atime_ns, about.st_mtime_ns))


def _replaced(folder):
    about = os.stat(folder / "003.png")
    (folder / "new").write_bytes((folder / "003.png").read_bytes())
    os.utime(folder / "new", ns=(about.st_atime_ns, about.st_mtime_ns))
    os.replace(folder / "new", folder / "003.png")


def _removed(folder):
    (folder / "003.png").unlink()


def _added(folder):
    (folder / "zzz.png").write_bytes(file_of(pixels()))


def _renamed(folder):
    (folder / "003.png").rename(folder / "003b.png")


@pytest.mark.parametrize("change", [_touched, _grown, _replaced, _removed, _added, _renamed])
def test_a_change_in_the_folder_is_seen(photos, homes, change):
    decode_source(open_source(photos), SPEC, folder=homes)
    change(photos)
    with pytest.raises(AssertionError, match="was read"):
        decode_source(NoSource(open_source(photos)), SPEC, folder=homes)


def test_a_decoder_that_was_installed_since_is_used(tmp_path, homes, monkeypatch):
    pytest.importorskip("pillow_heif").register_heif_opener()
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.heic").write_bytes(file_of(pixels(height=64, width=64), "HEIF"))
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "pillow_heif.py").write_text("raise ImportError")
    formats = tuple(name for name in decode.known_formats() if name != "HEIF")
    with monkeypatch.context() as patch:
        patch.setattr(cache, "known_formats", lambda: formats)
        patch.syspath_prepend(tmp_path / "modules")  # new workers look there first
        close_idle_workers()
        found = decode_source(open_source(tmp_path / "photos"), SPEC, folder=homes)
    close_idle_workers()
    assert "jule[heif]" in found.skipped[0]
    assert decode_source(open_source(tmp_path / "photos"), SPEC, folder=homes).skipped == {}


def test_pictures_that_are_all_bad_are_remembered_too(tmp_path, homes):
    for number in range(3):
        (tmp_path / f"{number}.jpg").write_bytes(b"bad")
    source = open_source(f"{tmp_path}/*.jpg")
    for one in (source, NoSource(source)):
        found = decode_source(one, SPEC, folder=homes)
        assert found.images.shape == (0, 24, 32, 3)
        assert list(found.skipped) == [0, 1, 2]


def test_progress_counts_all_pictures(photos, homes):
    calls = []
    decode_source(
        open_source(photos), SPEC, folder=homes, progress=lambda *call: calls.append(call)
    )
    assert calls[-1] == (N, N)
    assert calls == sorted(calls)


# -- a kill in the middle ------------------------------------------------------------------------

FILL = """
import os, signal, sys
from pathlib import Path
from jule.images import *
from jule.images.decoding import pipeline
from jule.images.decoding.cache import decode_source

pipeline.CHUNK = 16

def show(done, total):
    print(done, flush=True)
    if done >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

source, spec = open_source(sys.argv[1]), ImageSpec(24, 32, 3)
decode_source(source, spec, folder=Path(sys.argv[2]), progress=show)
"""


def python(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True
    )


@POSIX
def test_decoding_resumes_after_a_kill_and_ends_with_the_same_bytes(photos, homes, tmp_path):
    for stop in (1, 20):  # killed twice, each time further on
        done = python(FILL, photos, homes, stop)
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert not list(homes.rglob("whole.json"))
    calls = []
    source = open_source(photos)
    found = decode_source(source, SPEC, folder=homes, progress=lambda *call: calls.append(call))
    assert calls[0][0] > 32  # two batches were there already
    whole = decode_source(source, SPEC, folder=tmp_path / "other")
    same(found, whole)
    assert content(homes) == content(tmp_path / "other")


def interrupted(source, homes):
    """Fill a cache up to two batches, as a kill would leave it; return its folder."""

    class Stop(Exception):
        pass

    def show(done, total):
        if done >= 32:
            raise Stop

    with pytest.raises(Stop):
        decode_source(source, SPEC, folder=homes, progress=show)
    return next(iter(homes.iterdir()))


def test_what_was_written_after_the_journal_is_written_again(photos, homes):
    source = open_source(photos)
    home = interrupted(source, homes)
    with open(home / "pixels.bin", "ab") as file:
        file.write(b"half a batch")
    with open(home / "journal.txt", "a") as file:
        file.write("[48, 4")  # cut off
    same(
        decode_source(source, SPEC, folder=homes),
        decode_source(source, SPEC, folder=homes.with_name("x")),
    )


@pytest.mark.parametrize("name", ["pixels.bin", "digests.bin"])
def test_a_journal_that_promises_more_than_there_is_is_not_believed(photos, homes, name):
    source = open_source(photos)
    home = interrupted(source, homes)
    os.truncate(home / name, 100)
    same(
        decode_source(source, SPEC, folder=homes),
        decode_source(source, SPEC, folder=homes.with_name("x")),
    )


@pytest.mark.parametrize("name", ["pixels.bin", "digests.bin"])
def test_batches_that_were_damaged_are_decoded_again(photos, homes, name):
    source = open_source(photos)
    home = interrupted(source, homes)
    _damage(name, _flip(-1))(home)  # in the last batch; those before it are good
    calls = []
    found = decode_source(source, SPEC, folder=homes, progress=lambda *call: calls.append(call))
    assert calls[0] == (32, N)
    same(found, decode_source(source, SPEC, folder=homes.with_name("x")))


@pytest.mark.parametrize(
    "text",
    [
        "rubbish\n",
        "[1]\n",
        "[16, 16, 0, 0, 5]\n",
        '{"a": 1}\n',
        "[-5, -5, 0, 0, []]\n",
        "[16, 16, 0, 0, []]\n",
        "\xff\n",
    ],
)
def test_a_damaged_journal_is_not_believed(photos, homes, text):
    source = open_source(photos)
    home = interrupted(source, homes)
    (home / "journal.txt").write_bytes(text.encode("latin-1"))
    same(
        decode_source(source, SPEC, folder=homes),
        decode_source(source, SPEC, folder=homes.with_name("x")),
    )


# -- damage --------------------------------------------------------------------------------------


def _damage(name, change):
    def damage(home):
        path = home / name
        path.write_bytes(change(path.read_bytes()))

    return damage


def _flip(at):
    def change(old):
        new = bytearray(old)
        new[at] ^= 1
        return bytes(new)

    return change


DAMAGES = {
    "a bit of the pixels": _damage("pixels.bin", _flip(1000)),
    "a bit of the digests": _damage("digests.bin", _flip(-1)),
    "a reason": _damage("whole.json", lambda old: old.replace(b"not an image", b"not an imagx")),
    "pixels cut": _damage("pixels.bin", lambda old: old[:-1]),
    "pixels too many": _damage("pixels.bin", lambda old: old + b"x"),
    "digests cut": _damage("digests.bin", lambda old: b""),
    "pixels gone": lambda home: (home / "pixels.bin").unlink(),
    "whole.json cut": _damage("whole.json", lambda old: old[: len(old) // 2]),
    "whole.json empty": _damage("whole.json", lambda old: b""),
    "whole.json of another format": _damage(
        "whole.json", lambda old: json.dumps({**json.loads(old), "format": "x"}).encode()
    ),
    "whole.json no object": _damage("whole.json", lambda old: b"[]"),
    "whole.json no text": _damage("whole.json", lambda old: b"\xff\xfe"),
    "rows that do not add up": _damage(
        "whole.json", lambda old: json.dumps({**json.loads(old), "rows": 3}).encode()
    ),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_cache_is_made_anew(photos, homes, case):
    source = open_source(photos)
    first = decode_source(source, SPEC, folder=homes)
    expected = first.images.copy()
    DAMAGES[case](next(iter(homes.iterdir())))
    found = decode_source(source, SPEC, folder=homes)
    np.testing.assert_array_equal(found.images, expected)
    same(decode_source(NoSource(source), SPEC, folder=homes), found)


# -- several processes ---------------------------------------------------------------------------

READ = """
import sys, zlib
from pathlib import Path
from jule.images import *
from jule.images.decoding.cache import decode_source
found = decode_source(open_source(sys.argv[1]), ImageSpec(24, 32, 3), folder=Path(sys.argv[2]))
print(found.images.shape, zlib.crc32(found.images.tobytes()))
"""


def test_two_processes_at_once_both_succeed(photos, homes):
    command = [sys.executable, "-c", READ, photos, homes]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert said[0] == said[1]
    assert said[0].startswith(f"({GOOD}, 24, 32, 3)")
    same(decode_source(NoSource(open_source(photos)), SPEC, folder=homes),
         decode_source(open_source(photos), SPEC, folder=homes.with_name("x")))  # fmt: skip


def test_while_another_process_fills_a_cache_this_one_reads_for_itself(photos, homes):
    source = open_source(photos)
    home = interrupted(source, homes)
    before = content(homes)
    found = []
    with hold(home):  # by this thread, so that any other has to do without
        other = threading.Thread(
            target=lambda: found.append(decode_source(source, SPEC, folder=homes))
        )
        other.start()
        other.join()
        assert content(homes) == before
    assert len(found[0].images) == GOOD


def test_a_cache_that_was_finished_in_the_meantime_is_not_filled_again(photos, homes, monkeypatch):
    """Otherwise a file would be truncated while another process has it mapped."""
    source = open_source(photos)
    others = []

    def late(home):
        monkeypatch.setattr(cache, "hold", hold)
        others.append(decode_source(source, SPEC, folder=homes))
        return hold(home)

    monkeypatch.setattr(cache, "hold", late)
    same(decode_source(NoSource(source), SPEC, folder=homes), others[0])


# -- strangers -----------------------------------------------------------------------------------


@POSIX
def test_nobody_else_can_read_a_cache(photos, homes):
    before = os.umask(0)
    try:
        decode_source(open_source(photos), SPEC, folder=homes)
    finally:
        os.umask(before)
    (home,) = homes.iterdir()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()} == {0o600}


@POSIX
@pytest.mark.parametrize("name", ["pixels.bin", "digests.bin", "journal.txt", "whole.json"])
@pytest.mark.parametrize("half", [True, False])
def test_a_link_in_a_cache_is_neither_read_nor_written(photos, homes, tmp_path, name, half):
    source = open_source(photos)
    decode_source(source, SPEC, folder=tmp_path / "other")
    expected = decode_source(source, SPEC, folder=tmp_path / "other")
    if half:
        home = interrupted(source, homes)
    else:
        decode_source(source, SPEC, folder=homes)
        (home,) = homes.iterdir()
    victim = tmp_path / "victim"
    if (home / name).exists():
        (home / name).rename(victim)  # even if what the link leads to would be right
    else:
        victim.write_bytes(b"precious")
    before = victim.read_bytes()
    (home / name).symlink_to(victim)
    same(decode_source(source, SPEC, folder=homes), expected)
    assert victim.read_bytes() == before
    if half or name != "journal.txt":  # which a complete cache does not need
        assert not any(path.is_symlink() for path in home.iterdir())


@POSIX
def test_a_linked_cache_is_refused_and_not_cleared(photos, homes, tmp_path, monkeypatch):
    source = open_source(photos)
    decode_source(source, SPEC, folder=homes)
    (home,) = homes.iterdir()
    home.rename(tmp_path / "elsewhere")
    home.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "whole.json").unlink()
    before = content(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"cannot be written to .* is a link or a file"):
        decode_source(source, SPEC, folder=homes)
    monkeypatch.setenv("JULE_CACHE", str(homes))
    assert clear_caches() == 0
    assert content(tmp_path / "elsewhere") == before


@POSIX
@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_of_another_user_is_not_used(photos, homes):
    source = open_source(photos)
    decode_source(source, SPEC, folder=homes)
    (home,) = homes.iterdir()
    os.chown(home, 12345, 12345)
    (home / "whole.json").unlink()
    before = content(homes)
    assert len(decode_source(source, SPEC, folder=homes).images) == GOOD
    assert content(homes) == before


def test_a_cache_in_use_is_not_cleared(photos, homes, monkeypatch):
    monkeypatch.setenv("JULE_CACHE", str(homes))
    decode_source(open_source(photos), SPEC)
    (home,) = homes.iterdir()
    freed = []
    with hold(home):
        other = threading.Thread(target=lambda: freed.append(clear_caches()))
        other.start()
        other.join()
    assert freed == [0]
    assert clear_caches() > 0
    assert os.listdir(homes) == []


# -- no place, no identity -----------------------------------------------------------------------


def test_a_cache_that_cannot_be_written_is_a_clear_error(photos, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match=r"cannot be written to .*--cache, or .*JULE_CACHE"):
            decode_source(open_source(photos), SPEC, folder=folder)


def test_the_folder_of_caches_comes_from_the_environment(photos, homes, monkeypatch):
    monkeypatch.setenv("JULE_CACHE", str(homes))
    assert list_caches() == []
    decode_source(open_source(photos), SPEC)
    decode_source(open_source(photos), ImageSpec(8, 8, 1))
    (homes / "a file of yours").write_text("keep me")
    (homes / "a folder of yours").mkdir()
    assert len(list_caches()) == 2
    size = GOOD * (24 * 32 * 3 + 8 * 8 + 2 * 16)
    assert size < sum(size for _, size in list_caches()) < size + 1000
    assert clear_caches() > size
    assert list_caches() == []
    assert sorted(os.listdir(homes)) == ["a file of yours", "a folder of yours"]


class Nameless(ImageSource):
    """Pictures without an identity."""

    def __init__(self, n):
        super().__init__("here", [str(number) for number in range(n)])

    def picture(self, index):
        return pixels(index)


def test_pictures_without_identity_are_read_and_leave_no_files(homes, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    found = decode_source(Nameless(100), SPEC, folder=homes)
    np.testing.assert_array_equal(found.images, [pixels(n) for n in range(100)])
    assert os.listdir(tmp_path / "temporary") == []
    assert not homes.exists()


def test_arrays_are_known_by_their_values(homes):
    images = np.stack([pixels(n) for n in range(5)])
    spec = ImageSpec(12, 16, 1)
    first = decode_source(ArraySource(images), spec, folder=homes)
    same(decode_source(NoSource(ArraySource(images.copy())), spec, folder=homes), first)
    images[3] += 1
    with pytest.raises(AssertionError, match="was read"):
        decode_source(NoSource(ArraySource(images)), spec, folder=homes)


# -- memory --------------------------------------------------------------------------------------


class Many(ImageSource):
    """Images made when they are asked for."""

    def __init__(self, n):
        super().__init__("here", [str(number) for number in range(n)])

    def picture(self, index):
        return np.full((64, 64, 3), index % 251, np.uint8)


def test_memory_does_not_grow_with_the_number_of_pictures():
    peaks = []
    for n in (1500, 4500):
        tracemalloc.start()
        found = decode_source(Many(n), ImageSpec(64, 64, 3), workers=2)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.images.nbytes == n * 64 * 64 * 3
    assert peaks[1] < peaks[0] + 4e6  # of 37 MB more pixels
    assert peaks[1] < 40e6
