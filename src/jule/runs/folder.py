"""A run folder: what a run is made from, and the creation of new runs."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from jule.files import (
    MOST_JSON,
    checked_json,
    is_leftover,
    make_folder,
    parse_checked_json,
    parse_json,
    read_regular,
    remove_tree,
    write_atomic,
)
from jule.images import ImageSpec
from jule.joint.config import Config
from jule.locks import hold
from jule.runs.manifest import (
    DamagedError,
    Manifest,
    damaged,
    describe,
    own_files,
    read_listed,
    read_manifest,
)
from jule.runs.names import CONFIG, EDITS, MANIFEST, NEXT, RESULT, UPDATE
from jule.runs.trust import sign, warn_of_no_signature
from jule.runs.update import is_empty, recover, remove_leftovers, update_files

FORMAT = "jule-run-3"
EARLIER = ("jule-run-1", "jule-run-2")


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

    @property
    def home(self) -> Path:
        """The folder that the user named; a run that will replace another is built inside it."""
        return self.folder.parent if self.folder.name == NEXT else self.folder

    def path(self, name: str) -> Path:
        """Return the path of one of the run's files."""
        return self.folder / name

    @property
    def is_finished(self) -> bool:
        """Whether the run is finished and its results were written."""
        recover(self.home)
        manifest = self._read_manifest()
        return manifest is not None and RESULT in manifest

    def _read_manifest(self) -> Manifest | None:
        manifest = read_manifest(self.folder)
        if manifest is None and self.path(RESULT).exists():
            # A kill cannot leave this: the manifest was lost. Training again could lose edits.
            raise DamagedError(
                f"{self.path(MANIFEST)} is missing: copy the run again, or run jule cluster "
                "--overwrite"
            )
        return manifest

    @property
    def is_edited(self) -> bool:
        """Whether the labels have been edited since they were found."""
        return EDITS in (read_manifest(self.folder) or {})

    def manifest(self) -> Manifest:
        """Read the manifest; raise if the run is not finished."""
        self.about()
        manifest = self._read_manifest()
        if manifest is None or RESULT not in manifest:
            raise ValueError(f"{self.home} is not finished: run jule resume {self.home}")
        return manifest

    def read(self, name: str) -> bytes:
        """Return the content of a file of a finished run, after checking that it is whole."""
        return read_listed(self.folder, name, self.manifest())

    def update(self, files: dict[str, bytes], *, remove: tuple[str, ...] = ()) -> None:
        """Write and remove files of the run, all at once, together with its manifest."""
        update_files(self.folder, files, remove=remove)

    def about(self) -> dict[str, Any]:
        """Read config.json: the settings, the data and its source."""
        path = self.path(CONFIG)
        recover(self.home)
        try:
            content = read_regular(path, MOST_JSON)
            value = parse_json(content)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(self._why_no_config()) from None
        except PermissionError:
            raise
        except (ValueError, OSError) as error:
            raise damaged(path, error) from error
        written = value.get("format") if isinstance(value, dict) else None
        if written in EARLIER:
            raise ValueError(
                f"{self.folder} was written by an earlier version of jule ({written}), which this "
                "version cannot read: run jule cluster again"
            )
        if written != FORMAT:
            raise ValueError(f"{path} does not belong to a run: its format is {written!r}")
        try:
            about = parse_checked_json(content)
            _check_about(about)
        except ValueError as error:
            raise damaged(path, error) from error
        manifest = read_manifest(self.folder) or {}
        if CONFIG in manifest and describe(content) != manifest[CONFIG]:
            raise damaged(path, "it has changed since it was written")
        return about

    def _why_no_config(self) -> str:
        if not self.folder.exists():
            return f"{self.folder} does not exist"
        if not self.folder.is_dir():
            return f"{self.folder} is a file, not a run folder"
        if is_empty(self.folder):
            return f"{self.folder} has no run in it yet: run jule cluster again"
        if self.path(MANIFEST).exists():
            return f"{self.path(CONFIG)} is missing: copy the run again, or run jule cluster again"
        return f"{self.folder} is not a run folder: it has no {CONFIG}"

    def config(self) -> Config:
        """Read the settings."""
        values = self.about()["config"]
        try:
            return Config.from_json(values)
        except ValueError as error:
            raise damaged(self.path(CONFIG), error) from error

    def sample_shape(self) -> tuple[int, ...]:
        """Return the shape of one sample."""
        return tuple(self.about()["data"]["shape"][1:])

    def features(self) -> dict[str, Any] | None:
        """Return what is recorded of the encoder of the pictures; None for pixels."""
        described: dict[str, Any] | None = self.about().get("features")
        return described

    def image_spec(self) -> ImageSpec | None:
        """Return the size and colour mode of the images; None for vectors and floats."""
        about = self.about()
        if about["image_spec"] is not None:
            return ImageSpec(**about["image_spec"])
        shape = self.sample_shape()
        if about["data"]["dtype"] != "uint8" or len(shape) < 2 or shape[2:] not in ((), (3,)):
            return None
        return ImageSpec(shape[0], shape[1], 3 if len(shape) == 3 else 1)


def _check_about(about: dict[str, Any]) -> None:
    """Raise ValueError unless a config.json has all entries, with the right types."""
    kinds = {"source": str, "folder_classes": bool, "data": dict, "config": dict, "signature": str}
    for name, kind in kinds.items():
        if not isinstance(about.get(name), kind):
            raise ValueError(f"its entry {name!r} is missing or has the wrong type")
    shape = about["data"].get("shape")
    if not isinstance(shape, list) or len(shape) < 2 or not all(_is_size(one) for one in shape):
        raise ValueError("the shape of its data is missing or wrong")
    if not isinstance(about["data"].get("dtype"), str):
        raise ValueError("the type of its data is missing or wrong")
    features = about.get("features")
    if features is not None and not (
        isinstance(features, dict)
        and all(isinstance(features.get(name), str) for name in ("encoder", "digest", "about"))
    ):
        raise ValueError("its entry 'features' is wrong")
    more = about.get("more", [])
    if not isinstance(more, list) or not all(_is_addition(one) for one in more):
        raise ValueError("its entry 'more' is wrong")
    if "image_spec" not in about:
        raise ValueError("its entry 'image_spec' is missing")
    spec = about["image_spec"]
    if spec is not None:
        try:
            if not all(_is_size(spec[name]) for name in ("height", "width", "channels")):
                raise ValueError("a size is not a positive integer")
            ImageSpec(**spec)
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"its image_spec is wrong ({error})") from None


def _is_addition(value: object) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {"source", "count", "offset"}
        and isinstance(value["source"], str)
        and all(_is_size(value[name]) for name in ("count", "offset"))
    )


def _is_size(value: object) -> bool:
    return type(value) is int and value > 0


def create_run(
    folder: str | os.PathLike[str],
    config: Config,
    data: dict[str, Any],
    *,
    source: str = "",
    spec: ImageSpec | None = None,
    folder_classes: bool = False,
    features: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> RunFolder:
    """Create a new run.

    A run that replaces another one is built in a hidden folder inside the old one. It takes its
    place when it is finished; until then the old run is unchanged.

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
    features
        The encoder of the pictures, as `jule.runs.encoding.describe_encoder` returns it; None for
        pixels.
    overwrite
        Whether to replace a run that is already in the folder. Only the files of that run are
        removed; anything else in the folder stays.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from jule.images import fingerprint
    >>> with TemporaryDirectory() as folder:
    ...     create_run(folder, Config(n_clusters=2), fingerprint(np.eye(3))).config().n_clusters
    2
    """
    home = Path(folder)
    if not overwrite:
        check_new_folder(home)
    was_there = home.exists()
    if was_there and not home.is_dir():
        raise FileExistsError(f"{home} is a file: choose another folder")
    try:
        if not was_there:
            make_folder(home)
        with hold(home):
            remove_leftovers(home)
            target = home
            if not is_empty(home):
                if not overwrite:
                    check_new_folder(home)
                check_run_folder(home)
                target = home / NEXT
                remove_tree(target)
                make_folder(target)
            run = RunFolder(target)
            about = {
                "format": FORMAT,
                "source": source,
                "image_spec": None if spec is None else spec.to_json(),
                "folder_classes": folder_classes,
                "features": features,
                "data": data,
                "config": config.to_json(),
                "signature": sign(source, data, features),
            }
            write_atomic(run.path(CONFIG), checked_json(about))
            if not about["signature"]:
                warn_of_no_signature()  # after the last step that can fail: an error says enough
            return run
    except BaseException:
        if not was_there:
            with suppress(OSError):
                home.rmdir()
        raise


def unfinished_run(folder: str | os.PathLike[str]) -> RunFolder | None:
    """Return the run in a folder that can be resumed; None if there is none.

    If a new run is being built to replace a finished one, the new run is returned.

    Examples
    --------
    >>> unfinished_run("nowhere") is None
    True
    """
    home = Path(folder)
    recover(home)
    following = home / NEXT
    if not following.is_symlink() and (following / CONFIG).exists():
        return RunFolder(following)
    if (home / CONFIG).exists() and not RunFolder(home).is_finished:
        return RunFolder(home)
    return None


def check_run_folder(folder: Path) -> None:
    """Raise unless a folder contains a run, so that nothing else is ever replaced."""
    with suppress(DamagedError):
        if read_manifest(folder) is not None:
            return
    try:
        written = parse_json(read_regular(folder / CONFIG, MOST_JSON))["format"]
    except (OSError, ValueError, KeyError, TypeError):
        written = ""
    if str(written).startswith("jule-run-") or _has_only_own_files(folder):
        return
    raise FileExistsError(
        f"{folder} is not empty and is not a run, so it is not replaced: choose another folder"
    )


def _has_only_own_files(folder: Path) -> bool:
    """Return whether a run without a readable config.json has nothing else in its folder."""
    found = {path.split("/")[0] for path in own_files(folder)}
    there = {name for name in os.listdir(folder) if not is_leftover(name)}
    return MANIFEST in found and there <= found | {UPDATE, NEXT}


def check_new_folder(folder: Path) -> None:
    """Raise if a folder is not empty, or is a file; leftovers of killed processes do not count.

    Examples
    --------
    >>> check_new_folder(Path("not-there"))
    """
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: choose another folder")
    if not is_empty(folder):
        raise FileExistsError(
            f"{folder} exists and is not empty: resume it (jule resume), choose another folder, "
            "or replace it (--overwrite)"
        )
