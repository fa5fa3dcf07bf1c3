"""Whether a run was made by this user, so that its source may be read again without a question.

A run folder can come from anybody, and its config.json can name any path or address as the source
of its pictures. Runs are therefore signed with a random key, which is different for every user.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jule.files import (
    is_leftover,
    make_folder,
    read_regular,
    remove_parts,
    user_config,
    write_atomic,
)
from jule.locks import hold

KEY_BYTES = 32
PATIENCE = 5.0  # seconds to wait for another process that creates the key


def sign(
    source: str,
    data: Mapping[str, Any],
    features: Mapping[str, Any] | None = None,
    more: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return the signature of a run's sources, data and encoder; empty if no key can be kept.

    Examples
    --------
    >>> is_signed({"source": "photos", "data": {}, "signature": sign("photos", {})})
    True
    """
    with suppress(OSError):
        return _signature(_lasting_key(), source, data, features, more)
    return ""


def warn_of_no_signature() -> None:
    """Warn that a run has no signature because no key can be kept."""
    warnings.warn(
        f"{_path()} cannot be written, so you will be asked before the images of this run are read "
        "again",
        stacklevel=2,
    )


def is_signed(about: Mapping[str, Any]) -> bool:
    """Return whether the content of a config.json was signed by this user.

    Examples
    --------
    >>> is_signed({"source": "photos", "data": {}, "signature": ""})
    False
    """
    signature, key = about.get("signature"), _key()
    if not isinstance(signature, str) or key is None:
        return False
    expected = _signature(
        key, str(about["source"]), about["data"], about.get("features"), about.get("more", ())
    )
    return hmac.compare_digest(signature.encode(), expected.encode())


def _signature(
    key: bytes,
    source: str,
    data: Mapping[str, Any],
    features: Mapping[str, Any] | None,
    more: Sequence[Mapping[str, Any]],
) -> str:
    # Runs from pixels are signed as before there were encoders.
    signed: list[Any] = [source, data] if features is None else [source, data, features]
    signed += [list(more)] if more else []
    text = json.dumps(signed, sort_keys=True)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _path() -> Path:
    return user_config() / "jule" / "key"


def _key() -> bytes | None:
    try:
        key = read_regular(_path(), KEY_BYTES)
    except (OSError, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None


def _lasting_key() -> bytes:
    """Return the key, created if needed; several processes at the same time get the same one."""
    folder = make_folder(_path().parent)
    key = _key()
    if key is not None and not any(map(is_leftover, os.listdir(folder))):
        return key
    with hold(folder, wait=PATIENCE):
        remove_parts(folder)  # of a process that was killed
        key = _key()
        if key is None:
            key = secrets.token_bytes(KEY_BYTES)
            write_atomic(_path(), key)
        return key
