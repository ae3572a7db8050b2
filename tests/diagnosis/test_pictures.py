"""Pictures of a diagnosis."""

import numpy as np
import pytest

from covshift import diagnose
from covshift.diagnosis.pictures import MAX_NAME, draw_rows


def legend_of(classes):
    rng = np.random.RandomState(0)
    codes = np.arange(80) % len(classes)
    X = rng.standard_normal((80, 2)) + codes[:, None]
    domain = np.where(np.arange(80) < 40, 0, -1)
    found = diagnose(X, np.take(classes, codes), sample_domain=domain, time_budget=0.0)
    return [text.get_text() for text in draw_rows(found).legends[0].get_texts()]


@pytest.mark.parametrize(
    ("classes", "shown"),
    [
        (["ill", "well"], ["source: ill", "source: well", "target"]),
        ([0, 1], ["source: 0", "source: 1", "target"]),
        (["ill", "x" * (MAX_NAME + 1)], ["source: class 1", "source: class 2", "target"]),
        (["a", "b", "c"], ["source", "target"]),
    ],
)
def test_two_classes_are_told_apart_by_their_names(classes, shown):
    assert legend_of(classes) == shown
