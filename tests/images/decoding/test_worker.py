"""Worker processes decode as this process does, and nothing is lost when one of them ends."""

import io
import os
import signal

import numpy as np
import pytest
from PIL import Image

from jule.images.decoding.batch import decode_chunk
from jule.images.decoding.decode import ImageSpec
from jule.images.decoding.pipeline import decode_in_order
from jule.images.decoding.worker import Worker

SPEC = ImageSpec(6, 8, 3)


def png(number):
    pixels = np.random.default_rng(number).integers(0, 255, (12, 16, 3), np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "PNG")
    return content.getvalue()


@pytest.fixture(scope="module")
def worker():
    one = Worker(SPEC)
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


def test_a_worker_decodes_as_we_do(worker, tmp_path):
    expected = decode_chunk(chunk(tmp_path), SPEC)
    assert expected.indices == [3, 7, 9]
    for _ in range(2):
        assert_same(worker.decode(chunk(tmp_path)), expected)


def test_a_chunk_with_nothing_good(worker):
    found = worker.decode({0: b"", 1: "it is gone"})
    assert found.images.shape == (0, 6, 8, 3)
    assert found.skipped == {0: "it is empty", 1: "it is gone"}


@pytest.mark.skipif(os.name == "nt", reason="needs kill")
def test_a_killed_worker_is_started_again(worker, tmp_path):
    worker.decode({0: png(0)})
    os.kill(worker._process.pid, signal.SIGKILL)
    worker._process.wait()
    assert_same(worker.decode(chunk(tmp_path)), decode_chunk(chunk(tmp_path), SPEC))


def test_a_crashing_decoder_costs_one_picture(monkeypatch, tmp_path):
    # A worker whose decoder dies on one picture: a real process that really ends.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, PIL.Image\n"
        "before = PIL.Image.open\n"
        "def deadly(file, *rest, **more):\n"
        "    if b'deadly' in file.getvalue():\n"
        "        os.abort()\n"
        "    return before(file, *rest, **more)\n"
        "PIL.Image.open = deadly\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    worker = Worker(SPEC)
    found = worker.decode({n: b"deadly" if n == 1 else png(n) for n in range(3)})
    worker.close()
    assert found.indices == [0, 2]
    assert found.skipped == {1: "its decoder crashed"}


def test_where_no_process_can_be_started_this_one_works(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.executable", str(tmp_path / "no python"))
    worker = Worker(SPEC)
    assert_same(worker.decode(chunk(tmp_path)), decode_chunk(chunk(tmp_path), SPEC))
    worker.close()


@pytest.fixture
def _in_process(monkeypatch):
    """Workers that start no process: order and closing are the same."""
    monkeypatch.setattr(Worker, "_start", lambda self: None)


@pytest.mark.usefixtures("_in_process")
def test_batches_come_in_order_and_workers_are_closed(monkeypatch):
    closed = []
    monkeypatch.setattr(Worker, "close", lambda worker: closed.append(worker))
    workers = [Worker(SPEC), Worker(SPEC)]
    chunks = [{number: png(number)} for number in range(9)]
    found = list(decode_in_order(workers, chunks))
    assert [batch.indices for batch in found] == [[number] for number in range(9)]
    assert closed == workers


def test_a_worker_ends_when_no_more_batches_are_wanted():
    workers = [Worker(SPEC)]
    batches = decode_in_order(workers, ({number: png(number)} for number in range(100)))
    next(batches)
    batches.close()
    assert workers[0]._process is None
