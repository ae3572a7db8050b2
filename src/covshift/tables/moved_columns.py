"""Which columns tell training rows from new rows, and which of them are clocks.

A classifier separates the rows with all columns; without the column that separates them best
alone; without the best two; and so on. The columns that account for the difference are those
without which half of what lies above chance is gone.

A clock is a column whose values only grow: new rows lie beyond all training rows, whatever else
they are. A number is taken for one if nearly all new values lie beyond the training rows on one
side, and it grows along the training file, holds days, or has a name like ``year``. So is a date
that is among the columns that account for the difference.
"""

import re
from typing import Any

import numpy as np
from scipy.stats import rankdata, spearmanr
from sklearn.exceptions import ConvergenceWarning

from covshift.kernels.arrays import FloatArray
from covshift.measures import classifier_two_sample_test
from covshift.quiet import ignored_warnings
from covshift.tables.cells import is_days
from covshift.tables.columns import column_numbers
from covshift.tables.encoder import TableEncoder
from covshift.tables.errors import listed
from covshift.tables.matching import MatchedTables
from covshift.tables.schema import quoted

MAX_ROWS = 1000  # drawn from each table
MIN_ROWS = 20
MIN_AUC = 0.75  # below this AUC there is little to explain
MAX_COLUMNS = 3  # columns named as the explanation
MAX_FEATURES = 2000  # no explanation is sought above this
SHARE_BEYOND = 0.95
GROWTH = 0.95  # rank correlation of a column with the row's number
CLOCK_NAME = re.compile(
    r"(^|[^a-z])(year|yr|month|week|quarter|date|day|time|timestamp|epoch|unixtime|datetime|"
    r"version|build|batch|sequence|seq|created|updated|modified|ts)s?$|_at$",
    re.IGNORECASE,
)


def note_moved_columns(tables: MatchedTables, seed: int = 0) -> list[str]:
    """Return sentences on the columns that separate the rows of two tables.

    Parameters
    ----------
    tables : MatchedTables
        From `match_tables`.
    seed : int, default=0
        Of the rows drawn and of the folds.

    Returns
    -------
    list of str
        Empty where the rows are hardly separated, or no few columns account for it.
    """
    n_rows = min(len(tables.X_train), len(tables.X_new))
    if n_rows < MIN_ROWS:
        return []
    rng = np.random.default_rng(seed)
    encoder = TableEncoder().fit(tables.X_train, schema=tables.schema)
    owners = np.array(encoder.columns_of_features(), dtype=object)
    if len(owners) > MAX_FEATURES:
        return []
    A, B = (
        encoder.transform(frame.iloc[np.sort(rng.permutation(len(frame))[:MAX_ROWS])])
        for frame in (tables.X_train, tables.X_new)
    )
    auc = _separate(A, B, seed)
    if auc < MIN_AUC:
        return []
    alone = {
        name: _alone(A[:, owners == name], B[:, owners == name]) for name in dict.fromkeys(owners)
    }
    ranked = sorted(alone, key=lambda name: -alone[name])
    top, without = _top_columns(A, B, owners, ranked, auc, seed)
    clocks = [name for name in ranked if name in tables.kinds and _is_clock(name, tables, top)]
    notes = []
    if top:
        each = ", ".join(f"{listed([name])} (alone {alone[name]:.2f})" for name in top)
        rest = "there are no others"
        if without is not None:
            rest = f"without {'them' if len(top) > 1 else 'it'}: {without:.2f}"
        notes.append(
            f"A classifier separates training rows from new rows with AUC {auc:.2f}, mostly by "
            f"{each}; {rest}."
        )
    if clocks:
        notes.append(
            f"{listed(clocks)} {'look like clocks' if len(clocks) > 1 else 'looks like a clock'}: "
            "the new rows lie beyond the training rows because they are later. To leave "
            f"{'them' if len(clocks) > 1 else 'it'} out: --ignore {quoted(','.join(clocks))}."
        )
    return notes


def _top_columns(
    A: FloatArray, B: FloatArray, owners: Any, ranked: list[str], auc: float, seed: int
) -> tuple[list[str], float | None]:
    """Return the fewest columns that account for the difference, and the AUC without them."""
    enough = 0.5 + (auc - 0.5) / 2
    for n_columns in range(1, MAX_COLUMNS + 1):
        top = ranked[:n_columns]
        others = ~np.isin(owners, top)
        if not others.any():
            return (top, None) if len(ranked) > 1 or n_columns == 1 else ([], None)
        without = _separate(A[:, others], B[:, others], seed)
        if without <= enough:
            return top, without
    return [], None


def _separate(A: FloatArray, B: FloatArray, seed: int) -> float:
    with ignored_warnings(ConvergenceWarning):  # of rows that are easily separated
        test = classifier_two_sample_test(A, B, cv=3, random_state=seed, n_importance_repeats=0)
    return float(test.statistic)


def _alone(A: FloatArray, B: FloatArray) -> float:
    """Return the AUC of one column: of its number, or of the best linear score of its features."""
    both = np.concatenate([A, B])
    if both.shape[1] > 1:
        side = np.repeat([-1.0, 1.0], [len(A), len(B)])
        centered = both - both.mean(axis=0)
        scores = centered @ np.linalg.lstsq(centered, side, rcond=None)[0]
    else:
        scores = both[:, 0]
    ranks = rankdata(scores)
    n, k = len(A), len(B)
    auc = (ranks[n:].sum() - k * (k + 1) / 2) / (n * k)
    return float(max(auc, 1 - auc))


def _is_clock(name: str, tables: MatchedTables, top: list[str]) -> bool:
    if tables.kinds[name] == "date":
        return name in top
    if tables.kinds[name] != "number":
        return False
    old = column_numbers(tables.X_train[name])
    new = column_numbers(tables.X_new[name])
    order = np.flatnonzero(~np.isnan(old))
    new = new[~np.isnan(new)]
    if len(order) < MIN_ROWS or not len(new):
        return False
    beyond = max((new > old[order].max()).mean(), (new < old[order].min()).mean())
    if beyond < SHARE_BEYOND:
        return False
    if is_days(tables.spellings.get(name, "")) or CLOCK_NAME.search(name):
        return True
    return bool(abs(spearmanr(tables.train_rows[order], old[order]).statistic) >= GROWTH)
