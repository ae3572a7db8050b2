"""Who is tested, what trains, and that nothing leaks."""

import numpy as np
import pytest

from covshift.paper.speech.protocol import (
    _balance_classes,
    corpora_to_test,
    digest_of,
    draw_halves,
    draw_trial,
    file_of,
    load_tables,
    save_tables,
    source_fold,
    source_speakers,
    table_of,
)
from tests.paper.speech.made_corpora import make_corpora, make_table


@pytest.fixture(scope="module")
def tables():
    return make_corpora()


def test_halves_are_halves_of_a_speakers_recordings(tables):
    table = tables["emodb"]
    drawn = set()
    for seed in range(30):
        halves = draw_halves(table, "emodb", np.random.RandomState(seed))
        rows = np.concatenate([halves.target, halves.test])
        np.testing.assert_array_equal(
            np.sort(rows), np.flatnonzero(table.speaker == halves.speaker)
        )
        target, test = (set(table.recording[part]) for part in (halves.target, halves.test))
        assert not target & test
        assert len(target) == len(test) == 5
        assert set(table.y[halves.test]) == {"positive", "negative"}
        drawn.add(halves.speaker)
    assert drawn == {"00", "01", "02"}


def test_a_test_half_without_a_class_is_drawn_again():
    """A single positive recording: half of the draws have it in the target half."""
    table = make_table(2, 0)
    positive = table.recording == "00-3.wav"
    table = table._replace(y=np.where(positive, "positive", "negative"))
    for seed in range(20):
        halves = draw_halves(table, "emodb", np.random.RandomState(seed))
        assert halves.speaker == "00"
        assert set(np.flatnonzero(positive)) <= set(halves.test)


def test_a_corpus_that_cannot_be_tested():
    table = make_table(2, 0)
    # Every speaker has one class: no half has both.
    table = table._replace(y=np.where(table.speaker == "00", "positive", "negative"))
    with pytest.raises(ValueError, match="speaker's recordings in emodb lacks a class"):
        draw_halves(table, "emodb", np.random.RandomState(0))


def test_what_trains(tables):
    assert corpora_to_test(list(tables)) == ["emodb", "ravdess"]
    source = source_speakers(tables, "emodb", "corpus", without="00")
    assert list(source) == [f"ravdess 0{i}" for i in range(4)] + ["vam 00", "vam 01"]
    source = source_speakers(tables, "ravdess", "speaker", without="02")
    assert list(source) == ["ravdess 00", "ravdess 01", "ravdess 03"]


@pytest.mark.parametrize("leave_out", ["corpus", "speaker"])
def test_rows_of_a_trial(tables, leave_out):
    halves, training, X_test, start = draw_trial(tables, "emodb", leave_out, 5)
    source = training.sample_domain >= 0
    assert training.target.shape == (len(halves.target), 72)
    assert X_test.shape == (len(halves.test), 72)
    assert set(training.y[~source]) == {""}  # no label of the tested speaker
    classes, counts = np.unique(training.y[source], return_counts=True)
    assert classes.tolist() == ["negative", "positive"]
    assert counts[0] == counts[1]
    # Standardized by speaker: the target half by itself.
    np.testing.assert_allclose(training.target.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(training.target.std(axis=0), 1)
    table = tables["emodb"]
    half = table.X[halves.target]
    expected = (table.X[halves.test] - half.mean(axis=0)) / half.std(axis=0)
    np.testing.assert_allclose(X_test, expected)
    again = draw_trial(tables, "emodb", leave_out, 5)
    np.testing.assert_array_equal(again.training.X, training.X)
    assert again.start == start
    assert draw_trial(tables, "emodb", leave_out, 6).start != start


def test_test_rows_do_not_leak(tables):
    """Other test rows change neither what is fitted nor the rows that are predicted."""
    halves, training, X_test, _ = draw_trial(tables, "emodb", "corpus", 0)
    X = tables["emodb"].X.copy()
    X[halves.test[1:]] *= 100
    changed = draw_trial({**tables, "emodb": tables["emodb"]._replace(X=X)}, "emodb", "corpus", 0)
    np.testing.assert_array_equal(changed.training.X, training.X)
    np.testing.assert_array_equal(changed.X_test[0], X_test[0])


def test_classes_are_filled_up_by_rows_that_are_there(tables):
    _, training, _, _ = draw_trial(tables, "emodb", "corpus", 0)
    uneven = training._replace(y=np.where(training.sample_domain == 0, "positive", training.y))
    balanced = _balance_classes(uneven, np.random.RandomState(0))
    n = len(uneven.X)
    np.testing.assert_array_equal(balanced.X[:n], uneven.X)  # nothing is lost
    assert (balanced.sample_domain[n:] >= 0).all()
    known = {row.tobytes() for row in uneven.X}
    assert all(row.tobytes() in known for row in balanced.X[n:])


def test_folds_of_source_speakers(tables):
    source = source_speakers(tables, "emodb", "corpus", without=None)
    n_held_out = 0
    for fold in range(3):
        training, y_held_out, _ = source_fold(source, fold, 3, 0)
        assert len(training.target) == len(y_held_out)
        assert set(training.y[training.sample_domain < 0]) == {""}
        assert len(np.unique(training.sample_domain)) == len(source)
        n_held_out += len(y_held_out)
        for speaker in np.unique(training.sample_domain):
            if speaker < 0:
                rows = training.X[training.sample_domain == speaker]
                np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-12)
    assert n_held_out == sum(len(y) for _, y in source.values())


def test_tables_in_a_folder(tables, tmp_path):
    save_tables(tables, tmp_path)
    digest = digest_of(tables)
    loaded = load_tables(str(tmp_path), digest)
    assert list(loaded) == list(tables)
    for corpus, table in tables.items():
        for ours, theirs in zip(table, loaded[corpus], strict=True):
            np.testing.assert_array_equal(ours, theirs)
    wide = tables["emodb"]._replace(y=tables["emodb"].y.astype("U20"))
    assert digest_of({**tables, "emodb": wide}) == digest
    X = tables["emodb"].X.copy()
    X[0, 0] += 1e-9
    other = {**tables, "emodb": tables["emodb"]._replace(X=X)}
    assert digest_of(other) != digest
    save_tables(other, tmp_path)  # beside the first, which stays
    load_tables.cache_clear()
    np.testing.assert_array_equal(load_tables(str(tmp_path), digest)["emodb"].X, tables["emodb"].X)
    file_of(tmp_path, digest_of(other)).rename(file_of(tmp_path, "0" * 16))
    with pytest.raises(ValueError, match="does not hold what its name says"):
        load_tables(str(tmp_path), "0" * 16)


def test_table_of_a_corpus_that_was_read():
    from sklearn.utils import Bunch

    bunch = Bunch(
        data=np.zeros((3, 72)),
        target=np.array(["positive", "negative", "positive"]),
        domain=np.array([1, 0, 1]),
        domain_names={0: "ann", 1: "bob"},
        recording=["b.wav", "a.wav", "b.wav"],
    )
    table = table_of(bunch)
    assert table.speaker.tolist() == ["bob", "ann", "bob"]
    assert table.recording.tolist() == ["b.wav", "a.wav", "b.wav"]
