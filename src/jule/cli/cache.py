"""`jule cache`: show the size of the cache of decoded pictures, or clear it."""

from __future__ import annotations

from typing import Annotated

import typer

from jule.cli.output import say
from jule.cli.reading import counted


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete all decoded pictures.")] = False,
) -> None:
    """Show how much disk space decoded pictures take, or delete them.

    Deleted pictures are decoded again when they are needed.

    Example: jule cache --clear
    """
    from jule.images.decoding.cache import cache_folder, clear_caches, list_caches

    if clear:
        say(f"deleted {_megabytes(clear_caches())} from {cache_folder()}")
        return
    caches = list_caches()
    size = _megabytes(sum(size for _, size in caches))
    sources = counted(len(caches), "source")
    say(f"decoded pictures of {sources} take {size} in {cache_folder()}")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
