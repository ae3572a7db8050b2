"""Numbers predicted for source rows that a fit left out."""

import numpy as np
import pytest
from sklearn.metrics import r2_score

from covshift import diagnose, stack_domains
from covshift.diagnosis.held_out import MAX_DOMAINS, held_out_numbers, held_out_section


def diagnose_made(seed=0, *, noise=0.1, classes=False):
    """Two sources whose levels differ by 20, which no column says, and a target between them."""
    rng = np.random.default_rng(seed)
    X_A, X_B, X_new = (rng.standard_normal((60, 2)) for _ in range(3))
    levels = [10 * X[:, 0] + noise * rng.standard_normal(60) for X in (X_A, X_B)]
    y = [levels[0] - 10, levels[1] + 10]
    if classes:
        y = [one > 0 for one in y]
    X, y, sample_domain = stack_domains({"A": (X_A, y[0]), "B": (X_B, y[1])}, target={"C": X_new})
    task = "classification" if classes else "regression"
    return diagnose(X, y, sample_domain=sample_domain, task=task, random_state=0), y


def test_rows_left_out_are_compared_with_their_labels():
    found, y = diagnose_made()
    held_out = held_out_numbers(found)
    np.testing.assert_allclose(np.sort(held_out.truth), np.sort(y[:120]), rtol=1e-9)
    assert 0.2 < r2_score(held_out.truth, held_out.predicted) < 0.9  # the level is not known
    assert np.bincount(held_out.domain).tolist() == [60, 60]


def test_the_section_tells_domains_with_a_level_of_their_own():
    pytest.importorskip("matplotlib")
    found, _ = diagnose_made()
    (section,) = held_out_section(found, {0: "A", 1: "B"})
    rows = {row["domain"]: row for row in section["tables"][0]["rows"]}
    assert list(rows) == ["all", "A", "B"]
    assert rows["A"]["bias"]["value"] > 5
    assert rows["B"]["bias"]["value"] < -5
    assert abs(rows["all"]["bias"]["value"]) < 5
    assert len(section["figures"]) == 1
    assert len(rows) <= MAX_DOMAINS


def test_classes_have_none():
    found, _ = diagnose_made(classes=True)
    assert held_out_numbers(found) is None
    assert held_out_section(found, {}) == []
