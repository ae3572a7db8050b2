"""The comparison of adapters: what it measures, and what it never reads."""

import numpy as np
import pytest

from covshift.registry import NO_ADAPTATION, names
from covshift.studies.comparison import collections
from covshift.studies.comparison import study as comparison
from covshift.studies.comparison.collections import (
    domain_pairs,
    draw_pair,
    halves_of,
    load_collection,
)
from covshift.studies.comparison.report import (
    comparison_document,
    comparison_table,
    summarize_systems,
)
from covshift.studies.comparison.study import (
    _measure_system,
    choose_c,
    common_estimator,
    declare,
    run_comparison,
)
from covshift.studies.comparison.systems import (
    BEST_UNADAPTED,
    C_VALUES,
    systems,
    unadapted_models,
)
from covshift.studies.runner import recorded_warnings
from covshift.studies.trial import Trial
from tests.datasets.made_folders import make_office, make_review_arrays, make_vowels
from tests.studies.made_records import record_of

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore::covshift.weights.UnreliableWeightsWarning",
    "ignore::covshift.base.NothingToAdaptWarning",
)


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """Two classes, 71 features: more than components."""
    folder = tmp_path_factory.mktemp("reviews")
    return load_collection("reviews", str(make_review_arrays(folder, n_rows=60, n_words=72)))


@pytest.fixture(scope="module")
def vowels_folder(tmp_path_factory):
    return str(make_vowels(tmp_path_factory.mktemp("vowels"), n_speakers=8))


def score_of(collection, name, source="dvd", target="books", C=0.1):
    draw = draw_pair(collection, source, target, 0)
    return _measure_system(name, systems(71, 2)[name]["control"], draw, C)


@pytest.mark.parametrize("name", names())
def test_masked_labels_change_nothing_and_flipped_test_labels_mirror_the_score(name, reviews):
    before = score_of(reviews, name)
    first, second = halves_of(reviews, "books", 0)
    rng = np.random.RandomState(0)
    for hidden in (1 - reviews.y[first], rng.permutation(reviews.y[first]), np.nan):
        y = reviews.y.astype(float)
        y[first] = hidden
        assert score_of(reviews._replace(y=y), name) == before
    y = reviews.y.copy()
    y[second] = 1 - y[second]
    flipped = score_of(reviews._replace(y=y), name)
    for key in set(before) - {"C"}:
        assert flipped[key] == pytest.approx(1 - before[key], abs=1e-12)


def test_best_without_adapting_reads_no_target_label(reviews):
    settings = {"source": "dvd", "target": "books", "candidates": unadapted_models(71)[:3]}
    trials = [Trial("compare", settings, 0)]
    (before,) = comparison.run_unadapted(reviews, trials)
    y = reviews.y.copy()
    rows = halves_of(reviews, "books", 0)
    y[rows[0]] = 1 - y[rows[0]]
    assert comparison.run_unadapted(reviews._replace(y=y), trials) == [before]
    y[rows[1]] = 1 - y[rows[1]]
    (flipped,) = comparison.run_unadapted(reviews._replace(y=y), trials)
    assert flipped["score"] == pytest.approx(1 - before["score"], abs=1e-12)
    assert flipped["model"] == before["model"]


def test_c_is_chosen_on_the_source(reviews):
    draw = draw_pair(reviews, "dvd", "books", 0)
    C = choose_c(draw)
    assert C in C_VALUES
    nonsense = draw.data._replace(y_test=1 - draw.data.y_test, X_test=-draw.data.X_test)
    assert choose_c(draw._replace(data=nonsense)) == C


def test_a_linear_svm_of_many_features_has_small_costs_only():
    def costs(n_features):
        models = unadapted_models(n_features)
        return [one["params"]["C"] for one in models if one["name"] == "LinearSVC"]

    assert max(costs(5)) == 10.0
    assert max(costs(400)) == 0.01


def test_controls_see_no_target_row(reviews):
    draw = draw_pair(reviews, "dvd", "books", 0)
    moved = draw._replace(data=draw.data._replace(X_target=draw.data.X_target * 3 + 5))
    moved_scores = []
    for name, recipe in systems(71, 2).items():
        if recipe["control"]:
            one, other = (_measure_system(name, True, each, 0.1) for each in (draw, moved))
            assert one["without_target"] == other["without_target"], name
            moved_scores.append(one["score"] != other["score"])
    assert len(moved_scores) >= 4
    assert sum(moved_scores) >= 2  # scores of 60 rows are coarse, and may be equal by chance


def test_weights_reach_the_regression_alone():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([0, 1, 0, 1])
    from sklearn import config_context

    with config_context(enable_metadata_routing=True):
        plain = common_estimator(1.0).fit(X, y)
        weighted = common_estimator(1.0).fit(X, y, sample_weight=[1.0, 5.0, 1.0, 5.0])
    assert plain[0].mean_ == weighted[0].mean_
    assert plain[1].intercept_ != weighted[1].intercept_


def test_every_adapter_of_the_registry_is_compared_under_its_name():
    assert list(systems(5, 2)) == names()


def test_all_pairs_or_twelve(vowels_folder):
    vowels = load_collection("vowels", vowels_folder)
    assert len(domain_pairs(vowels, 0)) == 12
    many = vowels._replace(domain_names={i: str(i) for i in range(9)})
    assert len(set(domain_pairs(many, 0))) == 12
    assert domain_pairs(many, 0) != domain_pairs(many, 1)


def test_every_declared_trial_runs(vowels_folder, monkeypatch):
    monkeypatch.setattr(collections, "MAX_PAIRS", 2)
    monkeypatch.setattr(comparison, "unadapted_models", lambda n: unadapted_models(n)[:2])
    vowels = load_collection("vowels", vowels_folder)
    tasks = declare([vowels], n_trials=1)
    assert {task[0].settings["system"] for task in tasks} == {BEST_UNADAPTED, *names()}
    records = []
    for task in tasks:
        results = run_comparison(task, {"vowels": vowels_folder})
        records += [record_of(*pair) for pair in zip(task, results, strict=True)]
    assert all(0 <= record.result["score"] <= 1 for record in records)
    document = comparison_document(records, [("command", "x")])
    assert "vowels" in document["lead"]
    table = comparison_table(records)
    assert [row[0] for row in table.groups[0]] == [
        "vowels", NO_ADAPTATION, BEST_UNADAPTED, *names()[1:]
    ]  # fmt: skip


def test_changed_data_and_constants_are_other_trials(tmp_path, monkeypatch):
    folder = make_vowels(tmp_path, n_speakers=6)
    before = declare([load_collection("vowels", str(folder))], 1)
    make_vowels(tmp_path, n_speakers=6, seed=1)
    after = declare([load_collection("vowels", str(folder))], 1)
    assert not {task[0].key for task in before} & {task[0].key for task in after}
    with pytest.raises(ValueError, match="has changed since the run began"):
        run_comparison(list(before[0]), {"vowels": str(folder)})
    monkeypatch.setattr(comparison, "C_VALUES", [1.0])
    others = declare([load_collection("vowels", str(folder))], 1)
    assert not {task[0].key for task in others} & {task[0].key for task in after}


def test_a_regression_that_does_not_converge_is_recorded(vowels_folder, monkeypatch):
    vowels = load_collection("vowels", vowels_folder)
    (task,) = [
        task
        for task in declare([vowels], 1)
        if task[0].settings["system"] == NO_ADAPTATION
        and (task[0].settings["source"], task[0].settings["target"]) == ("men", "boys")
    ]

    def hasty(C):
        return common_estimator(C).set_params(logisticregression__max_iter=1)

    monkeypatch.setattr(comparison, "common_estimator", hasty)
    comparison._c_of_source.cache_clear()
    with recorded_warnings() as counts:
        run_comparison(task, {"vowels": vowels_folder})
    comparison._c_of_source.cache_clear()
    assert any("lbfgs failed to converge" in message for _, message in counts)


def test_images_of_ten_classes_run(tmp_path):
    images = load_collection("office-caltech", str(make_office(tmp_path, n_rows=60)))
    assert score_of(images, "standardize", "amazon", "dslr")["score"] > 0.3


def test_fewer_rows_than_components(reviews):
    rows = np.flatnonzero(np.arange(len(reviews.y)) % 4 == 0)  # 30 of each domain
    few = reviews._replace(X=reviews.X[rows], y=reviews.y[rows], domain=reviews.domain[rows])
    for name in ("coral", "sf", "kmm"):
        assert 0 <= score_of(few, name)["score"] <= 1


# The summary


def made(system, scores, **result):
    """Records of a system on pairs (source, target) -> scores by seed."""
    return [
        record_of(
            Trial(
                "compare",
                {
                    "collection": "c",
                    "source": pair[0],
                    "target": pair[1],
                    "system": system,
                    "recipe": {"settings": {}, "control": False},
                },
                seed,
            ),
            {"score": score, **result},
        )
        for pair, found in scores.items()
        for seed, score in enumerate(found)
    ]


def test_differences_are_within_pairs():
    pairs = [("a", "b"), ("b", "a"), ("a", "c")]
    plain = dict(zip(pairs, ([0.5, 0.5], [0.6, 0.6], [0.7, 0.7]), strict=True))
    records = made(NO_ADAPTATION, plain)
    better = dict(zip(pairs, ([0.6, 0.6], [0.7, 0.7], [0.7, 0.69]), strict=True))
    records += made("Scaler", better)
    records += made("Filter", dict(zip(pairs, ([0.55], [0.55], [0.7]), strict=True)))
    found = {one.key[1]: one for one in summarize_systems(records)["c"]}
    assert found["Scaler"].difference.mean == pytest.approx((0.1 + 0.1 - 0.005) / 3)
    assert found["Scaler"].difference[3:] == (2, 0)
    assert found["Filter"].difference.mean == pytest.approx(0.0)
    assert found["Filter"].difference[3:] == (1, 1)
    assert found["Filter"].difference.verdict == "unclear"
    assert found[NO_ADAPTATION].difference is None
    assert found[NO_ADAPTATION].score.mean == pytest.approx(0.6)
