"""`jule cache`: what is kept of decoded pictures."""

from __future__ import annotations

from typing import Annotated

import typer

from jule.cli.errors import friendly


@friendly
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all of it.")] = False,
) -> None:
    """Show how much room decoded pictures take, or free it; they are read again when needed.

    Example: jule cache --clear
    """
    from jule.images.cache import cache_folder, forget, kept

    if clear:
        typer.echo(f"freed {forget() / 1e6:,.0f} MB in {cache_folder()}")
        return
    homes = kept()
    total = sum(size for _, size in homes) / 1e6
    typer.echo(f"{len(homes)} sets of pictures, {total:,.0f} MB in {cache_folder()}")
