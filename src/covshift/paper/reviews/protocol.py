r"""The protocol of the reviews' study: words, weights of words, halves and folds.

Words are the most common ones in the training rows, and the inverse document frequencies come from
the training rows alone: a model that is trained before the target is known has these features. With
:math:`f_w` the number of training reviews, of :math:`n`, that hold the word w,

.. math:: x_{iw} \propto count_{iw} \left(1 + \log \frac{1 + n}{1 + f_w}\right), \quad
    \|x_i\| = 1 .

Target rows are dealt into halves: one to adapt to, one to score. In a fold, a third of the training
rows is taken as the target. The classes are balanced as they are.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import KFold

from covshift.datasets import load_amazon_reviews
from covshift.domains import stack_domains
from covshift.kernels.array_types import BoolArray
from covshift.paper.grid_systems import TrainingRows, declare_settings, draw_settings
from covshift.paper.speech.printed import COSTS, GRIDS, MINI_BATCHES
from covshift.studies.comparison.collections import (
    Collection,
    CollectionError,
    draw_pair,
    halves_of,
)

SOURCE, TARGETS = "dvd", ("books", "electronics", "kitchen")
N_WORDS = 50
N_FOLDS = 3

REVIEW_GRIDS: dict[str, list[dict[str, Any]]] = {
    **GRIDS,
    "SSA": declare_settings({"P": (15, 35, 50)}),
    "DAE": declare_settings(
        {
            "activation": ("sigmoid", "tanh"),
            "L": (50, 70, 100),
            "noise_level": (0.01, 0.05, 0.1),
            "learning_rate": (0.0005, 0.001, 0.005),
            "mini_batches": (MINI_BATCHES,),
        }
    ),
}


@dataclass(frozen=True)
class ReviewPlan:
    """A part of the grids, and the number of draws of halves.

    Attributes
    ----------
    name : str
        As the user knows it.
    grids : dict of str to list of settings
        Of each system.
    costs : tuple of float
        Values of C of the SVMs.
    n_draws : int
        Draws of the two halves of a target.
    """

    name: str
    grids: dict[str, list[dict[str, Any]]]
    costs: tuple[float, ...]
    n_draws: int


# Of 2,000 + 1,000 rows on an idle core, a setting of PSF takes .9 s, one of DAE 2 s, the weights of
# IW+LSPC half a second, all else less: a plan has to save on PSF and DAE.
PLANS = {
    "default": ReviewPlan(
        "default",
        {
            **REVIEW_GRIDS,
            "PSF": draw_settings(REVIEW_GRIDS["PSF"], 20),
            "DAE": draw_settings(REVIEW_GRIDS["DAE"], 8),
        },
        (1e-4, 1e-3, 1e-2, 0.1, 1.0),
        3,
    ),
    "full": ReviewPlan("full", REVIEW_GRIDS, COSTS, 10),
}

# Added to the paper: one setting of each system, taken from the middle of its grid beforehand, on
# all pairs of domains and with more words.
FIXED_COST = 1.0
FIXED: dict[str, dict[str, Any]] = {
    "SVM": {},
    "SF": {"L": 50},
    "PSF": {"activation": "sin", "L": 50, "label_reward": 1.0},
    "LSPC": {"sigma": 1.0, "lambda": 0.1},
    "IW+LSPC": {"sigma": 1.0, "lambda": 0.1},
    "SSA": {"P": 35},
    "DAE": {
        "activation": "sigmoid",
        "L": 70,
        "noise_level": 0.05,
        "learning_rate": 0.001,
        "mini_batches": MINI_BATCHES // 5,  # the number of the grid would take most of the time
    },
}
TAKES_SPARSE = ("SVM", "SF", "PSF")
# Number of words -> whether rows stay sparse, and pairs of words count.
VOCABULARIES = {50: False, 400: False, 4000: True}


class Reviews(NamedTuple):
    """Counts of words by domain, and which of the words are not pairs."""

    collection: Collection
    single: BoolArray

    @property
    def fingerprint(self) -> str:
        """Fingerprint of all that trials depend on: equal reviews have equal fingerprints."""
        parts = self.collection.fingerprint.encode() + self.single.tobytes()
        return hashlib.sha256(parts).hexdigest()[:16]


class ReviewTrial(NamedTuple):
    """Rows to fit on, rows to predict and their labels; no label of the rows adapted to."""

    training: TrainingRows
    X_test: Any
    y_test: Any
    start: int  # seed of all that the systems draw


def load_reviews(folder: str) -> Reviews:
    """Load the reviews of the protocol, and which of their words are single."""
    found = load_amazon_reviews(folder)
    collection = Collection("reviews", found.data, found.target, found.domain, found.domain_names)
    return Reviews(collection, np.array([" " not in word for word in found.feature_names]))


@lru_cache(maxsize=2)
def load_declared_reviews(folder: str, fingerprint: str) -> Reviews:
    """Load the reviews of the protocol for trials declared on them; once in each process."""
    reviews = load_reviews(folder)
    if reviews.fingerprint != fingerprint:
        raise CollectionError(f"{folder} has changed since the run began: start again.")
    return reviews


def _weigh_words(
    counts: list[Any], n_words: int, single: BoolArray | None, *, dense: bool
) -> list[Any]:
    """TF-IDF of the most common words, all learned from the first of the blocks of rows.

    Parameters
    ----------
    counts : list of sparse matrices (n, n_all_words)
        Blocks of rows; the first one trains.
    n_words : int
        Words to keep.
    single : bool array or None
        Words that may be kept; None: all.
    dense : bool
        Whether to return arrays.

    Returns
    -------
    list
        The blocks, with ``n_words`` columns in the order of their totals.
    """
    totals = np.asarray(counts[0].sum(axis=0)).ravel()
    if single is not None:
        totals = np.where(single, totals, -1.0)
    words = np.argsort(-totals, kind="stable")[: min(n_words, int((totals >= 0).sum()))]
    weights = TfidfTransformer().fit(counts[0][:, words])
    blocks = [sparse.csr_array(weights.transform(block[:, words])) for block in counts]
    return [block.toarray() for block in blocks] if dense else blocks


def draw_review_trial(
    reviews: Reviews, source: str, target: str, seed: int, n_words: int, *, keep_sparse: bool
) -> ReviewTrial:
    """Draw the halves of a target by the protocol; the labels of the first are left out."""
    data, _, start = draw_pair(reviews.collection, source, target, seed)
    X_source, X_target, X_test = _weigh_words(
        [data.X_source, data.X_target, data.X_test],
        n_words,
        None if keep_sparse else reviews.single,
        dense=not keep_sparse,
    )
    training = TrainingRows(*stack_domains(X_source, data.y_source, X_target))
    return ReviewTrial(training, X_test, data.y_test, start)


def target_half_labels(reviews: Reviews, target: str, seed: int) -> Any:
    """Return the labels of the half that the protocol adapts to: for the oracle alone."""
    unlabeled, _ = halves_of(reviews.collection, target, seed)
    return reviews.collection.y[unlabeled]


def draw_review_fold(reviews: Reviews, source: str, fold: int, n_words: int) -> ReviewTrial:
    """Draw a fold of the protocol: of training rows, every third is the target, unlabeled."""
    collection = reviews.collection
    rows = np.flatnonzero(collection.domain == collection.number_of(source))
    splits = KFold(N_FOLDS, shuffle=True, random_state=0).split(rows)
    kept, held_out = (rows[part] for part in list(splits)[fold])
    X_source, X_target = _weigh_words(
        [collection.X[kept], collection.X[held_out]], n_words, reviews.single, dense=True
    )
    training = TrainingRows(*stack_domains(X_source, collection.y[kept], X_target))
    return ReviewTrial(training, X_target, collection.y[held_out], fold)
