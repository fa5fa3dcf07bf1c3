"""A run folder: what a run leaves behind, and all that is needed to go on with it.

config.json          settings, and which data they were used on
state/               the newest states, while the run goes on
history.json         one entry a period
snapshots/           how the samples lay before the first period, and after each
labels.csv           path, cluster, confidence, rank in the cluster: one row a sample
skipped.csv          what could not be read, and why
duplicates.csv       pictures that are exactly another one
labels_sf.npy        SF and ...
labels_rc.npy        ... RC, of which labels.csv holds the better one
embedding.npy        the final representation
tree.npz             its merge tree
network.safetensors  the network
result.json          the numbers of the run; written last, so a run that has it is whole
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from jule.backward import Embedder, embed
from jule.backward.embedder import best_device, describe, rebuild, restore, state_of
from jule.copies import with_copies_together
from jule.evaluation import accuracy, nmi
from jule.forward import MergeTree, prepare
from jule.images import Look, Samples, fingerprint, open_source, read_images
from jule.interrupts import uninterrupted
from jule.joint import Choice, Config, Result, finish, first_network, joint_learning
from jule.joint.loop import begin
from jule.joint.stages import Progress
from jule.joint.state import Period, load_state, save_state, write_whole
from jule.sheets import (
    read_first_copies,
    read_labels,
    write_duplicates,
    write_labels,
    write_skipped,
)
from jule.snapshots import save_snapshot, shown_samples, take_snapshot

if TYPE_CHECKING:
    from jule.report import Report

FORMAT = "jule-run-1"
STATES = "state"
SNAPSHOTS = "snapshots"


@dataclass(frozen=True, eq=False)
class Finished:
    """A finished run, read back."""

    config: Config
    names: list[str]
    result: Result
    history: tuple[Period, ...]
    embedder: Embedder


@dataclass(frozen=True)
class Run:
    """A folder that holds a run, finished or not.

    Examples
    --------
    >>> Run(Path("faces")).path("labels.csv").name
    'labels.csv'
    """

    folder: Path

    def path(self, name: str) -> Path:
        """Give the place of one of the run's files."""
        return self.folder / name

    @property
    def is_finished(self) -> bool:
        """Whether all results are there."""
        return self.path("result.json").exists()

    def about(self) -> dict[str, Any]:
        """Read config.json: settings, data and where it came from.

        Examples
        --------
        >>> Run(Path("faces")).about()["source"]  # doctest: +SKIP
        """
        path = self.path("config.json")
        if not path.exists():
            raise FileNotFoundError(f"{self.folder} is not a run: it has no config.json")
        try:
            about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error
        if about.get("format") != FORMAT:
            raise ValueError(f"{path} is not of a run: its format is {about.get('format')!r}")
        return about

    def config(self) -> Config:
        """Read the settings."""
        return Config.from_json(self.about()["config"])

    def look(self) -> Look | None:
        """Give what pictures are brought to for this run; None where it was made of vectors."""
        about = self.about()
        if about.get("look") is not None:
            return Look(**about["look"])
        shape, dtype = tuple(about["data"]["shape"][1:]), about["data"]["dtype"]
        if dtype != "uint8" or len(shape) < 2 or (len(shape) == 3 and shape[2] != 3):
            return None
        return Look(shape[0], shape[1], 3 if len(shape) == 3 else 1)

    def report(self) -> Report:
        """Make the page of a finished run; a notebook shows it.

        Examples
        --------
        >>> Run(Path("faces")).report().open()  # doctest: +SKIP
        """
        from jule.report import Report  # the page knows runs; a run knows its page only here

        return Report.of_run(self)


def create_run(
    folder: Path,
    config: Config,
    data: dict[str, Any],
    *,
    source: str = "",
    look: Look | None = None,
    folder_classes: bool = False,
    overwrite: bool = False,
) -> Run:
    """Make the folder of a new run; an existing one is refused unless told to overwrite it.

    `data` is the `fingerprint` of the samples; `source`, `look` and `folder_classes` say where and
    how they can be read again.

    Examples
    --------
    >>> create_run(Path("faces"), Config(n_clusters=20), fingerprint(images))  # doctest: +SKIP
    """
    run = Run(folder)
    if not overwrite:
        refuse_existing(folder)
    elif folder.exists() and any(folder.iterdir()):
        run.about()  # never empty a folder that is not a run
        shutil.rmtree(folder)
    was_there = folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _write_json(
            run.path("config.json"),
            {
                "format": FORMAT,
                "source": source,
                "look": None if look is None else look.to_json(),
                "folder_classes": folder_classes,
                "data": data,
                "config": config.to_json(),
            },
        )
    except OSError:
        if not was_there:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return run


def refuse_existing(folder: Path) -> None:
    """Raise where a folder has something in it.

    Examples
    --------
    >>> refuse_existing(Path("not-there"))
    """
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(
            f"{folder} exists and is not empty: resume it (jule resume), choose another folder, "
            "or replace it (--overwrite)"
        )


def read_again(
    run: Run,
    source: str | None = None,
    *,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Samples:
    """Read the samples of a run once more, from where they were or from where they are now.

    Examples
    --------
    >>> read_again(Run(Path("faces"))).samples.shape  # doctest: +SKIP
    """
    about = run.about()
    where = source or about["source"]
    if not where:
        raise ValueError(f"{run.folder} does not say where its images are: name their source")
    opened = open_source(where, labels_from_folders=bool(about.get("folder_classes")))
    look = None if about.get("look") is None else Look(**about["look"])
    return read_images(opened, look, cache=cache, progress=progress)


def go(
    run: Run,
    samples: NDArray,
    *,
    names: Sequence[str] | None = None,
    labels: NDArray | None = None,
    first_copies: NDArray[np.int64] | None = None,
    device: str = "auto",
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> Finished:
    """Start a run, or go on where it was left, and write all its results.

    Examples
    --------
    >>> go(create_run(Path("faces"), config, fingerprint(images)), images)  # doctest: +SKIP
    """
    about, config = run.about(), run.config()
    found = fingerprint(samples)
    if found != about["data"]:
        raise ValueError(
            f"the data is not what {run.folder} was made with: {found['dtype']} {found['shape']} "
            f"now, {about['data']['dtype']} {about['data']['shape']} then, or other values"
        )
    identity = {"config": config.to_json(), "data": about["data"]}
    embedder = embedder or first_network(samples, config)
    embedder.to(best_device(device))
    run.path(STATES).mkdir(exist_ok=True)
    state = load_state(run.path(STATES), identity)
    shown = samples[shown_samples(len(samples))]
    if state is None:
        state = replace(begin(samples, config, progress), network=state_of(embedder))
        raw = take_snapshot(0, prepare(shown, config.preparation), state.labels)
        save_snapshot(run.path(SNAPSHOTS), raw)
    for after in joint_learning(
        samples, embedder, config, state=state, labels=labels, progress=progress
    ):
        state = after
        with uninterrupted():
            # The picture first: a period whose state is saved is not gone through again.
            seen = take_snapshot(state.n_periods, embed(embedder, shown), state.labels)
            save_snapshot(run.path(SNAPSHOTS), seen)
            save_state(run.path(STATES), state, identity)
    restore(embedder, state.network)
    result = finish(embed(embedder, samples), state, config, progress)
    if first_copies is not None:
        result = with_copies_together(result, first_copies)
    finished = Finished(
        config,
        [str(number) for number in range(len(samples))] if names is None else list(names),
        result,
        state.history,
        embedder,
    )
    with uninterrupted():
        write_results(run, finished, labels)
    shutil.rmtree(run.path(STATES), ignore_errors=True)  # nothing is left to go on with
    return finished


def write_reading(run: Run, data: Samples) -> None:
    """Write what was skipped, and which pictures are copies of others.

    Examples
    --------
    >>> write_reading(run, read_images("faces"))  # doctest: +SKIP
    """
    write_skipped(run.path("skipped.csv"), data.skipped)
    write_duplicates(run.path("duplicates.csv"), data.names, data.first_copies)


def first_copies_of(run: Run, names: Sequence[str]) -> NDArray[np.int64]:
    """Read which samples of a run are copies of others.

    Examples
    --------
    >>> first_copies_of(run, finished.names)  # doctest: +SKIP
    """
    return read_first_copies(run.path("duplicates.csv"), names)


def write_results(run: Run, finished: Finished, labels: NDArray | None = None) -> None:
    """Write every file of a finished run; result.json comes last.

    Examples
    --------
    >>> write_results(run, finished)  # doctest: +SKIP
    """
    result = finished.result
    _write_json(run.path("history.json"), [asdict(period) for period in finished.history])
    write_labels(run.path("labels.csv"), finished.names, result.labels, result.confidence)
    _write_array(run.path("labels_sf.npy"), result.labels_sf)
    _write_array(run.path("labels_rc.npy"), result.labels_rc)
    _write_array(run.path("embedding.npy"), result.embedding)
    result.tree.save(run.path("tree.npz"))
    metadata = {"format": FORMAT, "network": json.dumps(describe(finished.embedder))}
    write_whole(run.path("network.safetensors"), save(state_of(finished.embedder), metadata))
    summary: dict[str, Any] = {
        "n_samples": len(result.labels),
        "n_clusters": int(result.labels.max()) + 1,
        "sizes": np.bincount(result.labels).tolist(),
        "chosen": result.chosen,
        "sigma2": result.sigma2,
        "choice": None if result.choice is None else asdict(result.choice),
        "seconds": sum(sum(period.seconds.values()) for period in finished.history),
    }
    if labels is not None:
        found = {"labels": result.labels, "sf": result.labels_sf, "rc": result.labels_rc}
        summary["scores"] = {
            name: {"nmi": nmi(labels, which), "ac": accuracy(labels, which)}
            for name, which in found.items()
        }
    _write_json(run.path("result.json"), summary)


def read_results(run: Run, body: Any = None, device: str = "auto") -> Finished:
    """Read a finished run back; `body` is the user's own network, if it was trained with one.

    Examples
    --------
    >>> read_results(Run(Path("faces"))).result.labels  # doctest: +SKIP
    """
    config = run.config()
    if not run.is_finished:
        raise ValueError(f"{run.folder} is not finished: jule resume {run.folder}")
    try:
        summary = json.loads(run.path("result.json").read_text(encoding="utf-8"))
        history = json.loads(run.path("history.json").read_text(encoding="utf-8"))
        names, labels, confidence = read_labels(run.path("labels.csv"))
        choice = summary["choice"]
        result = Result(
            labels=labels,
            labels_sf=np.load(run.path("labels_sf.npy"), allow_pickle=False),
            labels_rc=np.load(run.path("labels_rc.npy"), allow_pickle=False),
            chosen=summary["chosen"],
            confidence=confidence,
            tree=MergeTree.load(run.path("tree.npz")),
            embedding=np.load(run.path("embedding.npy"), allow_pickle=False),
            sigma2=float(summary["sigma2"]),
            choice=None if choice is None else _choice(choice),
        )
        embedder = _read_network(run.path("network.safetensors"), body)
        if not len(labels) == len(result.embedding) == result.tree.n_samples:
            raise ValueError("its files are of different lengths")
    except (KeyError, TypeError, ValueError, EOFError, SafetensorError) as error:
        raise ValueError(f"{run.folder} cannot be read: {error}") from error
    embedder.to(best_device(device))
    periods = tuple(Period(**period) for period in history)
    return Finished(config, names, result, periods, embedder)


def _choice(values: dict[str, Any]) -> Choice:
    candidates = tuple((int(k), float(gap)) for k, gap in values["candidates"])
    return Choice(int(values["k"]), float(values["sureness"]), candidates)


def _read_network(path: Path, body: Any) -> Embedder:
    with safe_open(path, framework="np") as file:
        about = json.loads((file.metadata() or {})["network"])
        numbers = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    embedder = rebuild(about, body)
    restore(embedder, numbers)
    return embedder


def _write_json(path: Path, value: Any) -> None:
    write_whole(path, (json.dumps(value, indent=2) + "\n").encode())


def _write_array(path: Path, array: NDArray) -> None:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    write_whole(path, content.getvalue())
