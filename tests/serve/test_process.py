"""A server as a process of its own: Ctrl-C ends it cleanly, and a kill loses next to nothing."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from jule.runs.edits import EditSession
from jule.runs.results import read_results
from tests.report.made import blobs, run_of
from tests.serve.conftest import Client

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
START = "import jule.cli; jule.cli.main()"


@pytest.fixture
def run(tmp_path):
    return run_of(tmp_path / "run", np.round(255 * blobs(30, (6, 6))).astype(np.uint8), 3)


@pytest.fixture
def started(run):
    """`jule serve` as a process, and requests to it."""
    pytest.importorskip("uvicorn", reason='the server is tested: pip install "jule[serve]"')
    command = [sys.executable, "-c", START, "serve", str(run.folder), "--no-browser"]
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
