"""Fitting the expected scores: levels of quantiles, and the size of expected gains."""

import assessment
import numpy as np
import pandas as pd
import pytest


@pytest.mark.parametrize("n_clusters", [3, 51])
def test_a_new_value_lies_below_a_quantile_as_often_as_said(n_clusters):
    n = assessment.TASKS_PER_CLUSTER * n_clusters
    for rank in range(n // 2 + 2, n):
        # Of n + 1 exchangeable values, the last is below the rank-th of the others in rank cases.
        p = rank / (n + 1)
        assert assessment.level(p, range(n_clusters)) == pytest.approx(rank / n)
        assert assessment.level(1 - p, range(n_clusters)) == pytest.approx(1 - rank / n)
    assert assessment.level(0.5, range(n_clusters)) == 0.5
    assert assessment.level(1.0, range(n_clusters)) == 1.0


def test_expected_gains_have_the_size_of_gains():
    """Predictors of gains are fitted to clipped gains; the size is that of least squares."""
    rng = np.random.default_rng(0)
    gains = rng.standard_normal(60) * 0.2
    quantities = [{"gain by all": gain + rng.standard_normal() * 0.02} for gain in gains]
    frame = pd.DataFrame({"gain": gains, "plain": 0.5, "quantities": quantities})
    weights = rng.uniform(0.5, 2.0, 60)
    fitted = assessment.fit_means(frame, weights)["gain"]
    assert {name for name, beta in fitted.items() if beta} == {"gain by all"}
    x = np.array([one["gain by all"] for one in quantities])
    y = [min(max(gain, -assessment.SIZE_CLIP), assessment.SIZE_CLIP) for gain in gains]
    slope = sum(w * a * b for w, a, b in zip(weights, x, y, strict=True))
    slope /= sum(w * a * a for w, a in zip(weights, x, strict=True))
    assert fitted["gain by all"] == pytest.approx(slope)
