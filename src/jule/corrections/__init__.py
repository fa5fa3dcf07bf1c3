"""Corrections by a person: edits of a clustering, what follows from them, and suggestions."""

from jule.corrections.apply import Base, Corrected, EditError, apply_edit, replay
from jule.corrections.edits import Edit, EditLog, Picture
from jule.corrections.pictures import PictureIndex

__all__ = [
    "Base",
    "Corrected",
    "Edit",
    "EditError",
    "EditLog",
    "Picture",
    "PictureIndex",
    "apply_edit",
    "replay",
]
