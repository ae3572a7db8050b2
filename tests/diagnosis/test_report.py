"""Pictures of a diagnosis."""

from types import SimpleNamespace

import numpy as np
import pytest

from covshift import diagnose
from covshift.diagnosis.report import GAINS, MAX_CLASS_NAME, draw_rows
from covshift.selection.bench import Problem
from tests.diagnosis.made_domains import CANDIDATES, few_candidates, shifted_sites


def legend_of(classes):
    rng = np.random.RandomState(0)
    codes = np.arange(40) % len(classes)
    problem = Problem(
        rng.standard_normal((40, 2)), codes, np.zeros(40, int), rng.standard_normal((40, 2)),
        np.full(40, -1), len(classes),
    )  # fmt: skip
    found = SimpleNamespace(
        _bench=SimpleNamespace(problem=problem, candidates=[]),
        assessment=None, feature_names=None, classes=np.array(classes),
    )  # fmt: skip
    return [text.get_text() for text in draw_rows(found).legends[0].get_texts()]


@pytest.mark.parametrize(
    ("classes", "shown"),
    [
        (["ill", "well"], ["source: ill", "source: well", "target"]),
        ([0, 1], ["source: 0", "source: 1", "target"]),
        (["ill", "x" * (MAX_CLASS_NAME + 1)], ["source: class 1", "source: class 2", "target"]),
        (["a", "b", "c"], ["source", "target"]),
    ],
)
def test_two_classes_are_told_apart_by_their_names(classes, shown):
    assert legend_of(classes) == shown


def test_scores_and_gains_are_drawn(monkeypatch):
    monkeypatch.setattr(CANDIDATES, few_candidates)
    data, _ = shifted_sites(n=40)
    found = diagnose(data.X, data.y, sample_domain=data.sample_domain)
    scores, gains = found.plot().axes
    assert scores.get_xlabel() == "expected accuracy"
    assert gains.get_xlabel() == GAINS
    rows = [text.get_text() for text in gains.get_yticklabels()]
    finite = [row["adapter"] for row in found.table if np.isfinite(row["expected gain"])]
    assert rows == finite
    adapted = next(row["candidate"] for row in found.table if row["adapter"] == "standardize")
    for members, expected in (
        ([(found.assessment.plain_name, 1.0)], ["before"]),
        ([(found.assessment.plain_name, 0.6), (adapted, 0.4)], ["before", "after standardize"]),
    ):
        found.assessment = found.assessment._replace(members=members)
        assert [axes.get_title() for axes in draw_rows(found).axes] == expected
