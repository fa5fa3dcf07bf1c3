"""Workers decode within limits, and nothing is lost when one of them ends."""

import io
import os
import signal
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from jule.images import read_images
from jule.images.decoding import pool
from jule.images.decoding.batch import decode_chunk
from jule.images.decoding.pipeline import decode_in_order
from jule.images.decoding.pool import Crew, close_idle_workers
from jule.images.decoding.spec import ImageSpec
from jule.images.decoding.worker import Limits, Worker, limits_for
from jule.images.read import read_one
from tests.images.pictures import file_of, png_that_promises

SPEC = ImageSpec(6, 8, 3)
LIMITS = Limits(2**30)
POSIX = pytest.mark.skipif(os.name == "nt", reason="needs kill")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")


def png(number):
    return file_of(np.random.default_rng(number).integers(0, 255, (12, 16, 3), np.uint8))


@pytest.fixture(scope="module")
def shared():
    one = Worker(LIMITS)
    yield one
    one.close()


@pytest.fixture
def worker():
    one = Worker(LIMITS)
    yield one
    one.close()


def chunk(tmp_path):
    (tmp_path / "a.png").write_bytes(png(7))
    return {
        3: png(3),
        4: b"",
        5: "it is gone",
        6: tmp_path / "not there.png",
        7: tmp_path / "a.png",
        8: b"no image",
        9: png(9),
    }


def assert_same(one, other):
    np.testing.assert_array_equal(one.images, other.images)
    assert one.indices == other.indices
    assert one.digests == other.digests
    assert one.skipped == other.skipped


def test_a_worker_decodes_as_we_do(shared, tmp_path):
    expected = decode_chunk(chunk(tmp_path), SPEC)
    assert expected.indices == [3, 7, 9]
    for _ in range(2):
        assert_same(shared.decode(chunk(tmp_path), SPEC), expected)


def test_a_chunk_with_nothing_good(shared):
    found = shared.decode({0: b"", 1: "it is gone"}, SPEC)
    assert found.images.shape == (0, 6, 8, 3)
    assert found.skipped == {0: "it is empty", 1: "it is gone"}


# -- processes that end --------------------------------------------------------------------------


@POSIX
@pytest.mark.parametrize("kind", ["SIGKILL", "SIGSTOP"])
def test_a_worker_that_was_killed_or_stopped_is_replaced(worker, tmp_path, kind):
    worker.decode({0: png(0)}, SPEC)
    worker.limits = Limits(2**30, seconds=1)
    os.kill(worker._process.pid, getattr(signal, kind))
    assert_same(worker.decode(chunk(tmp_path), SPEC), decode_chunk(chunk(tmp_path), SPEC))


@pytest.fixture
def _odd_decoder(monkeypatch, tmp_path):
    """Real workers, whose decoder really dies or hangs on some content."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, PIL.Image\n"
        "before = PIL.Image.open\n"
        "def odd(file, *rest, **more):\n"
        "    content = file.read()\n"
        "    file.seek(0)\n"
        "    if b'deadly' in content:\n"
        "        os.abort()\n"
        "    if b'talkative' in content:\n"
        "        os.write(1, b'x' * 5000)\n"
        "        print('x' * 5000, flush=True)\n"
        "    if b'endless' in content:\n"
        "        signal.pause()\n"
        "    return before(file, *rest, **more)\n"
        "PIL.Image.open = odd\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    close_idle_workers()
    yield
    close_idle_workers()


@pytest.mark.usefixtures("_odd_decoder")
def test_a_crashing_decoder_costs_one_picture(worker, tmp_path):
    (tmp_path / "deadly.png").write_bytes(b"deadly")
    some = {0: png(0), 1: b"deadly", 2: png(2), 3: tmp_path / "deadly.png"}
    found = worker.decode(some, SPEC)
    assert found.indices == [0, 2]
    assert found.skipped == dict.fromkeys((1, 3), "its decoder crashed")
    examined = worker.examine(some, 1)
    assert [examined[index] for index in (1, 3)] == ["its decoder crashed"] * 2
    assert examined[2].width == 16


@pytest.mark.usefixtures("_odd_decoder")
def test_what_a_decoder_prints_is_not_taken_for_an_answer(worker):
    found = worker.decode({0: png(0), 1: b"talkative", 2: png(2)}, SPEC)
    assert found.indices == [0, 2]
    assert found.skipped == {1: "it is not an image"}


@POSIX
@pytest.mark.usefixtures("_odd_decoder")
def test_a_decoder_without_end_costs_one_picture(worker):
    worker.limits = Limits(2**30, seconds=0.75)
    found = worker.decode({0: png(0), 1: b"endless", 2: png(2)}, SPEC)
    assert found.indices == [0, 2]
    assert found.skipped == {1: "its decoder took more than 0.75 s"}


@POSIX
@pytest.mark.usefixtures("_odd_decoder")
def test_small_folders_the_survey_and_single_pictures_are_safe_too(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "a.png").write_bytes(png(0))
    (folder / "b.png").write_bytes(b"deadly")
    found = read_images(folder)
    assert [(one.name, one.reason) for one in found.skipped] == [("b.png", "its decoder crashed")]
    assert len(found) == 1
    with pytest.raises(ValueError, match=r"b\.png cannot be read: its decoder crashed"):
        read_one(folder / "b.png", SPEC)


def test_where_no_process_can_be_started_that_is_the_error(monkeypatch, tmp_path, worker):
    monkeypatch.setattr("sys.executable", str(tmp_path / "no python"))
    with pytest.raises(OSError, match="no python cannot be started"):
        worker.decode({0: png(0)}, SPEC)
    (tmp_path / "a.png").write_bytes(png(0))
    close_idle_workers()
    with pytest.raises(OSError, match=r"^pictures are decoded in a separate process, but "):
        read_images(tmp_path, SPEC)


def test_modules_in_the_current_folder_are_not_imported(monkeypatch, tmp_path, worker):
    for name in ("json", "gc", "PIL", "numpy", "jule"):
        (tmp_path / f"{name}.py").write_text(f"open('{name}.was.here', 'w')\nraise SystemExit")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [path for path in sys.path if path])
    assert worker.decode({0: png(0)}, SPEC).indices == [0]
    assert not list(tmp_path.glob("*.here"))


# -- memory --------------------------------------------------------------------------------------


def test_the_memory_of_the_machine_is_shared_by_the_workers():
    assert limits_for(1).memory >= limits_for(2).memory >= limits_for(1000).memory == 2**30


NEEDS = "it needs more memory than the {} that a decoder may use"
LARGE = {
    "by its header": file_of(Image.new("RGB", (3000, 3000), "red")),
    "while it is decoded": file_of(Image.new("P", (4000, 3000), 5), transparency=3),
    "16 bits": file_of(Image.new("I;16", (4000, 3000), 5)),
    "WebP": file_of(Image.new("RGB", (3000, 3000), "red"), "WEBP", lossless=True),
    "TIFF": file_of(Image.new("CMYK", (3000, 3000)), "TIFF", compression="tiff_lzw"),
    "progressive JPEG": file_of(Image.new("RGB", (3000, 3000)), "JPEG", progressive=True),
}


@LINUX
@pytest.mark.parametrize("kind", LARGE)
def test_a_picture_that_needs_too_much_memory_is_skipped(shared, kind):
    shared.limits = Limits(16 * 10**6)
    some = {0: png(0), 1: LARGE[kind], 2: png(2)}
    found = shared.decode(some, SPEC)
    assert found.indices == [0, 2]
    assert found.skipped == {1: NEEDS.format("16 MB")}
    shared.limits = LIMITS
    assert shared.decode(some, SPEC).indices == [0, 1, 2]


def peak_memory(process):
    with open(f"/proc/{process.pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024


@LINUX
def test_pixels_that_are_not_there_cost_no_memory(worker, tmp_path):
    content = png_that_promises(1, 89_000_000)
    assert len(content) < 100
    (tmp_path / "a.png").write_bytes(content)
    some = {0: content, 1: tmp_path / "a.png"}
    cut_off = dict.fromkeys(some, "it is cut off: not all of its rows are there")
    assert worker.decode(some, SPEC).skipped == cut_off
    assert worker.examine(some, 1) == cut_off
    assert peak_memory(worker._process) < 100e6


@LINUX
def test_large_photographs_fit_into_the_least_memory(worker):
    worker.limits = limits_for(10**6)
    width, height = 12_000, 8_400  # 100 megapixels
    rows = zlib.compress(b"\0" + bytes([200]) * (3 * width), 1)
    assert len(rows) < 10_000
    content = file_of(Image.new("RGB", (width, height), "red"), compress_level=1)
    assert worker.decode({0: content}, SPEC).indices == [0]


def test_images_that_would_be_too_large_are_refused(tmp_path):
    (tmp_path / "a.png").write_bytes(png(0))
    with pytest.raises(ValueError, match="choose a smaller size"):
        read_images(tmp_path, ImageSpec(10**6, 10**6, 3))


# -- several workers -----------------------------------------------------------------------------


def test_batches_come_in_order():
    chunks = [{number: png(number)} for number in range(9)]
    found = list(decode_in_order(Crew(LIMITS), iter(chunks), SPEC, 2))
    assert [batch.indices for batch in found] == [[number] for number in range(9)]


def test_workers_are_used_again_and_end_with_the_program():
    list(decode_in_order(Crew(LIMITS), [{0: png(0)}], SPEC, 1))
    (process, *_) = [one._process for one in pool._idle]
    list(decode_in_order(Crew(LIMITS), [{0: png(0)}], SPEC, 1))
    assert process in [one._process for one in pool._idle]
    close_idle_workers()
    assert process.poll() is not None


@POSIX
@pytest.mark.usefixtures("_odd_decoder")
def test_a_worker_ends_when_no_more_batches_are_wanted():
    crew = Crew(LIMITS)  # a minute for each picture, which nobody has to wait for
    chunks = ({number: b"endless" if number else png(0)} for number in range(100))
    batches = decode_in_order(crew, chunks, SPEC, 2)
    next(batches)
    batches.close()
    assert crew._busy == set()


def test_few_large_files_are_in_memory_at_a_time(monkeypatch):
    monkeypatch.setattr("jule.images.decoding.pipeline.AHEAD_BYTES", 1000)
    taken = []

    def chunks():
        for number in range(20):
            taken.append(number)
            yield {number: bytes(900)}

    for number, _ in enumerate(decode_in_order(Crew(LIMITS), chunks(), SPEC, 2)):
        assert len(taken) <= number + 2


@POSIX
def test_a_forked_process_does_not_use_our_workers():
    list(decode_in_order(Crew(LIMITS), [{0: png(0)}], SPEC, 1))
    assert pool._idle
    child = os.fork()
    if child == 0:
        os._exit(len(pool._idle))
    assert os.waitpid(child, 0)[1] == 0


def test_content_that_is_open_is_not_sent():
    image = Image.open(io.BytesIO(png(0)))
    assert Worker(LIMITS).decode({0: image}, SPEC).indices == [0]
