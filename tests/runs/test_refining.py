"""More training with corrections: they hold, and nothing changes unless it is accepted."""

import numpy as np
import pytest

from jule.runs.edits import EditSession
from jule.runs.folder import RunFolder
from jule.runs.results import read_results


def edited(folder):
    """A run with a name, a must-link and cannot-links."""
    session = EditSession(RunFolder(folder))
    labels = session.state.labels
    one, two = (np.flatnonzero(labels == label) for label in (0, 1))
    session.add(session.editor.name(0, "zeros"))
    session.add(session.editor.must_link([int(one[0]), int(two[0])]))
    session.add(session.editor.cannot_link([int(one[1])], [int(one[2])]))
    return one, two


def test_a_run_is_refined_only_if_it_is_accepted(copied, jule, refused):
    assert "no corrections to learn from" in refused("refine", copied)
    one, two = edited(copied)
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    done = jule("refine", copied, "--periods", "1")
    assert done.exit_code == 0, done.output
    assert "changed their cluster" in done.stdout
    assert "not accepted" in done.stdout
    assert {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()} == before
    done = jule("refine", copied, "--periods", "1", "--yes")
    assert done.exit_code == 0, done.output
    results = read_results(RunFolder(copied))
    labels = results.result.labels
    assert labels[one[0]] == labels[two[0]]
    assert labels[one[1]] != labels[one[2]]
    assert "zeros" in results.cluster_names.values()
    assert results.edits.done == 3
    automatic = EditSession(RunFolder(copied)).found.result
    assert automatic.labels[one[1]] != automatic.labels[one[2]]  # obeyed in merging, too
    assert len(results.history) > 0


@pytest.mark.parametrize("is_edited", [True, False])
def test_an_update_may_train_again(copied, trained, jule, is_edited):
    if is_edited:
        edited(copied)
    done = jule("update", copied, trained.folder / "new", "--retrain")
    assert done.exit_code == 0, done.output
    assert "trained on 141 pictures" in done.stdout
    results = read_results(RunFolder(copied))
    assert len(results.names) == 141
    assert ("zeros" in results.cluster_names.values()) == is_edited
