"""How much memory there is, and what is refused because there is not enough."""

import subprocess
import sys

import pytest

from jule.memory import available_memory, cgroup_limits, check_memory, format_bytes

MIB = 2**20


def test_there_is_memory_and_not_more_than_the_machine_has():
    assert 10 * MIB < available_memory() < 2**50


def test_what_is_too_large_is_refused_with_both_figures():
    check_memory(MIB, "a small thing")
    with pytest.raises(ValueError, match=r"^'images' in a\.h5 needs 1,000 EB of memory, but only "):
        check_memory(10**21, "'images' in a.h5")


def test_a_limit_of_the_process_counts():
    code = (
        "import resource\n"
        "from jule.memory import available_memory, own_address_space\n"
        "used = own_address_space()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 50 * 2**20, resource.RLIM_INFINITY))\n"
        "print(available_memory())"
    )
    if sys.platform != "linux":
        pytest.skip("limits are read from /proc")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 0 < int(done.stdout) <= 50 * MIB, done.stderr


def group(folder, limit, used, cached, names):
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(names[:2], (limit, used), strict=True):
        (folder / name).write_text(f"{value}\n")
    (folder / "memory.stat").write_text(f"anon 1\n{names[2]} {cached}\n")


NEW = ("memory.max", "memory.current", "inactive_file")
OLD = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def of(root, text):
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(text)


def test_the_tightest_control_group_counts(tmp_path):
    of(tmp_path, "0::/user/job\n")
    base = tmp_path / "sys/fs/cgroup"
    group(base / "user/job", "max", 5, 0, NEW)
    group(base / "user", 900 * MIB, 500 * MIB, 100 * MIB, NEW)
    group(base, 800 * MIB, 100 * MIB, 0, NEW)
    assert list(cgroup_limits(tmp_path)) == [500 * MIB, 700 * MIB]


def test_control_groups_of_the_first_version(tmp_path):
    of(tmp_path, "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n")
    # As in a container: the group of the process is mounted at the root.
    group(tmp_path / "sys/fs/cgroup/memory", 300 * MIB, 200 * MIB, 50 * MIB, OLD)
    assert list(cgroup_limits(tmp_path)) == [150 * MIB]


@pytest.mark.parametrize("content", ["", "rubbish", str(2**63 - 4096)])
def test_odd_limits_are_no_limits(tmp_path, content):
    of(tmp_path, "0::/\n")
    group(tmp_path / "sys/fs/cgroup", content, 0, 0, NEW)
    assert list(cgroup_limits(tmp_path)) == []
    assert list(cgroup_limits(tmp_path / "nothing")) == []


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(0, "0 bytes"), (1000, "1.0 kB"), (999_999, "1,000 kB"), (10**6, "1.0 MB"),
     (1_234_567_890, "1.2 GB"), (10**12, "1.0 TB"), (10**21, "1,000 EB")],
)  # fmt: skip
def test_sizes_are_written_for_people(n_bytes, text):
    assert format_bytes(n_bytes) == text
