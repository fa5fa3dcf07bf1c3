"""Whether a run was made by this user, so that its source may be read again without a question.

A run folder can come from anybody, and its config.json can name any path or address as the source
of its pictures. Runs are therefore signed with a random key that every user has.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jule.files import make_folder, read_regular, sync_folder, user_config, write_new

KEY_BYTES = 32


def sign(source: str, data: Mapping[str, Any]) -> str:
    """Return the signature of a run's source and data; empty if no key can be kept.

    Examples
    --------
    >>> is_signed({"source": "photos", "data": {}, "signature": sign("photos", {})})
    True
    """
    with suppress(OSError):  # without a key, the source is asked for when it is needed
        return _signature(_key() or _new_key(), source, data)
    return ""


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
    expected = _signature(key, str(about["source"]), about["data"])
    return hmac.compare_digest(signature.encode(), expected.encode())


def _signature(key: bytes, source: str, data: Mapping[str, Any]) -> str:
    text = json.dumps([source, data], sort_keys=True)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _path() -> Path:
    return user_config() / "jule" / "key"


def _key() -> bytes | None:
    try:
        key = read_regular(_path(), KEY_BYTES)
    except (OSError, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None


def _new_key() -> bytes:
    """Create the key; if another process does so at the same time, both get the same one."""
    path, key = _path(), secrets.token_bytes(KEY_BYTES)
    make_folder(path.parent)
    part = path.with_name(f".jule-{secrets.token_hex(8)}.part")
    try:
        write_new(part, key)
        os.link(part, path)
    except FileExistsError:
        if (other := _key()) is not None:
            return other
        os.replace(part, path)  # what was there is not a key
    finally:
        part.unlink(missing_ok=True)
        sync_folder(path.parent)
    return key
