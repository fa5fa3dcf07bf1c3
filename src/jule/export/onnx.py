"""A trained network as an ONNX file, for programs that have neither jule nor torch.

Everything from raw pixels to unit vectors is in the file. ONNX has no averaging to a size that
does not divide the image's, so that step becomes a matrix product from either side.
"""

from __future__ import annotations

import copy
import importlib.util
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from jule.backward import Embedder
from jule.joint.state import write_whole

if TYPE_CHECKING:
    from onnx import ModelProto

INPUT, OUTPUT = "images", "embedding"
NEEDED = ("onnx", "onnxscript")
LOUD = ("torch", "onnxscript", "onnx_ir")  # loggers


def write_onnx(embedder: Embedder, path: Path, image_shape: tuple[int, ...]) -> None:
    """Write a network, with all scaling around it, to an ONNX file, whole or not at all.

    The input ``images`` is float32: raw pixels (n, c, h, w) as they were when the network was
    trained, or vectors (n, d), any number of them at once. The output is ``embedding``, unit
    vectors. The model's metadata tell height, width, channels and the version of jule.

    Parameters
    ----------
    embedder
        Left as it is.
    path
        Replaced where it is there.
    image_shape
        Of one sample: (h, w), (h, w, c) or (d,).

    Raises
    ------
    ImportError
        When onnx or onnxscript are not installed.
    ValueError
        When a network of the user's has a layer that ONNX cannot express.

    Examples
    --------
    >>> write_onnx(embedder, Path("net.onnx"), (28, 28))  # doctest: +SKIP
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f'ONNX files need {" and ".join(missing)}: pip install "jule[onnx]"')
    shape = _input_shape(image_shape)
    if shape[0] != len(embedder.mean):
        raise ValueError(
            f"the network was made for {len(embedder.mean)} channels or features, "
            f"images of shape {image_shape} have {shape[0]}"
        )
    model = _model(_Exported(embedder, shape), shape)
    _forget_origins(model)
    _describe(model, shape)
    write_whole(path, model.SerializeToString(deterministic=True))


def averaging_matrix(old: int, new: int) -> Tensor:
    """Give the (new, old) matrix that averages `old` values in a row down to `new`.

    Value i is the mean of all old values that its i-th part of the row touches: what torch calls
    area interpolation.

    Examples
    --------
    >>> averaging_matrix(3, 2).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    """
    matrix = torch.zeros(new, old)
    for i in range(new):
        start, end = i * old // new, -(-(i + 1) * old // new)
        matrix[i, start:end] = 1 / (end - start)
    return matrix


class _Exported(nn.Module):
    """An embedder in terms of what ONNX knows."""

    rows: Tensor
    columns: Tensor

    def __init__(self, embedder: Embedder, shape: tuple[int, ...]) -> None:
        super().__init__()
        # The copy is left with what ONNX can express; size and level are done here.
        self.embedder = copy.deepcopy(embedder).cpu()
        self.level = embedder.level and len(shape) == 3
        self.smaller = len(shape) == 3 and embedder.size not in (None, shape[1:])
        self.embedder.level, self.embedder.size = False, None
        if self.smaller:
            assert embedder.size is not None
            self.register_buffer("rows", averaging_matrix(shape[1], embedder.size[0]))
            self.register_buffer("columns", averaging_matrix(shape[2], embedder.size[1]).T)
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        x = images
        if self.smaller:
            x = self.rows @ x @ self.columns  # (n, c, h', w')
        if self.level:  # of the whole image; averaging first changes nothing and is less to divide
            level = images.square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
            x = x / torch.where(level > 0, level, 1.0)
        embedded: Tensor = self.embedder(x)
        return embedded


def _input_shape(image_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Give the shape of one sample with channels first."""
    if len(image_shape) == 2:
        return (1, *image_shape)
    if len(image_shape) == 3:
        return (image_shape[2], *image_shape[:2])
    if len(image_shape) == 1:
        return tuple(image_shape)
    raise ValueError(f"one sample is (h, w), (h, w, c) or (d,), not {image_shape}")


def _model(network: nn.Module, shape: tuple[int, ...]) -> ModelProto:
    # Two examples: with one, the exporter would take the number for a part of the network.
    examples = torch.zeros(2, *shape)
    with _quiet():
        try:
            program = torch.onnx.export(
                network,
                (examples,),
                input_names=[INPUT],
                output_names=[OUTPUT],
                dynamic_shapes={INPUT: {0: torch.export.Dim("n")}},
                dynamo=True,
                verbose=False,
            )
        except (RuntimeError, torch.onnx.errors.OnnxExporterError) as error:
            reason = str(error).strip().splitlines()[0]
            raise ValueError(f"this network cannot be written as ONNX: {reason}") from error
        assert program is not None
        return program.model_proto


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the exporter says of itself from the user, who can do nothing about it."""
    loggers = [logging.getLogger(name) for name in LOUD]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _forget_origins(model: ModelProto) -> None:
    """Drop the exporter's notes, which hold paths of this machine."""
    graph = model.graph
    noted: list[Any] = [model, graph, *graph.node, *graph.input, *graph.output]
    noted += [*graph.value_info, *graph.initializer, *model.functions]
    for part in noted:
        del part.metadata_props[:]
        part.doc_string = ""


def _describe(model: ModelProto, shape: tuple[int, ...]) -> None:
    from jule import __version__

    about = {"jule": __version__}
    names = ("channels", "height", "width") if len(shape) == 3 else ("features",)
    about |= {name: str(value) for name, value in zip(names, shape, strict=True)}
    for key, value in about.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
