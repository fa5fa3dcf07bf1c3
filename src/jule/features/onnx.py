"""Encoders in ONNX files, such as CLIP or DINOv2."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.features.base import Encoder, Preprocessing
from jule.files import MOST_JSON, parse_json, read_regular

EXTERNAL = b"\x0a\x08location\x12"  # in the file, before the name of another one with weights
CONFIGS = ("preprocessor_config.json", "config.json")  # beside the file, as model hubs have them


class OnnxEncoder(Encoder):
    """An image encoder in an ONNX file, run by onnxruntime.

    Parameters
    ----------
    path
        The file. Its only input takes float32 pictures (n, 3, height, width); its first output
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
        content = read_regular(path.resolve())  # model hubs keep their files behind links
        if EXTERNAL in content:
            raise ValueError(
                f"{path} keeps its weights in other files: save it as one file, because only that "
                "is checked"
            )
        self.name = f"onnx:{path.absolute()}"
        self.about = f"the encoder {path.name}"
        self.weights_digest = hashlib.sha256(content).hexdigest()
        self._path = path.absolute()
        self._session = _open_session(content, path)
        self.preprocessing = preprocessing or read_preprocessing(path.parent, str(path))
        inputs = self._session.get_inputs()
        _check_inputs(inputs, self.preprocessing, path)
        self._input = inputs[0].name
        self._is_fixed = isinstance(inputs[0].shape[0], int)
        self._output = _choose_output(self._session.get_outputs())

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the session, which cannot be copied."""
        return {name: value for name, value in vars(self).items() if name != "_session"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open the file again; raise a ValueError if it has changed."""
        vars(self).update(state)
        content = read_regular(self._path.resolve())
        if hashlib.sha256(content).hexdigest() != self.weights_digest:
            raise ValueError(f"{self._path} has changed")
        self._session = _open_session(content, self._path)

    def encode(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return one vector per picture, (n, d)."""
        x = self.preprocessing.apply(images).contiguous().numpy()
        parts = [x[row : row + 1] for row in range(len(x))] if self._is_fixed else [x]
        try:
            found = [self._session.run([self._output], {self._input: part})[0] for part in parts]
        except Exception as error:  # onnxruntime raises its own kinds
            raise ValueError(f"{self._path} cannot be run: {_shortened(error)}") from error
        vectors = np.concatenate([np.atleast_1d(part) for part in found]).astype(np.float32)
        if vectors.ndim == 3:  # tokens of a transformer: the first stands for the whole picture
            vectors = vectors[:, 0]
        return vectors.reshape(len(vectors), -1)


def _open_session(content: bytes, path: Path) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            f"the encoder {path} needs onnxruntime: pip install onnxruntime"
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors alone; warnings would be written to the terminal
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises its own kinds
        raise ValueError(
            f"{path} is not an ONNX file that can be used: {_shortened(error)}"
        ) from error


def _shortened(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _check_inputs(inputs: list[Any], preprocessing: Preprocessing, path: Path) -> None:
    if len(inputs) != 1:
        names = ", ".join(one.name for one in inputs) or "none"
        raise ValueError(f"{path} must have one input, the pictures, but it has {names}")
    (first,) = inputs
    wanted = (3, preprocessing.height, preprocessing.width)
    shape = list(first.shape or ())
    fits = (
        first.type == "tensor(float)"
        and len(shape) == 4
        and (not isinstance(shape[0], int) or shape[0] == 1)
        and all(
            not isinstance(given, int) or given == want
            for given, want in zip(shape[1:], wanted, strict=True)
        )
    )
    if not fits:
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
            return _parse(parse_json(read_regular(path.resolve(), MOST_JSON)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{path} does not say how pictures are scaled: {error}") from error
    raise ValueError(
        f"{what} does not say how pictures are scaled: put the {' or '.join(CONFIGS)} of the model "
        "beside it, or use --encoder-size, --encoder-mean and --encoder-std, or a Preprocessing "
        "in Python"
    )


def _parse(config: dict[str, Any]) -> Preprocessing:
    if "image_mean" in config:  # transformers
        size = config.get("crop_size") or config["size"]
        if isinstance(size, int):
            size = {"height": size, "width": size}
        if "shortest_edge" in size:
            size = {"height": size["shortest_edge"], "width": size["shortest_edge"]}
        mean, std = config["image_mean"], config["image_std"]
        return Preprocessing(size["height"], size["width"], mean, std)
    config = config.get("pretrained_cfg", config)  # timm
    _, height, width = config["input_size"]
    return Preprocessing(height, width, config["mean"], config["std"])
