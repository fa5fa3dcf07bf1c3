"""The encoder of a run's pictures: opened by name, and checked to be the same one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from jule.features.registry import AUTO, ONNX, PHOTOS, PIXELS, is_on_disk
from jule.images import ImageSource, ImageSpec
from jule.runs.folder import RunFolder
from jule.runs.manifest import damaged
from jule.runs.names import CONFIG
from jule.runs.trust import is_signed

if TYPE_CHECKING:
    from jule.features import Encoder, Preprocessing

ENCODING = "encoding"  # the stage, for progress
TRIED = 8  # pictures that show whether an encoder works


def as_encoder(features: Any, preprocessing: Preprocessing | None = None) -> Encoder | None:
    """Return the encoder that a user asks for; None for pixels.

    Parameters
    ----------
    features
        ``"pixels"``, a name for `jule.features.open_encoder`, or an `Encoder`.
    preprocessing
        The form in which an ONNX file takes pictures, if it was chosen.

    Examples
    --------
    >>> as_encoder("pixels") is None
    True
    """
    if features is None or (isinstance(features, str) and features == PIXELS):
        return None
    from jule.features import Encoder, open_encoder

    if isinstance(features, str):
        return open_encoder(features, preprocessing)
    if isinstance(features, Encoder):
        return features
    raise ValueError(
        f"features must be a name, such as 'photos', or an Encoder, got {type(features).__name__}; "
        "wrap your own module: jule.features.ModuleEncoder(module, Preprocessing(224, 224))"
    )


def check_preset(preset: str, features: Any) -> None:
    """Raise if the paper's settings, which train on pixels, are asked for with an encoder.

    Examples
    --------
    >>> check_preset("paper", "pixels")
    """
    is_pixels = features is None or (isinstance(features, str) and features in (AUTO, PIXELS))
    if preset == "paper" and not is_pixels:
        raise ValueError("the preset 'paper' trains on pixels, not on the vectors of an encoder")


def encoder_spec(encoder: Encoder, source: ImageSource, aspect: str) -> ImageSpec | None:
    """Return the size at which an encoder takes pictures; None for an array, which it resizes."""
    if source.array() is not None:
        return None
    height, width = encoder.preprocessing.height, encoder.preprocessing.width
    return ImageSpec(height, width, 3, aspect)  # type: ignore[arg-type]


def describe_encoder(encoder: Encoder | None) -> dict[str, Any] | None:
    """Return what a run records of its encoder.

    Examples
    --------
    >>> describe_encoder(None) is None
    True
    """
    if encoder is None:
        return None
    return {
        "encoder": encoder.name,
        "digest": encoder.digest,
        "about": encoder.about,
        "preprocessing": asdict(encoder.preprocessing),
    }


def encoder_of(run: RunFolder, features: Any = None) -> Encoder | None:
    """Return the encoder that a run was made with; None for pixels.

    Parameters
    ----------
    run
        The run.
    features
        The encoder, if it cannot be opened by the name that the run recorded.

    Raises
    ------
    ValueError
        If it is not the same encoder.
    """
    recorded = run.features()
    if recorded is None:
        if as_encoder(features) is not None:
            raise ValueError(f"{run.home} was made from pixels, not with an encoder")
        return None
    name = recorded["encoder"]
    if features is None and not is_on_disk(name) and name != PHOTOS:
        raise ValueError(
            f"{run.home} was made with your own encoder ({name[:60]}): pass an "
            "instance of it (features=)"
        )
    if features is None and is_on_disk(name) and not is_signed(run.about()):
        raise ValueError(
            f"{run.home} was not made by you on this machine, so the encoder that it names is not "
            f"opened: pass it (features=, or --features {name.partition(':')[0]}:...)"
        )
    features = name if features is None else features
    is_onnx = isinstance(features, str) and features.startswith(ONNX)
    encoder = as_encoder(features, _recorded_preprocessing(run) if is_onnx else None)
    if encoder is None or encoder.digest != recorded["digest"]:
        raise ValueError(
            f"{run.home} was made with other weights or another scaling of {recorded['about'][:80]}"
            ": use the encoder that it was made with"
        )
    return encoder


def _recorded_preprocessing(run: RunFolder) -> Preprocessing | None:
    """Return the form in which the encoder of a run takes pictures; None for older runs."""
    recorded = (run.features() or {}).get("preprocessing")
    if recorded is None:
        return None
    from jule.features import Preprocessing

    try:
        return Preprocessing(**recorded)
    except (TypeError, ValueError) as error:
        raise damaged(run.path(CONFIG), error) from error


def try_encoder(encoder: Encoder, pictures: NDArray, cache: Path | None = None) -> None:
    """Raise if an encoder cannot encode the first few pictures, before there is a run.

    Their vectors are stored, so that nothing is computed twice.
    """
    few = pictures[:TRIED]
    vectors = encode(encoder, few, cache=cache)
    if (vectors == vectors[0]).all() and not (few == few[0]).all():
        raise ValueError(f"the encoder {encoder.name} returned the same vector for all pictures")


def encode(
    encoder: Encoder | None,
    samples: NDArray,
    *,
    cache: Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> NDArray:
    """Return what the network sees: the vectors of an encoder, or the samples themselves.

    Parameters
    ----------
    encoder
        The encoder; None for pixels.
    samples
        Pictures, or whatever the network takes.
    cache
        The folder that the user chose for decoded pictures; vectors are stored inside it.
    progress
        Called with the fraction that is done.

    Examples
    --------
    >>> import numpy as np
    >>> encode(None, np.eye(2)).shape
    (2, 2)
    """
    if encoder is None:
        return samples
    from jule.features import encode_images

    folder = None if cache is None else cache / "features"
    return encode_images(encoder, samples, cache=folder, progress=progress)
