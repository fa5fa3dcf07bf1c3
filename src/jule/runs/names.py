"""The names of the files of a run.

config.json          settings, and a description of the data; written first
state/               the newest states, until the run is finished
history.json         one entry per period
snapshots/           positions of the samples before the first period and after each period
labels.csv           one row per sample: path, cluster, confidence, rank, name, by_hand, index
labels_auto.csv      the labels as they were found, if they have been edited
skipped.csv          files that could not be read, and why
duplicates.csv       images that are exact copies of others
digests.npy          a checksum of the content of each image
edits.json           names, moves and other corrections by a person, in order
labels_sf.npy        SF
labels_rc.npy        RC
embedding.npy        the final representation
neighbors.npz        its nearest neighbours
input_neighbors.npz  the nearest neighbours of the samples before learning
tree.npz             its merge tree, which passes through the labels as they were found
tree-1.npz, ...      the merge trees of the networks of an ensemble, one for each
network.safetensors  the network
map.csv              one row per sample: path, x, y, index; if the run has a map
map.npy              the same positions as an array
map.safetensors      the network that places samples on the map
result.json          the numbers of the run
report.html, report.json, report_pictures/    the page
labels-K.csv, *.png, *.pdf, *.svg             other cuts, and figures
error.log            details of the last unexpected error
manifest.json        size and checksum of every file; written last, so a run that has it is whole

While a run is changed:

.jule-lock           held by the process that changes it
.jule-update/        files that will replace others, all at once
.jule-next/          the run that will replace this one, when it is finished
"""

from __future__ import annotations

import re

CONFIG, RESULT, HISTORY, MANIFEST = "config.json", "result.json", "history.json", "manifest.json"
LABELS, LABELS_AUTO = "labels.csv", "labels_auto.csv"
SKIPPED, DUPLICATES = "skipped.csv", "duplicates.csv"
DIGESTS, EDITS = "digests.npy", "edits.json"
LABELS_SF, LABELS_RC = "labels_sf.npy", "labels_rc.npy"
EMBEDDING, NEIGHBORS, TREE = "embedding.npy", "neighbors.npz", "tree.npz"
INPUT_NEIGHBORS = "input_neighbors.npz"
NETWORK = "network.safetensors"
MAP, MAP_TABLE, MAP_NETWORK = "map.npy", "map.csv", "map.safetensors"
IMAGES = "images.npz"
STATES, SNAPSHOTS = "state", "snapshots"
PAGE, SUMMARY, PAGE_PICTURES = "report.html", "report.json", "report_pictures"
ERRORS = "error.log"
UPDATE, NEXT = ".jule-update", ".jule-next"
FILES = (
    CONFIG, RESULT, HISTORY, MANIFEST, LABELS, LABELS_AUTO, SKIPPED, DUPLICATES, DIGESTS,
    EDITS, LABELS_SF, LABELS_RC, EMBEDDING, NEIGHBORS, INPUT_NEIGHBORS, TREE, NETWORK, MAP,
    MAP_TABLE, MAP_NETWORK, IMAGES, PAGE, SUMMARY, ERRORS,
)  # fmt: skip
FOLDERS = (STATES, SNAPSHOTS, PAGE_PICTURES)
# Files whose names have a number or a checksum in them. Nothing else is ever called a run's own.
OTHERS = re.compile(
    r"labels-\d{1,9}\.csv"
    r"|tree-\d{1,3}\.npz"
    r"|(pca3d|map|gallery|history)\.(png|pdf|svg)"
    r"|state/state-\d{4}\.safetensors"
    r"|snapshots/snapshot-\d{4}\.npz"
    r"|report_pictures/(sheet-[0-9a-f]{16}|\d{4})\.(png|jpg|jpeg)"
)


def member_tree(number: int) -> str:
    """Return the name of the file with the merge tree of a network of an ensemble.

    Examples
    --------
    >>> member_tree(0)
    'tree-1.npz'
    """
    return f"tree-{number + 1}.npz"


def is_own_name(name: str) -> bool:
    """Return whether a path in a run folder can belong to the run.

    Examples
    --------
    >>> is_own_name("labels-7.csv"), is_own_name("photos/a.jpg"), is_own_name("../labels.csv")
    (True, False, False)
    """
    return name in FILES or OTHERS.fullmatch(name) is not None
