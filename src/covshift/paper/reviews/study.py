"""The supplement's study of reviews: its trials, and how they are run.

Three kinds, by ``settings["kind"]``:

- "fold": every setting and C of a system with a third of the training rows in the target's place;
- "target": the same on a target: UAR on the scored half, and the oracle's on the other half;
- "wide": one fixed setting on a pair of domains, with few words or many; its task's seconds count.
"""

from collections.abc import Sequence
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
from scipy import sparse

from covshift.paper.grid_systems import (
    SYSTEMS,
    WITHOUT_COST,
    WITHOUT_TARGET,
    average_recalls,
    predict_settings,
)
from covshift.paper.reviews.protocol import (
    FIXED,
    FIXED_COST,
    N_FOLDS,
    N_WORDS,
    SOURCE,
    TAKES_SPARSE,
    TARGETS,
    VOCABULARIES,
    ReviewPlan,
    Reviews,
    draw_review_fold,
    draw_review_trial,
    load_declared_reviews,
    load_reviews,
    target_half_labels,
)
from covshift.paper.reviews.report import reviews_document, reviews_table
from covshift.studies.comparison.collections import CollectionError, thin_domains
from covshift.studies.study import Study
from covshift.studies.trial import Trial

EXPERIMENT = "reviews"


def reviews_study(folder: str, plan: ReviewPlan, seed: int) -> Study:
    """Return the study on the reviews in a folder."""
    reviews = load_reviews(folder)
    collection = reviews.collection
    domains = collection.domain_names.values()
    missing = [name for name in (SOURCE, *TARGETS) if name not in domains]
    if missing:
        raise CollectionError(
            f"{folder} lacks reviews of {', '.join(missing)}: the study needs "
            f"{', '.join((SOURCE, *TARGETS))}."
        )
    thin = thin_domains(collection.y, collection.domain, collection.domain_names)
    if thin:
        raise CollectionError(
            f"{folder} has too few reviews of {', '.join(thin)}: at least {N_FOLDS} positive and "
            f"{N_FOLDS} negative ones of each are needed."
        )
    return Study(
        name="reviews",
        tasks=declare(plan, reviews.fingerprint, [SOURCE, *TARGETS], seed),
        # The place of the data is not part of a trial: a study resumes after folders were moved.
        function=partial(run_review_trials, folder=folder),
        run_settings={"plan": plan.name, "seed": seed, "data": folder},
        document=lambda records, facts: reviews_document(records, facts, plan),
        table=reviews_table,
    )


def declare(plan: ReviewPlan, data: str, domains: Sequence[str], seed: int) -> list[list[Trial]]:
    """Return all trials of the reviews, each a task; ``data`` is the fingerprint of the reviews."""
    trials = []
    for system in SYSTEMS:
        grid = {
            "data": data,
            "system": system,
            "source": SOURCE,
            "settings": plan.grids[system],
            "costs": [FIXED_COST] if system in WITHOUT_COST else list(plan.costs),
            "n_words": N_WORDS,
            "n_folds": N_FOLDS,
        }
        # Folds are of the training rows alone, and the same for every draw of halves.
        for fold in range(N_FOLDS):
            trials.append(Trial(EXPERIMENT, {**grid, "kind": "fold", "fold": fold}, seed))
        for target in TARGETS:
            settings = {**grid, "kind": "target", "target": target}
            trials += [Trial(EXPERIMENT, settings, seed + i) for i in range(plan.n_draws)]
    for n_words, keep_sparse in VOCABULARIES.items():
        for source, target in permutations(domains, 2):
            for system in TAKES_SPARSE if keep_sparse else SYSTEMS:
                wide = {
                    "kind": "wide",
                    "data": data,
                    "system": system,
                    "source": source,
                    "target": target,
                    "n_words": n_words,
                    "keep_sparse": keep_sparse,
                    "setting": FIXED[system],
                    "cost": FIXED_COST,
                }
                controls = [False, True] if system in WITHOUT_TARGET else [False]
                for alone in controls:
                    trials.append(Trial(EXPERIMENT, {**wide, "without_target": alone}, seed))
    return [[trial] for trial in trials]


def run_review_trials(trials: list[Trial], folder: str) -> list[dict[str, Any]]:
    """Run trials of the study of reviews on those in the folder; one result for each."""
    return [
        _run_on_reviews(
            load_declared_reviews(folder, trial.settings["data"]), trial.settings, trial.seed
        )
        for trial in trials
    ]


def _run_on_reviews(reviews: Reviews, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return the result of one trial."""
    return KINDS[settings["kind"]](reviews, settings, seed)


def _run_fold(reviews: Reviews, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    drawn = draw_review_fold(reviews, settings["source"], settings["fold"], settings["n_words"])
    predicted = predict_settings(
        settings["system"],
        settings["settings"],
        settings["costs"],
        drawn.training,
        drawn.X_test,
        random_state=drawn.start,
    )
    return {"fold_uar": average_recalls(predicted, drawn.y_test).tolist()}


def _run_target(reviews: Reviews, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    source, target = settings["source"], settings["target"]
    drawn = draw_review_trial(reviews, source, target, seed, settings["n_words"], keep_sparse=False)
    n_test = len(drawn.y_test)
    # The other half is predicted for the oracle. No prediction depends on the other rows.
    predicted = predict_settings(
        settings["system"],
        settings["settings"],
        settings["costs"],
        drawn.training,
        np.concatenate([drawn.X_test, drawn.training.target]),
        random_state=drawn.start,
    )
    oracle = average_recalls(predicted[..., n_test:], target_half_labels(reviews, target, seed))
    return {
        "test_uar": average_recalls(predicted[..., :n_test], drawn.y_test).tolist(),
        "oracle_uar": oracle.tolist(),
    }


def _run_wide(reviews: Reviews, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    drawn = draw_review_trial(
        reviews,
        settings["source"],
        settings["target"],
        seed,
        settings["n_words"],
        keep_sparse=settings["keep_sparse"],
    )
    predicted = predict_settings(
        settings["system"],
        [settings["setting"]],
        [settings["cost"]],
        drawn.training,
        drawn.X_test,
        random_state=drawn.start,
        without_target=settings["without_target"],
    )
    return {
        "test_uar": float(average_recalls(predicted, drawn.y_test)[0, 0]),
        "n_words": drawn.X_test.shape[1],
        "sparse": bool(sparse.issparse(drawn.X_test)),
    }


KINDS = {"fold": _run_fold, "target": _run_target, "wide": _run_wide}
