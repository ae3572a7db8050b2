"""Sentences about what was found."""

from types import SimpleNamespace

import numpy as np
import pytest

from covshift.diagnosis.diagnosis_words import (
    NO_ASSESSMENT,
    say_advised,
    say_moved,
    say_rows,
    say_skipped,
    say_stability,
    say_title,
    say_weighting,
)
from covshift.diagnosis.movement import FeatureMovement
from covshift.diagnosis.stability import Stability
from covshift.selection.assessment_words import capitalized


def moved(**changes):
    features = [FeatureMovement(0, "age", 0.9, 0.0, 0.0, 2.0, 1.0)]
    found = {
        "moved": True, "auc": 0.954, "n_features": 3, "n_features_moved": 1, "features": features,
        "share_explained": 0.1,
    }  # fmt: skip
    return SimpleNamespace(task="classification", movement=SimpleNamespace(**(found | changes)))


def test_what_moved():
    said = say_moved(moved())
    assert "separates source rows from target rows with AUC 0.95" in said
    assert "1 of 3 features moved (most: age)" in said
    assert "class proportions" not in said
    assert "Different class proportions alone could" in say_moved(moved(share_explained=0.9))
    assert say_moved(moved(moved=False, auc=0.51)).startswith("No shift was detected")
    assert "too few rows" in say_moved(moved(moved=False, auc=np.nan))


def test_weights():
    possible = SimpleNamespace(weighting=SimpleNamespace(possible=True, overlap=0.93))
    assert say_weighting(possible) == (
        "Weighting the source rows can work: 93 % of the target rows lie where the source has rows."
    )
    obstacles = SimpleNamespace(possible=False, overlap=np.nan, obstacles=["rows", "tail"])
    assert say_weighting(SimpleNamespace(weighting=obstacles)) == (
        "Weighting the source rows does not suit these data: there are too few rows; "
        "a few source rows would carry nearly all of the weight."
    )
    obstacles = SimpleNamespace(possible=False, overlap=0.4, obstacles=["overlap"])
    assert say_weighting(SimpleNamespace(weighting=obstacles)) == (
        "Weighting the source rows does not suit these data: only 40 % of the target rows "
        "lie where the source has rows."
    )


@pytest.mark.parametrize(
    ("stability", "said"),
    [
        (Stability(False, "one domain", np.nan, np.nan, np.nan), []),
        (Stability(False, "no overlap", np.nan, np.nan, 3.0), ["cannot be determined"]),
        (Stability(True, "", 9.0, 0.002, 80.0), ["in different ways"]),
        (Stability(True, "", 1.0, 0.6, 80.0), ["No evidence was found that the label"]),
    ],
)
def test_stability(stability, said):
    sentences = say_stability(SimpleNamespace(task="classification", stability=stability))
    assert len(sentences) == len(said)
    assert all(words in one for words, one in zip(said, sentences, strict=True))


def test_rows_and_time():
    some = SimpleNamespace(n_rows=(3000, 200), n_rows_looked_at=(600, 200))
    assert "3,000 source and 200 target rows; 600 and 200 of them" in say_rows(some)
    assert "for lack of time: moved" in say_skipped(SimpleNamespace(skipped=["moved"]))[0]
    assert say_skipped(SimpleNamespace(skipped=[])) == []


def test_a_plain_model_that_could_not_be_fitted():
    without = SimpleNamespace(assessment=None)
    assert say_advised(without) == [NO_ASSESSMENT]
    assert say_title(without) == "Diagnosis"


def test_only_the_first_letter_becomes_a_capital():
    assert capitalized("balanced accuracy, R2") == "Balanced accuracy, R2"
    assert capitalized("mAE") == "MAE"
    assert capitalized("") == ""
