"""The paper's systems over grids of settings."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from covshift import (
    AdaptedClassifier,
    LSPClassifier,
    PeriodicSparseFiltering,
    SubspaceAlignment,
    ULSIFWeights,
)
from covshift.paper.grid_systems import (
    BASELINES,
    SYSTEMS,
    WITHOUT_COST,
    WITHOUT_TARGET,
    TrainingRows,
    declare_settings,
    draw_settings,
    periodic_filter,
    predict_settings,
    sparse_filter,
)

SETTINGS = {
    "SVM": [{}],
    "SF": [{"L": 4}, {"L": 6}],
    "PSF": [
        {"activation": "sin", "L": 4, "label_reward": 1.0},
        {"activation": "cos", "L": 6, "label_reward": 1.8},
    ],
    "LSPC": [{"sigma": 1.0, "lambda": 0.1}, {"sigma": 3.0, "lambda": 0.1}],
    "IW+LSPC": [{"sigma": 3.0, "lambda": 0.1}, {"sigma": 0.1, "lambda": 1.0}],
    "SSA": [{"P": 2}, {"P": 4}],
    "DAE": [
        {
            "activation": activation,
            "L": 4,
            "noise_level": 0.1,
            "learning_rate": 0.005,
            "mini_batches": 40,
        }
        for activation in ("sigmoid", "tanh")
    ],
}
COSTS = [0.01, 1.0]


def make_rows(seed=0):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((150, 5))
    sample_domain = np.repeat([0, 1, -1], [60, 50, 40])
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(150) > 0, "positive", "negative")
    y[sample_domain < 0] = ""
    return TrainingRows(X, y, sample_domain), rng.standard_normal((30, 5))


def predict(system, training, rows, **options):
    return predict_settings(
        system, SETTINGS[system], COSTS, training, rows, random_state=3, **options
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_predictions_of_every_setting(system):
    training, rows = make_rows()
    predicted = predict(system, training, rows)
    n_costs = 1 if system in WITHOUT_COST else len(COSTS)
    assert predicted.shape == (len(SETTINGS[system]), n_costs, len(rows))
    assert set(np.unique(predicted)) <= {"positive", "negative"}
    np.testing.assert_array_equal(predicted, predict(system, training, rows))


@pytest.mark.parametrize("system", SYSTEMS)
def test_labels_of_target_rows_change_nothing(system):
    training, rows = make_rows()
    lying = training.y.copy()
    lying[training.sample_domain < 0] = "positive"
    np.testing.assert_array_equal(
        predict(system, training, rows), predict(system, training._replace(y=lying), rows)
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_rows_are_predicted_one_by_one(system):
    """Other rows to predict, or their absence, change no prediction."""
    training, rows = make_rows()
    whole = predict(system, training, rows)
    np.testing.assert_array_equal(whole[:, :, 7:8], predict(system, training, rows[7:8]))


@pytest.mark.parametrize("system", WITHOUT_TARGET)
def test_the_control_does_not_see_the_target(system):
    training, rows = make_rows()
    moved = training.X.copy()
    moved[training.sample_domain < 0] += 5.0
    moved = training._replace(X=moved)
    alone = predict(system, training, rows, without_target=True)
    np.testing.assert_array_equal(alone, predict(system, moved, rows, without_target=True))


@pytest.mark.parametrize("build", [sparse_filter, periodic_filter])
def test_the_start_is_standard_normal(build):
    assert build(SETTINGS["PSF"][0], 100, 0).init_scale == 1.0


def test_against_the_estimators_themselves():
    training, rows = make_rows()
    X, y, sample_domain = training
    source = sample_domain >= 0
    psf = PeriodicSparseFiltering(
        16, n_unlabelled_components=10, activation="cos", label_reward=1.8, n_restarts=1,
        init_scale=1.0, max_iter=50, early_stopping="ks", random_state=3,
    )  # fmt: skip
    estimators = {
        ("SVM", 0): LinearSVC(C=0.01, dual=False),
        ("PSF", 1): AdaptedClassifier(psf, LinearSVC(C=0.01, dual=False)),
        ("SSA", 0): AdaptedClassifier(SubspaceAlignment(2), LinearSVC(C=0.01, dual=False)),
        ("IW+LSPC", 0): AdaptedClassifier(
            ULSIFWeights(
                n_bases=40, sigmas=ULSIFWeights.PAPER_SIGMAS, lambdas=ULSIFWeights.PAPER_LAMBDAS,
                clip="coefficients", random_state=3,
            ),
            LSPClassifier(bases=X[~source], sigmas=3.0, lambdas=0.1),
        ),
    }  # fmt: skip
    for (system, number), estimator in estimators.items():
        if system == "SVM":
            expected = estimator.fit(X[source], y[source]).predict(rows)
        elif system == "PSF":
            estimator.fit(X.astype(np.float32), y, sample_domain=sample_domain)
            expected = estimator.predict(rows.astype(np.float32))
        else:
            expected = estimator.fit(X, y, sample_domain=sample_domain).predict(rows)
        np.testing.assert_array_equal(predict(system, training, rows)[number, 0], expected)


def test_more_directions_than_the_target_has():
    training, rows = make_rows()
    few = TrainingRows(*(part[:113] for part in training))  # three target rows
    limited = predict_settings("SSA", [{"P": 4}, {"P": 2}], [1.0], few, rows, random_state=0)
    np.testing.assert_array_equal(limited[0], limited[1])


def test_settings():
    axes = {"activation": ["sin", "cos"], "L": [20, 50], "label_reward": [1.0]}
    settings = declare_settings(axes)
    assert settings[1] == {"activation": "sin", "L": 50, "label_reward": 1.0}
    assert len(settings) == 4
    drawn = draw_settings(settings, 3)
    assert len(drawn) == 3
    assert [setting for setting in settings if setting in drawn] == drawn
    assert draw_settings(settings, 3) == drawn
    assert draw_settings(settings, 9) == settings


def test_refusals():
    training, rows = make_rows()
    with pytest.raises(ValueError, match=r"Unknown system 'PFS'\. Choose from: SVM"):
        predict_settings("PFS", [{}], [1.0], training, rows, random_state=0)
    with pytest.raises(ValueError, match="SSA cannot be fitted without target rows"):
        predict("SSA", training, rows, without_target=True)
    assert set(BASELINES) | set(BASELINES.values()) == set(SYSTEMS)
