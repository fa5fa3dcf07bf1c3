"""Damage every file of a run in every way, and run the commands that read it.

`python -m torture.damage SEED CASE` shows one case in detail.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from torture.campaign import Outcome, Progress
from torture.children import WATCH, Done, captured, jule_command, run_cases, warm_up
from torture.children import workspace as make_workspace
from torture.mutations import any_file, by_structure
from torture.workshop import KINDS, make_runs, some_edits

SHARES = {"photos": 0.6, "edited": 0.13, "saved": 0.25, "unfinished": 0.02}
DECORATION = ("report", "snapshots", "error.log", "skipped.csv", "images.npz")
COMMANDS = {
    "photos": ("cut", "export", "report", "predict", "similar", "apply", "resume"),
    "edited": ("cut", "export", "report", "predict", "similar", "apply", "resume"),
    "saved": ("cut", "report", "predict", "apply", "resume"),
    "unfinished": ("resume",),
}
LARGE = 1 << 24  # bytes, more than any whole file of a run has
WRITERS = {"photos": "apply", "edited": "apply", "saved": "apply", "unfinished": "resume"}
# The settings of an unfinished run may ask for a million rounds, and that is then what is done.
NOT_REFITTED = {False: ("manifest.json",), True: ("config.json",)}
PER_CASE = 1  # commands, and reading the run from Python after them


@dataclass
class Place:
    """Where one child works: its copy of a run, and what commands write."""

    where: Path
    folder: Path

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def fresh(self, run: Path) -> None:
        os.chdir(self.where)
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(run, self.run, symlinks=True)
        self.out.mkdir()


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, what it printed and the files that it wrote."""

    code: int | None
    out: str
    err: str
    files: dict[str, str] = field(default_factory=dict)

    @property
    def said(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.strip()]


@dataclass(frozen=True)
class Case:
    """One case: a file of a run, what is done to it, and the commands that follow."""

    kind: str
    name: str
    how: str
    refitted: bool
    commands: tuple[str, ...]

    def __str__(self) -> str:
        fits = ", manifest made to fit" if self.refitted else ""
        return f"{self.kind} run, {self.name}: {self.how}{fits}; {', '.join(self.commands)}"


# Commands


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _read_from_python(place: Place) -> None:
    import jule

    run = jule.Run(place.run, device="cpu")
    results = run.results
    arrays = (run.labels, run.recut(2), results.result.confidence, results.result.embedding)
    print([_digest(np.ascontiguousarray(array).tobytes()) for array in arrays])
    periods = [(one.steps, one.clusters_after, one.loss_last) for one in results.history]
    print(results.names, sorted(run.cluster_names.items()), results.id, periods)
    samples = np.load(place.where / "samples.npy")
    if run.sample_shape() == samples.shape[1:]:
        print(_digest(run.predict(samples).labels.tobytes()))


def _from_python(place: Place) -> Done:
    def call() -> None:
        try:
            _read_from_python(place)
        except (ValueError, OSError) as error:
            print(f"jule: {error}", file=sys.stderr)
            raise SystemExit(1) from None

    return captured(call)


STEPS: dict[str, Callable[[Place], Done]] = {
    "python": _from_python,
    "cut": lambda at: jule_command("cut", at.run, "-k", 5, "--out", at.out / "five.csv"),
    "export": lambda at: jule_command("export", at.run, "--to", at.out / "s", "--how", "copy"),
    "report": lambda at: jule_command("report", at.run),
    "predict": lambda at: jule_command("predict", at.run, _new_samples(at), "--device", "cpu"),
    "similar": lambda at: jule_command("similar", at.run, at.where / "new" / "001.png"),
    "apply": lambda at: jule_command("apply", at.run, at.folder / "edits.json"),
    "resume": lambda at: jule_command("resume", at.run, "--device", "cpu"),
}
WRITTEN = {
    "report": ("report.json", "report.html"),
    "apply": ("labels.csv", "labels_auto.csv"),
}


def _new_samples(place: Place) -> Path:
    is_array = (place.folder / "saved").exists()
    return place.where / ("samples.npy" if is_array else "new")


def perform(command: str, place: Place) -> Ended:
    """Run one command on the run of a place."""
    done = STEPS[command](place)
    files = {
        str(path.relative_to(place.out)): _digest(path.read_bytes())
        for path in sorted(place.out.rglob("*"))
        if path.is_file()
    }
    for name in WRITTEN.get(command, ()):
        path = place.run / name
        if path.is_file() and not path.is_symlink() and path.stat().st_size < LARGE:
            files[name] = _digest(path.read_bytes())
    shutil.rmtree(place.out)
    place.out.mkdir()
    home = str(place.folder)
    out = re.sub(r"\bin \d+ s\b", "in some s", done.out.replace(home, "@"))
    return Ended(done.code, out, done.err.replace(home, "@"), files)


# Damage


def files_of(run: Path) -> list[str]:
    """Return the files of a run, relative to its folder."""
    found = (path for path in sorted(run.rglob("*")) if path.is_file())
    return [str(path.relative_to(run)) for path in found if path.name != ".jule-lock"]


def is_same(path: Path, content: bytes) -> bool:
    """Return whether a path is a file that means the same as some content."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGE:
        return False
    found = path.read_bytes()
    if path.name in ("manifest.json", "config.json"):  # their checksums are of values, not of bytes
        with suppress(ValueError, RecursionError):
            return bool(json.loads(found) == json.loads(content))
    return found == content


def _replace(path: Path, make: Callable[[], None]) -> None:
    path.unlink()
    make()


def _link(path: Path, target: Path | str) -> None:
    _replace(path, lambda: path.symlink_to(target))


WHOLE: dict[str, Callable[[Path, Path], object]] = {
    "deleted": lambda path, _: path.unlink(),
    "replaced by a folder": lambda path, _: _replace(path, path.mkdir),
    "replaced by a link to the file of another run": _link,
    "replaced by a link to /dev/zero": lambda path, _: _link(path, "/dev/zero"),
    "replaced by a link to itself": lambda path, _: _link(path, path.name),
    "replaced by a pipe": lambda path, _: _replace(path, lambda: os.mkfifo(path)),
    "exchanged with the file of another run": lambda path, other: path.write_bytes(
        other.read_bytes()
    ),
    "enlarged to 8 GB": lambda path, _: os.truncate(path, 8 << 30),  # a hole, which takes no space
}


def draw(rng: Generator, runs: dict[str, Path]) -> tuple[Case, Callable[[Path], object]]:
    """Draw a case; return it with the function that damages a copy of the run."""
    kind = str(rng.choice(list(SHARES), p=list(SHARES.values())))
    name = str(rng.choice(files_of(runs[kind])))
    other = runs[f"other {kind}"] / name
    chosen = map(str, rng.permutation(COMMANDS[kind])[:PER_CASE])
    commands = (
        *sorted(chosen, key=lambda one: one == WRITERS[kind]),
        "python",
    )  # it changes labels
    style = rng.random()
    if style < 0.2:
        choices = list(WHOLE) if other.is_file() else [how for how in WHOLE if "another" not in how]
        how = str(rng.choice(choices))
        return Case(kind, name, how, False, commands), lambda run: WHOLE[how](run / name, other)
    how, change = any_file(rng) if style < 0.45 else by_structure(name, rng)
    refitted = bool(rng.random() < 0.4) and name not in NOT_REFITTED[kind == "unfinished"]

    def damage(run: Path) -> None:
        path = run / name
        path.write_bytes(change(path.read_bytes(), rng))
        if refitted:
            refit(run)

    return Case(kind, name, how, refitted, commands), damage


def refit(run: Path) -> None:
    """Write all checksums of a run again, as a stranger would who changed its files."""
    from jule.files import checked_json
    from jule.runs.manifest import describe, manifest_bytes, read_manifest

    config = run / "config.json"
    with suppress(ValueError, RecursionError):
        value = json.loads(config.read_bytes())
        if isinstance(value, dict):
            value.pop("checksum", None)
            config.write_bytes(checked_json(value))
    for path in run.glob("state/*.safetensors"):
        _refit_state(path)
    manifest = read_manifest(run)
    if manifest is not None:
        found = {name: describe((run / name).read_bytes()) for name in manifest}
        (run / "manifest.json").write_bytes(manifest_bytes(found))


def _refit_state(path: Path) -> None:
    from safetensors.numpy import load, save

    from jule.joint.state import _checksum

    with suppress(Exception):  # there is nothing to fit in a file that cannot be read
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        about = json.loads(content[8 : 8 + length])["__metadata__"]
        tensors = load(content)
        about["checksum"] = str(_checksum(tensors, about["about"]))
        path.write_bytes(save(tensors, about))


# Judgement


def judge(
    case: Case, command: str, ended: Ended, whole: Ended, *, changed: bool
) -> tuple[str, str]:
    """Compare how a command ended with how it ends on the undamaged run.

    Parameters
    ----------
    case, command
        What was damaged, and the command that ran.
    ended, whole
        How the command ended, and how it ends on the undamaged run.
    changed
        Whether the damaged file has other bytes than before.

    Returns
    -------
    how
        The kind of ending, to be counted.
    problem
        What is wrong with it; empty if nothing is.
    """
    if ended.code is None or "Traceback" in ended.err:
        return "failed", f"traceback: {ended.err.strip().splitlines()[-1][:300]}"
    printed = {"predict": ended.err, "python": ""}.get(command, ended.out + ended.err)
    raw = next((one for one in printed if is_raw(one)), "")
    if raw:
        return "failed", f"prints the control character {raw!r}"
    if command == "resume" and ended.code == 0 and changed and must_be_seen(case):
        return "failed", f"a damaged run is called finished: {ended.out[:200]!r}"
    if ended == whole:
        return "identical", ""
    news = [line for line in ended.said if line not in whole.said]
    named = any(_names(line, case) for line in news)
    if ended.code == 1 and (whole.code == 0 or case.refitted):
        *warnings, last = news or [""]  # a warning about the file may come before the error
        if not last.startswith("jule: ") or not all(_names(line, case) for line in warnings):
            return "failed", f"not one line: {ended.err[:300]!r}"
        if not _names(last, case) and not case.refitted:
            return "failed", f"does not name the file: {last[:300]!r}"
        return "refused", ""
    if ended.code not in (0, whole.code):
        return "failed", f"exit code {ended.code}: {ended.err[:300]!r}"
    if case.refitted:
        return "read as a stranger's run", ""
    same = (ended.out, ended.files) == (whole.out, whole.files)
    if same:
        return "identical, with a word", ""
    if case.name.startswith(DECORATION) and news and named:
        return "left out, with a word", ""
    if command == "resume" and "page" in ended.out and is_mended(case):
        return "made again", ""
    return "failed", f"used silently: {ended.out[:200]!r} {ended.err[:200]!r}"


def _names(line: str, case: Case) -> bool:
    return line.startswith("jule: ") and any(name in line for name in accused(case))


def accused(case: Case) -> tuple[str, ...]:
    """Return what a message about a damaged file must have, one of them."""
    if case.name == "manifest.json" and case.how == "deleted":
        # It is written last, so this is a run that was interrupted, unless it has been edited.
        return ("is not finished", "manifest.json")
    if case.name == "manifest.json" and "another run" in case.how:
        return (".json", ".csv", ".np", ".safetensors")  # whole, but it fits no other file
    if case.kind == "unfinished" and case.name == "config.json" and "another run" in case.how:
        return ("config.json", "state-")  # it may be whole, but fits no state
    return (case.name.rpartition("/")[2],)


def is_mended(case: Case) -> bool:
    """Return whether `jule resume` makes a damaged file again."""
    deleted = case.name == "manifest.json" and case.how == "deleted"
    return deleted or case.name.startswith(DECORATION)


def must_be_seen(case: Case) -> bool:
    """Return whether `jule resume` must refuse a run because of its damaged file."""
    return case.kind != "unfinished" and not case.refitted and not is_mended(case)


def is_raw(one: str) -> bool:
    """Return whether a character is one that a terminal could obey, or that hides others."""
    return one != "\n" and unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")


# The campaign


class Setting:
    """The runs of a campaign, how commands end on them undamaged, and the seed."""

    def __init__(self, where: Path, seed: int) -> None:
        self.where, self.seed = where, seed
        self.runs = make_runs(where)
        np.save(where / "samples.npy", np.zeros((3, 8, 8), np.uint8))
        self.expected: dict[tuple[str, str], Ended] = {}
        for number, found, problem in run_cases(self._measure, range(len(KINDS)), longest=300.0):
            if problem:
                raise RuntimeError(problem)
            for command, ended in found.items():
                self.expected[KINDS[number], command] = Ended(**ended)

    def place(self) -> Place:
        """Return the place of this process."""
        return Place(self.where, self.where / "at" / str(os.getpid()))

    def prepare(self, kind: str) -> Place:
        """Put an undamaged copy of a run into the place of this process."""
        place = self.place()
        place.fresh(self.runs[kind])
        edits = self.where / f"edits-{kind}.json"
        if edits.exists():
            shutil.copy(edits, place.folder / "edits.json")
        if kind == "saved":
            (place.folder / "saved").touch()
        os.chdir(place.folder)
        return place

    def _measure(self, number: int) -> dict[str, Any]:
        kind = KINDS[number]
        if kind != "unfinished":
            edits = some_edits(self.runs[kind])
            (self.where / f"edits-{kind}.json").write_text(json.dumps(edits))
        found = {}
        for command in (*COMMANDS[kind], "python"):
            place = self.prepare(kind)
            found[command] = vars(perform(command, place))
        place = self.prepare(kind)
        writer = WRITERS[kind]
        perform(writer, place)
        found[f"python after {writer}"] = vars(perform("python", place))
        return found

    def run(self, number: int) -> dict[str, Any]:
        """Run one case in this process."""
        rng = np.random.default_rng([self.seed, number])
        case, damage = draw(rng, self.runs)
        place = self.prepare(case.kind)
        whole_file = (place.run / case.name).read_bytes()
        damage(place.run)
        changed = not is_same(place.run / case.name, whole_file)
        WATCH.install()
        endings, problems, shown, taken = [], [], [], {}
        after = ""
        for command in case.commands:
            outside = (self.where / "new", self.where / "photos", self.where / "cache")
            allowed = (place.folder, *outside, self.where / "samples.npy", self.where / "config",
                       self.where / "tmp")  # fmt: skip
            started = time.perf_counter()
            with WATCH.only(*allowed) as noted:
                ended = perform(command, place)
            taken[command] = time.perf_counter() - started
            whole = self.expected[case.kind, command + (after if command == "python" else "")]
            how, problem = judge(case, command, ended, whole, changed=changed)
            if noted:
                how, problem = "failed", problem or f"touches {noted[0]}"
            endings.append(how)
            shown.append(f"{command}: {how} {problem}\n{ended}")
            if problem:
                problems.append(f"`{command}` {problem}")
            if ended.code == 0 and command == WRITERS[case.kind]:
                after = f" after {command}"
        return {
            "case": str(case),
            "endings": endings,
            "problem": "; ".join(problems),
            "shown": shown,
            "seconds": taken,
        }


class Damage:
    """Damaged files of every kind, of every file of a run."""

    name = "damage"
    title = "damaged files of runs"
    goal = 50_000
    promise = (
        "a command on a run with a damaged file gives the same result as without the damage, or "
        "ends with one line that names the file; decoration that is damaged is left out with a "
        "word; nothing is read or written outside"
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
                run_cases(setting.run, range(n_cases)), start=1
            ):
                if found is not None:
                    counts.update(found["endings"])
                    problem = found["problem"]
                    what = found["case"]
                else:
                    counts["failed"] += 1
                    what = str(draw(np.random.default_rng([seed, number]), setting.runs)[0])
                if problem:
                    failures.append(f"{what}: {problem} (python -m torture.damage {seed} {number})")
                progress(done, n_cases)
        return Outcome(n_cases, dict(counts), failures)


def main(seed: int, number: int) -> None:
    """Show one case in detail."""
    warm_up()
    with make_workspace() as where:
        setting = Setting(where, seed)
        for _, found, problem in run_cases(setting.run, [number]):
            print(problem or "\n\n".join([found["case"], *found["shown"]]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
