"""Edits as a page asks for them: clusters and pictures by their numbers, as plain values.

A server takes requests one by one, and `jule apply` those that a page has downloaded as a file.
Both make edits from them here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jule.corrections.apply import EditError
from jule.corrections.editor import Editor
from jule.corrections.edits import Edit

Request = Mapping[str, Any]
CLUSTERS = ("cluster", "other", "to")  # entries of a request that are clusters


class RequestError(ValueError):
    """A request makes no sense; the message says why."""


def make_edit(editor: Editor, request: Request) -> Edit:
    """Return the edit that a request asks for; nothing changes yet.

    Parameters
    ----------
    editor
        The clustering as it is.
    request
        ``edit``: the kind, one of `EDITS`; and what this kind needs. Clusters are given by their
        numbers in `editor.state`, pictures by their rows in labels.csv.

    Raises
    ------
    RequestError
        If an entry is missing or wrong.
    EditError
        If there is no such cluster or picture.
    """
    kind = request.get("edit")
    if not isinstance(kind, str) or kind not in EDITS:
        raise RequestError(f"an edit is one of {', '.join(EDITS)}")
    return EDITS[kind](editor, request)


def by_pictures(editor: Editor, request: Request) -> dict[str, Any]:
    """Return a request with the numbers of clusters, from one that gives a picture of each.

    Of clusters that come and go while edits are made, a page as a file does not know the numbers.
    """
    labels = editor.state.labels
    named = dict(request)
    for name in CLUSTERS:
        if named.get(name) is None:
            continue
        picture = whole(request, name)
        if not 0 <= picture < len(labels):
            raise EditError(f"there is no picture {picture}: the run has {len(labels)}")
        named[name] = int(labels[picture])
    return named


def whole(request: Request, name: str) -> int:
    """Return an entry of a request that is a whole number."""
    value = request.get(name)
    if type(value) is not int:
        raise RequestError(f"{name!r} must be a whole number")
    return value


def _text(request: Request, name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str):
        raise RequestError(f"{name!r} must be text")
    return value


def _images(request: Request, name: str = "images") -> list[int]:
    value = request.get(name)
    if not isinstance(value, list) or not all(type(one) is int for one in value):
        raise RequestError(f"{name!r} must be a list of whole numbers")
    return value


def _move(editor: Editor, request: Request) -> Edit:
    to = None if request.get("to") is None else whole(request, "to")
    return editor.move(_images(request), to)


def _split(editor: Editor, request: Request) -> Edit:
    cluster = whole(request, "cluster")
    if request.get("images") is not None:
        return editor.split_off(cluster, _images(request))
    branch = None if request.get("branch") is None else whole(request, "branch")
    if branch is not None and not 0 <= branch < len(editor.base.intervals[0]):
        raise RequestError("there is no such branch")
    return editor.split(cluster, branch)


# How requests become edits.
EDITS: dict[str, Callable[[Editor, Request], Edit]] = {
    "name": lambda editor, asked: editor.name(whole(asked, "cluster"), _text(asked, "name")),
    "move": _move,
    "shelve": lambda editor, asked: editor.shelve(_images(asked)),
    "split": _split,
    "merge": lambda editor, asked: editor.merge(whole(asked, "cluster"), whole(asked, "other")),
    "refuse": lambda editor, asked: editor.refuse(whole(asked, "cluster"), whole(asked, "other")),
    "must-link": lambda editor, asked: editor.must_link(_images(asked)),
    "cannot-link": lambda editor, asked: editor.cannot_link(
        _images(asked), _images(asked, "others")
    ),
    "unlink": lambda editor, asked: editor.unlink(_images(asked), _images(asked, "others")),
    "cut": lambda editor, asked: editor.cut(whole(asked, "k")),
}
