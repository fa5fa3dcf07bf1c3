"""Measure how much memory this process uses and may still use, and refuse what needs more."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

UNKNOWN = 4 * 2**30  # bytes assumed where the system does not say
UNLIMITED = 2**60  # limits of this size and above are no limits


class NotEnoughMemoryError(ValueError):
    """Something needs more memory than is available."""


def available_memory() -> int:
    """Return how many bytes of memory this process may still use.

    It is the smallest of the memory that is free on this machine and what is left of the limits on
    this process: those of its control groups (containers, batch systems) and of `ulimit`.

    Examples
    --------
    >>> available_memory() > 0
    True
    """
    left = [*_free_on_machine(), *cgroup_limits(), *_resource_limits()]
    return max(0, min(left, default=UNKNOWN))


def check_memory(n_bytes: int, what: str) -> None:
    """Raise if something needs more memory than is available.

    Parameters
    ----------
    n_bytes
        The memory that it needs.
    what
        What needs it, and where it comes from; the beginning of the error message.

    Raises
    ------
    NotEnoughMemoryError
        If more is needed than `available_memory()`.

    Examples
    --------
    >>> check_memory(10**6, "the array 'images' in a.npz")
    """
    available = available_memory()
    if n_bytes > available:
        raise NotEnoughMemoryError(
            f"{what} needs {format_bytes(n_bytes)} of memory, but only {format_bytes(available)} "
            "are available: use less data, or a machine with more memory"
        )


def format_bytes(n_bytes: int) -> str:
    """Return a number of bytes as text, in a suitable unit.

    Examples
    --------
    >>> format_bytes(999), format_bytes(1_234_000_000), format_bytes(931 * 10**9)
    ('999 bytes', '1.2 GB', '931 GB')
    """
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    units = ("kB", "MB", "GB", "TB", "PB", "EB")
    power = min(len(units), (len(str(n_bytes)) - 1) // 3)
    amount = n_bytes / 1000**power
    return f"{amount:,.{1 if amount < 9.95 else 0}f} {units[power - 1]}"


def _free_on_machine() -> Iterator[int]:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024
                return
    except (OSError, ValueError):
        pass  # not Linux
    with suppress(AttributeError, OSError, ValueError):  # not POSIX
        # Free memory is not counted everywhere, and does not include what could be freed.
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def cgroup_limits(root: Path = Path("/")) -> Iterator[int]:
    """Yield how many bytes the control groups of this process leave to it.

    `root` is where /proc and /sys are. Memory of cached files counts as free: the system takes it
    back when it is needed.

    Examples
    --------
    >>> all(isinstance(left, int) for left in cgroup_limits())
    True
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if "memory" in controllers.split(","):
            base, names = root / "sys/fs/cgroup/memory", (
                "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
            )  # fmt: skip
        elif not controllers:
            base, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        else:
            continue
        # A container often sees its own group at the root, whatever the path says.
        path = PurePosixPath(group)
        for above in (path, *path.parents):
            left = _left_in_group(base / above.relative_to("/"), *names)
            if left is not None:
                yield left


def _left_in_group(folder: Path, limit: str, usage: str, cached: str) -> int | None:
    try:
        most = (folder / limit).read_text().strip()
        if not most.isdecimal() or int(most) >= UNLIMITED:
            return None
        used = int((folder / usage).read_text())
        for line in (folder / "memory.stat").read_text().splitlines():
            if line.startswith(f"{cached} "):
                used -= int(line.split()[1])
        return int(most) - used
    except (OSError, ValueError):
        return None


def _resource_limits() -> Iterator[int]:
    try:
        import resource

        used = own_address_space()
    except (ImportError, OSError, ValueError):  # not POSIX, or not Linux
        return
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        yield most - used


def own_address_space() -> int:
    """Return the size in bytes of the address space that this process uses (Linux).

    Examples
    --------
    >>> own_address_space() > 0
    True
    """
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def resident_memory() -> int | None:
    """Return the memory that this process uses now, in bytes; None if it is not known.

    Examples
    --------
    >>> (resident_memory() or 1) > 0
    True
    """
    return _from_status("VmRSS") or _most_ever()


def peak_memory() -> int | None:
    """Return the most memory that this process has used, in bytes; None if it is not known.

    Where the system supports it, only the time since `reset_peak_memory` counts.

    Examples
    --------
    >>> (peak_memory() or 1) > 0
    True
    """
    return _from_status("VmHWM") or _most_ever()


def _from_status(field: str) -> int | None:
    with suppress(OSError, ValueError):  # not Linux
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    return None


def _most_ever() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def reset_peak_memory() -> None:
    """Reset the peak to the memory in use now, if the system supports it (Linux).

    Examples
    --------
    >>> reset_peak_memory()
    """
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
