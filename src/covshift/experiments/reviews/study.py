"""The supplement's study of reviews, as a study to be run."""

from functools import partial

from covshift.experiments.comparison.collections import CollectionError, thin_domains
from covshift.experiments.reviews.document import reviews_document, reviews_table
from covshift.experiments.reviews.paper import N_FOLDS, SOURCE, TARGETS, ReviewPlan
from covshift.experiments.reviews.protocol import load_reviews
from covshift.experiments.reviews.trials import declare, run_review_trials
from covshift.experiments.study import Study


def reviews_study(folder: str, plan: ReviewPlan, seed: int) -> Study:
    """The study on the reviews in a folder."""
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
            f"{folder} has too few reviews of {', '.join(thin)}: {N_FOLDS} positive and {N_FOLDS} "
            "negative ones of each are the least."
        )
    return Study(
        name="reviews",
        tasks=declare(plan, reviews.fingerprint, [SOURCE, *TARGETS], seed),
        # Where data lie is no part of what was measured: moved folders resume all the same.
        function=partial(run_review_trials, folder=folder),
        run_settings={"plan": plan.name, "seed": seed, "data": folder},
        document=lambda records, facts: reviews_document(records, facts, plan),
        table=reviews_table,
    )
