"""Encoders in ONNX files, such as CLIP or DINOv2."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.features.base import Encoder, Preprocessing
from jule.files import MOST_JSON, parse_json, read_regular

CONFIGS = ("preprocessor_config.json", "config.json")  # beside the file, as model hubs have them


class OnnxEncoder(Encoder):
    """An image encoder in an ONNX file, run by onnxruntime.

    Parameters
    ----------
    path
        The file. Its first input takes float32 pictures (n, 3, height, width); its first output
        with two axes, or else its first output, is used.
    preprocessing
        The form in which it takes pictures. None reads it from a file beside the model:
        ``preprocessor_config.json`` or ``config.json``, as timm and transformers write them.

    Raises
    ------
    ImportError
        If onnxruntime is not installed.
    ValueError
        If the file cannot be used, or if nothing says how pictures are scaled.
    """

    def __init__(self, path: str | Path, preprocessing: Preprocessing | None = None) -> None:
        path = Path(path)
        try:
            import onnxruntime
        except ImportError as error:
            raise ImportError(
                f"the encoder {path} needs onnxruntime: pip install onnxruntime"
            ) from error
        content = read_regular(path)
        try:
            self._session = onnxruntime.InferenceSession(
                content, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime raises its own kinds
            reason = " ".join(str(error).split())[:200]
            raise ValueError(f"{path} is not an ONNX file that can be used: {reason}") from error
        self.name = f"onnx:{path}"
        self.about = f"the encoder {path.name}"
        self.weights_digest = hashlib.sha256(content).hexdigest()
        first = self._session.get_inputs()[0]
        self._input = first.name
        self.preprocessing = preprocessing or read_preprocessing(path.parent, str(path))
        _check_input(first, self.preprocessing, path)
        self._is_fixed = isinstance(first.shape[0], int)
        self._output = _choose_output(self._session.get_outputs())

    def encode(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return one vector per picture, (n, d)."""
        x = self.preprocessing.apply(images).contiguous().numpy()
        parts = [x[row : row + 1] for row in range(len(x))] if self._is_fixed else [x]
        found = [self._session.run([self._output], {self._input: part})[0] for part in parts]
        vectors = np.concatenate(found).astype(np.float32)
        if vectors.ndim == 3:  # tokens of a transformer: the first stands for the whole picture
            vectors = vectors[:, 0]
        return vectors.reshape(len(vectors), -1)


def _check_input(first: Any, preprocessing: Preprocessing, path: Path) -> None:
    wanted = (3, preprocessing.height, preprocessing.width)
    shape = first.shape
    fits = len(shape) == 4 and all(
        not isinstance(given, int) or given == want
        for given, want in zip(shape[1:], wanted, strict=True)
    )
    if isinstance(shape[0], int) and shape[0] != 1:
        fits = False
    if not fits or first.type != "tensor(float)":
        raise ValueError(
            f"{path} takes {first.type} of shape {shape}, but pictures are float32 of shape "
            f"(n, {wanted[0]}, {wanted[1]}, {wanted[2]}): is it an image encoder, and is the size "
            "right?"
        )


def _choose_output(outputs: list[Any]) -> str:
    two = [output for output in outputs if len(output.shape or ()) == 2]
    return str((two or outputs)[0].name)


def read_preprocessing(folder: Path, what: str) -> Preprocessing:
    """Read size, mean and standard deviation from a configuration file of timm or transformers.

    Parameters
    ----------
    folder
        Where the file is.
    what
        The encoder, for error messages.
    """
    for name in CONFIGS:
        path = folder / name
        if not path.exists():
            continue
        try:
            return _parse(parse_json(read_regular(path, MOST_JSON)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{path} does not say how pictures are scaled: {error}") from error
    raise ValueError(
        f"{what} does not say how pictures are scaled: put the {' or '.join(CONFIGS)} of the model "
        "beside it, or pass a Preprocessing in Python"
    )


def _parse(config: dict[str, Any]) -> Preprocessing:
    if "image_mean" in config:  # transformers
        size = config.get("crop_size") or config["size"]
        if isinstance(size, int):
            size = {"height": size, "width": size}
        if "shortest_edge" in size:
            size = {"height": size["shortest_edge"], "width": size["shortest_edge"]}
        mean, std = config["image_mean"], config["image_std"]
        return Preprocessing(size["height"], size["width"], tuple(mean), tuple(std))
    config = config.get("pretrained_cfg", config)  # timm
    _, height, width = config["input_size"]
    return Preprocessing(height, width, tuple(config["mean"]), tuple(config["std"]))
