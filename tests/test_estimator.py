"""JULE as a scikit-learn estimator."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from jule import JULE, Run
from jule.evaluation import ari, nmi
from jule.images import load_dataset
from jule.locks import LockedError
from jule.runs.edits import EditSession
from jule.runs.folder import RunFolder

QUICK = {"min_images": 800, "epochs": 1.0, "n_periods": 2}
ONE_STEP = {"min_images": 100, "epochs": 0.1, "n_periods": 1}


def model(k=5, settings=QUICK, **options):
    return JULE(k, rounds=1, settings=settings, **options)


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("digits")
    few = data.labels < 5
    return data.images[few], data.labels[few]


@pytest.fixture(scope="module")
def fitted(digits):
    return model().fit(digits[0][:300], digits[1][:300])


@parametrize_with_checks([JULE(3, rounds=1, settings={**ONE_STEP, "min_images": 300})])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_all_attributes_are_there(fitted):
    assert fitted.labels_.shape == (300,)
    assert {len(np.unique(fitted.labels_sf_)), len(np.unique(fitted.labels_rc_))} == {5}
    assert fitted.embedding_.shape == (300, 160)
    assert fitted.tree_.n_clusters == 1
    assert fitted.confidence_.shape == (300,)
    assert fitted.n_clusters_ == 5
    assert fitted.choice_ is None
    assert fitted.history_[0].nmi is not None


def test_labels_are_not_needed(digits):
    assert model(settings=ONE_STEP).fit(digits[0][:100]).history_[0].nmi is None


def test_new_images_find_their_clusters(digits, fitted):
    new, labels = digits[0][300:], digits[1][300:]
    found = fitted.predict(new)
    assert nmi(labels, found) > nmi(digits[1][:300], fitted.labels_) - 0.2
    shares = fitted.predict_proba(new)
    assert shares.shape == (len(new), 5)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(shares.argmax(axis=1), found)
    np.testing.assert_allclose(np.linalg.norm(fitted.transform(new), axis=1), 1, atol=1e-5)


def test_fitted_images_are_predicted_as_labelled(digits, fitted):
    same = fitted.predict(digits[0][:300]) == fitted.labels_
    assert same.mean() > 0.97


def test_another_number_of_clusters_needs_no_training(fitted):
    np.testing.assert_array_equal(fitted.recut(5), fitted.labels_)
    for k in (1, 2, 7, 300):
        assert len(np.unique(fitted.recut(k))) == k
    for k in (0, 301):
        with pytest.raises(ValueError, match="between 1 and 300"):
            fitted.recut(k)


def test_saved_and_loaded_it_predicts_the_same(digits, fitted, tmp_path):
    fitted.save(str(tmp_path / "model"))
    again = JULE.load(str(tmp_path / "model"))
    np.testing.assert_array_equal(again.labels_, fitted.labels_)
    np.testing.assert_array_equal(again.predict(digits[0]), fitted.predict(digits[0]))
    np.testing.assert_array_equal(again.recut(3), fitted.recut(3))
    assert again.history_ == fitted.history_
    assert again.get_params()["n_clusters"] == 5
    with pytest.raises(FileExistsError, match="overwrite=True"):
        fitted.save(tmp_path / "model")
    fitted.save(tmp_path / "model", overwrite=True)


def test_a_folder_that_is_no_run_is_never_overwritten(fitted, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="not a run"):
        fitted.save(tmp_path, overwrite=True)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_clones_and_parameters():
    original = model(7, augment=False)
    twin = clone(original)
    assert twin.get_params() == original.get_params()
    assert twin.set_params(n_clusters=3).n_clusters == 3


def test_in_a_pipeline():
    rng = np.random.default_rng(0)
    vectors = np.concatenate([rng.normal(c, 0.2, (40, 4)) for c in (-2, 0, 2)])
    pipeline = make_pipeline(StandardScaler(), model(3, preparation="none"))
    assert nmi(np.repeat(range(3), 40), pipeline.fit_predict(vectors)) > 0.8
    assert pipeline.predict(vectors[:4]).shape == (4,)


def test_a_copy_of_the_users_own_network_is_trained(digits, tmp_path):
    own = nn.Sequential(nn.Flatten(), nn.Linear(64, 20), nn.BatchNorm1d(20), nn.Tanh())
    before = own[1].weight.detach().clone()
    fitted = model(network=own, settings=ONE_STEP).fit(digits[0][:100])
    assert fitted.embedding_.shape == (100, 20)
    assert torch.equal(own[1].weight, before)
    assert not torch.equal(fitted.network_.body[1].weight, before)
    fitted.save(tmp_path / "own")
    with pytest.raises(ValueError, match="own"):
        JULE.load(tmp_path / "own")
    again = JULE.load(tmp_path / "own", network=own)
    np.testing.assert_array_equal(again.predict(digits[0]), fitted.predict(digits[0]))


def test_floats_and_colour_work(digits):
    colour = np.stack([digits[0][:100] / 255.0] * 3, axis=-1)
    assert len(np.unique(model(settings=ONE_STEP).fit_predict(colour))) == 5


def test_an_open_number_of_clusters_is_chosen(digits):
    fitted = model(None, settings=ONE_STEP).fit(digits[0][:200])
    assert fitted.n_clusters_ == fitted.choice_.k >= 2
    assert 0 <= fitted.choice_.sureness <= 1
    assert fitted.choice_.candidates[0][0] == fitted.choice_.k


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        (np.ones((3, 4, 4)).cumsum(axis=0), {"k": 5}, "5 clusters cannot be made of n_samples=3"),
        (np.zeros((9, 4, 4), np.uint8), {"k": 3}, "all 9 samples are identical"),
        (np.ones((9, 4, 4)).cumsum(axis=0), {"k": 0}, "n_clusters must be 1 or more"),
        (np.zeros((1, 4, 4), np.uint8), {"k": 2}, "minimum of 2 is required"),
        ([np.zeros((4, 4)), np.ones((4, 5))], {"k": 2}, "image 1 has shape .4, 5."),
        (np.full((4, 3, 3), np.nan), {"k": 2}, "NaN"),
        (np.eye(4), {"k": 2.5}, "n_clusters must be an integer"),
        (np.eye(4), {"k": 2, "preset": "fast"}, "unknown preset"),
        (np.zeros((9, 3, 16, 16)), {"k": 2}, r"looks channels-first.*transpose\(0, 2, 3, 1\)"),
        (np.zeros((9, 2, 8, 8, 3)), {"k": 2}, r"got an array of shape \(9, 2, 8, 8, 3\)"),
    ],
)
def test_bad_input_is_refused(samples, options, message):
    with pytest.raises(ValueError, match=message):
        model(**options).fit(samples)


def test_one_cluster_holds_everything_and_trains_nothing(digits):
    fitted = model(1).fit(digits[0][:60])
    assert not fitted.labels_.any()
    assert {period.steps for period in fitted.history_} == {0}
    assert not fitted.predict(digits[0][:5]).any()


def test_labels_of_another_length_are_refused(digits):
    with pytest.raises(ValueError, match="10 samples need as many labels"):
        model().fit(digits[0][:10], digits[1][:9])


def test_images_of_another_size_are_refused_later(fitted):
    with pytest.raises(ValueError, match=r"fitted on samples of shape \(8, 8\)"):
        fitted.predict(np.zeros((2, 8, 9)))


def test_an_unfitted_model_is_refused(digits, tmp_path):
    for method in ("predict", "transform", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(model(), method)(digits[0])
    for call in (lambda: model().recut(3), model().report, lambda: model().save(tmp_path)):
        with pytest.raises(NotFittedError):
            call()


# Progress


def test_verbose_shows_bars_on_terminals_only_and_changes_nothing(digits, capsys, monkeypatch):
    from rich.console import Console

    images = digits[0][:80]
    quiet = model(3, settings=ONE_STEP).fit(images)
    loud = model(3, settings=ONE_STEP, verbose=True).fit(images)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    monkeypatch.setattr(Console, "is_terminal", True)
    on_terminal = model(3, settings=ONE_STEP, verbose=True).fit(images)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "training" in captured.err
    for other in (loud, on_terminal):
        np.testing.assert_array_equal(other.labels_, quiet.labels_)
        np.testing.assert_array_equal(other.embedding_, quiet.embedding_)


def test_progress_is_called_with_stages_and_shares(digits):
    calls = []
    progress = lambda *call: calls.append(call)  # noqa: E731
    model(3, settings=ONE_STEP, progress=progress, verbose=True).fit(digits[0][:60])
    assert {"neighbours", "period 1 of 1, training"} <= {stage for stage, _ in calls}
    assert all(0 <= share <= 1 for _, share in calls)


# The page


def test_report_shows_the_images_it_was_fitted_on(digits, fitted, tmp_path):
    assert fitted.report(umap=False).sheets is not None
    fitted.save(tmp_path / "model")
    (tmp_path / "model" / "images.npz").unlink()
    loaded = JULE.load(tmp_path / "model")
    assert loaded.report(umap=False).sheets is None
    assert loaded.report(umap=False).summary["no_pictures"] == "pass the images to report()"
    again = loaded.report(digits[0][:300], umap=False)
    assert again.sheets is not None
    assert (again.summary["images"], again.summary["clusters"]) == (300, 5)


def test_a_saved_model_has_its_images_for_exports_and_the_page(tmp_path):
    images = load_dataset("digits").images[:40]
    model = JULE(n_clusters=3, rounds=1, settings={"min_images": 100}).fit(images)
    model.save(tmp_path / "run")
    run = Run(tmp_path / "run")
    assert run.export_folders(tmp_path / "sorted").made == 40
    assert run.report().sheets is not None
    loaded = JULE.load(tmp_path / "run")
    loaded.save(tmp_path / "run", overwrite=True)  # its images are not lost with the old run
    assert loaded.report().sheets is not None
    assert Run(tmp_path / "run").report().sheets is not None


def test_unsure_images_of_a_loaded_run_stay_beside_the_clusters(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    session = EditSession(RunFolder(tmp_path / "run"))
    session.add(session.editor.shelve([3, 40, 90]))
    session.write_labels()
    loaded = JULE.load(tmp_path / "run")
    assert loaded.n_clusters_ == 5
    assert np.flatnonzero(loaded.labels_ == 5).tolist() == [3, 40, 90]
    np.testing.assert_array_equal(loaded.recut(5), loaded.labels_)
    for k in (2, 8):
        labels = loaded.recut(k)
        assert np.unique(labels).tolist() == list(range(k + 1))
        assert np.flatnonzero(labels == k).tolist() == [3, 40, 90]


def test_the_columns_of_predict_proba_are_the_clusters(fitted, digits, tmp_path):
    images = digits[0][:300]
    fitted.save(tmp_path / "run")
    session = EditSession(RunFolder(tmp_path / "run"))
    shelved = np.flatnonzero(fitted.labels_ == 4)[1:]  # one is left of it
    session.add(session.editor.shelve(shelved.tolist()))
    session.write_labels()
    loaded = JULE.load(tmp_path / "run")
    shares = loaded.predict_proba(images)
    assert shares.shape == (len(images), 5)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert loaded.predict(images[shelved]).max() < 5
    rest = loaded.labels_ < 4
    assert (loaded.predict(images[rest]) == loaded.labels_[rest]).mean() > 0.9
    session.add(session.editor.shelve(range(len(images))))
    session.write_labels()
    loaded = JULE.load(tmp_path / "run")
    assert loaded.n_clusters_ == 0
    with pytest.raises(ValueError, match="all images of this run are unsure"):
        loaded.predict_proba(images)
    with pytest.warns(UserWarning, match="no clusters instead of 3: all images are unsure"):
        loaded.recut(3)


def test_copies_share_a_cluster_at_every_cut():
    images = np.repeat(load_dataset("digits").images[:10], 4, axis=0)
    with pytest.warns(UserWarning, match="10 clusters instead of 12"):
        model = JULE(n_clusters=12, rounds=1, settings={"min_images": 100}).fit(images)
    for k in range(1, 11):
        labels = model.recut(k).reshape(10, 4)
        assert (labels == labels[:, :1]).all()


# Copies, masks, values beyond float32


LITTLE = {"min_images": 200}


def test_fewer_different_images_than_clusters():
    two = np.random.default_rng(0).integers(0, 255, (2, 16, 16)).astype(np.uint8)
    model = JULE(n_clusters=5, rounds=1, settings=LITTLE)
    with pytest.warns(UserWarning, match=r"^2 clusters instead of 5: there are only 2 different"):
        model.fit(np.tile(two, (50, 1, 1)))
    assert model.n_clusters_ == model.result_.n_clusters == 2
    assert model.labels_.tolist() in ([0, 1] * 50, [1, 0] * 50)
    with pytest.warns(UserWarning, match=r"^2 clusters instead of 7"):
        assert np.unique(model.recut(7)).tolist() == [0, 1]


def test_a_saved_model_still_knows_its_copies(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, (30, 16, 16)).astype(np.uint8)
    model = JULE(n_clusters=3, rounds=1, settings=LITTLE).fit(np.tile(images, (2, 1, 1)))
    model.save(tmp_path / "run")
    loaded = JULE.load(tmp_path / "run")
    with pytest.warns(UserWarning, match="30 clusters instead of 40: there are only 30 different"):
        labels = loaded.recut(40)
    np.testing.assert_array_equal(labels[:30], labels[30:])
    assert labels.max() == 29


def test_masks_are_refused(fitted, digits):
    masked = np.ma.array(digits[0][:20].astype(float), mask=digits[0][:20] > 100)
    for use in (fitted.fit, fitted.transform, fitted.predict):
        with pytest.raises(ValueError, match="masked values"):
            use(masked)


@pytest.mark.parametrize("scale", [1e298, 1e-310])
def test_values_beyond_float32_are_refused(scale):
    samples = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(ValueError, match="computes in float32: scale the samples"):
        JULE(n_clusters=2, settings=LITTLE).fit(samples * scale)


def test_samples_that_float32_cannot_tell_apart_are_refused():
    samples = np.random.default_rng(0).normal(size=(40, 3)) + 1e12
    with pytest.raises(ValueError, match=r"too little for float32.*subtract their mean"):
        JULE(n_clusters=2, settings=LITTLE).fit(samples)


def test_images_of_one_pixel_say_what_to_do():
    images = np.random.default_rng(0).integers(1, 255, (60, 1, 1)).astype(np.uint8)
    with pytest.raises(ValueError, match=r"preparation='none' and normalize=False"):
        JULE(n_clusters=3, settings=LITTLE).fit(images)
    options = {**LITTLE, "normalize": False}
    model = JULE(n_clusters=3, rounds=1, preparation="none", settings=options).fit(images)
    assert model.n_clusters_ == 3


def test_a_run_that_another_process_changes_is_not_saved_over(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    code = (
        "import sys; from pathlib import Path; from jule.locks import hold\n"
        "with hold(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LockedError):
            fitted.save(tmp_path / "run", overwrite=True)
        holder.stdin.close()
    fitted.save(tmp_path / "run", overwrite=True)
    assert JULE.load(tmp_path / "run").n_clusters_ == fitted.n_clusters_


def test_damaged_images_of_a_model_are_named(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    path = tmp_path / "run" / "images.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"images\.npz"):
        JULE.load(tmp_path / "run")


# Vectors


def groups(n, centres, spread, seed=0):
    classes = np.arange(n) % len(centres)
    noise = np.random.default_rng(seed).normal(0, spread, (n, np.shape(centres)[1]))
    return np.asarray(centres, float)[classes] + noise, classes


@pytest.mark.parametrize(
    ("n", "centres", "spread"),
    [
        (50, 10.0 * np.arange(5)[:, None] * [0, 0, 1, 0, 0], 0.1),  # they vary in one direction
        (50, 10.0 * np.arange(5)[:, None] * [1, 1, 1], 0.1),
        (150, [[10.0], [15.0], [20.0]], 0.1),  # one feature, far from 0
        (150, np.vstack([np.zeros(4), 5 * np.eye(4)]), 0.2),  # four groups around a fifth
        (20, 5 * np.eye(10)[:3], 0.05),  # few samples
        (24, 9 * np.eye(8)[:6], 0.1),  # groups of four
        (120, 3 * np.eye(6), 0.0),  # exact copies
    ],
)
def test_clear_groups_of_vectors_are_found(n, centres, spread):
    vectors, classes = groups(n, centres, spread)
    given, suggested = JULE(len(centres)).fit(vectors), JULE().fit(vectors)
    assert ari(classes, given.labels_) == ari(classes, suggested.labels_) == 1.0
    assert given.confidence_.min() > 0.9
    np.testing.assert_array_equal(given.predict(vectors), given.labels_)
    assert given.transform(vectors).shape == (n, vectors.shape[1] + 1)


def test_an_own_network_is_not_trained_like_the_head():
    vectors, classes = groups(90, 3 * np.eye(4)[:3], 0.3)
    model = JULE(3, network=nn.Linear(4, 8), settings={"min_images": 500}).fit(vectors)
    assert model._results.config.learning_rate == 0.001
    assert ari(classes, model.labels_) == 1.0


def test_small_clusters_do_not_count_when_their_number_is_suggested():
    vectors, _ = groups(60, 5 * np.eye(4)[:3], 0.1)
    together = np.concatenate([vectors, groups(7, 5 * np.eye(4)[3:], 0.1)[0]])
    sizes = [
        np.bincount(JULE(settings={"min_cluster_size": size}).fit(together).labels_)
        for size in (None, 10)
    ]
    assert sorted(sizes[0].tolist()) == [7, 20, 20, 20]
    assert sorted(sizes[1].tolist()) == [20, 20, 27]


# A map


def test_positions_on_a_map_replace_the_representation(digits, tmp_path, monkeypatch):
    monkeypatch.setattr("jule.joint.lowdim.FEWEST_STEPS", 5)
    images = digits[0][:100]
    plain = model(settings=ONE_STEP).fit(images)
    mapped = model(settings=ONE_STEP, n_components=2).fit(images)
    np.testing.assert_array_equal(mapped.labels_, plain.labels_)
    assert plain.map_ is None
    assert mapped.map_.shape == (100, 2)
    assert mapped.embedding_.shape == (100, 160)
    np.testing.assert_allclose(mapped.transform(images), mapped.map_, atol=1e-3)
    np.testing.assert_array_equal(mapped.predict(images), plain.predict(images))
    mapped.save(tmp_path / "run")
    loaded = JULE.load(tmp_path / "run")
    np.testing.assert_allclose(loaded.transform(images), mapped.map_, atol=1e-3)
    loaded.save(tmp_path / "again")
    run = Run(tmp_path / "again")
    np.testing.assert_array_equal(run.positions, mapped.map_)
    assert "map" in loaded.report(umap=False).arrays
    run.learn_map(3)
    assert run.positions.shape == (100, 3)
    assert run.predict(images[:4]).positions.shape == (4, 3)
    assert JULE.load(tmp_path / "again").transform(images[:4]).shape == (4, 3)


def test_must_links_and_cannot_links_are_obeyed():
    images = load_dataset("digits").images[:120]
    free = model(3).fit(images)
    zeros = np.flatnonzero(free.labels_ == 0)
    others = np.flatnonzero(free.labels_ != 0)
    must = np.array([[zeros[0], others[0]], [others[0], others[1]]])
    cannot = np.array([[zeros[0], zeros[1]], [zeros[1], zeros[2]], [zeros[0], zeros[2]]])
    with pytest.warns(UserWarning, match="3 clusters instead of 2: corrections keep this many"):
        held = model(2).fit(images, must_link=must, cannot_link=cannot)
    labels = held.labels_
    assert len(set(labels[[zeros[0], others[0], others[1]]].tolist())) == 1
    assert len(set(labels[zeros[:3]].tolist())) == 3
    assert held.n_clusters_ == 3  # so many are kept apart
    assert held.tree_.fewest == 3
    for k in (1, 3, 8):
        cut = held.tree_.cut(k)
        assert len(set(cut[zeros[:3]].tolist())) == 3
    with pytest.raises(ValueError, match="must-links join them"):
        model(2).fit(images, must_link=must, cannot_link=[[zeros[0], others[1]]])
