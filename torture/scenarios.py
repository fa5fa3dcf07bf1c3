"""The commands that are disturbed, and the states that they start from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

from torture.injection import Fault
from torture.lanes import Lane, Scenario, write_digits

SETTINGS = ("--rounds", "1", "--size", "8", "--out", "run")
CLUSTER = ("cluster", "../photos", "-k", "3", *SETTINGS)
REPLACE = ("cluster", "../photos", "-k", "4", "--seed", "1", *SETTINGS, "--overwrite")
REPLACE_INSIDE = ("cluster", "run/mine", "-k", "4", "--seed", "1", *SETTINGS, "--overwrite")
RESUME = ("resume", "run")
CUT = ("cut", "run", "-k", "2")
READ = (*CUT, "--out", "../seen.csv")
READ_NAMES = ("cut", "run", "-k", "3", "--out", "../seen.csv")
EXPORT = ("export", "run", "--to", "sorted")
PREDICT = ("predict", "run", "../new", "--to", "sorted", "--how", "copy", "--out", "new.csv")
FILL = ("info", "../photos", "--size", "8", "--full")
FRESH = (("HOME", "home"), ("XDG_CONFIG_HOME", "home/config"), ("JULE_CACHE", "home/cache"))


def _nothing(lane: Lane) -> None:
    (lane.case / "home").mkdir()


def _finished(lane: Lane) -> None:
    lane.must(*CLUSTER)
    # The process itself loads what commands need on a run, so that its forks have it.
    for command in (READ, ("report", "run")):
        lane.server.warm(command, lane.case)


def _finished_with_sheets(lane: Lane) -> None:
    lane.must("report", "run", few_inline=True)
    _edit(lane)


def _edit(lane: Lane, name: str = "edits.json", image: int = 0) -> None:
    """Write edits of the present labels: a name for every cluster, and a moved image."""
    from jule.runs.folder import RunFolder
    from jule.runs.page_edits import FORMAT, labels_id
    from jule.runs.results import read_results

    results = read_results(RunFolder(lane.case / "run"))
    labels, k = results.result.labels, results.result.n_clusters
    edits = {
        "format": FORMAT,
        "run": results.id,
        "labels": labels_id(labels),
        "k": k,
        "names": {str(cluster): f"{name} {cluster}" for cluster in range(k)},
        "moves": [
            {
                "image": image,
                "path": results.names[image],
                "cluster": (int(labels[image]) + 1) % k,
            }
        ],
    }
    (lane.case / name).write_text(json.dumps(edits))


def _edited(lane: Lane) -> None:
    lane.must("apply", "run", "edits.json")
    _edit(lane, "more.json", image=5)


def _own_files(lane: Lane) -> None:
    """Let the user keep files of their own in the run folder."""
    mine = lane.case / "run" / "mine"
    mine.mkdir()
    write_digits(mine, range(20))
    (lane.case / "run" / "notes.txt").write_text("mine\n")
    for name in ("report.html.part", "labels-2.csv.part", "link"):
        (lane.case / "run" / name).symlink_to("../../victim.txt")


def _own_sorted(lane: Lane) -> None:
    folder = lane.case / "sorted" / "cluster-00"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine\n")


def _old_table(lane: Lane) -> None:
    (lane.case / "mine.csv").write_text("path,cluster\n")


def _two_models(lane: Lane) -> None:
    shutil.copytree(lane.case / "run", lane.case / "first")
    lane.must(*REPLACE)
    lane.must("JULE.save", "first", "saved")


def _killed(command: tuple[str, ...], share: float) -> Callable[[Lane], None]:
    """Return a function that runs a command and kills it after a share of its operations."""

    def make(lane: Lane) -> None:
        before = lane.base / "before"
        shutil.copytree(lane.case, before, symlinks=True)
        ended = lane.server.run(command, lane.case, fault=Fault())
        shutil.rmtree(lane.case)
        before.rename(lane.case)
        number = int(len(ended.operations) * share)
        lane.server.run(command, lane.case, fault=Fault(number, "before"))

    return make


# Each state by its name: the state that it is made from, and how.
STARTS: dict[str, tuple[str, Callable[[Lane], None]]] = {
    "nothing": ("", _nothing),
    "finished": ("", _finished),
    "finished with sheets": ("finished", _finished_with_sheets),
    "edits": ("finished", _edit),
    "edited": ("edits", _edited),
    "own files": ("finished", _own_files),
    "own sorted": ("finished", _own_sorted),
    "old table": ("finished", _old_table),
    "two models": ("finished", _two_models),
    "interrupted": ("", _killed(CLUSTER, 0.4)),
    "interrupted late": ("", _killed(CLUSTER, 0.85)),
    "interrupted replacement": ("own files", _killed(REPLACE, 0.6)),
}

OWN = ("run/mine", "run/notes.txt", "run/report.html.part", "run/labels-2.csv.part", "run/link")

OWN_SORTED = ("sorted/cluster-00/notes.txt",)
CACHE = ("home/cache",)


def _again(name: str, command: tuple[str, ...], start: str, **more: object) -> Scenario:
    """Return a scenario in which the user runs the same command again."""
    return Scenario(name, command, start, (command,), **more)  # type: ignore[arg-type]


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "cluster",
        CLUSTER,
        "nothing",
        (RESUME, CLUSTER),
        other=((*CLUSTER, "--overwrite"),),
        reads=READ,
        env=FRESH,
        growing=CACHE,
    ),
    Scenario(
        "cluster --overwrite",
        REPLACE,
        "own files",
        (RESUME, REPLACE),
        other=(REPLACE,),
        reads=READ,
        mine=OWN,
    ),
    Scenario(
        "cluster --overwrite, pictures inside",
        REPLACE_INSIDE,
        "own files",
        (RESUME, REPLACE_INSIDE),
        other=(REPLACE_INSIDE,),
        reads=READ,
        mine=OWN,
    ),
    Scenario(
        "resume",
        RESUME,
        "interrupted",
        (RESUME,),
        other=((*CLUSTER, "--overwrite"),),
        reads=READ,
    ),
    Scenario("resume, late", RESUME, "interrupted late", (RESUME,), reads=READ),
    Scenario(
        "resume of --overwrite",
        RESUME,
        "interrupted replacement",
        (RESUME,),
        other=(REPLACE,),
        reads=READ,
        mine=OWN,
    ),
    _again("apply", ("apply", "run", "edits.json"), "edits", reads=READ_NAMES),
    Scenario(
        "apply to edited labels",
        ("apply", "run", "more.json"),
        "edited",
        (("apply", "run", "more.json"), ("report", "run")),
        reads=READ_NAMES,
    ),
    _again(
        "apply, sheets beside the page",
        ("apply", "run", "edits.json"),
        "finished with sheets",
        reads=READ_NAMES,
        few_inline=True,
    ),
    _again("cut", CUT, "own files", mine=OWN),
    _again("cut --out", (*CUT, "--out", "mine.csv"), "old table"),
    _again("report", ("report", "run"), "own files", mine=OWN),
    _again("report, sheets", ("report", "run"), "own files", mine=OWN, few_inline=True),
    _again("export (link)", (*EXPORT, "--how", "link"), "own sorted", mine=OWN_SORTED),
    _again("export (copy)", (*EXPORT, "--how", "copy"), "own sorted", mine=OWN_SORTED),
    _again("export --parquet", ("export", "run", "--parquet", "table.parquet"), "finished"),
    _again("predict --to", PREDICT, "own sorted", mine=OWN_SORTED),
    _again("cache", FILL, "nothing", env=FRESH, growing=CACHE),
    _again(
        "JULE.save(overwrite=True)",
        ("JULE.save", "run", "saved"),
        "two models",
        reads=("cut", "saved", "-k", "2", "--out", "../seen.csv"),
    ),
)  # fmt: skip
