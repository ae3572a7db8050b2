"""The reviews' study: words and weights from the training rows, labels where they may be read."""

import numpy as np
import pytest

from covshift.paper.grid_systems import SYSTEMS
from covshift.paper.reviews import study as reviews_trials
from covshift.paper.reviews.protocol import (
    FIXED,
    PLANS,
    REVIEW_GRIDS,
    ReviewPlan,
    _weigh_words,
    draw_review_fold,
    draw_review_trial,
    load_reviews,
    target_half_labels,
)
from covshift.paper.reviews.report import (
    BY_FOLDS,
    ORACLE,
    _choices,
    reviews_document,
    reviews_table,
)
from covshift.paper.reviews.study import _run_on_reviews, reviews_study
from covshift.studies.comparison.collections import halves_of
from tests.datasets.made_folders import make_processed_reviews, make_review_arrays
from tests.studies.made_records import record_of

FEW_BATCHES = {"mini_batches": 30}
SMALL = ReviewPlan(
    "small",
    {
        "SVM": [{}],
        "SF": [{"L": 4}],
        "PSF": [{"activation": "sin", "L": 4, "label_reward": 1.0},
                {"activation": "cos", "L": 4, "label_reward": 2.0}],
        "LSPC": [{"sigma": 1.0, "lambda": 0.1}, {"sigma": 0.5, "lambda": 1.0}],
        "IW+LSPC": [{"sigma": 1.0, "lambda": 0.1}],
        "SSA": [{"P": 3}],
        "DAE": [{**REVIEW_GRIDS["DAE"][0], "L": 4, **FEW_BATCHES}],
    },
    (0.1, 1.0),
    2,
)  # fmt: skip
SMALL_FIXED = {**FIXED, "SSA": {"P": 3}, "DAE": {**FIXED["DAE"], "L": 4, **FEW_BATCHES}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(make_review_arrays(tmp_path_factory.mktemp("reviews"), n_rows=30, n_words=30))


@pytest.fixture(scope="module")
def reviews(folder):
    return load_reviews(folder)


def naive_weights(counts, training, words):
    """TF-IDF by the formula, word by word."""
    n = len(training)
    rows = np.zeros((len(counts), len(words)))
    for j, word in enumerate(words):
        frequency = sum(row[word] > 0 for row in training)
        rows[:, j] = counts[:, word] * (1 + np.log((1 + n) / (1 + frequency)))
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)


def test_words_and_weights_come_from_the_training_rows(reviews):
    X = reviews.collection.X
    training, others = X[:40], X[40:80]
    blocks = _weigh_words([training, others], 5, reviews.single, dense=True)
    totals = training.toarray().sum(axis=0) * reviews.single
    words = np.argsort(-totals, kind="stable")[:5]
    for block, counts in zip(blocks, (training, others), strict=True):
        expected = naive_weights(counts.toarray(), training.toarray(), words)
        np.testing.assert_allclose(block, expected, atol=1e-12)
    (sparse_block, _) = _weigh_words([training, others], 5, reviews.single, dense=False)
    np.testing.assert_array_equal(sparse_block.toarray(), blocks[0])


def test_more_words_than_there_are(reviews):
    X = reviews.collection.X
    assert _weigh_words([X], 5000, reviews.single, dense=True)[0].shape[1] == reviews.single.sum()
    assert _weigh_words([X], 5000, None, dense=True)[0].shape[1] == len(reviews.single)


def test_rows_of_a_trial(reviews):
    drawn = draw_review_trial(reviews, "dvd", "books", 0, 10, keep_sparse=False)
    assert drawn.training.X.shape == (60 + 30, 10)
    assert set(drawn.training.y[drawn.training.sample_domain < 0]) == {-1}  # no label is there
    assert len(drawn.X_test) == len(drawn.y_test) == 30
    _, test = halves_of(reviews.collection, "books", 0)
    np.testing.assert_array_equal(drawn.y_test, reviews.collection.y[test])


def test_folds_hold_out_every_training_row_once(reviews):
    folds = [draw_review_fold(reviews, "dvd", fold, 10) for fold in range(3)]
    assert [len(fold.y_test) for fold in folds] == [20, 20, 20]
    labels = np.concatenate([fold.y_test for fold in folds])
    assert np.bincount(labels).tolist() == [30, 30]
    for fold in folds:
        np.testing.assert_array_equal(fold.training.target, fold.X_test)


def with_labels(reviews, rows, labels):
    y = reviews.collection.y.copy()
    y[rows] = labels
    return reviews._replace(collection=reviews.collection._replace(y=y))


@pytest.mark.parametrize("system", SYSTEMS)
def test_masked_labels_reach_the_oracle_alone(system, reviews):
    settings = {"kind": "target", "system": system, "source": "dvd", "target": "books"}
    settings |= {"settings": SMALL.grids[system], "costs": [0.1, 1.0], "n_words": 50}
    before = _run_on_reviews(reviews, settings, 0)
    first, second = halves_of(reviews.collection, "books", 0)
    flipped = 1 - reviews.collection.y[first]
    after = _run_on_reviews(with_labels(reviews, first, flipped), settings, 0)
    assert after["test_uar"] == before["test_uar"]
    mirrored = 1 - np.array(before["oracle_uar"])
    np.testing.assert_allclose(after["oracle_uar"], mirrored, atol=1e-12)
    flipped = 1 - reviews.collection.y[second]
    after = _run_on_reviews(with_labels(reviews, second, flipped), settings, 0)
    assert after["oracle_uar"] == before["oracle_uar"]
    np.testing.assert_allclose(after["test_uar"], 1 - np.array(before["test_uar"]), atol=1e-12)


@pytest.mark.parametrize("system", SYSTEMS)
def test_folds_read_no_label_of_a_target(system, reviews):
    settings = {"kind": "fold", "system": system, "source": "dvd", "fold": 0}
    settings |= {"settings": SMALL.grids[system], "costs": [0.1], "n_words": 50}
    before = _run_on_reviews(reviews, settings, 0)
    others = np.flatnonzero(reviews.collection.domain != reviews.collection.number_of("dvd"))
    changed = with_labels(reviews, others, 1 - reviews.collection.y[others])
    assert _run_on_reviews(changed, settings, 0) == before


def test_the_oracle_reads_the_half_that_is_adapted_to(reviews):
    first, _ = halves_of(reviews.collection, "kitchen", 4)
    labels = target_half_labels(reviews, "kitchen", 4)
    np.testing.assert_array_equal(labels, reviews.collection.y[first])


@pytest.fixture(scope="module")
def records(folder, reviews):
    """Of the whole study, small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reviews_trials, "FIXED", SMALL_FIXED)
        patch.setattr(reviews_trials, "VOCABULARIES", {10: False, 4000: True})
        study = reviews_study(folder, SMALL, 0)
        assert all(len(task) == 1 for task in study.tasks)
        return [
            record_of(trial, _run_on_reviews(reviews, trial.settings, trial.seed))
            for (trial,) in study.tasks
        ]


def test_the_whole_study_makes_a_report(records):
    document = reviews_document(records, [("command", "x")], SMALL)
    tables = {table["id"]: table for part in document["sections"] for table in part["tables"]}
    assert len(tables["targets"]["rows"]) == 3 * len(SYSTEMS)
    assert [row["system"] for row in tables["words"]["rows"]] == [*SYSTEMS, "SVM", "SF", "PSF"]
    table = reviews_table(records)
    assert [len(group) for group in table.groups] == [len(SYSTEMS)] * 3


def test_choices(records):
    found = _choices(records)
    folds = [
        record.result["fold_uar"]
        for record in records
        if record.trial.settings["kind"] == "fold" and record.trial.settings["system"] == "PSF"
    ]
    best = np.unravel_index(np.argmax(np.mean(folds, axis=0)), (2, 2))
    results = {
        (*(record.trial.settings[name] for name in ("target", "system")), record.trial.seed): (
            np.array(record.result["test_uar"]),
            np.array(record.result["oracle_uar"]),
        )
        for record in records
        if record.trial.settings["kind"] == "target"
    }
    assert len(found) == 3 * len(SYSTEMS) * 2
    for (target, system, way), one in found.items():
        assert sorted(one.by_unit) == [(0,), (1,)]
        for (seed,), score in one.by_unit.items():
            scores, oracle = results[target, system, seed]
            if way == BY_FOLDS and system == "PSF":
                assert score == scores[best]
            if way == ORACLE:
                assert score == scores[np.unravel_index(np.argmax(oracle), oracle.shape)]


def test_a_fold_that_failed_leaves_no_choice(records):
    kept = [record for record in records if record.trial.settings.get("fold") != 2]
    assert {way for _, _, way in _choices(kept)} == {ORACLE}


def test_other_reviews_are_another_run(folder, reviews, tmp_path):
    (one, *_), *_ = reviews_study(folder, SMALL, 0).tasks
    words = reviews._replace(single=~reviews.single)  # the same counts of other words
    assert words.fingerprint != reviews.fingerprint == one.settings["data"]
    moved = make_review_arrays(tmp_path, n_rows=30, n_words=30, seed=1)
    with pytest.raises(ValueError, match="has changed since the run began"):
        reviews_trials.run_review_trials([one], str(moved))


def test_differences_are_to_the_system_without_adaptation(records):
    found = _choices(records)
    for (target, system, way), one in found.items():
        if system in ("SVM", "LSPC"):
            assert one.difference is None
            continue
        baseline = found[target, "LSPC" if "LSPC" in system else "SVM", way]
        expected = np.mean([one.by_unit[unit] - baseline.by_unit[unit] for unit in one.by_unit])
        assert one.difference.mean == pytest.approx(expected)


def test_a_folder_without_the_domains(tmp_path):
    with pytest.raises(ValueError, match="lacks reviews of electronics, kitchen"):
        reviews_study(str(make_processed_reviews(tmp_path)), SMALL, 0)


def test_plans():
    assert len(PLANS["full"].grids["PSF"]) == 170
    assert len(PLANS["full"].grids["DAE"]) == 54
    for system in SYSTEMS:
        chosen, full = (PLANS[name].grids[system] for name in ("default", "full"))
        assert 0 < len(chosen) <= len(full)
        assert all(setting in full for setting in chosen)
    assert set(PLANS["default"].costs) <= set(PLANS["full"].costs)
