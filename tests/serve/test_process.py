"""A server as a process of its own: Ctrl-C ends it cleanly, and a kill loses next to nothing."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.client import HTTPException

import numpy as np
import pytest

from jule.runs.edits import EditSession
from jule.runs.results import read_results
from tests.report.made import blobs, run_of
from tests.serve.conftest import Client

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
START = "import jule.cli; jule.cli.main()"
# An edit takes longer than the server waits for requests, and says when it has begun.
SLOW = """
import time
from jule.runs.edits import EditSession

add = EditSession.add

def slowly(*given, **options):
    print("editing", flush=True)
    time.sleep(4)
    return add(*given, **options)

EditSession.add = slowly
"""


@pytest.fixture
def run(tmp_path):
    return run_of(tmp_path / "run", np.round(255 * blobs(30, (6, 6))).astype(np.uint8), 3)


@pytest.fixture
def started(run, request):
    """`jule serve` as a process, and requests to it; a parameter is code that runs before it."""
    pytest.importorskip("uvicorn", reason='the server is tested: pip install "jule[serve]"')
    program = getattr(request, "param", "") + START
    command = [sys.executable, "-c", program, "serve", str(run.folder), "--no-browser"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        try:
            address = process.stdout.readline().removeprefix("page: ").strip()
            assert address.startswith("http://127.0.0.1:"), process.stderr.read()
            yield process, Client(address)
        finally:
            process.kill()


def test_ctrl_c_ends_it_and_writes_the_labels(run, started):
    process, client = started
    assert client.edit(0, "name", cluster=0, name="cats").status == 200
    process.send_signal(signal.SIGINT)
    said, problems = process.communicate(timeout=600)
    assert process.returncode == 0
    assert "have all edits" in said
    assert "Traceback" not in problems
    assert client.parts.path.strip("/") not in said + problems  # the token was printed once
    assert "cats" in run.path("labels.csv").read_text()


@pytest.mark.parametrize("started", [SLOW], indirect=True)
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_waits_for_the_edit_that_is_under_way(run, started, presses):
    process, client = started
    process.stdout.readline()  # how to end it

    def edit():
        with suppress(OSError, HTTPException):  # nobody is there to answer
            client.edit(0, "name", cluster=0, name="cats")

    thread = threading.Thread(target=edit)
    thread.start()
    assert process.stdout.readline() == "editing\n"
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    said, problems = process.communicate(timeout=600)
    thread.join(600)
    assert problems == ""
    assert said.count("\n") == 1
    assert said.strip().endswith("labels.csv and report.html have all edits")
    assert process.returncode == 0
    assert EditSession(run).state.names == {0: "cats"}
    assert "cats" in run.path("labels.csv").read_text()


def test_a_killed_server_loses_at_most_the_edit_in_flight(run, started):
    process, client = started
    answered = []
    enough = threading.Event()

    def edit_on():
        try:
            while client.edit(len(answered), "name", cluster=0, name=f"n{len(answered)}").status:
                answered.append(len(answered) + 1)
                if len(answered) == 5:
                    enough.set()
        except (OSError, EOFError):
            return  # it was killed

    thread = threading.Thread(target=edit_on)
    thread.start()
    assert enough.wait(600)
    process.kill()  # while the next edit is under way
    thread.join(600)
    session = EditSession(run)
    assert len(answered) <= session.revision <= len(answered) + 1
    assert session.state.names == {0: f"n{session.revision - 1}"}
    assert read_results(run).cluster_names == {0: f"n{session.revision - 1}"}
    session.add(session.editor.name(0, "goes on"))
