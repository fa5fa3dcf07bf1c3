"""Commands that several processes run together, started by torchrun.

All processes start with the same command. The first one, rank 0, runs it as if it were alone, and
it alone writes and prints. The others read the pictures and wait for its orders. They never look at
the run folder, which need not be on their machine. See docs/scale.md.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from jule.cli.errors import describe_known
from jule.cli.reading import open_not_empty
from jule.ranks import ALONE, DisagreementError, LostRankError, Ranks, launched, started_ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jule.images import ImageSpec, Samples
    from jule.images.decoding.shared import SharedDecoding
    from jule.joint import Config
    from jule.joint.team import Team

SHARED = ("cluster", "resume")  # the commands that several processes run together
PLAN, START, DECODE = "plan", "start", "decode"

_ranks: Ranks = ALONE
_team: Team | None = None  # in the first process
_has_plan = False  # in the others: whether they have answered the first one


@contextmanager
def joined(command: str) -> Iterator[None]:
    """Join the other processes of a command, if torchrun started several.

    Examples
    --------
    >>> with joined("cluster"):
    ...     current().size
    1
    """
    global _ranks, _team
    if command not in SHARED or launched()[1] == 1:
        yield
        return
    with started_ranks() as found:
        from jule.joint.team import Team

        _ranks, _team = found, Team(found)
        if found.is_first:
            with _team.leading():
                yield
            return
        try:
            yield
        except LostRankError:
            raise
        except ArithmeticError:  # training failed in all processes, and the first one says so
            raise typer.Exit(1) from None
        except Exception as error:
            if _has_plan:
                raise
            _answer(error)


def current() -> Ranks:
    """Return the processes that run this command.

    Examples
    --------
    >>> current().size
    1
    """
    return _ranks


@contextmanager
def decoding(
    source: str, spec: ImageSpec | None, cache: str | None, *, folder_classes: bool
) -> Iterator[SharedDecoding | None]:
    """Let other machines decode some of the pictures within this context, if there are any.

    Examples
    --------
    >>> with decoding("photos", None, None, folder_classes=False) as shared:
    ...     shared is None
    True
    """
    if _team is None or spec is None:
        yield None
        return
    mark = f".jule-{secrets.token_hex(8)}.part"
    order = {
        "do": DECODE,
        "source": source,
        "spec": spec.to_json(),
        "folder_classes": folder_classes,
        "mark": mark,
    }
    with _marked(_cache_folder(cache), mark), _team.decoding(order) as shared:
        yield shared


def _cache_folder(cache: str | None) -> Path:
    from jule.images.decoding.cache import cache_folder

    return Path(cache) if cache else cache_folder()


@contextmanager
def _marked(folder: Path, mark: str) -> Iterator[None]:
    """Keep a file in a folder within this context: machines that see it share the folder."""
    from jule.files import make_folder, write_new

    with suppress(OSError):  # then nothing can be shared through it
        write_new(make_folder(folder) / mark, b"")
    try:
        yield
    finally:
        with suppress(OSError):
            (folder / mark).unlink(missing_ok=True)


def lead(
    data: Samples, config: Config, source: str, *, folder_classes: bool, encoded: bool
) -> None:
    """Tell the other processes what to read, and check that they see the same.

    Raises
    ------
    DisagreementError
        If one of them cannot read the pictures, or has other pictures or settings.
    """
    if _team is None:
        return
    plan = {
        "do": PLAN,
        "config": config.to_json(),
        "source": source,
        "spec": None if data.spec is None else data.spec.to_json(),
        "folder_classes": folder_classes,
        "encoded": encoded,
        "data": data.fingerprint,
    }
    _ranks.tell(plan)
    _agree("")


def start(samples: NDArray, *, encoded: bool) -> Team | None:
    """Let the other processes wait for orders; vectors of an encoder are sent to them.

    Returns None in a process that is alone.
    """
    if _team is None:
        return None
    _ranks.tell({"do": START}, [samples] if encoded else [])
    _team.begin()
    return _team


def follow(
    source: str | None,
    cache: str | None,
    device: str,
    settings: Callable[..., Config] | None = None,
) -> None:
    """Do what the first process orders, until it has finished.

    Parameters
    ----------
    source
        Where the pictures are on this machine; None for the place that the first process names.
    cache
        The folder for decoded pictures.
    device
        The device for the network.
    settings
        Returns the settings of this process for a kind of samples; None for those of the first.
    """
    from jule.backward.embedder import best_device
    from jule.joint import Config, init_network
    from jule.joint.team import serve

    own: list[Samples] = []
    plan = _hear_plan(lambda order: own.extend(_decode(order, source, cache)))

    def read() -> None:
        if not plan["encoded"]:
            own[:] = [_checked(plan, source, own[0] if own else _read(plan, source, cache))]
        if settings is not None:
            _check_settings(plan, settings)

    _agree(read)
    about, arrays = _ranks.hear()
    if about["do"] != START:
        raise typer.Exit(1)
    samples = arrays[0] if arrays else own[0].samples
    config = Config.from_json(plan["config"])
    if not serve(_ranks, samples, init_network(samples, config).to(best_device(device))):
        raise typer.Exit(1)


def _hear_plan(decode: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Wait for the plan of the first process; before it, there may be pictures to decode."""
    global _has_plan
    plan, _ = _ranks.hear()
    _has_plan = True
    if plan["do"] == DECODE:
        decode(plan)
        plan, _ = _ranks.hear()
    if plan["do"] != PLAN:  # there is nothing to do, or the first process has failed
        raise typer.Exit(int(plan["failed"]))
    return plan


def _answer(error: Exception) -> NoReturn:
    """Tell the first process why this one cannot follow, and end."""
    _hear_plan(lambda _: _decline())
    _agree(_describe(error))
    raise typer.Exit(1)


def _agree(outcome: str | Callable[[], None]) -> None:
    """Exchange what went wrong; raise in all processes if anything did.

    Processes that are the first on their machine read while the others wait, so that pictures are
    decoded once per machine.
    """
    for is_turn in (_ranks.local_rank == 0, _ranks.local_rank > 0):
        text = ""
        if is_turn and not _ranks.is_first:
            text = outcome if isinstance(outcome, str) else _attempt(outcome)
        for rank, wrong in enumerate(_ranks.gather_texts(text)):
            if wrong and _ranks.is_first:
                raise DisagreementError(f"{_ranks.name(rank)}: {wrong}")
            if wrong:
                raise typer.Exit(1)


def _attempt(work: Callable[[], None]) -> str:
    """Do something, and return what went wrong."""
    try:
        work()
    except Exception as error:
        return _describe(error)
    return ""


def _describe(error: BaseException) -> str:
    usage = error.format_message() if hasattr(error, "format_message") else None
    return usage or describe_known(error) or f"{type(error).__name__}: {error}"


def _decode(order: dict[str, Any], source: str | None, cache: str | None) -> list[Samples]:
    """Decode pictures together with other machines; return them, or nothing if that fails.

    What is wrong with the source is said when the plan asks for it.
    """
    from jule.images.decoding.shared import SharedDecoding

    shared = SharedDecoding(_ranks)
    if _ranks.local_rank > 0:
        shared.listen()
        return []
    if (_cache_folder(cache) / order["mark"]).exists():
        shared.decline()  # the first process fills the cache of this machine as well
        return []
    found = []
    try:
        found.append(_read(order, source, cache, shared))
    except Exception:
        if shared.is_exchanging:  # the others would wait for this process
            raise
    if not shared.has_answered:
        shared.decline()
    return found


def _decline() -> None:
    """Take part in the exchange before decoding, as a machine that cannot read the pictures."""
    from jule.images.decoding.shared import SharedDecoding

    shared = SharedDecoding(_ranks)
    if _ranks.local_rank > 0:
        shared.listen()
    else:
        shared.decline()


def _read(
    about: dict[str, Any],
    source: str | None,
    cache: str | None,
    shared: SharedDecoding | None = None,
) -> Samples:
    """Read the pictures on this machine."""
    from jule.images import ImageSpec, read_images

    opened = open_not_empty(source or about["source"], folder_classes=about["folder_classes"])
    spec = None if about["spec"] is None else ImageSpec(**about["spec"])
    return read_images(opened, spec, cache=Path(cache) if cache else None, shared=shared)


def _checked(plan: dict[str, Any], source: str | None, data: Samples) -> Samples:
    """Return the pictures of this machine; raise if they are not those of the first process."""
    if data.fingerprint != plan["data"]:
        theirs = plan["data"]
        raise DisagreementError(
            f"{source or plan['source']} has other pictures here than on rank 0 ({len(data):,} "
            f"instead of {theirs['shape'][0]:,}, or different ones): copy the same files to all "
            "machines"
        )
    return data


def _check_settings(plan: dict[str, Any], settings: Callable[..., Config]) -> None:
    from jule.joint.config import kind_of

    kind = kind_of(tuple(plan["data"]["shape"][1:]), encoded=plan["encoded"])
    for name, value in settings(of=kind).to_json().items():
        theirs = plan["config"][name]
        if value != theirs:
            raise DisagreementError(
                f"{name} is {value} here and {theirs} on rank 0: start all machines with the same "
                "command"
            )
