"""The page of a run from a small local server, where edits are saved as they are made."""

from jule.serve.desk import Desk

__all__ = ["Desk"]
