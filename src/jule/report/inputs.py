"""Read the images of a run again, for its page and figures."""

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
        Where the images are, if they have been moved since the run.

    Returns
    -------
    images
        The images; None if they cannot be read or differ from those of the run.
    problem
        The reason if there are no images, otherwise an empty string.
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
    """Return the URL of the folder with the images; None if they are not in a folder.

    Examples
    --------
    >>> originals_url("digits.npz", ["0", "1"]) is None
    True
    """
    folder = Path(source)
    if not source or not names or not folder.is_dir() or not (folder / names[0]).is_file():
        return None
    return folder.resolve().as_uri() + "/"
