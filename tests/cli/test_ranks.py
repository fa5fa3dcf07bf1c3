"""`jule cluster` and `jule resume` on several processes, as torchrun starts them."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image

from jule.cli import main
from jule.cli import ranks as cli_ranks
from jule.images import fingerprint, load_dataset
from jule.joint import preset
from jule.ranks import (
    DisagreementError,
    LostRankError,
    Ranks,
    _open_store,
    _terminated_as_error,
    _with_hosts,
    launched,
)
from jule.runs.folder import RunFolder
from jule.runs.results import read_results

COMMAND = Path(__file__).with_name("short_jule.py")
N = 300
SECONDS = 900  # after which a process that should have ended counts as hanging


@pytest.fixture(autouse=True)
def _no_umap(monkeypatch):
    """Leave out what short_jule.py leaves out, in commands that run in this process."""
    monkeypatch.setitem(sys.modules, "umap", None)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A folder with real digits, on which all processes work."""
    folder = tmp_path_factory.mktemp("digits")
    data = load_dataset("digits")
    np.savez(folder / "digits.npz", images=data.images[:N], labels=data.labels[:N])
    return folder


# The system gives higher ports to whoever asks for any, perhaps before our processes have started.
PORTS = iter(range(20_000 + os.getpid() % 10_000, 32_000))


def free_port():
    for port in PORTS:
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def torchrun(size, *arguments, cwd):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return subprocess.run(
        [*launcher, f"--nproc-per-node={size}", str(COMMAND), *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def start(arguments, folders, *, one_machine=True, cache=None):
    """Start a process per folder, without a launcher; return how each ended, and what it said.

    As on several machines, each has a cache of its own, or one for all, and is the first process
    there.
    """
    port = free_port()
    processes = []
    for rank, folder in enumerate(folders):
        about = {"RANK": rank, "WORLD_SIZE": len(folders), "LOCAL_RANK": rank * one_machine}
        about |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        about |= {} if one_machine else {"JULE_CACHE": cache or folder / "cache"}
        processes.append(
            subprocess.Popen(
                [sys.executable, str(COMMAND), *map(str, arguments)],
                cwd=folder,
                env=os.environ | {name: str(value) for name, value in about.items()},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    said = [process.communicate(timeout=SECONDS)[0] for process in processes]
    return [(process.returncode, text) for process, text in zip(processes, said, strict=True)]


def test_torchrun_makes_the_files_of_a_single_process(digits, tmp_path, jule):
    arguments = ["cluster", digits / "digits.npz", "-k", 10, "--rounds", 1, "--out"]
    done = torchrun(2, *arguments, "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("To sort the pictures") == 1  # one process alone prints
    run, alone = tmp_path / "run", tmp_path / "alone"
    assert jule(*arguments, alone).exit_code == 0
    assert {path.name for path in run.iterdir()} == {path.name for path in alone.iterdir()}
    found, wanted = read_results(RunFolder(run)).result, read_results(RunFolder(alone)).result
    assert found.n_clusters == 10
    np.testing.assert_array_equal(found.input_neighbors.indices, wanted.input_neighbors.indices)
    np.testing.assert_array_equal(found.input_neighbors.distances, wanted.input_neighbors.distances)


def test_a_killed_process_ends_the_run_and_one_process_resumes_it(digits, tmp_path, jule):
    arguments = ["cluster", digits / "digits.npz", "-k", 10, "--rounds", 1, "--out", "run"]
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    (code, said), (other_code, other_said) = start(["--fail=killed", *arguments], folders)
    assert (code, other_code) == (1, -signal.SIGKILL)
    assert said.count("\n") == 1
    assert "another process of the run has ended" in said
    assert "jule resume run" in said
    assert other_said == ""
    assert not list(folders[1].iterdir())  # the others need no run folder
    run = folders[0] / "run"
    assert [path.name for path in (run / "state").iterdir()] == ["state-0001.safetensors"]

    done = jule("resume", run)
    assert done.exit_code == 0, done.output
    found = read_results(RunFolder(run))
    assert [period.number for period in found.history] == [0, 1, 2]
    assert found.result.n_clusters == 10


def test_processes_with_other_pictures_write_nothing(digits, tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    with np.load(digits / "digits.npz") as data:
        images = data["images"]
    for folder in folders:
        folder.mkdir()
        np.save(folder / "some.npy", images[:300])
        images = np.flip(images, axis=1)
    ends = start(["cluster", "some.npy", "-k", 3, "--out", "run"], folders)
    (code, said), (other_code, other_said) = ends
    assert code == other_code == 1
    assert said.startswith(f"jule: rank 1 of 2 ({socket.gethostname()}): some.npy has other")
    assert other_said == ""
    assert [path.name for folder in folders for path in folder.iterdir()] == ["some.npy"] * 2


def save_pictures(folder, n):
    folder.mkdir()
    for number, image in enumerate(load_dataset("digits").images[:n]):
        picture = Image.fromarray(image.astype(np.uint8) * 15)
        picture.save(folder / f"{number:03d}.png")


def test_machines_share_the_decoding_and_have_all_pictures(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    save_pictures(tmp_path / "pictures", 100)
    arguments = ["cluster", tmp_path / "pictures", "-k", 5, "--rounds", 1, "--out", "run"]
    for code, said in start(arguments, folders, one_machine=False):
        assert code == 0, said
    pixels = [next(folder.glob("cache/*/pixels.bin")).read_bytes() for folder in folders]
    assert pixels[0] == pixels[1]
    assert not list(folders[1].glob("run"))
    assert read_results(RunFolder(folders[0] / "run")).result.n_clusters == 5


def test_machines_that_share_a_cache_leave_it_to_the_first_one(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    save_pictures(tmp_path / "pictures", 40)
    arguments = ["cluster", tmp_path / "pictures", "-k", 5, "--rounds", 1, "--out", "run"]
    cache = tmp_path / "cache"
    for code, said in start(arguments, folders, one_machine=False, cache=cache):
        assert code == 0, said
    assert [path.name for path in cache.glob("*/*.json")] == ["whole.json"]
    assert not list(cache.glob(".jule-*"))


def test_a_machine_without_the_pictures_is_named(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    save_pictures(folders[0] / "pictures", 40)
    ends = start(["cluster", "pictures", "-k", 5, "--out", "run"], folders, one_machine=False)
    (code, said), (other_code, other_said) = ends
    assert code == other_code == 1
    assert f"rank 1 of 2 ({socket.gethostname()}): pictures does not exist" in said
    assert other_said == ""
    assert not (folders[0] / "run").exists()


# Without other processes


def test_other_commands_are_left_to_the_first_process(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(sys, "argv", ["jule", "info", "nowhere"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0


@pytest.mark.parametrize("failed", [False, True])
def test_others_end_like_the_first_process_if_there_is_nothing_to_do(monkeypatch, failed):
    monkeypatch.setattr(Ranks, "hear", lambda _: ({"do": "end", "failed": failed}, []))
    monkeypatch.setattr(cli_ranks, "_ranks", Ranks(1, 2))
    monkeypatch.setattr(cli_ranks, "_has_plan", False)
    with pytest.raises(typer.Exit) as ended:
        cli_ranks.follow(None, None, "cpu")
    assert ended.value.exit_code == failed


def test_a_port_in_use_is_named(monkeypatch):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        for name, value in {"RANK": 0, "WORLD_SIZE": 2, "MASTER_PORT": port}.items():
            monkeypatch.setenv(name, str(value))
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        with pytest.raises(LostRankError, match=f"127.0.0.1:{port} is in use: choose another"):
            _open_store(0, 2)


def test_the_first_process_says_why_the_launcher_ends_it():
    ranks, previous = Ranks(0, 2), signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(LostRankError, match="the launcher"), _terminated_as_error(ranks):
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN  # until the process has ended
    finally:
        signal.signal(signal.SIGTERM, previous)


def test_an_incomplete_environment_is_named(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    assert launched() == (0, 1)  # some programs set RANK for their own ends
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(ValueError, match="WORLD_SIZE=two: start the processes with torchrun"):
        launched()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(ValueError, match="torchrun, which sets all variables"):
        _open_store(0, 2)


def test_other_versions_are_named():
    people = [{"host": host, "versions": {"jule": "0.1.0", "torch": "2.13.0"}} for host in "ab"]
    assert _with_hosts(Ranks(0, 2), people).hosts == ("a", "b")
    people[1]["versions"] = {"jule": "0.1.0", "torch": "2.12.0"}
    message = r"rank 1 of 2 \(b\) has torch 2.12.0, and rank 0 of 2 \(a\) has 2.13.0"
    with pytest.raises(DisagreementError, match=message):
        _with_hosts(Ranks(0, 2), people)


def test_other_settings_are_named():
    def settings(k):
        return lambda of: preset("default", of=of, n_clusters=k)

    data = fingerprint(np.zeros((5, 8, 8), np.uint8))
    plan = {"config": settings(10)("images").to_json(), "data": data, "encoded": False}
    cli_ranks._check_settings(json.loads(json.dumps(plan)), settings(10))
    with pytest.raises(DisagreementError, match="n_clusters is 12 here and 10 on rank 0"):
        cli_ranks._check_settings(plan, settings(12))
