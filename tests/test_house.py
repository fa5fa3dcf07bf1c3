"""The rules of the house: who may import whom, and that importing jule is cheap."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import jule

ROOT = Path(jule.__file__).parent

# Who may know whom; a room always knows itself.
FORWARD, BACKWARD, IMAGES = {"forward"}, {"backward"}, {"images"}
PARTS = FORWARD | BACKWARD | IMAGES | {"evaluation"}
MAY_KNOW = {
    "forward": set(),
    "backward": set(),
    "images": set(),
    "evaluation": set(),
    "joint": PARTS,
    "estimator": PARTS | {"joint", "runs"},
    "baselines": PARTS | {"joint"},
    "snapshots": PARTS | {"joint"},
    # A run knows its page, inside one method: Run.report().
    "copies": {"joint"},
    "interrupts": set(),
    "runs": PARTS | {"copies", "interrupts", "joint", "sheets", "snapshots", "report"},
    "estimate": PARTS | {"joint"},
    "sorting": PARTS | {"joint", "runs"},
    "sheets": PARTS | {"joint"},
    "export": PARTS | {"joint"},
    "report": None,
    "paper": None,
    "cli": None,
}
LIBRARIES = {
    "forward": {"numpy", "numba", "threadpoolctl", "pynndescent"},
    "backward": {"numpy", "torch"},
    "evaluation": {"numpy", "scipy", "sklearn"},
}


def modules():
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def room_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path):
    """Every module that a file imports anywhere, functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide who knows whom"
            yield node.module
            if node.module == "jule":
                yield from (f"jule.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_who_may_import_whom(path):
    room = room_of(path)
    assert room in MAY_KNOW, f"{room} is not a room of the house"
    allowed = MAY_KNOW[room]
    for name in imported(path):
        parts = name.split(".")
        if parts[0] != "jule" or len(parts) == 1:
            continue
        other = parts[1]
        if other not in MAY_KNOW or other == room or allowed is None:
            continue
        assert other in allowed, f"{room} must not know {other} ({path.name} imports {name})"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_rooms_use_only_their_libraries(path):
    allowed = LIBRARIES.get(room_of(path))
    if allowed is None:
        return
    foreign = {name.split(".")[0] for name in imported(path)} - sys.stdlib_module_names - {"jule"}
    assert foreign <= allowed


def python(code):
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def test_importing_jule_loads_nothing_heavy():
    code = "import sys, jule; print([m for m in %r if m in sys.modules])"
    assert python(code % (["torch", "matplotlib", "sklearn", "numba", "scipy"],)) == "[]"


def test_importing_jule_takes_under_half_a_second():
    code = "import time; t = time.perf_counter(); import jule; print(time.perf_counter() - t)"
    python(code)  # bytecode is cached now
    assert min(float(python(code)) for _ in range(3)) < 0.5


def test_public_names_are_there():
    for name in jule.__all__:
        assert getattr(jule, name) is not None
    assert set(jule.__all__) <= set(dir(jule))


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'cluster_everything'"):
        _ = jule.cluster_everything


def test_version_is_that_of_the_package():
    from importlib.metadata import version

    assert jule.__version__ == version("jule")


def test_no_pickle_and_no_eval_in_the_source():
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), path
        assert "pickle" not in {name.split(".")[0] for name in imported(path)}, path
