"""Printing to the terminal: untrusted text is shown, never obeyed."""

import ast
import io
import os
import re
import sys
from pathlib import Path

import pytest

import jule.cli
from jule.cli import output
from jule.cli.output import ClosedError, ask, fail, say, say_link, say_table, warn, write_csv
from jule.progress import progress_bars, reading_bar

CLI = Path(jule.cli.__file__).parent
HOSTILE = "[/b][red]\x1b[2J\x1b]0;mine\x07\n\u202egpj.\x9b31m\udce9"
SHOWN = r"[/b][red]\x1b[2J\x1b]0;mine\x07\n\u202egpj.\x9b31m\udce9"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Terminal(io.TextIOWrapper):
    """Standard output or error of a terminal."""

    def __init__(self, encoding="utf-8"):
        super().__init__(io.BytesIO(), encoding=encoding, newline="")

    def isatty(self):
        return True

    def text(self):
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)


@pytest.fixture
def terminal(monkeypatch):
    """Make standard output and error a terminal; called by the test, as pytest replaces both."""

    def attach(encoding="utf-8", term="dumb"):
        made = Terminal(encoding)
        monkeypatch.setenv("COLUMNS", "300")
        monkeypatch.setenv("TERM", term)
        monkeypatch.setattr(sys, "stdout", made)
        monkeypatch.setattr(sys, "stderr", made)
        return made

    return attach


def without_colour(text):
    return re.sub("\x1b\\[[0-9;]*m", "", text)


def test_no_other_module_prints():
    """Every line goes through jule.cli.output; bars are drawn by jule.progress."""
    found = []
    for path in sorted(CLI.rglob("*.py")):
        if path.name == "output.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            printing = {"print", "Console", "Table", "Text", "input"} | {
                f"typer.{one}" for one in ("echo", "secho", "style", "prompt", "confirm", "launch")
            }
            if name.split("(")[0] in printing or name.endswith("console.print"):
                found.append(f"{path.name}:{node.lineno}: {name}")
            if isinstance(node, ast.ImportFrom | ast.Import) and "rich" in ast.unparse(node):
                found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    assert found == []


@pytest.mark.parametrize("show", [say, warn, fail])
def test_lines_show_control_characters_and_brackets(terminal, show):
    screen = terminal()
    show(HOSTILE)
    shown = without_colour(screen.text())
    assert not OBEYED.search(shown)
    assert len(shown.splitlines()) == 1
    assert "[/b][red]\\x1b[2J" in shown


def test_a_line_is_exactly_the_text(terminal):
    screen = terminal()
    say(HOSTILE)
    assert screen.text() == SHOWN + "\n"


def test_messages_of_several_lines_are_joined_and_long_ones_are_cut(terminal):
    screen = terminal()
    warn("one\n   two\r\nthree")
    fail("x" * 100_000)
    first, second = without_colour(screen.text()).splitlines()
    assert first == "jule: one two three"
    assert len(second) < 1100


def test_tables_show_control_characters_and_brackets(terminal):
    screen = terminal()
    say_table(["name", "path"], [(HOSTILE, "a"), ("[red]b[/red]", "[link=x]")])
    shown = screen.text()
    assert not OBEYED.search(shown)
    assert SHOWN in shown
    assert "[red]b[/red]" in shown
    assert "[link=x]" in shown


def test_a_hyperlink_cannot_be_ended_by_a_name(terminal):
    made = terminal(term="xterm-256color")
    path = Path("/tmp", "x\x1b\\\x07;[link=y] \n") / "report.html"
    say_link("page", path.as_uri())
    say_link("page", "file:///x\x1b\\\x07")
    opened = re.findall("\x1b]8;[^;]*;([^\x1b]*)\x1b\\\\", made.text())
    assert opened == [path.as_uri(), "", r"file:///x\x1b\\x07", ""]
    rest = re.sub("\x1b]8;[^;]*;[^\x1b]*\x1b\\\\", "", made.text())
    assert not OBEYED.search(without_colour(rest))


def test_what_an_encoding_lacks_is_escaped(terminal):
    made = terminal("ascii")
    say("東京.png")
    say_table(["path"], [["東京.png"]])
    assert made.text().count(r"\u6771\u4eac.png") == 2


CSV = 'path,name\r\na\x1b[2J.png,\r\n"b\r\n""c"".png","x,y"\r\n'


def test_csv_is_exact_in_a_pipe_and_escaped_on_a_terminal(terminal, monkeypatch):
    screen = terminal()
    write_csv(CSV)
    assert screen.text() == 'path,name\na\\x1b[2J.png,\n"b\\r\\n""c"".png","x,y"\n'
    pipe = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", pipe)
    write_csv(CSV + "caf\udce9 東\r\n")
    expected = b'path,name\na\x1b[2J.png,\n"b\r\n""c"".png","x,y"\n'
    assert pipe.buffer.getvalue() == expected + b"caf\xe9 " + "東\n".encode()


@pytest.mark.parametrize("bar", [progress_bars, reading_bar])
def test_bars_show_control_characters_and_brackets(terminal, bar):
    made = terminal(term="xterm-256color")
    with bar(HOSTILE) as show:
        show(*(("merging", 0.5) if bar is progress_bars else (5, 10)))
    shown = made.text()
    assert SHOWN in shown
    for sequence in ("\x1b[2J\x1b]0", "\x9b31m", "\u202e", "\x07"):
        assert sequence not in shown


def test_nobody_is_asked_where_nobody_can_answer():
    assert not ask("Read them?")


@pytest.mark.parametrize(("answer", "agreed"), [("y\n", True), ("", False), ("no\n", False)])
def test_a_question_is_one_line_and_the_answer_is_no_by_default(
    terminal, monkeypatch, answer, agreed
):
    screen, typed = terminal(), io.StringIO(answer)
    typed.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", typed)
    assert ask(f"{HOSTILE}. Read them?") is agreed
    assert not OBEYED.search(screen.text())
    assert screen.text().endswith("Read them? [y/N] ")


@pytest.mark.skipif(os.name == "nt", reason="closes pipes as POSIX does")
@pytest.mark.parametrize("print_it", [say, lambda text: say_table(["a"], [[text]]), write_csv])
def test_a_closed_pipe_is_told_apart_from_other_broken_pipes(monkeypatch, print_it):
    reading, writing = os.pipe()
    os.close(reading)
    pipe = os.fdopen(writing, "w")
    monkeypatch.setattr(sys, "stdout", pipe)
    with pytest.raises(ClosedError):
        print_it("hello\r\n")
    with pytest.raises(BrokenPipeError):
        pipe.close()


def test_the_spinner_is_no_markup(terminal):
    made = terminal(term="xterm-256color")
    with output.status("[/b]\x07"):
        pass
    assert "[/b]\\x07" in made.text()
