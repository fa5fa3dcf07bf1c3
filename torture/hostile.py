"""Hostile edits, names, links and run folders.

`python -m torture.hostile SEED CASE` shows one case in detail.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from torture.campaign import Outcome, Progress
from torture.children import WATCH, Done, jule_command, run_cases, warm_up
from torture.children import workspace as make_workspace
from torture.damage import Place, is_raw, refit
from torture.mutations import by_structure
from torture.workshop import digits, make_runs, some_edits

NAMES = (
    "\x1b[2J\x1b]0;title\x07.png", "two\nlines.png", "back\x08space.png", "\r=1+1.png",
    "[/b].png", "[bold red]x[/].png", "[link=http://example.com]x.png", "\u202egnp.exe.png",
    "zero\u200bwidth.png", "=cmd()|' /C calc'!A0.png", "+1.png", "-1.png", "@sum(1).png",
    "'=1.png", "\t=1.png", "</script><script>alert(1)</script>.png", '" onload="x.png',
    "-k.png", "--out=x.png", "a,b;c.png", 'a"b.png', "%s{0}.png", "\x9b2J.png", "\u2028x.png",
    " lead.png", "trail .png", "CON.png", "~.png", "$HOME.png", "`id`.png", "\x7f.png",
    "x" * 251 + ".png", "caf\udce9.png", "\udcff\udcfe.png", "e\u0301.png", "*.png", "a\\b.png",
    ".png.png", "labels.csv.png", "\U0001f9ea.png",
)  # fmt: skip
FOLDERS = ("[/b]", "\x1b[31m", "-o", "a\nb", "=1", "\u202e", "x" * 200, "caf\udce9")
SOURCES = (
    "hf:beans", "hf:../../secret", "http://192.0.2.1/x.zip", "https://example.com/x.npz",
    "ftp://example.com/x", "file:///etc/passwd", "/etc/passwd", "/etc", "~", "~/photos", "..",
    "../../victim", "VICTIM", "VICTIM/*.png", "RUN/../../victim", "RUN/link", "//host/share/x",
    "s3://bucket/x", "/dev/zero", "/proc/self/environ", "", "\x1b[2J", "a\0b", "x" * 5000,
)  # fmt: skip
PLANTED = (
    "report.json.part", "report.html.part", "labels-3.csv.part", "labels.csv.part",
    "report_pictures", "state", "snapshots", ".jule-lock", ".jule-next", ".jule-update",
    "config.json", "manifest.json", "labels.csv", "labels_auto.csv", "labels-3.csv", "result.json",
    "history.json", "skipped.csv", "duplicates.csv", "labels_sf.npy", "labels_rc.npy",
    "embedding.npy", "neighbors.npz", "input_neighbors.npz", "tree.npz", "network.safetensors",
    "report.html", "report.json", "error.log", "pca3d.png", "map.png", "gallery.png", "history.png",
    ".jule-export.part", ".report.html.part",
)  # fmt: skip
WRITING = ("report", "cut", "apply", "plot", "resume", "overwrite", "resume unfinished")
SHARES = {"edits": 0.62, "links": 0.25, "source": 0.1, "names": 0.03}
PICTURES_PER_CASE = 10
STAGED = (".jule-update", ".jule-next")
# How a link is planted, and under which names if not under all of them.
WAYS: dict[str, tuple[str, ...]] = {
    "link": PLANTED,
    "hard link": (".jule-lock", "labels.csv", "report.html", "report.json", "error.log"),
    "staged link": tuple(
        f"{folder}/{name}"
        for folder in STAGED
        for name in ("labels.csv", "report.html", "embedding.npy", "manifest.json")
    ),
}


class Setting:
    """The runs of the campaign, a victim outside of them, and the seed."""

    def __init__(self, where: Path, seed: int) -> None:
        self.where, self.seed = where, seed
        self.runs = make_runs(where)
        self.victim = where / "victim"
        self.victim.mkdir()
        for name in ("config.json", "0001.png", "state-0001.safetensors", "manifest.json"):
            (self.victim / name).write_text("mine")
        shutil.copy(where / "new" / "001.png", self.victim / "private.png")
        self.before = contents(self.victim)
        self.cases = _enumerate()

    def fresh(self, kind: str) -> Place:
        """Put a copy of a run into the place of this process."""
        place = Place(self.where, self.where / "at" / str(os.getpid()))
        place.fresh(self.runs[kind])
        os.chdir(place.folder)
        return place

    def watched(self, place: Place, *arguments: object) -> tuple[Done, list[str]]:
        """Run a command; return how it ended, and what is wrong with that."""
        with WATCH.only(
            place.folder,
            *(self.where / name for name in ("photos", "new", "cache", "config", "tmp")),
        ) as noted:
            done = jule_command(*arguments)
        return done, [
            *check(done, data=arguments[0] == "predict"),
            *(f"touches {one}" for one in noted),
        ]

    def run(self, number: int) -> dict[str, Any]:
        """Run one case in this process."""
        rng = np.random.default_rng([self.seed, number])
        WATCH.install()
        kind = str(rng.choice(list(SHARES), p=list(SHARES.values())))
        what, problems, shown = getattr(self, f"_{kind}")(rng)
        if contents(self.victim) != self.before:
            problems.append("changes files outside")
            self._restore()
        return {
            "kind": kind,
            "case": f"{kind}: {what}",
            "problems": problems,
            "shown": list(map(str, shown)),
        }

    def _restore(self) -> None:
        shutil.rmtree(self.victim)
        for name, content in self.before.items():
            path = self.victim / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)

    def _edits(self, rng: Generator) -> tuple[str, list[str], list[Done]]:
        place = self.fresh(str(rng.choice(["photos", "edited", "saved"])))
        content = json.dumps(some_edits(place.run)).encode()
        what, content = hostile_edits(content, rng)
        (place.folder / "edits.json").write_bytes(content)
        done, problems = self.watched(place, "apply", place.run, place.folder / "edits.json")
        after, more = self.watched(place, "cut", place.run, "-k", 2, "--out", place.out / "2.csv")
        if after.code != 0:
            problems.append(f"the run cannot be read after the edits: {after.err[:200]!r}")
        return (
            f"{what} {content[:80]!r}",
            problems + more + safe_tables(place.folder),
            [done, after],
        )

    def _links(self, rng: Generator) -> tuple[str, list[str], list[Done]]:
        name, target, command = _pick(self.cases, rng)
        way = str(rng.choice(list(WAYS)))
        if way != "link":
            name, target = _pick(WAYS[way], rng), "config.json"
            command = "resume" if command == "resume unfinished" else command
        place = self.fresh("unfinished" if command == "resume unfinished" else "photos")
        edits = place.folder / "edits.json"
        if command == "apply":
            edits.write_text(json.dumps(some_edits(place.run)))
        path = place.run / name
        if path.parent.name in STAGED:  # as if a change had been decided, but not completed
            path.parent.mkdir()
            shutil.copy(place.run / "manifest.json", path.parent)
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        if way == "hard link":
            path.hardlink_to(self.victim / target)
        else:
            path.symlink_to(self.victim / target)
        photos = self.where / "photos"
        line: dict[str, list[object]] = {
            "report": ["report", place.run],
            "cut": ["cut", place.run, "-k", 3],
            "apply": ["apply", place.run, edits],
            "plot": ["plot", place.run],
            "resume": ["resume", place.run],
            "resume unfinished": ["resume", place.run],
            "overwrite": [
                "cluster",
                photos,
                "-k",
                3,
                "--rounds",
                1,
                "-o",
                place.run,
                "--overwrite",
            ],
        }
        done, problems = self.watched(place, *line[command])
        return f"{way} {name} -> {target or 'a folder'}, {command}", problems, [done]

    def _source(self, rng: Generator) -> tuple[str, list[str], list[Done]]:
        source = _pick(SOURCES, rng)
        kind = str(rng.choice(["photos", "unfinished"]))
        place = self.fresh(kind)
        (place.run / "link").symlink_to(self.victim)
        path = place.run / "config.json"
        config = json.loads(path.read_bytes())
        config["source"] = source.replace("VICTIM", str(self.victim)).replace("RUN", str(place.run))
        config["signature"] = rng.choice([config["signature"], "", "0" * 64])
        path.write_text(json.dumps(config))
        refit(place.run)
        commands: list[list[object]] = [
            ["report", place.run],
            ["export", place.run, "--to", place.out / "sorted"],
            ["plot", place.run],
            ["resume", place.run],
            ["similar", place.run, self.where / "new" / "001.png"],
        ]
        line = _pick(commands, rng) if kind == "photos" else commands[3]
        done, problems = self.watched(place, *line)
        return f"source {source[:60]!r}, {line[0]} ({kind})", problems, [done]

    def _names(self, rng: Generator) -> tuple[str, list[str], list[Done]]:
        place = self.fresh("photos")
        names = [NAMES[number] for number in rng.permutation(len(NAMES))[:PICTURES_PER_CASE]]
        title = _pick(FOLDERS, rng)
        start = int(rng.integers(100))
        pictures = digits()[start : start + len(names)]
        in_array = bool(rng.random() < 0.3)
        source = f"{title}.npz" if in_array else title
        write = _write_array if in_array else _write_folder
        for folder in (place.folder, place.folder / "new"):
            write(folder / source, names, pictures)
        run, new = f"./{title}-run", f"./new/{source}"
        ends: list[Done] = []
        problems: list[str] = []

        def perform(*line: object) -> bool:
            done, found = self.watched(place, *line)
            if done.code != 0:
                found.append(f"ends with {done.code}: {done.err[:300]!r}")
            ends.append(done)
            problems.extend(f"`{line[0]}` {one}" for one in found)
            return not found

        what = f"{source!r}: {names}"
        if not perform("cluster", f"./{source}", "-k", 3, "--rounds", 1, f"--out={run}"):
            return what, problems, ends
        edits = some_edits(place.folder / run)
        edits["names"] = {"0": names[0][:50].encode("utf-8", "replace").decode(), "1": "=1+1"}
        (place.folder / "edits.json").write_text(json.dumps(edits))
        perform("apply", run, "edits.json")
        perform("cut", run, "-k", 2)
        perform("predict", run, new, "--out", place.out / "new.csv")
        perform("export", run, "--to", place.out / "sorted", "--how", "copy")
        if not in_array:
            perform("predict", run, new, "--to", place.out / "new", "--how", "copy")
            perform("similar", run, f"{new}/{names[0]}")
        problems += safe_tables(place.folder)
        read = names if in_array else [name for name in names if _is_read(name)]
        if _digests(place.out / "sorted") != len(read) * [1]:
            problems.append("the exported pictures are others")
        return what, problems, ends


def _is_read(name: str) -> bool:
    """Return whether a picture of this name is read: hidden ones and other encodings are not."""
    return not name.startswith(".") and not any("\udc80" <= one <= "\udcff" for one in name)


def _write_folder(folder: Path, names: list[str], pictures: NDArray[np.uint8]) -> None:
    from PIL import Image

    for name, picture in zip(names, pictures, strict=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with open(folder / name, "wb") as file:
            Image.fromarray(picture).save(file, "PNG")


def _write_array(path: Path, names: list[str], pictures: NDArray[np.uint8]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, images=pictures, names=np.array(names))


def _enumerate() -> list[tuple[str, str, str]]:
    targets = ("", "config.json", "missing")
    return list(itertools.product(PLANTED, targets, WRITING))


def _pick(values: Sequence[Any], rng: Generator) -> Any:
    return values[int(rng.integers(len(values)))]


def _digests(folder: Path) -> list[int]:
    """Return how often each content occurs among the files of a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return list(Counter(hashlib.sha256(path.read_bytes()).digest() for path in files).values())


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of every file in a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def hostile_edits(content: bytes, rng: Generator) -> tuple[str, bytes]:
    """Return edits that a page would not write."""
    value = json.loads(content)
    big = int(rng.choice([10**6, 10**9, 2**31, 2**62]))
    special: dict[str, Callable[[], Any]] = {
        "huge cluster of a move": lambda: value["moves"][0].update(cluster=big),
        "huge image of a move": lambda: value["moves"][0].update(image=big),
        "negative numbers": lambda: value["moves"][0].update(cluster=-1, image=-1),
        "huge k": lambda: value.update(k=big),
        "huge named cluster": lambda: value["names"].update({str(big): "x"}),
        "long digits": lambda: value["names"].update({"9" * 5000: "x"}),
        "long name": lambda: value["names"].update({"0": "x" * 10_000_000}),
        "odd name": lambda: value["names"].update({"0": _pick(NAMES, rng)}),
        "odd path": lambda: value["moves"][0].update(path=_pick(NAMES, rng)),
        "surrogate": lambda: value["names"].update({"0": "\ud800"}),
        "odd digits": lambda: value["names"].update({"\u0661": "x"}),
        "many moves": lambda: value.update(moves=value["moves"] * 100_000),
        "many clusters": lambda: value.update(
            moves=[{**value["moves"][0], "image": n, "cluster": n + 3} for n in range(30)]
        ),
        "many names": lambda: value.update(names={str(n): "x" for n in range(100_000)}),
        "odd run": lambda: value.update(run=_pick(NAMES, rng)),
        "odd labels": lambda: value.update(labels=_pick(NAMES, rng)),
        "odd key": lambda: value.update({_pick(NAMES, rng): 1}),
        "odd format": lambda: value.update(format=_pick(NAMES, rng)),
    }
    if rng.random() < 0.5:
        what = str(rng.choice(list(special)))
        special[what]()
        return what, json.dumps(value).encode()
    if rng.random() < 0.1:
        return "duplicate keys", content.replace(b'"k"', b'"k": 1, "k"')
    what, change = by_structure("edits.json", rng)
    return what, change(content, rng)


def check(done: Done, *, data: bool) -> list[str]:
    """Return what is wrong with the output of a command; `data`: its standard output is CSV."""
    problems = []
    if done.code is None or "Traceback" in done.err:
        problems.append(f"traceback: {done.err.strip().splitlines()[-1][:300]}")
    elif done.code not in (0, 1):
        problems.append(f"exit code {done.code}: {done.err[:200]!r}")
    printed = done.err if data else done.out + done.err
    raw = next((one for one in printed if is_raw(one)), "")
    if raw:
        problems.append(f"prints the control character {raw!r}")
    lines = [line for line in done.err.splitlines() if line.strip()]
    if done.code == 1 and not (lines and lines[-1].startswith("jule: ")):
        problems.append(f"not one line: {done.err[:300]!r}")
    return problems


def safe_tables(folder: Path) -> list[str]:
    """Return the cells of all CSV files in a folder that a spreadsheet would run."""
    found = []
    for path in folder.rglob("*.csv"):
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            for row in csv.reader(file):
                found += [f"{path.name} has the cell {cell[:50]!r}" for cell in row if _runs(cell)]
    return found[:3]


def _runs(cell: str) -> bool:
    return cell[:1] in tuple("=+-@\t\r\n") and not _is_number(cell)


def _is_number(cell: str) -> bool:
    return cell.lstrip("-").replace(".", "", 1).isdigit() and cell.isprintable()


class Hostile:
    """Hostile edits, names, links and sources."""

    name = "hostile"
    title = "hostile edits, names, links and sources"
    goal = 1_000
    promise = (
        "nothing in a name, in a file of edits or in the run folder of a stranger makes a command "
        "write or read elsewhere, use the network, control the terminal or run in a spreadsheet"
    )

    def run(self, n_cases: int | None, seed: int, progress: Progress) -> Outcome:
        """Run the cases on all cores."""
        warm_up()
        n_cases = n_cases or self.goal
        counts: Counter[str] = Counter()
        failures = []
        with make_workspace() as where:
            setting = Setting(where, seed)
            for done, (number, found, problem) in enumerate(
                run_cases(setting.run, range(n_cases), longest=60.0), start=1
            ):
                what = found["case"] if found else ""
                problem = "; ".join(found["problems"]) if found else problem
                counts["failed" if problem else found["kind"]] += 1
                if problem:
                    failures.append(
                        f"{what}: {problem} (python -m torture.hostile {seed} {number})"
                    )
                progress(done, n_cases)
        return Outcome(n_cases, dict(counts), failures)


def main(seed: int, number: int) -> None:
    """Show one case in detail."""
    warm_up()
    with make_workspace() as where:
        setting = Setting(where, seed)
        for _, found, problem in run_cases(setting.run, [number], longest=60.0):
            print(
                problem
                or "\n\n".join(map(str, [found["case"], *found["problems"], *found["shown"]]))
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
