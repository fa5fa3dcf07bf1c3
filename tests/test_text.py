"""Untrusted text, shown in a terminal and written to tables."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jule.text import RUN_BY_SPREADSHEETS, defuse, printable, undefuse

# Surrogates, too: they stand for the bytes of names that are not UTF-8.
CHARACTERS = st.characters(categories=None)
ANY_TEXT = st.text(CHARACTERS)
CELLS = st.one_of(
    ANY_TEXT,
    st.builds("".join, st.tuples(st.text("'", max_size=3), st.text(RUN_BY_SPREADSHEETS), ANY_TEXT)),
)


@given(CELLS)
def test_undefuse_is_the_inverse_of_defuse(text):
    assert undefuse(defuse(text)) == text


@given(CELLS)
def test_no_defused_cell_is_run_by_a_spreadsheet(text):
    assert not defuse(text).startswith(tuple(RUN_BY_SPREADSHEETS))


@given(ANY_TEXT)
def test_cells_that_nothing_would_run_are_not_changed(text):
    if not text.lstrip("'").startswith(tuple(RUN_BY_SPREADSHEETS)):
        assert defuse(text) == text


@given(ANY_TEXT)
def test_printable_text_has_no_control_or_format_characters(text):
    shown = printable(text)
    assert not {unicodedata.category(letter) for letter in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    shown.encode("utf-8")
    assert printable(shown) == shown
    assert len(shown.splitlines()) <= 1


@pytest.mark.parametrize(
    "text", ["Zürich.jpg", "東京　駅.png", "naïve résumé", "🐈", "[red]", "a\\b", ""]
)
def test_readable_text_is_not_changed(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;owned\x07", r"\x1b]0;owned\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\u202egpj.exe\u2066", r"\u202egpj.exe\u2066"),
        ("a\u200bb\ufeff", r"a\u200bb\ufeff"),
        ("caf\udce9", r"caf\udce9"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(text, shown):
    assert printable(text) == shown
