"""Reviews of books, films, electronics and kitchenware (Blitzer et al. 2007)."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from covshift.base import check_count, check_option
from covshift.datasets.collection import (
    UNREADABLE_ARRAYS,
    damaged_data,
    find_file,
    find_folder,
    make_collection,
)
from covshift.shared_docs import documented_like

LABELS = {"negative": 0, "positive": 1}
# Sub-folders of the archive whose names are longer than their domains'.
SHORT_NAMES = {"kitchen_&_housewares": "kitchen"}
COUNTS_FILE, META_FILE = "amazon_counts5000.npz", "amazon_meta.npz"
N_LOG_WORDS = 400
MOST_DIGITS = 9  # digits of a count, at most
WORD = re.compile(r"[a-z][a-z']+")
# Not `split` alone: in latin-1 it takes the bytes of other encodings for spaces and ends of lines.
SPACE = re.compile(r"[ \t\r]+")
REVIEW_TEXT = re.compile(r"<review_text>(.*?)</review_text>", re.DOTALL)
WHERE = (
    "It should hold sub-folders such as books/ and dvd/ with positive.review and negative.review "
    "(Blitzer's archives `unprocessed` and `processed_acl`), or the arrays "
    f"{COUNTS_FILE} and {META_FILE}."
)
DESCRIPTION = """Multi-domain sentiment: reviews of products sold by Amazon

Rows are reviews, features the numbers of times that words and pairs of neighboring words stand in
them. Labels: 1 positive (four or five stars), 0 negative. Domains: kinds of products. Which words
are counted depends on the reviews of all domains, and on no label.

No license is stated. Cite: J. Blitzer, M. Dredze, F. Pereira, "Biographies, Bollywood, boom-boxes
and blenders: domain adaptation for sentiment classification", ACL 2007."""


class _Reviews(NamedTuple):
    counts: Any  # sparse, reviews by words
    labels: Any
    domains: Sequence[str]
    words: Sequence[str]


@documented_like(find_folder)
def load_amazon_reviews(
    folder: str | os.PathLike[str], *, features: str = "counts", max_words: int = 5000
) -> Bunch:
    """Load reviews with their sentiment, as counts of words.

    Parameters
    ----------
    folder : path
        One of three layouts:

        - Blitzer's archive of texts: ``books/positive.review``, ``books/negative.review`` and so
          on, with ``<review_text>`` in each ``<review>``;
        - his archive ``processed_acl``: files of the same names, a review in each line:
          ``word:count two_words:count ... #label#:positive``;
        - arrays: ``amazon_counts5000.npz``, a sparse matrix as ``scipy.sparse.save_npz`` writes it,
          and ``amazon_meta.npz`` with ``y`` (0 or 1), ``domain`` (names) and ``vocab`` (words).
    features : {"counts", "log400"}, default="counts"
        "counts": a sparse matrix of the counts of single words and pairs. "log400": a dense one of
        log(1 + count) of the 400 most common single words.
    max_words : int, default=5000
        In texts: how many of the most common words and pairs to count.

    Returns
    -------
    Bunch
        ``data``, ``target`` (0 or 1), ``target_names``, ``domain``, ``domain_names``,
        ``feature_names``, ``DESCR``. Domains in alphabetical order.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from covshift.datasets import load_amazon_reviews
    >>> folder = Path(tempfile.mkdtemp())
    >>> for product in ("books", "dvd"):
    ...     for opinion, words in (("positive", "great plot"), ("negative", "awful plot")):
    ...         (folder / product).mkdir(exist_ok=True)
    ...         review = f"<review><review_text>{words}</review_text></review>"
    ...         _ = (folder / product / f"{opinion}.review").write_text(review)
    >>> reviews = load_amazon_reviews(folder)
    >>> reviews.data.shape[0], reviews.domain_names, reviews.target.tolist()
    (4, {0: 'books', 1: 'dvd'}, [0, 1, 0, 1])
    """
    check_option("features", features, ("counts", "log400"))
    check_count("max_words", max_words, minimum=1)
    path = find_folder(folder, WHERE)
    if any((path / name).exists() for name in (COUNTS_FILE, META_FILE)):
        reviews = _read_arrays(path)
    else:
        reviews = _read_texts(path, max_words)
    data, words = reviews.counts, list(reviews.words)
    if features == "log400":
        kept = _most_common_single(data, words)
        data, words = np.log1p(data[:, kept].toarray()), [words[i] for i in kept]
    return make_collection(
        data,
        reviews.labels,
        reviews.domains,
        sorted(set(map(str, reviews.domains))),
        feature_names=words,
        description=DESCRIPTION,
        target_names=list(LABELS),
    )


def _most_common_single(counts: Any, words: Sequence[str]) -> list[int]:
    """Return positions of the most common words that are not pairs, in the order of the columns."""
    totals = np.asarray(counts.sum(axis=0)).ravel()
    single = [i for i, word in enumerate(words) if " " not in word]
    return sorted(sorted(single, key=lambda i: (-totals[i], words[i]))[:N_LOG_WORDS])


def _read_arrays(folder: Path) -> _Reviews:
    paths = [find_file(folder, name, WHERE) for name in (COUNTS_FILE, META_FILE)]
    try:
        with paths[0].open("rb") as file:  # NumPy leaves a damaged file open
            counts = sparse.csr_array(sparse.load_npz(file))
    except UNREADABLE_ARRAYS as error:
        raise damaged_data(paths[0], f"is not a sparse matrix ({error})") from error
    try:
        with paths[1].open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            labels, domains, words = (arrays[name] for name in ("y", "domain", "vocab"))
            domains, words = domains.astype(str), words.astype(str)  # files may hold them as bytes
    except UNREADABLE_ARRAYS as error:
        raise damaged_data(paths[1], f"does not hold y, domain and vocab ({error})") from error
    n_rows, n_words = counts.shape
    if labels.shape != (n_rows,) or domains.shape != (n_rows,) or words.shape != (n_words,):
        raise damaged_data(
            paths[1],
            f"has y {labels.shape}, domain {domains.shape} and vocab {words.shape}, but the counts "
            f"are {counts.shape}",
        )
    if not np.isin(labels, list(LABELS.values())).all():
        raise damaged_data(paths[1], "has labels y that are neither 0 nor 1")
    if counts.dtype.kind not in "buif":
        raise damaged_data(paths[0], f"holds {counts.dtype} in place of counts")
    if not np.isfinite(counts.data).all() or (counts.data < 0).any():
        raise damaged_data(paths[0], "holds counts below zero or not finite")
    return _Reviews(counts.astype(np.float64), labels.astype(np.int64), domains, words)


def _read_texts(folder: Path, max_words: int) -> _Reviews:
    counted: list[Counter[str]] = []
    labels: list[int] = []
    domains: list[str] = []
    found = sorted({path.parent for label in LABELS for path in folder.glob(f"*/{label}.review")})
    if not found:
        raise FileNotFoundError(f"{folder} has no reviews. {WHERE}")
    for domain in found:
        for label, number in LABELS.items():
            reviews = _read_reviews(find_file(domain, f"{label}.review", WHERE), label)
            counted += reviews
            labels += [number] * len(reviews)
            domains += [SHORT_NAMES.get(domain.name, domain.name)] * len(reviews)
    words = _most_common(counted, max_words)
    if not words:
        raise damaged_data(folder, "has reviews without any word")
    return _Reviews(_count_matrix(counted, words), np.array(labels), domains, words)


def _read_reviews(path: Path, label: str) -> list[Counter[str]]:
    # Texts of any encoding, some of them broken: latin-1 reads all, and words keep a to z only.
    text = path.read_text(encoding="latin-1")
    if "<review>" in text:
        reviews = [_count_words(found) for found in REVIEW_TEXT.findall(text)]
    else:
        reviews = [
            _parse_line(line, path, number, label)
            for number, line in enumerate(text.split("\n"), start=1)
            if line.strip()
        ]
    if not reviews:
        raise damaged_data(path, "holds no review")
    return reviews


def _count_words(text: str) -> Counter[str]:
    words = WORD.findall(text.lower())
    pairs = (f"{first} {second}" for first, second in pairwise(words))
    return Counter(words) + Counter(pairs)


def _parse_line(line: str, path: Path, number: int, label: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    stated = None
    for part in SPACE.split(line.strip(" \t\r")):
        word, _, value = part.rpartition(":")
        if word == "#label#":
            stated = value
        elif word and value.isdecimal() and len(value) <= MOST_DIGITS:
            counts[word.replace("_", " ").strip()] += int(value)
        else:
            raise damaged_data(path, f"line {number}: {part!r} is not of the form word:count")
    if stated != label:
        raise damaged_data(path, f"line {number}: the label is {stated!r}, not {label!r}")
    return counts


def _most_common(reviews: Iterable[Counter[str]], max_words: int) -> list[str]:
    totals: Counter[str] = Counter()
    for counts in reviews:
        totals.update(counts)
    return sorted(sorted(totals, key=lambda word: (-totals[word], word))[:max_words])


def _count_matrix(reviews: Sequence[Counter[str]], words: Sequence[str]) -> Any:
    position = {word: column for column, word in enumerate(words)}
    entries = [
        (row, position[word], count)
        for row, counts in enumerate(reviews)
        for word, count in counts.items()
        if word in position
    ]
    rows, columns, values = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    shape = (len(reviews), len(words))
    return sparse.csr_array((values.astype(np.float64), (rows, columns)), shape=shape)
