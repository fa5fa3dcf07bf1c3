"""Encoders that are torch modules."""

from __future__ import annotations

import copy
import hashlib
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jule.features.base import Encoder, Preprocessing

PROBE = 64  # pixels on a side of the picture that tells modules apart
FUSED_BATCH = 4  # pictures; memory for more is returned to the system and cleared every time


class ModuleEncoder(Encoder):
    """An encoder made of a `torch.nn.Module`, of which a frozen copy is used.

    Parameters
    ----------
    module
        Maps pictures (n, 3, h, w) to one vector each; further axes are flattened.
    preprocessing
        The form in which it takes pictures.
    name, about
        See `Encoder`.
    weights_digest
        Hash of the weights, if it is known.
    fuse
        Whether the module does the same operations with all pictures, so that torch can plan them
        in advance, which is faster.

    Examples
    --------
    >>> means = nn.AdaptiveAvgPool2d(1)  # the mean colour
    >>> encoder = ModuleEncoder(means, Preprocessing(8, 8))
    >>> encoder.encode(np.zeros((2, 16, 16, 3), np.uint8)).shape
    (2, 3)
    """

    def __init__(
        self,
        module: nn.Module,
        preprocessing: Preprocessing,
        *,
        name: str | None = None,
        about: str | None = None,
        weights_digest: str | None = None,
        fuse: bool = False,
    ) -> None:
        self.module = copy.deepcopy(module).eval().cpu().float()
        self.preprocessing = preprocessing
        self.name = name or f"module:{type(module).__name__}"
        self.about = about or f"the module {type(module).__name__}"
        self._is_known = weights_digest is not None
        self.weights_digest = weights_digest or _hash_weights(self.module)
        self._fuse = fuse
        if fuse:  # about a second's work is stored at once
            self.batch = FUSED_BATCH * max(16, torch.get_num_threads())
        self._fused: Callable[[Tensor], Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the planned operations, which cannot be copied."""
        return vars(self) | {"_fused": None}

    @property
    def store_key(self) -> str:
        """Name of its stored vectors, different for encoders with different vectors."""
        if self._is_known:
            return self.digest
        # The code of a module is not hashed, but what it makes of one picture is.
        side = np.arange(PROBE, dtype=np.uint8)
        probe = np.stack([side[:, None] * side, side[:, None] + side, side[:, None] ^ side], axis=2)
        return hashlib.sha256(self.digest.encode() + self.encode(probe[None]).tobytes()).hexdigest()

    @torch.no_grad()
    def encode(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return one vector per picture, (n, d)."""
        if self._fuse and len(images) > FUSED_BATCH:  # planning takes longer than a few pictures
            found = self._run_fused(images)
        else:
            found = self.module(self.preprocessing.apply(images))
        if not isinstance(found, torch.Tensor):
            raise ValueError(
                f"the encoder {self.name} returned a {type(found).__name__} instead of a tensor"
            )
        vectors: NDArray[np.float32] = found.flatten(1).float().numpy()
        return vectors

    def _run_fused(self, images: NDArray[np.uint8]) -> Tensor:
        """Run the planned operations on a few pictures at a time, in several threads.

        Each thread has pictures of its own. Threads that share a layer have to wait for each other
        after every layer, which takes long if other programs are running.
        """
        apply, n_threads = self.preprocessing.apply, torch.get_num_threads()
        if self._fused is None:
            self._fused = _fuse(self.module, apply(images[:FUSED_BATCH]))
        run = self._fused

        @torch.no_grad()
        def run_part(start: int) -> Any:
            return run(apply(images[start : start + FUSED_BATCH]))

        starts = range(0, len(images), FUSED_BATCH)
        if n_threads == 1:
            return torch.cat([run_part(start) for start in starts])
        try:
            with ThreadPoolExecutor(n_threads, "encode", torch.set_num_threads, (1,)) as pool:
                return torch.cat(list(pool.map(run_part, starts)))
        finally:
            torch.set_num_threads(n_threads)


def _fuse(module: nn.Module, pictures: Tensor) -> Callable[[Tensor], Any]:
    """Return the operations of a module in the memory layout that is fastest on this processor.

    Only torch.jit does this without a compiler. It is deprecated: where it is gone or cannot do it,
    the module itself is returned.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced: Any = torch.jit.trace(module, pictures, check_trace=False)  # type: ignore[no-untyped-call]
            return torch.jit.optimize_for_inference(torch.jit.freeze(traced))
    except (AttributeError, RuntimeError):
        return module


def _hash_weights(module: nn.Module) -> str:
    """Return the SHA-256 of all weights and buffers, with their names."""
    digest = hashlib.sha256(str(module).encode())
    for name, value in (*module.named_parameters(), *module.named_buffers()):
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}\n".encode())
        digest.update(value.detach().contiguous().float().numpy().tobytes())
    return digest.hexdigest()
