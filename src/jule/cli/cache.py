"""`jule cache`: show the size of the caches of pictures and of their vectors, or clear them."""

from __future__ import annotations

from typing import Annotated

import typer

from jule.cli.output import counted, say


def cache(
    clear: Annotated[
        bool, typer.Option("--clear", help="Delete all decoded pictures and vectors.")
    ] = False,
) -> None:
    """Show how much disk space decoded pictures and their vectors take, or delete them.

    What is deleted is computed again when it is needed.

    Example: jule cache --clear
    """
    from jule.features.store import clear_stores, features_folder, list_stores
    from jule.images.decoding.cache import cache_folder, clear_caches, list_caches

    if clear:
        say(f"deleted {_megabytes(clear_caches())} from {cache_folder()}")
        say(f"deleted {_megabytes(clear_stores())} from {features_folder()}")
        return
    caches = list_caches()
    size = _megabytes(sum(size for _, size in caches))
    sources = counted(len(caches), "source")
    say(f"decoded pictures of {sources} take {size} in {cache_folder()}")
    stores = list_stores()
    size = _megabytes(sum(size for _, size in stores))
    say(f"vectors of {counted(len(stores), 'encoder')} take {size} in {features_folder()}")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
