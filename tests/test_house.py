"""The rules of the house: who may import whom, which libraries, what stays cheap."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import jule
from jule.runs.folder import RunFolder
from jule.runs.page_edits import labels_id
from jule.runs.results import read_results

ROOT = Path(jule.__file__).parent
REPOSITORY = ROOT.parents[1]

# Lowest first: a room knows itself and the rooms below its layer, not those beside it.
LAYERS = (
    {"files", "jit", "memory", "text"},
    {"locks", "progress", "ranks", "scratch"},
    {"forward", "backward", "features", "images", "evaluation"},
    {"joint", "corrections"},
    {"runs"},
    {"baselines", "export", "report"},
    {"run", "estimator", "comparison", "serve"},
    {"paper"},
    {"cli"},
    {"__main__"},
)
LAYER = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}

# The libraries of a room or of a module, where they are limited.
LIBRARIES = {
    "files": {"numpy"},
    "progress": {"rich"},
    "scratch": {"numpy"},
    "ranks": {"numpy", "torch"},
    "jit": {"numba"},
    "forward": {"numpy", "threadpoolctl"},
    "backward": {"numpy", "torch"},
    "features": {"numpy", "torch", "onnxruntime", "huggingface_hub"},
    "backward.settings": set(),
    "backward.plan": {"numpy"},
    "evaluation": {"numpy", "scipy", "sklearn"},
    "corrections": {"numpy"},
    "serve": {"numpy", "starlette", "uvicorn"},
}


def modules():
    """Every module by its dotted name inside jule; '' is jule itself."""
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), path


def imports(path):
    """Every module that a file imports anywhere, inside functions and for type checking too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide who knows whom"
            if node.module == "jule":
                yield from ((f"jule.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield node.module, node.lineno


def wrong_import(name, imported):
    """Why a module of jule must not import another; None if it may."""
    room, other = (dotted.split(".")[0] for dotted in (name, imported))
    if other == "__version__" or room == other:
        sideways = name.startswith("images.sources") and imported.startswith("images.decoding")
        return "sources do not know decoding" if sideways else None
    if other not in LAYER:
        return f"{other} is no room"
    if LAYER[other] >= LAYER[room]:
        return f"{room} must not know {other}"
    return None


def test_every_room_has_a_layer():
    rooms = {name.split(".")[0] for name, _ in modules()} - {""}
    assert rooms == set(LAYER)


def test_no_room_imports_upwards_or_sideways():
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {reason}"
        for name, path in modules()
        if name  # jule itself only forwards names
        for imported, line in imports(path)
        if imported.startswith("jule.")
        and (reason := wrong_import(name, imported.removeprefix("jule.")))
    ]
    assert wrong == []


def test_rooms_use_only_their_libraries():
    ours = sys.stdlib_module_names | {"jule"}
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {imported}"
        for name, path in modules()
        for limited, allowed in LIBRARIES.items()
        if name == limited or name.startswith(f"{limited}.")
        for imported, line in imports(path)
        if imported.split(".")[0] not in ours | allowed
    ]
    assert wrong == []


def test_no_pickle_and_no_eval():
    wrong = []
    for _, path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id in ("eval", "exec"):
                wrong.append(f"{path}:{node.lineno}")
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                allowed = isinstance(node.value, ast.Constant) and node.value.value is False
                wrong += [] if allowed else [f"{path}:{node.lineno}"]
        wrong += [f"{path}:{line}" for name, line in imports(path) if "pickle" in name]
    assert wrong == []


def test_the_drawn_tree_names_all_that_exists_and_nothing_else():
    page = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    files = {path.name for path in ROOT.rglob("*.py")}
    folders = {path.name for path in ROOT.rglob("*") if path.is_dir()} - {"__pycache__"}
    packages = {path.parent.name for path in ROOT.rglob("__init__.py")}
    missing = [name for name in sorted(files - {"__init__.py"}) if name not in page]
    missing += [f"{name}/" for name in sorted(packages) if f"{name}/" not in page]
    assert missing == [], "docs/architecture.md does not name these"

    beside = {path.name for path in REPOSITORY.iterdir() if path.is_dir()} | {ROOT.name}
    unknown = []
    for block in re.findall(r"^```.*?^```", page, re.DOTALL | re.MULTILINE):
        if "src/jule/" not in block:
            continue
        unknown += [name for name in re.findall(r"\b\w+\.py\b", block) if name not in files]
        for line in block.splitlines():
            # Only what a line begins with: prose after it may name other folders.
            drawn = re.match(r"[\s│├└─]*((?:\w+/)+)", line)
            for name in drawn.group(1).split("/")[:-1] if drawn else []:
                unknown += [] if name in folders | beside else [f"{name}/"]
    assert unknown == [], "docs/architecture.md names these, which do not exist"


# What stays cheap


def python(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_importing_jule_is_cheap():
    code = """
import json, sys, time
start = time.process_time()
import jule
taken = time.process_time() - start
print(json.dumps([taken, [name for name in sys.argv[1:] if name in sys.modules]]))
"""
    taken, loaded = python(
        code, "torch", "numba", "scipy", "sklearn", "matplotlib", "numpy", "rich"
    )
    assert loaded == []
    assert taken < 0.5


COMMANDS = """
import json, sys
from typer.testing import CliRunner
from jule.cli import app
found = {}
for line in json.loads(sys.argv[1]):
    done = CliRunner().invoke(app, line)
    found[" ".join(line[:2])] = [done.exit_code, done.output, "torch" in sys.modules]
print(json.dumps(found))
"""


def test_commands_that_train_and_embed_nothing_do_not_load_torch(copied, trained, tmp_path):
    pytest.importorskip("matplotlib")
    results = read_results(RunFolder(copied))
    edits = {
        "format": "jule-page-edits-3",
        "run": results.id,
        "labels": labels_id(results.result.labels),
        "k": results.result.n_clusters,
        "names": {"0": "zeros"},
    }
    (tmp_path / "edits.json").write_text(json.dumps(edits))
    (tmp_path / "void").mkdir()
    run, photos, out = str(copied), str(trained.folder / "photos"), str(tmp_path / "new")
    good = [
        ["--help"],
        ["cluster", "--help"],
        ["info", photos],
        ["cut", run, "-k", "5"],
        ["report", run],
        ["apply", run, str(tmp_path / "edits.json")],
        ["plot", run],
        ["export", run, "--to", str(tmp_path / "sorted")],
        ["resume", run],
    ]
    bad = [
        ["cluster", str(tmp_path / "void"), "--out", out],
        ["cluster", f"{photos}x", "--out", out],
        ["cluster", photos, "--size", "big", "--out", out],
        ["predict", run, str(tmp_path / "void")],
        ["similar", run, str(tmp_path / "gone.png")],
    ]
    found = python(COMMANDS, json.dumps(good + bad))
    for line in good:
        assert found[" ".join(line[:2])][0] == 0, found[" ".join(line[:2])]
    for line in bad:
        assert found[" ".join(line[:2])][0] == 1, found[" ".join(line[:2])]
    assert [command for command, (_, _, loaded) in found.items() if loaded] == []


# Public names


def test_public_names_are_there():
    for name in jule.__all__:
        assert getattr(jule, name) is not None
    assert set(jule.__all__) <= set(dir(jule))
    with pytest.raises(AttributeError, match="no attribute 'cluster_everything'"):
        _ = jule.cluster_everything


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert jule.__version__ == version("jule")
