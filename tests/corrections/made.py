"""Bases for edits: random trees over made-up pictures."""

import numpy as np

from jule.corrections import Base, PictureIndex
from jule.corrections.editor import Editor
from jule.forward import MergeTree


def random_tree(rng, n):
    """A tree of merges of nodes drawn at random."""
    alive, merges = list(range(n)), []
    for t in range(n - 1):
        a, b = rng.choice(len(alive), 2, replace=False)
        merges.append([alive[a], alive[b]])
        alive = [node for i, node in enumerate(alive) if i not in (a, b)] + [n + t]
    return MergeTree(n, np.array(merges), np.linspace(1, 0.1, n - 1))


def base_of(seed, n=24, k=4, ids=None, run="one", copies=True):
    """A base of n pictures, some exact copies of others; `ids` says which pictures they are."""
    rng = np.random.default_rng(seed)
    first = np.arange(n)
    if copies:
        first[n - 2 :] = [0, 1]
    tree = random_tree(rng, n)
    labels = tree.cut(k)[first]
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    ids = np.arange(n) if ids is None else ids
    digests = np.zeros((n, 16), np.uint8)
    digests[:, 0] = np.asarray(ids)[first]
    index = PictureIndex([f"{number}.jpg" for number in ids], digests)
    return Base(labels, tree, index, first, run)


def editor_of(seed, log=None, **options):
    base = base_of(seed, **options)
    vectors = np.random.default_rng(seed).normal(size=(len(base.labels), 3))
    return Editor(base, vectors, log)
