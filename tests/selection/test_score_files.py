"""Scores that are computed once: written by one run, read by another, refused if not its own."""

import json
from zipfile import ZipFile

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from covshift import AutoAdaptedClassifier
from covshift.selection import auto_adapted, bench, score_files, vote
from covshift.selection.choice import choose
from covshift.selection.score_files import ScoreFileError, read_scores, write_scores
from tests.selection.made_problems import Broken, make_bench, make_moved, plain, standardized
from tests.selection.test_auto_adapted_classifier import FEW, make_data

OTHER = "belong to other rows or settings. Run diagnose again, or leave out --from."
DAMAGED = "is not a file of scores, or is damaged"


def make_candidates():
    return [plain(), standardized(), plain(Broken())._replace(adapter_name="broken")]


def chosen(a_bench):
    choose(a_bench, "rehearsals", n_members=2)
    return a_bench


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A file of scores, and the bench that it is of."""
    path = tmp_path_factory.mktemp("scores") / "scores.npz"
    found = chosen(make_bench(make_candidates(), seed=3))
    write_scores(found, path)
    return path, found


def no_fits(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("a candidate was fitted")

    monkeypatch.setattr(bench, "_run_scene", refuse)


def test_what_was_written_is_read(written, monkeypatch):
    path, first = written
    second = make_bench(make_candidates(), seed=3)
    read_scores(second, path)
    no_fits(monkeypatch)
    choose(second, "rehearsals", n_members=2)
    for a, b in zip(first.target, second.target, strict=True):
        assert a._replace(logits=None) == b._replace(logits=None)
        assert (a.logits is None) == (b.logits is None)
        if a.logits is not None:
            np.testing.assert_array_equal(a.logits, b.logits)
    assert second.target[2].error == "RuntimeError: out of luck"


def test_the_same_model_to_the_bit_and_members_alone_are_fitted(tmp_path, monkeypatch):
    X, y, sample_domain, X_test, _ = make_data()
    path, benches, fits = tmp_path / "scores.npz", [], []

    def keep_bench(a_bench, *arguments, **options):
        benches.append(a_bench)
        return choose(a_bench, *arguments, **options)

    fit_member = vote._fit

    def count(candidate, data):
        fits.append(candidate.name)
        return fit_member(candidate, data)

    monkeypatch.setattr(auto_adapted, "choose", keep_bench)
    monkeypatch.setattr(vote, "_fit", count)
    settings = {"candidates": FEW, "random_state": 0}
    first = AutoAdaptedClassifier(**settings).fit(X, y, sample_domain=sample_domain)
    write_scores(benches[0], path)
    fits.clear()
    no_fits(monkeypatch)
    second = AutoAdaptedClassifier(**settings, scores_from=path)
    second.fit(X, y, sample_domain=sample_domain)
    assert set(fits) == {*second.chosen_, second.plain_.chosen_[0]}
    assert len(fits) == len(set(fits))
    np.testing.assert_array_equal(first.predict_proba(X_test), second.predict_proba(X_test))
    assert repr(first.assessment_) == repr(second.assessment_)
    assert repr(list(first.leaderboard_)) == repr(list(second.leaderboard_))
    # Labels of the target need fits of their own: the others still come from the file.
    known = (sample_domain >= 0) | (np.arange(len(y)) % 10 == 0)
    with pytest.raises(AssertionError, match="a candidate was fitted"):
        second.fit(X, np.where(y == "", "bad", y), sample_domain=sample_domain, label_mask=known)


@pytest.mark.parametrize("kind", ["rows", "classes", "domains", "seed", "settings", "candidates"])
def test_scores_of_others_are_refused(written, kind):
    path, _ = written
    problem = make_moved(n_domains=1)[0]
    candidates, seed = make_candidates(), 3
    if kind == "rows":
        problem = problem._replace(X_target=problem.X_target + 1e-12)
    elif kind == "classes":
        problem = problem._replace(codes=1 - problem.codes)
    elif kind == "domains":
        problem = problem._replace(source_domain=np.arange(120) % 2)
    elif kind == "seed":
        seed = 4
    elif kind == "settings":
        candidates[1] = standardized(LogisticRegression(C=2.0))
    else:
        candidates.reverse()
    with pytest.raises(ScoreFileError, match=OTHER) as error:
        read_scores(make_bench(candidates, problem, seed=seed), path)
    assert str(error.value).startswith("The scores in scores.npz belong ")


def test_scores_of_another_version_are_refused(written, monkeypatch):
    monkeypatch.setattr("covshift.selection.score_files.__version__", "9.9")
    with pytest.raises(ScoreFileError, match=OTHER):
        read_scores(make_bench(make_candidates(), seed=3), written[0])


def rewritten(path, out, **changes):
    """Write the archive again with some arrays replaced; None: left out."""
    with np.load(path) as file:
        arrays = dict(file)
    arrays |= changes
    np.savez(out, **{name: value for name, value in arrays.items() if value is not None})
    return out


def refused(path, words=DAMAGED):
    a_bench = make_bench(make_candidates(), seed=3)
    with pytest.raises(ScoreFileError, match=words) as error:
        read_scores(a_bench, path)
    assert "\n" not in str(error.value)
    assert not a_bench.has_run("target")


def test_changed_and_damaged_files_are_refused(written, tmp_path):
    path, found = written
    content = path.read_bytes()
    out = tmp_path / "other.npz"
    for damaged in (b"", b"nonsense", content[:100], content[:-30], content[: len(content) // 2]):
        out.write_bytes(damaged)
        refused(out)
    flipped = bytearray(content)
    flipped[len(content) // 3] ^= 255
    out.write_bytes(flipped)
    refused(out)
    logits = found.target[0].logits
    for value in (
        logits + 1,
        logits.astype(np.float32),
        logits[:, 0],
        np.full_like(logits, np.nan),
        np.asfortranarray(logits),
        np.array("text"),
    ):
        refused(rewritten(path, out, **{"target, 0": value}))
    refused(rewritten(path, out, about=None))
    refused(rewritten(path, out, about=np.array("[]")))
    refused(rewritten(path, out, more=logits))
    refused(tmp_path / "absent.npz", "Cannot read the scores in absent.npz: No such file")
    refused(tmp_path, "Cannot read the scores in")


def test_objects_are_never_built(written, tmp_path):
    """Pickled arrays have a type that is not read."""
    out = tmp_path / "other.npz"
    with np.load(written[0]) as file:
        arrays = dict(file)
    np.savez(out, **arrays, evil=np.array([{}], dtype=object))
    refused(out, "unexpected type or shape of 'evil'")


def test_a_declared_shape_must_fit_its_member(written, tmp_path):
    """A header that claims more than there is would ask for memory."""
    out = tmp_path / "other.npz"
    with ZipFile(written[0]) as source, ZipFile(out, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "target, 0.npy":
                content = content.replace(b"(120, 2)", b"(999, 2)")
            target.writestr(name, content)
    refused(out, "the size of 'target, 0' is not that of its shape")


def test_parts_that_do_not_fit_each_other(written, tmp_path):
    """As in a file that somebody wrote with a digest of its own."""
    found = written[1]
    arrays = found.to_arrays() | {"candidates": np.array(["none + LR"])}
    about = score_files._about(found) | {"digest": score_files._digest(arrays)}
    out = tmp_path / "other.npz"
    np.savez(out, **arrays, about=np.array(json.dumps(about)))
    refused(out, "parts of other.npz do not fit each other")


def test_outputs_of_other_shapes_are_run_again(written):
    """A file of other rows has another fingerprint; a forged one cannot bring wrong shapes."""
    a_bench = make_bench(make_candidates(), seed=3)
    arrays = written[1].to_arrays()
    arrays["target, 0"] = arrays["target, 0"][:7]
    a_bench.restore(arrays)
    np.testing.assert_array_equal(a_bench.target[0].logits, written[1].target[0].logits)


def test_every_setting_is_in_the_fingerprint():
    """The repr of an estimator is cut after 700 characters."""
    long = {str(number): number for number in range(400)}
    a, b = (
        make_bench([plain(LogisticRegression(class_weight=long | {"400": value}))])
        for value in (1, 2)
    )
    assert repr(a.candidates[0].estimator) == repr(b.candidates[0].estimator)
    assert a.fingerprint() != b.fingerprint()
    assert a.fingerprint() == make_bench(list(a.candidates)).fingerprint()


def test_values_that_are_not_finite_are_refused_before_the_digest_is_looked_at(written, tmp_path):
    path, found = written
    value = np.full_like(found.target[0].logits, np.nan)
    out = rewritten(path, tmp_path / "other.npz", **{"target, 0": value})
    refused(out, "'target, 0' holds values that are not finite")
