"""Write a trained network as an ONNX file, for programs without jule and torch.

The file contains everything from raw pixels to unit vectors. ONNX cannot average an image down to a
size that does not divide its own, so resizing becomes matrix products from the left and the right.
"""

from __future__ import annotations

import copy
import importlib.util
import logging
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jule.backward import Embedder
from jule.features import Encoder, ModuleEncoder
from jule.files import write_atomic

if TYPE_CHECKING:
    from onnx import ModelProto

INPUT, OUTPUT = "images", "embedding"
NEEDED = ("onnx", "onnxscript")
MOST_BYTES = 2_000_000_000  # of weights; a larger model would need files beside it
LOUD = ("torch", "onnxscript", "onnx_ir")  # loggers


def write_onnx(
    embedder: Embedder,
    path: Path,
    image_shape: tuple[int, ...],
    encoder: Encoder | None = None,
) -> None:
    """Write a network, with its input scaling, to an ONNX file, atomically.

    The input ``images`` is float32: any number of raw images (n, c, h, w) or vectors (n, d) like
    those that the network was trained on. The output ``embedding`` contains unit vectors. The
    metadata of the model contain height, width, channels and the version of jule.

    Parameters
    ----------
    embedder
        The network; not modified.
    path
        The file to write; replaced if it exists.
    image_shape
        Shape of one sample: (h, w), (h, w, c) or (d,).
    encoder
        The encoder whose vectors the network takes; it becomes part of the file.

    Raises
    ------
    ImportError
        If onnx or onnxscript are not installed.
    ValueError
        If the user's own network is too large, or has a layer that ONNX cannot express, or if the
        encoder cannot become part of the file.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f'ONNX files need {" and ".join(missing)}: pip install "jule[onnx]"')
    shape = input_shape(image_shape)
    parts: list[nn.Module] = [embedder]
    pretrained = None if encoder is None else _checked_encoder(encoder, shape)
    if pretrained is not None:
        parts.append(pretrained.module)
    elif shape[0] != len(embedder.mean):
        raise ValueError(
            f"the network takes {len(embedder.mean)} channels or features, but samples of shape "
            f"{image_shape} have {shape[0]}"
        )
    weights = sum(
        value.numel() * value.element_size()
        for part in parts
        for value in part.state_dict().values()
    )
    if weights > MOST_BYTES:
        raise ValueError(
            f"the network has {weights / 1e9:.1f} GB of weights, but an ONNX file holds at most "
            f"{MOST_BYTES / 1e9:.1f} GB"
        )
    network = _Exported(embedder, shape) if pretrained is None else _Encoded(pretrained, embedder)
    model = _model(network, shape)
    _remove_notes(model)
    _describe(model, shape)
    write_atomic(path, model.SerializeToString(deterministic=True), private=False)


def resizing_matrix(old: int, new: int, smaller: bool) -> Tensor:
    """Return the (new, old) matrix that resizes a row of `old` values as `resize` does.

    Examples
    --------
    >>> resizing_matrix(3, 2, smaller=True).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    """
    each = torch.eye(old)[:, None]  # a row per old value: its effect on the new ones
    if smaller:
        return F.interpolate(each, new, mode="area")[:, 0].T
    return F.interpolate(each, new, mode="linear", align_corners=False)[:, 0].T


class _Exported(nn.Module):
    """An embedder made of operations that ONNX knows."""

    rows: Tensor
    columns: Tensor

    def __init__(self, embedder: Embedder, shape: tuple[int, ...]) -> None:
        super().__init__()
        # Resizing and normalisation are done here, in operations that ONNX knows.
        self.embedder = copy.deepcopy(embedder).cpu()
        self.normalize = embedder.normalize and len(shape) == 3
        self.resized = len(shape) == 3 and embedder.size not in (None, shape[1:])
        self.embedder.normalize, self.embedder.size = False, None
        if self.resized:
            assert embedder.size is not None
            old, new = shape[1:], embedder.size
            smaller = math.prod(new) < math.prod(old)
            self.register_buffer("rows", resizing_matrix(old[0], new[0], smaller))
            self.register_buffer("columns", resizing_matrix(old[1], new[1], smaller).T)
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        x = images
        if self.resized:
            x = self.rows @ x @ self.columns  # (n, c, h', w')
        if self.normalize:  # by the RMS of the original; after resizing there is less to divide
            rms = images.square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
            x = x / torch.where(rms > 0, rms, 1.0)
        embedded: Tensor = self.embedder(x)
        return embedded


class _Encoded(nn.Module):
    """An encoder, the normalisation of its vectors (see `power_normalize`), and the head."""

    mean: Tensor
    std: Tensor

    def __init__(self, encoder: ModuleEncoder, embedder: Embedder) -> None:
        super().__init__()
        self.encoder = copy.deepcopy(encoder.module)
        self.embedder = copy.deepcopy(embedder).cpu()
        scaling = encoder.preprocessing
        self.register_buffer("mean", 255.0 * torch.tensor(scaling.mean)[:, None, None])
        self.register_buffer("std", 255.0 * torch.tensor(scaling.std)[:, None, None])
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        vectors = self.encoder((images - self.mean) / self.std).flatten(1)
        roots = vectors.sign() * vectors.abs().sqrt()
        rms = roots.square().mean(dim=1, keepdim=True).sqrt()
        embedded: Tensor = self.embedder(roots / torch.where(rms > 0, rms, 1.0))
        return embedded


def _checked_encoder(encoder: Encoder, shape: tuple[int, ...]) -> ModuleEncoder:
    if not isinstance(encoder, ModuleEncoder):
        raise ValueError(
            f"{encoder.about} is an ONNX file itself: only encoders that are torch modules can "
            "become part of the network's file"
        )
    wanted = (3, encoder.preprocessing.height, encoder.preprocessing.width)
    if shape != wanted:
        raise ValueError(
            f"the encoder takes colour pictures of {wanted[2]} x {wanted[1]} pixels, but those of "
            f"this run have the shape {shape}: an ONNX file cannot resize them as the encoder does"
        )
    return encoder


def input_shape(image_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of one sample with channels first."""
    if len(image_shape) == 2:
        return (1, *image_shape)
    if len(image_shape) == 3:
        return (image_shape[2], *image_shape[:2])
    if len(image_shape) == 1:
        return tuple(image_shape)
    raise ValueError(f"a sample has shape (h, w), (h, w, c) or (d,), not {image_shape}")


def _model(network: nn.Module, shape: tuple[int, ...]) -> ModelProto:
    # Two examples, because the exporter would treat a batch size of one as a constant.
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
    """Silence the exporter, whose messages a user can do nothing about."""
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


def _remove_notes(model: ModelProto) -> None:
    """Remove the notes of the exporter, which contain paths on this machine."""
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
