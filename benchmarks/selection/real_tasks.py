"""Real tasks: all ordered pairs and left-out domains of collections, EMODB by speaker and by sex.

The data lie where a user keeps them: a folder with ``vowels_h95``, ``office_caltech10_surf``,
``amazon_reviews`` and ``emodb``. Half of a target's rows are adapted to, half are the test rows;
groups of rows (a speaker's vowels, a recording's seconds) are not parted.
"""

from functools import lru_cache
from itertools import permutations
from pathlib import Path

import numpy as np
from families import Task

from covshift.datasets import (
    load_amazon_reviews,
    load_office_caltech,
    load_speech_corpus,
    load_vowels,
)

MAX_ROWS = 600  # of the source, of the target and of the test rows, drawn by the seed
WIDE, MAX_WIDE_ROWS = 200, 300  # features above which source and target have fewer: time
EMODB_MEN = ("03", "10", "11", "12", "15")
SEED = 0


@lru_cache(maxsize=1)
def read_collections(folder):
    """Rows, labels, domains (by name) and groups of every collection, by name."""
    folder = Path(folder)
    vowels = load_vowels(folder / "vowels_h95")
    office = load_office_caltech(folder / "office_caltech10_surf")
    reviews = load_amazon_reviews(folder / "amazon_reviews", features="log400")
    emodb = load_speech_corpus(folder / "emodb", "emodb")
    speaker = _names(emodb)
    sex = np.where(np.isin(speaker, EMODB_MEN), "men", "women")
    return {
        "vowels": (vowels.data, vowels.target, _names(vowels), vowels.speaker),
        "office": (office.data, office.target, _names(office), None),
        "reviews": (reviews.data, reviews.target, _names(reviews), None),
        "emodb_valence": (emodb.data, emodb.target, speaker, emodb.recording),
        "emodb_emotion": (emodb.data, emodb.emotion, speaker, emodb.recording),
        "emodb_valence_sex": (emodb.data, emodb.target, sex, emodb.recording),
        "emodb_emotion_sex": (emodb.data, emodb.emotion, sex, emodb.recording),
    }


def declare_tasks(collections):
    """Collection, source domains and target domain of every task."""
    tasks = []
    for name, (_, _, domain, _) in collections.items():
        domains = sorted(set(domain))
        left_out = [([other for other in domains if other != one], one) for one in domains]
        pairs = [([source], target) for source, target in permutations(domains, 2)]
        if len(domains) > 4:  # speakers: too many pairs of too few rows
            pairs = []
        if len(domains) == 2:  # the same as pairs
            left_out = []
        tasks += [
            {"collection": name, "sources": sources, "target": target}
            for sources, target in pairs + left_out
        ]
    return tasks


def draw_task(collections, name, sources, target):
    """The rows of one task."""
    X, y, domain, groups = collections[name]
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    rng = np.random.RandomState([SEED, sorted(collections).index(name), len(sources)])
    source = np.concatenate([np.flatnonzero(domain == one) for one in sources])
    at_most = MAX_WIDE_ROWS if X.shape[1] > WIDE else MAX_ROWS
    source = np.sort(rng.permutation(source)[:at_most])
    rows = rng.permutation(np.flatnonzero(domain == target))
    units = rows if groups is None else groups[rows]
    half = rng.permutation(np.unique(units))
    adapted = np.isin(units, half[: len(half) // 2])
    unlabelled, test = rows[adapted][:at_most], rows[~adapted][:MAX_ROWS]
    known = np.isin(y[test], y[source])  # of other classes nobody could know
    test, unlabelled = test[known], unlabelled[np.isin(y[unlabelled], y[source])]
    numbers = np.searchsorted(sorted(sources), domain[source])
    return Task(X[source], y[source], numbers, X[unlabelled], y[unlabelled], X[test], y[test])


def _names(bunch):
    return np.array([bunch.domain_names[number] for number in bunch.domain])
