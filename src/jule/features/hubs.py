"""Encoders of the packages timm and open_clip, from weights that are already on this machine.

Both packages download weights that they do not find. That is turned off here, and the error says
how to download them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from jule.features.base import Preprocessing
from jule.features.modules import ModuleEncoder
from jule.features.registry import OPEN_CLIP, TIMM

MOST_TAGS = 5  # in a message; open_clip has dozens for some models
# Environment variables: of huggingface_hub, of transformers, and of torch, whose files of weights
# would otherwise be allowed to run code.
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "TORCH_FORCE_WEIGHTS_ONLY_LOAD")


def timm_encoder(model: str) -> ModuleEncoder:
    """Return an encoder of the package timm, without its classifier.

    Parameters
    ----------
    model
        The name of a model whose weights are in the cache of the Hugging Face hub, such as
        ``"vit_small_patch14_dinov2.lvd142m"``; or a folder with a ``config.json`` and weights, as
        the hub has them.

    Raises
    ------
    ImportError
        If timm is not installed.
    ValueError
        If there is no such model or folder, or if its weights are not here or cannot be used.
    """
    name, folder = TIMM + model, _folder(model, "config.json")
    timm = _import("timm", "timm")
    download = f'python -c "import timm; timm.create_model({model!r}, pretrained=True)"'
    if folder is None:
        if not timm.is_model(model.partition(".")[0]):
            raise ValueError(f"timm has no model {model!r}: see timm.list_models()")
        with _loading(name, download):
            found = timm.models.get_pretrained_cfg(model, allow_unregistered=False)
        _check_on_hub(name, found is not None and found.hf_hub_id)
    with _loading(name, download):
        network = timm.create_model(model if folder is None else f"local-dir:{folder}", True)
        network.reset_classifier(0)  # only now: with it, all weights had to be there
        config = timm.data.resolve_model_data_config(network)
        _, height, width = config["input_size"]
        scaling = Preprocessing(height, width, config["mean"], config["std"])
    return _encoder(network, scaling, TIMM, model, folder)


def open_clip_encoder(model: str) -> ModuleEncoder:
    """Return the image encoder of a model of the package open_clip.

    Parameters
    ----------
    model
        A model and the tag of its weights, such as ``"ViT-B-32/laion2b_s34b_b79k"``, if they are in
        the cache of the Hugging Face hub; or a folder with an ``open_clip_config.json`` and
        weights, as the hub has them.

    Raises
    ------
    ImportError
        If open_clip is not installed.
    ValueError
        If there is no such model or folder, or if its weights are not here or cannot be used.
    """
    name, folder = OPEN_CLIP + model, _folder(model, "open_clip_config.json")
    open_clip = _import("open_clip", "open_clip_torch")
    architecture, _, tag = model.partition("/")
    if folder is None:
        if architecture not in open_clip.list_models():
            raise ValueError(
                f"open_clip has no model {architecture!r}: see open_clip.list_pretrained()"
            )
        tags = open_clip.list_pretrained_tags_by_model(architecture)
        if tag not in tags:
            raise ValueError(
                f"{name} needs one of the weights of {architecture}, as {OPEN_CLIP}{architecture}"
                f"/WEIGHTS: {', '.join(tags[:MOST_TAGS]) or 'there are none'}"
            )
        _check_on_hub(name, open_clip.get_pretrained_cfg(architecture, tag).get("hf_hub"))
    download = f"open_clip.create_model({architecture!r}, {tag!r})"
    with _loading(name, f'python -c "import open_clip; {download}"'):
        chosen = (architecture, tag) if folder is None else (f"local-dir:{folder}", None)
        # Without weights it would be random, and its text encoder would ask for a download.
        network = open_clip.create_model(*chosen, pretrained_text=False, require_pretrained=True)
        config = open_clip.get_model_preprocess_cfg(network)
        size = config["size"]
        height, width = (size, size) if isinstance(size, int) else size
        scaling = Preprocessing(height, width, config["mean"], config["std"])
    return _encoder(network.visual, scaling, OPEN_CLIP, model, folder)


def _import(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"encoders of {module} need the package: pip install {package}"
        ) from error
    except RuntimeError as error:
        # Both import torchvision, which raises this if it was built for another torch.
        raise ImportError(
            f"{module} cannot be imported ({_shortened(error)}): install the torchvision that "
            "belongs to the installed torch, from the same package index"
        ) from error


def _folder(model: str, config: str) -> Path | None:
    """Return the folder that a model is in; None if it is a name."""
    path = Path(model).expanduser()
    if not model.startswith((".", "~")) and not path.is_absolute():
        return None
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder")
    if not (path / config).is_file():
        raise ValueError(f"{path} has no {config}, which says what kind of network is in it")
    return path.absolute()


def _check_on_hub(name: str, repository: object) -> None:
    if not repository:
        raise ValueError(
            f"there are no weights for {name} on the Hugging Face hub: name a folder that has some"
        )


@contextmanager
def _loading(name: str, download: str) -> Iterator[None]:
    """Turn off downloads, files that run code, and messages; errors become one line."""
    from huggingface_hub import constants
    from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

    before = {one: os.environ.get(one) for one in OFFLINE}
    was_offline = constants.HF_HUB_OFFLINE
    os.environ |= dict.fromkeys(OFFLINE, "1")
    constants.HF_HUB_OFFLINE = True  # its variable was read when it was imported
    quiet = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    except Exception as error:  # the packages raise many kinds
        if _is_caused_by(error, (LocalEntryNotFoundError, OfflineModeIsEnabled)):
            raise ValueError(
                f"the weights of {name} are not on this machine, and nothing is downloaded "
                f"unasked; to get them: {download}"
            ) from error
        if "weights_only" in str(error):
            raise ValueError(
                f"the file with the weights of {name} can run code when it is opened: save them as "
                ".safetensors"
            ) from error
        raise ValueError(f"{name} cannot be used: {_shortened(error)}") from error
    finally:
        logging.disable(quiet)
        constants.HF_HUB_OFFLINE = was_offline
        for one, value in before.items():
            if value is None:
                del os.environ[one]
            else:
                os.environ[one] = value


def _is_caused_by(error: BaseException | None, kinds: tuple[type[Exception], ...]) -> bool:
    while error is not None:
        if isinstance(error, kinds):
            return True
        error = error.__cause__ or error.__context__
    return False


def _shortened(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _encoder(
    network: Any, scaling: Preprocessing, package: str, model: str, folder: Path | None
) -> ModuleEncoder:
    shown = model if folder is None else folder.name
    return ModuleEncoder(
        network,
        scaling,
        name=f"{package}{model if folder is None else folder}",
        about=f"the encoder {shown} of {package.rstrip(':')}",
    )
