"""Histories of a run: edits, pictures that are added, and runs with another number of clusters.

Whatever happens, no picture is lost, every constraint holds, clusters are a partition, names are
unique, and what was saved is the same when it is read again. Nothing is trained.
"""

import warnings
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.corrections.constraints import constraints_from
from jule.corrections.editor import Editor
from jule.corrections.pictures import PictureIndex
from jule.images import read_images
from jule.joint import Config, State, finish
from jule.runs.adding import grow, only_new
from jule.runs.corrected import base_of, correct, log_bytes, parse_log
from jule.runs.results import new_results
from tests.corrections.test_properties import check_sound, number, step, take

N, WIDTH = 16, 3
event = st.one_of(
    step,
    st.tuples(st.sampled_from(["update", "rerun", "cut"]), number, number, st.just("")),
)


def points(seed, n):
    """Vectors of which the last one is a copy of the first."""
    found = np.random.default_rng(seed).normal(size=(n, WIDTH)).astype(np.float32)
    found[-1] = found[0]
    return found


def run_of(vectors, k, log=None):
    """Results without training, and an editor of them; edits are obeyed, as in a new run."""
    data = read_images(vectors)
    constraints = None
    if log is not None and log.done:
        pictures = PictureIndex(data.names, data.digests)
        constraints = constraints_from(log.in_effect, pictures, data.first_copies)
    config = Config(n_clusters=k)
    labels = np.arange(len(vectors), dtype=np.int32)
    labels = labels if constraints is None else constraints.initial(labels)
    state = State(labels=labels, constraints=constraints)
    result = finish(state, config, embedding=vectors, first_copies=data.first_copies)
    if constraints is not None:
        assert not constraints.broken_by(result.labels).any()
    found = new_results(
        config, result, (), first_copies=data.first_copies, indices=data.indices, names=data.names
    )
    return with_edits(replace(found, digests=data.digests), log)


def with_edits(found, log):
    return found, Editor(base_of(found, found.result), found.result.embedding, log)


def update(found, editor, vectors):
    """Add pictures as `jule update` does, and check that nothing else changes."""
    data = read_images(vectors)
    new = only_new(found.digests, data)
    before = editor.state
    if len(new) == 0 or len(before.numbers) == 0:
        return found, editor
    grown, log = grow(found, editor, data, new, vectors[new])
    n = len(found.names)
    assert grown.names[:n] == found.names
    found, editor = with_edits(grown, log)
    state = editor.state
    np.testing.assert_array_equal(state.labels[:n], before.labels)
    np.testing.assert_array_equal(state.by_hand[:n], before.by_hand)
    assert dict(state.names) == dict(before.names)
    assert np.isin(state.labels[n:], before.numbers).all()  # neither new clusters nor the shelf
    assert not state.by_hand[n:].any()
    return found, editor


def rerun(editor, vectors, k):
    """Cluster all pictures again, into k clusters, and keep the edits, as in a new run."""
    asked = min(k, len(np.unique(vectors, axis=0)))
    found, again = run_of(vectors, asked, editor.log)
    assert again.log == editor.log
    kept = dict(again.state.names).values()
    assert set(kept) <= {edit.name for edit in editor.log.in_effect}
    return found, again


def check_links(editor):
    """Every must-link and cannot-link that was not removed or left out holds."""
    state, index = editor.state, editor.base.pictures
    for link in state.links:
        found = state.labels[index.find_all(link.pictures)]
        if link.kind == "must-link":
            assert len(set(found.tolist())) == 1
        else:
            others = state.labels[index.find_all(link.others)]
            assert not set(found[found >= 0].tolist()) & set(others.tolist())


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 20), st.lists(event, max_size=12))
def test_any_history_is_sound(seed, events):
    warnings.simplefilter("ignore")  # of numbers of clusters that copies do not allow
    vectors = points(seed, N)
    found, editor = run_of(vectors, 4)
    for kind, a, b, name in events:
        if kind == "update":
            more = np.concatenate([points(a % 100, 3), vectors[:1]])
            found, editor = update(found, editor, more)
            vectors = found.result.embedding
        elif kind == "rerun":
            found, editor = rerun(editor, vectors, 1 + a % 6)
        elif kind == "cut":
            editor.add(editor.cut(1 + b % 8))
        else:
            take(editor, kind, a, b, name)
        assert len(editor.state.labels) == len(vectors) == len(found.names)
        check_sound(editor.base, editor.state)
        check_links(editor)
    log = parse_log(log_bytes(editor.log))
    assert log == editor.log
    results = correct(found, log)
    labels, names = editor.state.numbered()
    np.testing.assert_array_equal(results.result.labels, labels)
    np.testing.assert_array_equal(results.labels, editor.state.labels)
    assert results.cluster_names == names
