"""Collections of labeled domains by name, and the draws of (source, target) pairs from them."""

import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch
from sklearn.utils.multiclass import check_classification_targets

from covshift.datasets import (
    ShiftedData,
    load_amazon_reviews,
    load_office_caltech,
    load_speech_corpus,
    load_vowels,
)
from covshift.datasets.collection import UNREADABLE_ARRAYS, make_collection
from covshift.kernels.array_types import IntArray
from covshift.studies.comparison.systems import FOLDS

MAX_ROWS = 1000  # drawn at most from the source and from each half of the target
MAX_PAIRS = 12  # used at most of a collection, drawn by the seed


class CollectionError(ValueError):
    """A collection that cannot be compared on; the message says what to do."""


def _load_reviews(folder: Path) -> Bunch:
    return load_amazon_reviews(folder, features="log400")


# Name -> (loader, name of what groups rows inside a domain, if anything does).
LOADERS: dict[str, tuple[Callable[[Path], Bunch], str | None]] = {
    "reviews": (_load_reviews, None),
    "office-caltech": (load_office_caltech, None),
    "vowels": (load_vowels, "speaker"),
    # Speakers are the domains; segments of one recording are alike.
    **{
        corpus: (partial(load_speech_corpus, corpus=corpus), "recording")
        for corpus in ("emodb", "ravdess", "des", "vam", "enterface")
    },
}


class Collection(NamedTuple):
    """Rows of several domains; ``groups`` holds those that belong together, such as a speaker's."""

    name: str
    X: Any
    y: Any
    domain: IntArray
    domain_names: dict[int, str]
    groups: Any | None = None

    @property
    def fingerprint(self) -> str:
        """Fingerprint of rows, labels, domains and groups: equal data have equal fingerprints."""
        digest = hashlib.sha256()
        X = self.X
        rows = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
        names = [] if self.groups is None else [np.asarray(self.groups)]
        for part in (*rows, np.asarray(self.y, dtype=str), self.domain, *names):
            numbers = part if part.dtype.kind in "uif" else part.astype(str)
            digest.update(np.ascontiguousarray(numbers).tobytes())
        return digest.hexdigest()[:16]

    def number_of(self, domain: str) -> int:
        """Return the integer of a domain."""
        return next(number for number, name in self.domain_names.items() if name == domain)


def load_collection(name: str, path: str) -> Collection:
    """Load a collection that has a loader, or a user's own file of arrays.

    Parameters
    ----------
    name : str
        One of ``LOADERS``; or any name for arrays of one's own.
    path : str
        The folder, as the loader wants it; or a file ``.npz`` with ``X`` (rows by features),
        ``y`` (labels), ``domain`` (integers or names), all numbers finite, and optionally
        ``group`` (rows of one group stay together when rows are halved, e.g. speakers).

    Returns
    -------
    Collection
    """
    if path.endswith(".npz"):
        found, grouping = _load_arrays(Path(path)), "group"
    elif name in LOADERS:
        load, grouping = LOADERS[name][0], LOADERS[name][1] or ""
        found = load(Path(path))
    else:
        raise CollectionError(
            f"Unknown collection {name!r}. Choose from: {', '.join(LOADERS)}; or give arrays of "
            "your own as NAME=FILE.npz with X, y and domain."
        )
    held = {number: name for number, name in found.domain_names.items() if number in found.domain}
    if len(held) < 2:
        raise CollectionError(f"{path} holds one domain only: two are needed.")
    thin = thin_domains(found.target, found.domain, held)
    # Who brings arrays can leave rows out; of a folder, what the other domains say is still worth
    # having, and trials of these fail with their reason.
    if thin and (path.endswith(".npz") or len(held) - len(thin) < 2):
        raise CollectionError(
            f"{path}: every domain is a source in turn, and needs two classes with {FOLDS} rows or "
            f"more; {', '.join(thin[:5])} {'has' if len(thin) == 1 else 'have'} fewer. Leave out "
            "such domains, or join them to others."
        )
    return Collection(name, found.data, found.target, found.domain, held, found.get(grouping))


def thin_domains(y: Any, domain: IntArray, names: Mapping[int, str]) -> list[str]:
    """Return a collection's domains that cannot train: they want two rows of two classes."""
    found = []
    for number, name in names.items():
        counts = np.unique(y[domain == number], return_counts=True)[1]
        if (counts >= FOLDS).sum() < 2:
            found.append(name)
    return found


@lru_cache(maxsize=4)  # a worker runs many trials on few collections
def load_declared_collection(name: str, path: str, fingerprint: str) -> Collection:
    """Load the collection that trials were declared on, once in each process."""
    collection = load_collection(name, path)
    if collection.fingerprint != fingerprint:
        raise CollectionError(f"{path} has changed since the run began: start again.")
    return collection


def _load_arrays(path: Path) -> Bunch:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            X = arrays["X"]
            named = {
                name: _as_text(arrays[name])
                for name in ("y", "domain", "group")
                if name != "group" or name in arrays
            }
    except UNREADABLE_ARRAYS as error:
        raise CollectionError(f"{path} does not hold X, y and domain ({error}).") from error
    if X.ndim != 2 or not X.size or X.dtype.kind not in "buif":
        raise CollectionError(
            f"{path} has X {X.shape} {X.dtype}: it must be numbers, rows by features."
        )
    for name, part in named.items():
        if part.shape != X.shape[:1]:
            raise CollectionError(
                f"{path} has X {X.shape} and {name} {part.shape}: {name} must be ({len(X)},), one "
                "for each row."
            )
        if part.dtype.kind in "fc" and not np.isfinite(part).all():
            raise CollectionError(f"{path}: {name} has missing values; leave out such rows.")
    if not np.isfinite(X).all():
        raise CollectionError(f"{path}: X has missing or infinite values; fill them in first.")
    y, domain = named.pop("y"), named.pop("domain")
    try:
        check_classification_targets(y)
    except (TypeError, ValueError) as error:
        raise CollectionError(f"{path}: y must be labels of classes ({error}).") from error
    names = domain.astype(str)
    order = [str(name) for name in np.unique(domain)]
    features = [f"x{number}" for number in range(X.shape[1])]
    return make_collection(
        X.astype(np.float64), y, names, order, feature_names=features, description="", **named
    )


def _as_text(part: Any) -> Any:
    """Return the bytes as text, and other values unchanged."""
    return part.astype(str) if part.dtype.kind == "S" else part


def domain_pairs(collection: Collection, seed: int) -> list[tuple[str, str]]:
    """Return the ordered pairs of a collection's domains: all, or a number of them."""
    names = [collection.domain_names[number] for number in sorted(collection.domain_names)]
    pairs = list(permutations(names, 2))
    if len(pairs) <= MAX_PAIRS:
        return pairs
    chosen = np.random.RandomState(seed).permutation(len(pairs))[:MAX_PAIRS]
    return [pairs[i] for i in sorted(chosen)]


class Draw(NamedTuple):
    """One draw of a pair; the labels of ``data.X_target`` are not in it at all."""

    data: ShiftedData
    source_groups: Any | None
    start: int


def draw_pair(
    collection: Collection, source: str, target: str, seed: int, max_rows: int | None = None
) -> Draw:
    """Draw the source rows of one domain of a collection, and two halves of another.

    The source rows depend on the seed and the source alone, the halves on the seed and the target
    alone, and neither on any label. Rows of a group are in one half.

    Parameters
    ----------
    collection : Collection
        Data.
    source, target : str
        Names of the domains.
    seed : int
        Seed of all draws.
    max_rows : int, optional
        Most rows of the source, and of each half.

    Returns
    -------
    Draw
    """
    numbers = collection.number_of(source), collection.number_of(target)
    rng = np.random.RandomState([seed, 0, numbers[0]])
    rows = rng.permutation(np.flatnonzero(collection.domain == numbers[0]))[:max_rows]
    unlabeled, test = halves_of(collection, target, seed)
    unlabeled, test = unlabeled[:max_rows], test[:max_rows]
    X, y, groups = collection.X, collection.y, collection.groups
    data = ShiftedData(X[rows], y[rows], X[unlabeled], X[test], y[test])
    start = np.random.RandomState([seed, 2, *numbers]).randint(2**31 - 1)
    return Draw(data, None if groups is None else groups[rows], int(start))


def halves_of(collection: Collection, target: str, seed: int) -> tuple[IntArray, IntArray]:
    """Return the rows of a collection's target to adapt to, and rows to score."""
    number = collection.number_of(target)
    rng = np.random.RandomState([seed, 1, number])
    rows = rng.permutation(np.flatnonzero(collection.domain == number))
    if collection.groups is None or len(set(collection.groups[rows])) < 2:
        return rows[: len(rows) // 2], rows[len(rows) // 2 :]
    groups = collection.groups[rows]
    order = rng.permutation(np.unique(groups))
    first = np.isin(groups, order[: len(order) // 2])
    return rows[first], rows[~first]
