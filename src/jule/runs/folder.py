"""A run folder, and the names of its files.

config.json          settings, and a description of the data
state/               the newest states, until the run is finished
history.json         one entry per period
snapshots/           positions of the samples before the first period and after each period
labels.csv           one row per sample: path, cluster, confidence, rank, name, by_hand
labels_auto.csv      the labels as they were found, if they have been edited
skipped.csv          files that could not be read, and why
duplicates.csv       images that are exact copies of others
labels_sf.npy        SF
labels_rc.npy        RC
embedding.npy        the final representation
neighbors.npz        its nearest neighbours
tree.npz             its merge tree, which passes through the labels as they were found
network.safetensors  the network
result.json          the numbers of the run; written last, so a run that has it is complete
report.html, report.json, report_pictures/    the page
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from jule.files import write_json
from jule.images import ImageSpec
from jule.joint.config import Config

FORMAT = "jule-run-2"
CONFIG, RESULT, HISTORY = "config.json", "result.json", "history.json"
LABELS, LABELS_AUTO = "labels.csv", "labels_auto.csv"
SKIPPED, DUPLICATES = "skipped.csv", "duplicates.csv"
LABELS_SF, LABELS_RC = "labels_sf.npy", "labels_rc.npy"
EMBEDDING, NEIGHBORS, TREE = "embedding.npy", "neighbors.npz", "tree.npz"
NETWORK = "network.safetensors"
IMAGES = "images.npz"
STATES, SNAPSHOTS = "state", "snapshots"
PAGE, SUMMARY, PAGE_PICTURES = "report.html", "report.json", "report_pictures"
FILES = (
    CONFIG, RESULT, HISTORY, LABELS, LABELS_AUTO, SKIPPED, DUPLICATES, LABELS_SF, LABELS_RC,
    EMBEDDING, NEIGHBORS, TREE, NETWORK, IMAGES, PAGE, SUMMARY,
)  # fmt: skip
FOLDERS = (STATES, SNAPSHOTS, PAGE_PICTURES)


class RunFolder:
    """A folder that holds a run, finished or not.

    Parameters
    ----------
    folder
        The path of the folder.

    Examples
    --------
    >>> RunFolder("faces").path("labels.csv").as_posix()
    'faces/labels.csv'
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    def path(self, name: str) -> Path:
        """Return the path of one of the run's files."""
        return self.folder / name

    @property
    def is_finished(self) -> bool:
        """Whether the run is finished and all its results exist."""
        return self.path(RESULT).exists()

    @property
    def is_edited(self) -> bool:
        """Whether the labels have been edited since they were found."""
        return self.path(LABELS_AUTO).exists()

    def about(self) -> dict[str, Any]:
        """Read config.json: the settings, the data and its source."""
        path = self.path(CONFIG)
        if not path.exists():
            raise FileNotFoundError(f"{self.folder} is not a run folder: it has no {CONFIG}")
        try:
            about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error
        written = about.get("format") if isinstance(about, dict) else None
        if written == "jule-run-1":
            raise ValueError(
                f"{self.folder} was written by an earlier version of jule ({written}), which this "
                "version cannot read: run jule cluster again"
            )
        if written != FORMAT:
            raise ValueError(f"{path} does not belong to a run: its format is {written!r}")
        return about

    def config(self) -> Config:
        """Read the settings."""
        return Config.from_json(self.about()["config"])

    def sample_shape(self) -> tuple[int, ...]:
        """Return the shape of one sample."""
        return tuple(self.about()["data"]["shape"][1:])

    def image_spec(self) -> ImageSpec | None:
        """Return the size and colour mode of the images; None for vectors and floats."""
        about = self.about()
        if about.get("image_spec") is not None:
            return ImageSpec(**about["image_spec"])
        shape = self.sample_shape()
        if about["data"]["dtype"] != "uint8" or len(shape) < 2 or shape[2:] not in ((), (3,)):
            return None
        return ImageSpec(shape[0], shape[1], 3 if len(shape) == 3 else 1)


def create_run(
    folder: str | os.PathLike[str],
    config: Config,
    data: dict[str, Any],
    *,
    source: str = "",
    spec: ImageSpec | None = None,
    folder_classes: bool = False,
    overwrite: bool = False,
) -> RunFolder:
    """Create the folder of a new run.

    Parameters
    ----------
    folder
        The folder; it must not exist or be empty, unless `overwrite` is set.
    config
        The settings.
    data
        The `fingerprint` of the samples.
    source, spec, folder_classes
        Where and how to read the samples again.
    overwrite
        Whether to replace a run that is already in the folder.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from jule.images import fingerprint
    >>> with TemporaryDirectory() as folder:
    ...     create_run(folder, Config(n_clusters=2), fingerprint(np.eye(3))).config().n_clusters
    2
    """
    run = RunFolder(folder)
    if not overwrite:
        check_new_folder(run.folder)
    elif run.folder.exists() and any(run.folder.iterdir()):
        check_run_folder(run.folder)
        remove_run(run.folder)
    was_there = run.folder.exists()
    run.folder.mkdir(parents=True, exist_ok=True)
    try:
        write_json(
            run.path(CONFIG),
            {
                "format": FORMAT,
                "source": source,
                "image_spec": None if spec is None else spec.to_json(),
                "folder_classes": folder_classes,
                "data": data,
                "config": config.to_json(),
            },
        )
    except OSError:
        if not was_there:
            shutil.rmtree(run.folder, ignore_errors=True)
        raise
    return run


def remove_run(folder: Path) -> None:
    """Remove the files of a run from its folder; anything else in it stays."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    for name in FOLDERS:
        if not (folder / name).is_symlink():
            shutil.rmtree(folder / name, ignore_errors=True)


def check_run_folder(folder: Path) -> None:
    """Raise unless a folder contains a run, so that nothing else is ever deleted."""
    try:
        written = json.loads((folder / CONFIG).read_text(encoding="utf-8"))["format"]
    except (OSError, ValueError, KeyError, TypeError):
        written = ""
    if not str(written).startswith("jule-run-"):
        raise FileExistsError(
            f"{folder} is not empty and is not a run, so it is not replaced: choose another folder"
        )


def check_new_folder(folder: Path) -> None:
    """Raise if a folder is not empty, or is a file.

    Examples
    --------
    >>> check_new_folder(Path("not-there"))
    """
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: choose another folder")
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(
            f"{folder} exists and is not empty: resume it (jule resume), choose another folder, "
            "or replace it (--overwrite)"
        )
