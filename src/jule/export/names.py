"""File names that are valid on every common system, made from untrusted names."""

from __future__ import annotations

import re
import unicodedata

MOST_BYTES = 240  # of a file name; file systems allow 255
MOST_OF_A_PARENT = 60
UNNAMED = "unnamed"
SEPARATORS = re.compile(r"[/\\]")
SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}")
FORBIDDEN = frozenset('/\\<>:"|?*')  # on Windows, and some of them everywhere
BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])", re.IGNORECASE)


def safe_text(text: str, suffix: str = "") -> str:
    """Turn any text into a file or folder name that is valid on every common system.

    A suffix like ``".png"`` is added if the text has none, and kept if the text is shortened.

    Examples
    --------
    >>> safe_text("cats/dogs"), safe_text(".."), safe_text("con.jpg"), safe_text("7", ".png")
    ('cats_dogs', 'unnamed', '_con.jpg', '7.png')
    """
    text = "".join("_" if _is_bad(letter) else letter for letter in text)
    stem, end = _split(text.strip(". ").lstrip())
    if not end and SUFFIX.fullmatch(suffix):
        end = suffix
    stem = stem or UNNAMED
    if RESERVED.fullmatch(stem.split(".")[0].rstrip()):
        stem = f"_{stem}"
    return _fitted(stem, end)


def safe_name(path: str, suffix: str = "") -> str:
    """Return the last part of a path as a safe file name.

    Examples
    --------
    >>> safe_name("../../x.jpg"), safe_name("a/b\\nc.jpg"), safe_name("C:\\\\pictures\\\\cat")
    ('x.jpg', 'b_c.jpg', 'cat')
    """
    return safe_text(SEPARATORS.split(path)[-1], suffix)


def _is_bad(letter: str) -> bool:
    # Surrogates are undecodable bytes; control and direction characters disguise a name.
    kind = unicodedata.category(letter)
    return letter in FORBIDDEN or letter in BIDI or kind in ("Cc", "Cs", "Zl", "Zp")


def _split(name: str) -> tuple[str, str]:
    found = re.search(rf"{SUFFIX.pattern}$", name)
    return (name, "") if found is None else (name[: found.start()], found.group())


def _fitted(stem: str, end: str) -> str:
    """Join stem and end, with the stem shortened to the length limit."""
    return _cut(stem, MOST_BYTES - len(end.encode())) + end


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore").rstrip(". ") or UNNAMED


class Names:
    """Unique names within one folder; no two differ only in case.

    Examples
    --------
    >>> names = Names()
    >>> [names.assign(path) for path in ("a/cat.jpg", "b/Cat.jpg", "b/cat.jpg")]
    ['cat.jpg', 'Cat (b).jpg', 'cat (b) 2.jpg']
    """

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.numbers: dict[
            str, int
        ] = {}  # the number to try next, as many paths may share one name

    def assign(self, path: str, suffix: str = "") -> str:
        """Return the name of a path; if it is taken, with its parent, then with a number."""
        name = safe_name(path, suffix)
        if self._take(name):
            return name
        stem, end = _split(name)
        parent = _parent(path)
        extra = f" ({parent})" if parent else ""
        if extra and self._take(name := self._with(stem, extra, end)):
            return name
        key = folded(self._with(stem, extra, end))
        number = self.numbers.get(key, 2)
        while not self._take(name := self._with(stem, f"{extra} {number}", end)):
            number += 1
        self.numbers[key] = number + 1
        return name

    @staticmethod
    def _with(stem: str, extra: str, end: str) -> str:
        return _fitted(stem, extra + end)

    def _take(self, name: str) -> bool:
        key = folded(name)
        if key in self.taken:
            return False
        self.taken.add(key)
        return True


def _parent(path: str) -> str:
    parts = [part for part in SEPARATORS.split(path)[:-1] if part.strip(". ")]
    return _cut(safe_text(parts[-1]), MOST_OF_A_PARENT) if parts else ""


def folded(name: str) -> str:
    """Return the form that case-insensitive, normalising file systems compare.

    Examples
    --------
    >>> folded("CAT.jpg") == folded("cat.JPG")
    True
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
