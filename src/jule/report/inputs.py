"""The images of a run, read again for its page and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from numpy.typing import NDArray

from jule.runs.folder import RunFolder
from jule.runs.reading import read_again


def read_run_images(run: RunFolder, source: str | Path | None = None) -> tuple[NDArray | None, str]:
    """Read the images of a run again.

    Parameters
    ----------
    run
        The run.
    source
        Where the images are, if they were moved since.

    Returns
    -------
    images
        The images, or None if they cannot be read or are not those of the run.
    problem
        Why there are none, otherwise empty.
    """
    about = run.about()
    where = source or about["source"]
    if not where:
        return None, "the run does not say where its images are"
    try:
        data = read_again(run, str(where))
    except (OSError, ValueError) as error:
        return None, str(error)
    if data.fingerprint != about["data"]:
        return None, f"{where} has changed since the run"
    return data.samples, ""


def originals_url(source: str | Path, names: Sequence[str]) -> str | None:
    """Return the URL of the folder that the images lie in; None if they lie in no folder.

    Examples
    --------
    >>> originals_url("digits.npz", ["0", "1"]) is None
    True
    """
    folder = Path(source)
    if not source or not names or not folder.is_dir() or not (folder / names[0]).is_file():
        return None
    return folder.resolve().as_uri() + "/"
