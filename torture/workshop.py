"""Make the small runs that campaigns damage: finished, edited, saved by `JULE`, and unfinished."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torture.children import Done, jule_command, run_cases

N_PICTURES = 16
STEPS = 2  # training batches per period: what is learned does not matter
KINDS = ("photos", "edited", "saved", "unfinished")
SEEDS = {"": 0, "other ": 1}
DEAD = 9  # exit code


def make_runs(where: Path) -> dict[str, Path]:
    """Make one run of every kind, and another of each for files to be exchanged with.

    Parameters
    ----------
    where
        A folder, which gets `photos/`, `new/` and the runs.

    Returns
    -------
    runs
        The run folders by kind; that of another run is called ``"other "`` and the kind.
    """
    from jule.joint import Config

    Config.steps_per_period = lambda *_: STEPS  # type: ignore[method-assign]
    pictures = digits()
    write_pictures(where / "photos", pictures[:N_PICTURES])
    write_pictures(where / "new", pictures[N_PICTURES : N_PICTURES + 6])
    shutil.copy(where / "photos" / "003.png", where / "photos" / "copy.png")
    (where / "photos" / "bad.png").write_bytes(b"not a picture")
    names = [f"{prefix}{kind}" for prefix in SEEDS for kind in KINDS]
    runs = {name: where / "runs" / name for name in names}
    (where / "runs").mkdir()
    for kinds in (("photos", "saved", "unfinished"), ("edited",)):  # edited from the photos
        tasks = [(kind, prefix) for kind in kinds for prefix in SEEDS]

        def make(number: int, tasks: list[tuple[str, str]] = tasks) -> None:
            _make(*tasks[number], where, runs)

        for _, _, problem in run_cases(make, range(len(tasks)), longest=300.0):
            if problem:
                raise RuntimeError(problem)
    return runs


def digits() -> NDArray[np.uint8]:
    """Return pictures of the digits 0, 1 and 2."""
    from jule.images import load_dataset

    data = load_dataset("digits")
    chosen: NDArray[np.uint8] = data.images[data.labels < 3]
    return chosen


def write_pictures(folder: Path, pictures: NDArray[np.uint8]) -> None:
    """Write pictures as numbered PNG files."""
    from PIL import Image

    folder.mkdir(parents=True)
    for number, picture in enumerate(pictures):
        Image.fromarray(picture).save(folder / f"{number:03}.png")


def _make(kind: str, prefix: str, where: Path, runs: dict[str, Path]) -> None:
    os.chdir(where)
    folder, seed = runs[prefix + kind], SEEDS[prefix]
    if kind == "saved":
        import jule

        vectors = digits()[seed : seed + N_PICTURES]
        jule.JULE(n_clusters=3, random_state=seed).fit(vectors).save(folder)
    elif kind == "edited":
        shutil.copytree(runs[f"{prefix}photos"], folder)
        edits = where / f"{prefix}edits.json"
        edits.write_text(json.dumps(some_edits(folder)))
        _check(jule_command("apply", folder, edits))
    else:
        _in_child_of_its_own(kind, folder, seed)


def _in_child_of_its_own(kind: str, folder: Path, seed: int) -> None:
    child = os.fork()
    if child == 0:
        if kind == "unfinished":
            _die_after_state(2)
        command = ["cluster", "photos", "-k", 3, "--rounds", 1, "--seed", seed, "--out", folder]
        os._exit(jule_command(*command).code or 0)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != (DEAD if kind == "unfinished" else 0):
        raise RuntimeError(f"the {kind} run could not be made")


def _check(done: Done) -> None:
    if done.code != 0:
        raise RuntimeError(done.err)


def _die_after_state(number: int) -> None:
    """End this process after the state of a period has been written."""
    seen = False

    def watch(event: str, args: tuple[Any, ...]) -> None:
        nonlocal seen
        if seen:
            os._exit(DEAD)
        if event == "os.rename" and f"state-{number:04d}" in os.fsdecode(args[1]):
            seen = True

    sys.addaudithook(watch)


def some_edits(folder: Path) -> dict[str, Any]:
    """Return edits for a run, as its page would write them: one name and one move."""
    from jule.runs.folder import RunFolder
    from jule.runs.page_edits import labels_id
    from jule.runs.results import read_results

    results = read_results(RunFolder(folder))
    labels = results.result.labels
    return {
        "format": "jule-page-edits-3",
        "run": results.id,
        "labels": labels_id(labels),
        "k": results.result.n_clusters,
        "names": {"0": "zeros"},
        "moves": [{"image": 5, "path": results.names[5], "cluster": (int(labels[5]) + 1) % 3}],
    }
