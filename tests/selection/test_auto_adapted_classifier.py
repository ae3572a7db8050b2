import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.svm import LinearSVC

from covshift import (
    AdaptedClassifier,
    AutoAdaptedClassifier,
    CorrelationAlignment,
    DomainStandardScaler,
)
from covshift.base import NothingToAdaptWarning, RefitNeededError
from covshift.registry import Size
from covshift.selection.assessment_words import name_candidate
from covshift.selection.candidates import default_candidates, make_model
from covshift.selection.choice import NoRankedCandidateWarning
from covshift.selection.label_free_scores import SCORERS
from covshift.selection.vote import FewerMembersWarning
from tests.selection.made_problems import Broken, make_moved

FEW = [
    (None, LogisticRegression()),
    (DomainStandardScaler(), LogisticRegression()),
    (CorrelationAlignment(), LinearSVC()),
]


def make_data(n=150, n_classes=2, seed=0):
    """Stacked rows, labels as text, and rows and labels of the target to test on."""
    problem, target_codes = make_moved(n, seed, n_classes=n_classes)
    names = np.array(["bad", "good", "ugly"])
    X = np.concatenate([problem.X_source, problem.X_target])
    y = np.concatenate([names[problem.codes], np.full(n, "")])
    sample_domain = np.repeat([0, -1], n)
    return X, y, sample_domain, problem.X_target, names[target_codes]


def fit(candidates=FEW, data=None, label_mask=None, **options):
    X, y, sample_domain, *_ = data or make_data()
    model = AutoAdaptedClassifier(candidates=candidates, random_state=0, **options)
    return model.fit(X, y, sample_domain=sample_domain, label_mask=label_mask)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_adapts_where_that_is_what_is_needed(n_classes):
    data = make_data(n_classes=n_classes)
    model = fit(data=data)
    assert model.score(data[3], data[4]) > 0.8
    unadapted = LogisticRegression().fit(data[0][:150], data[1][:150])
    assert unadapted.score(data[3], data[4]) < 0.6
    assert model.leaderboard_[0]["adapter"] not in ("none", "raw")
    assert model.chosen_[0] == model.leaderboard_[0]["candidate"]
    assert model.score_kind_ == "rehearsals"


@pytest.mark.slow
def test_the_default_candidates():
    data = make_data()
    model = fit(candidates=None, data=data)
    assert model.score(data[3], data[4]) > 0.8
    # Seven vote, and the plain model beside them unless it is one of them.
    assert len(model.chosen_) in (7, 8)
    assert model.assessment_.plain_name in model.chosen_
    assert {row["estimator"] for row in model.leaderboard_} == {
        "logistic", "linear-svm", "rbf", "kernel-ridge", "forest", "joint",
    }  # fmt: skip


def test_around_a_users_own_model():
    X, y, sample_domain, X_test, y_test = make_data()
    mine = RandomForestClassifier(10, random_state=0)
    model = AutoAdaptedClassifier(mine, random_state=0, max_rows=60)
    model.fit(X, y, sample_domain=sample_domain)
    assert {row["estimator"] for row in model.leaderboard_} == {"RandomForestClassifier"}
    assert sum(row["adapter"] == "none" for row in model.leaderboard_) == 1
    assert model.score(X_test, y_test) > 0.75
    assert not hasattr(mine, "classes_")  # clones are fitted


def test_probabilities():
    data = make_data()
    model = fit(data=data)
    P = model.predict_proba(data[3])
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(data[3]))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(data[3])), P)
    source = model.predict_proba(data[0][:150], sample_domain=0)
    for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.0)):  # calibrated on the source
        chosen = (source[:, 1] >= low) & (source[:, 1] <= high)
        if chosen.sum() >= 20:
            truth = np.mean(data[1][:150][chosen] == "good")
            assert abs(truth - source[chosen, 1].mean()) < 0.15


def test_margins_are_calibrated_before_they_vote():
    model = fit([(None, LinearSVC()), (DomainStandardScaler(), LinearSVC(C=100.0))])
    assert all(member.scaling is not None for member in model.members_)
    assert all(member.scaling.slope > 0 for member in model.members_)


def test_the_same_seed_gives_the_same_model_with_any_number_of_processes():
    data = make_data()
    first, second, other = (fit(data=data, n_jobs=n_jobs) for n_jobs in (None, None, 2))
    for model in (second, other):
        np.testing.assert_array_equal(first.predict_proba(data[3]), model.predict_proba(data[3]))
        assert model.chosen_ == first.chosen_


def test_vote_of_one_picks():
    model = fit(vote=1)
    assert len(model.members_) == 1
    assert model.members_[0].weight == 1
    assert sum(row["weight"] > 0 for row in model.leaderboard_) == 1


def test_a_candidate_that_fails_is_reported_and_does_not_vote():
    model = fit([*FEW, ("mine", DomainStandardScaler(), Broken())])
    (row,) = [row for row in model.leaderboard_ if row["adapter"] == "mine"]
    assert row["disqualified"] == "failed: RuntimeError: out of luck"
    assert row["weight"] == 0
    assert "mine + Broken" not in model.chosen_
    assert "out of luck" in repr(model.leaderboard_)


def test_an_empty_list_is_refused_in_words():
    with pytest.raises(ValueError, match="X is empty"):
        AutoAdaptedClassifier().fit([], [], sample_domain=[])


def test_leaderboard_is_a_table():
    model = fit()
    frame = model.leaderboard_.to_frame()
    assert len(frame) == len(model.leaderboard_) == 4  # no adaptation with the SVM is added
    assert frame["weight"].sum() == pytest.approx(1)
    assert {"candidate", "expected gain", "seconds", "warnings", "disqualified"} <= set(
        frame.columns
    )
    assert {"source CV", "moved", "class shares"} <= set(frame.columns)
    ranked = frame[frame["disqualified"].isna()]
    assert ranked["expected gain"].is_monotonic_decreasing
    assert frame["disqualified"].isna().is_monotonic_decreasing  # the others come last
    text = repr(model.leaderboard_).splitlines()
    assert len(text) == 5
    assert model.leaderboard_[0]["candidate"] in text[1]


def test_other_objectives():
    for objective in ("balanced_accuracy", cohen_kappa_score):
        model = fit(objective=objective)
        assert model.objective_ is objective
        assert model.leaderboard_[0]["adapter"] not in ("none", "raw")


def test_for_balanced_accuracy_rare_classes_count_as_much():
    """One class in ten: predicting by probability alone would find few of them."""
    rng = np.random.RandomState(0)
    y = (np.arange(400) % 10 == 0).astype(int)
    X = rng.standard_normal((400, 2)) + 1.2 * y[:, None]
    domain = np.repeat([0, -1], 200)
    models = {
        objective: fit(data=(X, y, domain), objective=objective)
        for objective in ("balanced_accuracy", "accuracy")
    }
    target = domain < 0
    found = {
        objective: model.predict(X[target])[y[target] == 1].mean()
        for objective, model in models.items()
    }
    assert found["balanced_accuracy"] > found["accuracy"] + 0.3
    P = models["balanced_accuracy"].predict_proba(X[target])
    shares = models["balanced_accuracy"].class_shares_
    by_rule = (P / shares).argmax(axis=1)
    np.testing.assert_array_equal(models["balanced_accuracy"].predict(X[target]), by_rule)
    P = models["accuracy"].predict_proba(X[target])
    np.testing.assert_array_equal(models["accuracy"].predict(X[target]), P.argmax(axis=1))


def test_a_measure_of_the_users_own_sees_labels():
    seen = set()

    def recall_of_good(y_true, y_pred):
        seen.update(y_true)
        return np.mean(y_pred[y_true == "good"] == "good")

    fit(objective=recall_of_good)
    assert seen == {"bad", "good"}


def make_covariate_shift(n=200):
    """The rows have moved along the first feature; the boundary has stayed."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((2 * n, 3))
    X[n:, 0] += 1.0
    return (
        X,
        np.where(X[:, 0] + 0.3 * rng.standard_normal(2 * n) > 0, "good", "bad"),
        np.repeat([0, -1], n),
    )


def test_no_risk_keeps_the_plain_model():
    model = fit(data=make_covariate_shift(), max_risk=0.0)
    found = model.assessment_
    assert found.action == "keep"
    assert found.vote_loss_probability > 0
    plain = name_candidate(found.plain_name)
    assert model.decision_.startswith(f"Advice: keep the plain model, {plain} (")
    assert model.chosen_ == [found.plain_name] == [name for name, _ in found.members]
    assert model.leaderboard_[0]["adapter"] in ("none", "raw")
    assert found.recommended == found.plain
    assert found.gain == (0, 0, 0)


def test_the_model_is_what_the_assessment_recommends():
    for max_risk in (0.0, 0.4, 1.0):
        model = fit(max_risk=max_risk)
        found = model.assessment_
        weights = [(one.candidate.name, one.weight) for one in model.members_]
        assert [name for name, _ in found.members] == [name for name, _ in weights]
        assert [weight for _, weight in found.members] == pytest.approx([w for _, w in weights])
        assert (found.action == "keep") == (model.chosen_ == [found.plain_name])
        assert found.loss_probability <= max_risk


def test_class_shares_of_the_target():
    rng = np.random.RandomState(0)
    y_target = (rng.uniform(size=600) < 0.9).astype(int)
    y_source = np.arange(600) % 2
    X = rng.standard_normal((1200, 2))
    X[:, 0] += 2.5 * np.concatenate([y_source, y_target])
    data = X, np.concatenate([y_source, np.full(600, -1)]), np.repeat([0, -1], 600)
    candidates = [(None, LogisticRegression())]
    plain, corrected = (
        fit(candidates, data=data, class_shares=kind, objective="accuracy")
        for kind in ("source", "estimated")
    )
    np.testing.assert_allclose(plain.class_shares_, [0.5, 0.5])
    np.testing.assert_allclose(corrected.class_shares_, [0.1, 0.9], atol=0.05)
    accuracies = [model.score(X[600:], y_target) for model in (plain, corrected)]
    assert accuracies[1] > accuracies[0]


def test_labels_of_some_target_rows_count():
    """Candidates disagree on the target; some labels say who is right."""
    X, y, sample_domain = make_covariate_shift()
    source = sample_domain >= 0
    # It looks as if only the rows had moved, and the rule has moved with them.
    other = AdaptedClassifier(DomainStandardScaler(), LogisticRegression())
    y[~source] = other.fit(X, y, sample_domain=sample_domain).predict(X[~source])
    label_mask = source.copy()
    label_mask[np.random.RandomState(0).choice(np.flatnonzero(~label_mask), 150)] = True
    candidates = [(None, LogisticRegression()), (DomainStandardScaler(), LogisticRegression())]
    blind, told = (
        fit(candidates, (X, y, sample_domain), mask, objective="accuracy", vote=1)
        for mask in (None, label_mask)
    )
    assert blind.leaderboard_[0]["adapter"] == "raw"
    assert told.leaderboard_[0]["adapter"] == "DomainStandardScaler"


def test_labels_in_rows_that_are_masked_are_not_read():
    data = make_data()
    X, y, sample_domain, X_test, _ = data
    models = [fit(data=data)]
    for word in ("good", "bad", "nonsense"):
        other = np.where(sample_domain < 0, word, y)
        models.append(fit(data=(X, other, sample_domain)))
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict_proba(X_test), models[0].predict_proba(X_test))


def test_without_domains_unadapted_candidates_vote():
    X, y, *_ = make_data()
    model = AutoAdaptedClassifier(candidates=FEW, random_state=0)
    with pytest.warns(NothingToAdaptWarning, match="the ensemble has unadapted candidates only"):
        model.fit(X[:150], y[:150])
    assert model.score_kind_ == "source CV"
    assert {row["adapter"] for row in model.leaderboard_} == {"none", "raw"}
    assert model.score(X[:150], y[:150]) > 0.85


def test_without_domains_the_default_candidates_are_unadapted_ones():
    X, y, *_ = make_data()
    with pytest.warns(NothingToAdaptWarning, match="the ensemble has unadapted candidates only"):
        model = AutoAdaptedClassifier(random_state=0).fit(X[:150], y[:150])
    assert {row["adapter"] for row in model.leaderboard_} == {"none"}
    assert model.score(X[:150], y[:150]) > 0.85


def test_a_new_target_without_the_training_data():
    data = make_data()
    model = fit([(DomainStandardScaler(), LogisticRegression())], data=data)
    X_new, y_new = -3.0 * data[3] + 20.0, data[4]
    before = model.predict(data[3])
    assert model.score(X_new, y_new) < 0.7
    assert model.adapt_target(-X_new, domain="new clinic") is model
    assert model.score(-X_new, y_new, sample_domain="new clinic") > 0.8
    np.testing.assert_array_equal(model.predict(data[3]), before)
    with pytest.raises(ValueError, match="is not a domain"):
        model.predict(X_new, sample_domain="old clinic")


def test_class_proportions_of_a_new_target():
    """Those of a domain are its own; those of the default target replace the earlier ones."""
    data = make_data()
    model = fit([CAN], data=data, vote=1, max_risk=1.0, objective="accuracy", class_shares="auto")
    good = data[3][data[4] == "good"]
    before, shares = model.predict_proba(data[3]), model.class_shares_
    model.adapt_target(good, domain="clinic")
    np.testing.assert_array_equal(model.predict_proba(data[3]), before)
    np.testing.assert_array_equal(model.class_shares_, shares)
    source_shares = fit([CAN], data=data, vote=1, max_risk=1.0, class_shares="source")
    source_shares.adapt_target(good, domain="clinic")
    found, theirs = (
        one.predict_proba(good, sample_domain="clinic") for one in (model, source_shares)
    )
    in_odds = np.log(found[:, 1] / found[:, 0]) - np.log(theirs[:, 1] / theirs[:, 0])
    np.testing.assert_allclose(in_odds, in_odds[0])  # one ratio of class proportions for all rows
    model.adapt_target(good)
    np.testing.assert_allclose(model.predict_proba(good), found)
    odds = model.class_shares_[1] / model.class_shares_[0]
    assert np.log(odds) == pytest.approx(in_odds[0] + np.log(shares_of_source(data)), abs=1e-6)


def shares_of_source(data):
    labels = data[1][data[2] >= 0]
    return np.mean(labels == "good") / np.mean(labels == "bad")


def test_a_member_that_cannot_learn_a_new_target_says_so_and_nothing_changes():
    model = fit([(CorrelationAlignment(), LogisticRegression())])
    before = model.members_
    with pytest.raises(ValueError, match=r"CorrelationAlignment \+ LogisticRegression: "):
        model.adapt_target(make_data()[3])
    assert model.members_ is before


def vote_of(*members):
    """Return a fitted vote of these candidates with these weights."""
    fitted = [fit([candidate], vote=1, max_risk=1.0) for candidate, _ in members]
    model = fitted[0]
    model.members_ = [
        one.members_[0]._replace(weight=weight)
        for one, (_, weight) in zip(fitted, members, strict=True)
    ]
    model.chosen_ = [member.candidate.name for member in model.members_]
    return model


CAN = (DomainStandardScaler(), LogisticRegression())
CANNOT = (CorrelationAlignment(), LogisticRegression())
PLAIN = (None, LogisticRegression())


def test_members_that_cannot_learn_a_new_target_leave_the_vote():
    data = make_data()
    model = vote_of((CAN, 0.6), (CANNOT, 0.4))
    alone = fit([CAN], data=data, vote=1, max_risk=1.0)
    with pytest.warns(FewerMembersWarning, match="CorrelationAlignment.*Refit"):
        model.adapt_target(data[3] + 9.0, domain="new clinic")
    alone.adapt_target(data[3] + 9.0, domain="new clinic")
    assert model.chosen_ == alone.chosen_
    assert [member.weight for member in model.members_] == [1.0]
    np.testing.assert_allclose(
        model.predict_proba(data[3] + 9.0, sample_domain="new clinic"),
        alone.predict_proba(data[3] + 9.0, sample_domain="new clinic"),
    )


@pytest.mark.filterwarnings("ignore::covshift.selection.choice.NoRankedCandidateWarning")
@pytest.mark.parametrize("members", [((CAN, 0.4), (CANNOT, 0.6)), ((PLAIN, 0.6), (CANNOT, 0.4))])
def test_a_vote_that_would_be_another_is_refused(members):
    model = vote_of(*members)
    before = model.members_
    with pytest.raises(RefitNeededError, match="another model"):
        model.adapt_target(make_data()[3])
    assert model.members_ is before
    assert len(model.chosen_) == 2


def test_few_rows_are_no_reason_to_leave_the_vote():
    model = vote_of((CAN, 0.6), (CANNOT, 0.4))
    with pytest.raises(ValueError, match="too few to learn"):
        model.adapt_target(make_data()[3][:3])


def test_time_budget():
    model = fit(time_budget=0.0)
    assert not set(model.leaderboard_[0]) & set(SCORERS)
    assert model.predict(make_data()[3]).shape == (150,)


def test_progress(capsys):
    fit(verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[AutoAdaptedClassifier] score 1 of")
    fit()
    assert capsys.readouterr().out == ""


def test_rows_for_the_scores_are_limited():
    model = fit(data=make_data(400), max_rows=50)
    assert model.predict(make_data()[3]).shape == (150,)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"vote": 0}, "vote"),
        ({"vote": 2.5}, "vote"),
        ({"max_risk": -0.1}, "max_risk"),
        ({"max_risk": 1.1}, "max_risk is a probability, from 0 to 1"),
        ({"max_risk": float("nan")}, "max_risk"),
        ({"class_shares": "target"}, "class_shares"),
        ({"max_rows": 10}, "max_rows"),
        ({"time_budget": -1.0}, "time_budget"),
        ({"objective": "r2"}, "objective"),
        ({"estimator": LogisticRegression()}, "not both"),
        ({"candidates": []}, "candidates"),
    ],
)
def test_bad_parameters(options, words):
    X, y, sample_domain, *_ = make_data()
    model = AutoAdaptedClassifier(**{"candidates": FEW, **options})
    with pytest.raises((TypeError, ValueError), match=words):
        model.fit(X, y, sample_domain=sample_domain)


def test_numbers_too_large_to_square_are_refused_by_column():
    X, y, sample_domain, X_test, _ = make_data()
    frame = pd.DataFrame(X.copy(), columns=[f"feature {i}" for i in range(X.shape[1])])
    frame.iloc[3, 1] = -1e150
    with pytest.raises(ValueError, match=r"Column 'feature 1' .* 1\.0e\+150; above 6e\+102"):
        fit(data=(frame, y, sample_domain))
    model = fit(data=(X, y, sample_domain))
    with pytest.raises(ValueError, match=r"Column 0 .*power of ten"):
        model.predict(X_test * 1e200)
    large = fit([CAN], data=(X * 1e98, y, sample_domain))
    assert large.predict(X_test * 1e98).shape == (150,)


def test_a_target_on_which_nobody_can_be_ranked():
    X, y, sample_domain, *_ = make_data()
    X = np.where((sample_domain < 0)[:, None], 1.0, X)
    with pytest.warns(NoRankedCandidateWarning):
        model = fit(data=(X, y, sample_domain))
    assert model.decision_.startswith("Advice: keep the plain model, raw + ")
    assert model.assessment_.confidence == "low"


def test_one_class_is_an_error():
    X, _, sample_domain, *_ = make_data()
    with pytest.raises(ValueError, match="only one class"):
        AutoAdaptedClassifier(candidates=FEW).fit(X, ["a"] * 300, sample_domain=sample_domain)


def test_a_target_is_asked_for():
    X, y, *_ = make_data()
    with pytest.raises(ValueError, match="no target rows"):
        AutoAdaptedClassifier(candidates=FEW).fit(X, y, sample_domain=np.zeros(300, dtype=int))


@pytest.mark.parametrize("n_features", [2, 45, 70])
def test_default_candidates_of_any_width(n_features):
    candidates = default_candidates(Size(200, 100, n_features, 3))
    names = [one.name for one in candidates]
    assert len(set(names)) == len(names)
    assert sum(not one.adapts for one in candidates) == 5


def test_many_rows_get_a_kernel_machine_of_linear_cost():
    (kernel,) = {
        type(one.estimator).__name__
        for one in default_candidates(Size(50_000, 100, 5, 2))
        if one.estimator_name == "rbf"
    }
    assert kernel == "Pipeline"
    assert type(make_model("rbf", 3000, 5)).__name__ == "SVC"
    assert type(make_model("rbf", 3001, 5)).__name__ == "Pipeline"
