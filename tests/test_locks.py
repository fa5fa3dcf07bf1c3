"""One process at a time per folder; the dead hold nothing."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from jule.locks import NAME, LockedError, hold

HOLDER = """
import sys
from pathlib import Path
from jule.locks import hold
sys.argv = ["jule", "cluster", "photos"]
with hold(Path(sys.path.pop(0))):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of the folder until its input is closed."""
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{HOLDER}"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_the_lock_is_gone_afterwards(tmp_path):
    with hold(tmp_path):
        assert os.listdir(tmp_path) == [NAME]
    assert os.listdir(tmp_path) == []


def test_a_thread_may_hold_it_twice(tmp_path):
    with hold(tmp_path), hold(tmp_path):
        pass
    with hold(tmp_path):
        pass


def test_another_thread_is_another_holder(tmp_path):
    found = []

    def work():
        try:
            with hold(tmp_path):
                found.append("held")
        except LockedError as error:
            found.append(str(error))

    with hold(tmp_path):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert f"in use by process {os.getpid()}" in found[0]


def test_the_message_says_who_holds_it_and_since_when(tmp_path, holder):
    with pytest.raises(LockedError) as caught, hold(tmp_path):
        pass
    message = str(caught.value)
    assert f"{tmp_path} is in use by process {holder.pid} (jule cluster) since 20" in message
    assert message.endswith("wait until it has finished, or stop it")


def test_waiting_ends_when_the_holder_does(tmp_path, holder):
    threading.Timer(0.1, holder.stdin.close).start()
    with hold(tmp_path, wait=30):
        pass


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / NAME).exists()
    with hold(tmp_path):
        pass
    assert not (tmp_path / NAME).exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"process": "x"}', "\0" * 100])
def test_whatever_is_in_an_old_lock_file_does_not_matter(tmp_path, content):
    (tmp_path / NAME).write_text(content)
    with hold(tmp_path):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
def test_a_second_name_of_another_file_is_not_written_to(tmp_path):
    (tmp_path / "victim").write_text("precious")
    os.link(tmp_path / "victim", tmp_path / NAME)
    with pytest.raises(OSError, match="is not a lock file: remove it"), hold(tmp_path):
        pass
    assert (tmp_path / "victim").read_text() == "precious"


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / NAME).symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match=NAME), hold(tmp_path):
        pass
    assert (tmp_path / "victim").read_text() == "precious"
