"""`predict` is one thing: every way to predict gives the same classes, whatever the objective."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from covshift import AdaptedClassifier, AutoAdaptedClassifier, load, save
from covshift.kernels.probabilities import is_unbalanced
from covshift.predictors.objectives import OBJECTIVES, decide_classes
from covshift.tables import TableClassifier, match_tables
from tests.cli.user_files import run, succeed

SHARES = {2: [0.9, 0.1], 3: [0.7, 0.25, 0.05]}


def unbalanced(seed, n_classes, n_rows=240):
    """Two source domains and a target with rare classes that overlap with the frequent one."""
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, size=n_rows, p=SHARES[n_classes])
    y[: 4 * n_classes] = np.arange(4 * n_classes) % n_classes
    domain = np.repeat([0, 1, -1], n_rows // 3)
    X = rng.standard_normal((n_rows, 3))
    X[:, 0] += 1.3 * y + np.array([0.0, 1.0, 4.0])[domain]
    X[:, 1] += 0.8 * (y == 1)
    names = np.array(["no", "yes", "maybe"])
    X_new = rng.standard_normal((100, 3)) + np.array([4.5, 0.3, 0])
    return X, names[y], domain, X_new


def naive_decision(P, classes, objective, shares):
    """Row by row, from the definition."""
    decided = []
    for row in P:
        scores = [p / share if objective == "balanced_accuracy" else p
                  for p, share in zip(row, shares, strict=True)]  # fmt: skip
        decided.append(classes[scores.index(max(scores))])
    return np.array(decided)


def automatic(objective):
    candidates = [
        ("none", LogisticRegression()),
        ("none", SVC()),
        ("standardize-domains", LogisticRegression()),
    ]
    return AutoAdaptedClassifier(candidates=candidates, objective=objective, random_state=0)


def named(objective):
    return AdaptedClassifier("standardize-domains", LogisticRegression(), objective=objective)


@cache
def fitted(make, objective, n_classes, seed):
    """A model of `unbalanced` rows, made once; not to be changed."""
    X, y, domain, _ = unbalanced(seed, n_classes)
    return make(objective).fit(X, y, sample_domain=domain)


EACH = [
    (make, objective, n_classes, seed)
    for make in (automatic, named)
    for objective in OBJECTIVES
    for n_classes in (2, 3)
    for seed in range(2 if make is automatic else 8)
]


@pytest.mark.parametrize(("make", "objective", "n_classes", "seed"), EACH)
def test_every_way_to_predict_in_python(make, objective, n_classes, seed, tmp_path):
    _, y, domain, X_new = unbalanced(seed, n_classes)
    model = fitted(make, objective, n_classes, seed)
    expected = model.predict(X_new)
    P = model.predict_proba(X_new)
    decided = naive_decision(P, model.classes_, objective, model.class_shares_)
    assert_array_equal(expected, decided)
    assert_array_equal(expected, model.decide(P))
    one_by_one = np.concatenate([model.predict(row[None]) for row in X_new])
    assert_array_equal(expected, one_by_one)
    assert model.score(X_new, expected) == 1.0
    if make is named or objective == "balanced_accuracy":
        shares = [np.mean(y[domain >= 0] == k) for k in model.classes_]
        assert_allclose(model.class_shares_, shares)

    save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    assert_array_equal(expected, loaded.predict(X_new))
    assert_array_equal(expected, loaded.decide(loaded.predict_proba(X_new)))
    if make is automatic:
        assert_array_equal(model.plain_.predict(X_new), loaded.plain_.predict(X_new))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_exported_models(objective, n_classes):
    onnxruntime = pytest.importorskip("onnxruntime")
    from covshift.interop.onnx import to_onnx

    for seed in range(4):
        X_new = unbalanced(seed, n_classes)[3].astype(np.float32)
        model = fitted(named, objective, n_classes, seed)
        content = to_onnx(model).SerializeToString()
        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        (labels,) = session.run(["label"], {"X": X_new})
        assert_array_equal(labels, model.predict(X_new.astype(np.float64)))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_rows_in_blocks(objective):
    da = pytest.importorskip("dask.array")
    X_new = unbalanced(0, 3)[3]
    for make in (automatic, named):
        model = fitted(make, objective, 3, 0)
        blocks = model.predict(da.from_array(X_new, chunks=(30, -1)))
        assert_array_equal(np.asarray(blocks), model.predict(X_new))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("adapter", [None, "standardize-domains"])
def test_the_command_line(adapter, objective, tmp_path):
    X, y, domain, _ = unbalanced(1, 3, 360)
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y, site=np.array(["A", "B", "C"])[domain])
    train, new = tmp_path / "train.csv", tmp_path / "new.csv"
    frame[domain >= 0].to_csv(train, index=False)
    frame[domain < 0].to_csv(new, index=False)
    out = tmp_path / "model.skops"
    # Around one model, to be quick.
    choice = ["--model", "logistic"] if adapter is None else ["--adapter", adapter]
    text = succeed("adapt", train, new, "--label", "y", "--domain", "site", *choice,
                   "--objective", objective, "--out", out)  # fmt: skip
    assert f"Objective: {objective.replace('_', ' ')}" in text
    kept = "Advice: keep the plain model, logistic without an adapter (" in text
    assert kept != ("The file also holds the plain model, logistic without an adapter:" in text)
    other = OBJECTIVES[1 - OBJECTIVES.index(objective)]
    assert f"--objective {other}" in text  # the classes are unbalanced

    written = {}
    for name, options in {
        "labels": [],
        "probabilities": ["--proba"],
        "domain": ["--domain", "site"],
        "plain": ["--plain"],
        "plain probabilities": ["--plain", "--proba"],
    }.items():
        path = tmp_path / f"{name.replace(' ', '_')}.csv"
        printed = succeed("predict", out, new, "--out", path, *options)
        assert f"Objective: {objective.replace('_', ' ')}." in printed
        written[name] = pd.read_csv(path)["prediction"].to_numpy()
    assert_array_equal(written["labels"], written["probabilities"])
    assert_array_equal(written["labels"], written["domain"])
    assert_array_equal(written["plain"], written["plain probabilities"])

    model = load(out)
    rows = frame[domain < 0]
    where = model.domain_numbers(rows["site"].tolist())
    assert_array_equal(written["labels"], model.predict(rows, sample_domain=where))
    assert_array_equal(written["plain"], model.plain_.predict(rows, sample_domain=where))

    scores = json.loads(succeed("score", out, new, "--json"))
    truth = rows["y"].to_numpy()
    for name, found in (("labels", scores), ("plain", scores["plain"])):
        assert found["accuracy"]["value"] == pytest.approx(np.mean(written[name] == truth))
    assert {one["name"]: one["n_predicted"] for one in scores["classes"]} == {
        name: int(np.sum(written["labels"] == name)) for name in np.unique(truth)
    }
    card = json.loads(succeed("show", out, "--json"))
    assert card["objective"] == objective
    assert card["plain model"] == "none + logistic"


def test_the_plain_model_is_the_best_unadapted_candidate():
    """Rows on two rings: the kernel model is better without adaptation, and is kept alone."""
    rng = np.random.default_rng(0)
    radius = np.repeat([1.0, 3.0], 150)
    angle = rng.uniform(0, 2 * np.pi, 300)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    X += 0.2 * rng.standard_normal(X.shape)
    y, domain = (radius > 2).astype(int), np.tile([0, -1], 150)
    candidates = [("none", LogisticRegression()), ("none", SVC()),
                  ("standardize-domains", SVC())]  # fmt: skip
    model = AutoAdaptedClassifier(candidates=candidates, random_state=0)
    model.fit(X, y, sample_domain=domain)
    plain = model.plain_
    assert plain.chosen_ == [model.plain_member_.candidate.name]
    assert type(plain.members_[0].model.estimator_) is SVC
    alone = AutoAdaptedClassifier(candidates=candidates[1:2], random_state=0)
    alone.fit(X, y, sample_domain=domain)
    assert_array_equal(plain.predict(X), alone.predict(X))
    assert plain.score(X[domain < 0], y[domain < 0]) > 0.95
    # A new target changes what the model knows, and the plain model knows it as well.
    model.adapt_target(X[:50] + 5, domain="later")
    model.plain_.predict(X, sample_domain="later")


def test_the_plain_model_is_chosen_on_left_out_domains():
    """A feature that gives away the label within each domain misleads on any other domain."""
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 300)
    domain = np.repeat([0, 1, 2, 3, -1], 120)
    X = np.column_stack([y + 0.6 * rng.standard_normal(600), 3 * domain + 1.0 * y])
    tree_like = SVC(C=1000, gamma=3.0)  # separates islands, at home
    candidates = [("none", tree_like), ("none", LogisticRegression())]
    model = AutoAdaptedClassifier(candidates=candidates, random_state=0)
    model.fit(X, y, sample_domain=domain)
    assert type(model.plain_.members_[0].model.estimator_) is LogisticRegression


@pytest.mark.parametrize("estimator", [SVC(), LinearSVC()])
def test_balanced_accuracy_needs_probabilities_before_anything_is_fitted(estimator, tmp_path):
    X, y, domain, X_new = unbalanced(0, 2)
    model = AdaptedClassifier(None, estimator, objective="balanced_accuracy")
    with pytest.raises(ValueError, match=r"needs probabilities, and .*SVC has no predict_proba"):
        model.fit(X, y, sample_domain=domain)
    assert not hasattr(model, "estimator_")
    own = AdaptedClassifier(None, estimator, objective="accuracy").fit(X, y, sample_domain=domain)
    assert not hasattr(own, "decide")
    assert_array_equal(own.predict(X_new), own.estimator_.predict(X_new))


def test_the_command_line_refuses_the_same_before_reading(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")
    result = run("adapt", tmp_path / "t.csv", tmp_path / "t.csv", "--label", "y", "--adapter",
                 "coral", "--model", "rbf", "--objective", "balanced_accuracy", "--out",
                 tmp_path / "m")  # fmt: skip
    assert result.exit_code == 1
    assert "needs probabilities, and rbf has none" in result.stderr
    result = run("adapt", tmp_path / "t.csv", tmp_path / "t.csv", "--label", "y", "--objective",
                 "f1", "--out", tmp_path / "m")  # fmt: skip
    assert "Unknown objective 'f1'. Choose accuracy" in result.stderr


def test_without_an_objective_the_estimator_decides():
    X, y, domain, X_new = unbalanced(0, 2)
    weighted = LogisticRegression(class_weight="balanced")
    model = AdaptedClassifier(None, weighted).fit(X, y, sample_domain=domain)
    assert_array_equal(model.predict(X_new), model.estimator_.predict(X_new))
    with pytest.raises(ValueError, match="objective must be one of"):
        clone(model).set_params(objective="f1").fit(X, y, sample_domain=domain)


def test_the_former_name_of_the_objective():
    X, y, domain, X_new = unbalanced(0, 2)
    now = fitted(automatic, "balanced_accuracy", 2, 0)
    before = automatic("accuracy").set_params(scoring="balanced_accuracy")
    with pytest.warns(FutureWarning, match="use objective="):
        before.fit(X, y, sample_domain=domain)
    assert_array_equal(now.predict(X_new), before.predict(X_new))
    with pytest.warns(FutureWarning, match="use objective="):
        clone(before).set_params(scoring="f1_macro").fit(X, y, sample_domain=domain)


def test_a_table_classifier_keeps_a_plain_model_of_a_named_adapter():
    X, y, domain, X_new = unbalanced(2, 2)
    frame = pd.DataFrame(X, columns=list("abc"))
    matched = match_tables(
        frame[domain >= 0].assign(y=y[domain >= 0]), frame[domain < 0], label="y"
    )
    model = TableClassifier(named("accuracy")).fit_tables(matched)
    alone = AdaptedClassifier("none", LogisticRegression(), objective="accuracy")
    alone.fit(X, y, sample_domain=np.where(domain < 0, -1, 0))
    rows = pd.DataFrame(X_new, columns=list("abc"))
    assert_array_equal(model.plain_.predict(rows), alone.predict(X_new))
    assert not model.plain_.adapts_
    assert model.plain_.plain_ is None


def test_the_decision_for_balanced_accuracy_is_the_best_one():
    """By brute force: no other decision of these rows has a larger expected balanced accuracy."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet([4.0, 1.0, 0.5], size=5)
    shares = P.mean(axis=0)

    def expected(decided):
        return np.mean([P[np.array(decided) == k, k].sum() / shares[k] / len(P) for k in range(3)])

    ours = expected(decide_classes(P, "balanced_accuracy", shares))
    assert ours >= max(expected(one) for one in np.ndindex(*[3] * 5)) - 1e-12


def test_classes_are_called_unbalanced_below_half_an_equal_share():
    assert is_unbalanced(np.array([0.76, 0.24]))
    assert not is_unbalanced(np.array([0.74, 0.26]))
    assert is_unbalanced(np.array([0.5, 0.35, 0.15]))
