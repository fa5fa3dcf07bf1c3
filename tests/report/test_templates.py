"""The page's own files: small, plain, and without anything that could call out or run text."""

import re
import shutil
import subprocess

import pytest

from jule.report.page import SCRIPTS, SERVED_SCRIPTS, TEMPLATES, json_for_html

FILES = sorted(path.name for path in (TEMPLATES / "js").iterdir())
FORBIDDEN = {
    r"\.(inner|outer)HTML|insertAdjacentHTML|document\.write": "text would become markup",
    r"\beval\(|new Function|setTimeout\(\s*[\"'`]": "text would be run",
    r"\bvar\b": "let and const say more",
    r"[^=!]==[^=]|!=[^=]": "compares loosely",
    r"console\.": "left from looking for a mistake",
}
CALLS_OUT = r"\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|\bimport\b"


def text_of(name):
    return (TEMPLATES / "js" / name).read_text(encoding="utf-8")


def test_every_script_is_part_of_the_page():
    assert {f"{name}.js" for name in SERVED_SCRIPTS} == set(FILES)


def test_only_a_served_page_can_call_its_server():
    assert set(SERVED_SCRIPTS) - set(SCRIPTS) == {"served", "guests"}
    called = re.findall(r"fetch\((.*?)[,)]", text_of("served.js"))
    assert called == ["path", "`pictures/${rowOf(image"]
    asked = re.findall(r"(?:ask|send)\(\"(.*?)\"", text_of("served.js"))
    assert all(re.fullmatch(r"[a-z]+", path) for path in asked)


@pytest.mark.parametrize("name", FILES)
def test_scripts_are_plain(name):
    text = text_of(name)
    code = "\n".join(line.split("// ")[0] for line in text.splitlines())
    assert name == "served.js" or not re.findall(CALLS_OUT, code), f"{name} calls out"
    for pattern, why in FORBIDDEN.items():
        found = re.findall(pattern, code.replace("value != null", ""))
        assert not found, f"{name}: {pattern} {why}"
    assert max(map(len, text.splitlines())) <= 100
    assert len(text.splitlines()) < 200
    assert text.startswith("// "), f"{name} does not say what it is for"
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)


def test_nothing_is_declared_and_never_used():
    everything = "\n".join(map(text_of, FILES))
    declared = re.findall(r"^(?:function|const|let) (\w+)", everything, re.MULTILINE)
    assert len(declared) == len(set(declared)), "two files declare the same name"
    for name in declared:
        assert len(re.findall(rf"\b{name}\b", everything)) > 1, f"{name} is never used"


@pytest.mark.parametrize("name", FILES)
def test_scripts_are_javascript(name):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not here; the tests in the browser read the scripts, too")
    subprocess.run([node, "--check", TEMPLATES / "js" / name], check=True)


def test_the_page_and_its_style_ask_nobody_for_anything():
    for name in ("page.html", "style.css"):
        text = (TEMPLATES / name).read_text(encoding="utf-8")
        assert not re.search(r"https?:|@import|src=|url\(", text)


def test_json_cannot_end_its_element():
    text = json_for_html(["</script>", "<!--", "&amp;", "\u2028"])
    assert not set("<>&\u2028") & set(text)
