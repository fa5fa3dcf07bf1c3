"""Edits of a clustering, and the list of them that can be undone, redone and saved.

An edit names pictures, never the number of a cluster: a cluster is given by a few of its pictures,
the most typical first, and is the one that has most of them. An edit therefore keeps its meaning
in another run, with pictures added or another number of clusters.

=============  ==========================  ===============================  =====================
edit           pictures                    others                           more
=============  ==========================  ===============================  =====================
name           some of the cluster         -                                name, was
move           those that move             some of the target; none: new    -
shelve         those that fit nowhere      -                                -
split          some of what stays          some of what leaves              -
merge          some of what remains        some of what joins it            -
refuse         some of one cluster         some of another: not the same    -
must-link      two or more                 -                                -
cannot-link    one or more                 those that are not like them     -
unlink         those of the link           the others of the link           -
place          new ones, by `jule update`  some of their cluster            -
cut            -                           -                                k
=============  ==========================  ===============================  =====================
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

FORMAT = "jule-edits-3"
LONGEST_NAME = 200  # characters
MOST_CLUSTERS = 2**31 - 1
# What each kind of edit needs: the least number of `pictures` and of `others`; None if it has none.
KINDS: dict[str, tuple[int | None, int | None]] = {
    "name": (1, None),
    "move": (1, 0),
    "shelve": (1, None),
    "split": (1, 1),
    "merge": (1, 1),
    "refuse": (1, 1),
    "must-link": (2, None),
    "cannot-link": (1, 1),
    "unlink": (1, 0),
    "place": (1, 1),
    "cut": (None, None),
}


@dataclass(frozen=True)
class Picture:
    """A picture, by its path and its content.

    Attributes
    ----------
    path
        Its path or name in the run.
    hash
        The first half of the SHA-256 checksum of its file, in hexadecimal; empty if not known.
    """

    path: str
    hash: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the picture as plain values."""
        return {"path": self.path, "hash": self.hash} if self.hash else {"path": self.path}


Pictures = tuple[Picture, ...]


@dataclass(frozen=True)
class Edit:
    """One edit; the table above says what `pictures` and `others` are for each kind.

    Attributes
    ----------
    kind
        One of `KINDS`.
    pictures, others
        The pictures that it is about.
    name, was
        Of a cluster: the new name, empty to remove it, and the one before.
    k
        Number of clusters of a cut.
    run
        The run on whose clusters it was made; see `RunResults.id`.

    Examples
    --------
    >>> Edit("name", (Picture("a.jpg"),), name="cats").to_json()
    {'edit': 'name', 'pictures': [{'path': 'a.jpg'}], 'name': 'cats'}
    """

    kind: str
    pictures: Pictures = ()
    others: Pictures = ()
    name: str = ""
    was: str = ""
    k: int = 0
    run: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown edit {self.kind!r}: choose one of {', '.join(KINDS)}")
        for field, least in zip(("pictures", "others"), KINDS[self.kind], strict=True):
            count = len(getattr(self, field))
            if least is None and count:
                raise ValueError(f"{self.kind!r} takes no {field}")
            if least is not None and count < least:
                raise ValueError(f"{self.kind!r} needs at least {least} of {field}, got {count}")
        if (self.name or self.was) and self.kind != "name":
            raise ValueError(f"{self.kind!r} takes no name")
        object.__setattr__(self, "name", checked_name(self.name))
        if (self.kind == "cut") != (1 <= self.k <= MOST_CLUSTERS):
            raise ValueError(f"'k' is the number of clusters of a cut, from 1 up, got {self.k}")

    @property
    def is_link(self) -> bool:
        """Whether it keeps pictures together, or apart."""
        return self.kind in ("must-link", "cannot-link")

    def has_same_pictures(self, other: Edit) -> bool:
        """Return whether another edit has the same pictures, on both sides."""
        return (self.pictures, self.others) == (other.pictures, other.others)

    @cached_property
    def line(self) -> str:
        """The edit as one line of JSON."""
        return json.dumps(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return the edit as plain values."""
        value: dict[str, Any] = {"edit": self.kind}
        for field in ("pictures", "others"):
            if KINDS[self.kind][field == "others"] is not None:
                value[field] = [picture.to_json() for picture in getattr(self, field)]
        if self.kind == "name":
            value["name"] = self.name
        for field, given in (("was", self.was), ("k", self.k), ("run", self.run)):
            if given:
                value[field] = given
        return value

    @classmethod
    def from_json(cls, value: Any) -> Edit:
        """Build an edit from the values of `to_json`; raise ValueError if they are wrong.

        Examples
        --------
        >>> Edit.from_json({"edit": "shelve", "pictures": [{"path": "a.jpg"}]}).kind
        'shelve'
        """
        known = {"edit", "pictures", "others", "name", "was", "k", "run"}
        if not isinstance(value, dict) or not set(value) <= known:
            raise ValueError(f"an edit must be an object with only {', '.join(sorted(known))}")
        for field in ("edit", "name", "was", "run"):
            if not isinstance(value.get(field, ""), str):
                raise ValueError(f"{field!r} of an edit must be a string")
        if type(value.get("k", 0)) is not int:
            raise ValueError("'k' of an edit must be a whole number")
        return cls(
            value.get("edit", ""),
            _parse_pictures(value.get("pictures", [])),
            _parse_pictures(value.get("others", [])),
            value.get("name", ""),
            value.get("was", ""),
            value.get("k", 0),
            value.get("run", ""),
        )


def without_unlinked(edits: Iterable[Edit]) -> list[Edit]:
    """Return edits without the links that later ones have removed.

    Examples
    --------
    >>> pair = (Picture("a.jpg"), Picture("b.jpg"))
    >>> without_unlinked([Edit("must-link", pair), Edit("unlink", pair)])
    []
    """
    kept: list[Edit] = []
    for edit in edits:
        if edit.kind == "unlink":
            kept = [one for one in kept if not (one.is_link and one.has_same_pictures(edit))]
        else:
            kept.append(edit)
    return kept


def checked_name(name: str) -> str:
    """Return the name of a cluster without outer space; raise ValueError if it is not a name.

    Examples
    --------
    >>> checked_name(" cats ")
    'cats'
    """
    # A lone surrogate cannot be written as UTF-8.
    if len(name) > LONGEST_NAME or name.encode("utf-8", "replace").decode() != name:
        raise ValueError(f"the name of a cluster has at most {LONGEST_NAME} characters of text")
    return name.strip()


def _parse_pictures(value: Any) -> Pictures:
    if not isinstance(value, list):
        raise ValueError("pictures of an edit must be a list")
    return tuple(_parse_picture(one) for one in value)


def _parse_picture(value: Any) -> Picture:
    is_object = isinstance(value, dict) and set(value) in ({"path"}, {"path", "hash"})
    if not is_object or not all(isinstance(text, str) for text in value.values()):
        raise ValueError(f"a picture must have a path and may have a hash, got {str(value)[:80]}")
    return Picture(**value)


@dataclass(frozen=True)
class EditLog:
    """A list of edits, of which the first `done` are in effect and the others were undone.

    Attributes
    ----------
    edits
        All edits in order.
    done
        How many of them are in effect.
    revision
        How often the list has changed: two writers that start from one revision are noticed.

    Examples
    --------
    >>> log = EditLog().add(Edit("shelve", (Picture("a.jpg"),)))
    >>> log.undo().in_effect, log.undo().redo().in_effect == log.in_effect, log.undo().revision
    ((), True, 2)
    """

    edits: tuple[Edit, ...] = ()
    done: int = 0
    revision: int = 0

    @property
    def in_effect(self) -> tuple[Edit, ...]:
        """The edits that were not undone."""
        return self.edits[: self.done]

    def add(self, *edits: Edit) -> EditLog:
        """Return the list with more edits; those that were undone are dropped."""
        kept = (*self.in_effect, *edits)
        return EditLog(kept, len(kept), self.revision + 1)

    def undo(self) -> EditLog:
        """Return the list with the last edit in effect undone."""
        if self.done == 0:
            raise ValueError("there is no edit to undo")
        return replace(self, done=self.done - 1, revision=self.revision + 1)

    def redo(self) -> EditLog:
        """Return the list with the first undone edit in effect again."""
        if self.done == len(self.edits):
            raise ValueError("there is no edit to redo")
        return replace(self, done=self.done + 1, revision=self.revision + 1)

    def to_json(self) -> dict[str, Any]:
        """Return the list as plain values: the content of edits.json."""
        return {
            "format": FORMAT,
            "revision": self.revision,
            "done": self.done,
            "edits": [edit.to_json() for edit in self.edits],
        }

    @classmethod
    def from_json(cls, value: Any) -> EditLog:
        """Build a list from the values of `to_json`; raise ValueError if they are wrong.

        Examples
        --------
        >>> EditLog.from_json(EditLog().to_json())
        EditLog(edits=(), done=0, revision=0)
        """
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise ValueError(f"not a file of edits: its format is not {FORMAT!r}")
        unknown = sorted(set(value) - {"format", "revision", "done", "edits"})
        if unknown:
            raise ValueError(f"unknown entries in a file of edits: {', '.join(map(repr, unknown))}")
        listed = value.get("edits", [])
        if not isinstance(listed, list):
            raise ValueError("'edits' must be a list")
        edits = tuple(_numbered(number, one) for number, one in enumerate(listed, 1))
        done = _count(value, "done", len(edits))
        if done > len(edits):
            raise ValueError(f"'done' is {done}, but there are {len(edits)} edits")
        return cls(edits, done, _count(value, "revision", 0))


def _numbered(number: int, value: Any) -> Edit:
    try:
        return Edit.from_json(value)
    except ValueError as error:
        raise ValueError(f"edit {number}: {error}") from None


def _count(value: Mapping[str, Any], name: str, default: int) -> int:
    count = value.get(name, default)
    if type(count) is not int or not 0 <= count < 2**53:  # as far as JavaScript counts exactly
        raise ValueError(f"{name!r} must be a whole number from 0 up, got {str(count)[:40]}")
    return count
