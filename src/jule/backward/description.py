"""Describe a network in plain values, and build it again from its description.

Descriptions come from files that anybody may have made, so they are checked.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from jule.backward.embedder import Embedder, side_by_side
from jule.backward.networks import NETWORKS, Network, build_network, network_name
from jule.backward.plan import MOST_MEMBERS, RESIDUAL_HIDDEN, n_weights
from jule.memory import check_memory

CUSTOM = "custom"  # name of a network that is not in the registry, in a description
DESCRIBED = frozenset({"size", "channels", "normalize", "network", "options", "class", "members"})
BYTES_PER_VALUE = 8  # a float32, and once more while it is drawn or copied


def describe(embedder: Embedder) -> dict[str, Any]:
    """Describe an embedder in plain values, from which `rebuild` can build it again.

    Examples
    --------
    >>> import numpy as np
    >>> from jule.backward import build_embedder
    >>> describe(build_embedder(np.zeros((4, 28, 28), np.uint8)))["network"]
    'cnn'
    """
    members = embedder.members
    body = members[0]
    about: dict[str, Any] = {
        "size": embedder.size,
        "channels": len(embedder.mean),
        "normalize": embedder.normalize,
    }
    if len(members) > 1:
        about["members"] = len(members)
    name = network_name(body)
    if name is None or not isinstance(body, Network):
        return about | {"network": CUSTOM, "class": type(body).__name__}
    return about | {"network": name, "options": body.options}


def rebuild(about: Mapping[str, Any], body: nn.Module | None = None) -> Embedder:
    """Build an embedder from its description; set its weights with `set_weights`.

    Parameters
    ----------
    about
        A description that `describe` returned.
    body
        An instance of the user's own network, if the description says ``"custom"``; several
        networks side by side are copies of it.

    Examples
    --------
    >>> import numpy as np
    >>> from jule.backward import build_embedder
    >>> about = describe(build_embedder(np.zeros((4, 28, 28), np.uint8)))
    >>> rebuild(about).size
    (28, 28)

    Raises
    ------
    ValueError
        If the description is damaged, or describes a network that is too large for the memory.
    """
    size, channels, normalize = _check_description(about)
    if body is None and about["network"] == CUSTOM:
        raise ValueError(
            f"this run was trained with your own network ({str(about.get('class'))[:60]}): "
            "pass an instance of it to load the weights"
        )
    members = about.get("members", 1)
    shape, options = (*(size or ()), channels), about.get("options", {})
    n_values = (
        _n_values(about["network"], shape, options)
        if body is None
        else sum(value.numel() for value in body.state_dict().values())
    )
    check_memory(BYTES_PER_VALUE * n_values * members, "the network")
    if body is None:
        with torch.random.fork_rng(devices=[]):
            body = build_network(about["network"], shape, **options)
    bodies = [body, *(copy.deepcopy(body) for _ in range(members - 1))]
    empty = torch.zeros(channels), torch.ones(channels)
    return Embedder(side_by_side(bodies), *empty, size, normalize=normalize)


def _check_description(about: Any) -> tuple[tuple[int, int] | None, int, bool]:
    """Check a description and return its size, channels and normalisation."""
    if not isinstance(about, Mapping):
        raise ValueError("the description of the network is not an object")
    unknown = sorted(str(name)[:60] for name in set(about) - DESCRIBED)
    if unknown:
        raise ValueError(f"the description of the network has unknown entries: {unknown[0]}")
    size: Any = about.get("size")
    channels: Any = about.get("channels")
    if size is not None and not (
        isinstance(size, list | tuple) and len(size) == 2 and all(map(_is_length, size))
    ):
        raise ValueError("the size of the images of the network is not (height, width)")
    if not _is_length(channels):
        raise ValueError("the network has no valid number of channels")
    if not isinstance(about.get("normalize"), bool):
        raise ValueError("the network does not say whether images are normalised")
    members: Any = about.get("members", 1)
    if not _is_length(members) or members > MOST_MEMBERS:
        raise ValueError("the network has no valid number of members")
    name, options = about.get("network"), about.get("options", {})
    if name != CUSTOM and (not isinstance(name, str) or name not in NETWORKS):
        raise ValueError(f"unknown network {str(name)[:60]!r}")
    allowed = {"outputs"} if size is not None else {"outputs", "hidden"}
    if name == "residual":
        allowed = {"hidden", "lift"}
    if not isinstance(options, Mapping) or not set(options) <= allowed:
        raise ValueError(f"the options of the network are not among {', '.join(sorted(allowed))}")
    if not all(map(_is_length, options.values())):
        raise ValueError("the options of the network are not positive whole numbers")
    return (None if size is None else (size[0], size[1])), channels, about["normalize"]


def _n_values(name: str, shape: tuple[int, ...], options: Mapping[str, int]) -> int:
    """Return the number of weights of a network and of values of a sample."""
    if name == "residual":
        return 2 * shape[0] * options.get("hidden", RESIDUAL_HIDDEN) + shape[0]
    return n_weights(shape, **options) + math.prod(shape)


def _is_length(value: Any) -> bool:
    return type(value) is int and 1 <= value < 2**31
