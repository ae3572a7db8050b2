"""Longer sentences about tables: of notes and of reports.

Errors, and notes on how a cell or a column was read, stand where they arise.
"""

import numpy as np

from covshift.predictors.objectives import BALANCED_ACCURACY

# --- Fitting and comparing ---

NOT_ADAPTED = (
    "This model does not adapt, so its predictions are unchanged. Later batches are compared with "
    "these rows."
)
NO_PLAIN_MODEL = (
    "The model file holds no plain model to compare with: version 0.1 kept none. Run covshift "
    "adapt TRAIN NEW again to have one."
)
REFIT = "To learn from the labels, refit: covshift adapt TRAIN NEW --label COL --labels FILE."


def say_repeated(share: float) -> str:
    """Return words on a new table that holds rows of the training table."""
    return (
        f"{100 * share:.0f} % of the new rows are also in the training table. Expected scores "
        "hold for rows that a model has not seen: check that the new table is the right file."
    )


def say_unbalanced(name: str, share: float, objective: str) -> str:
    """Return words on a table's rarest class and the objective, and how to choose the other."""
    rare = f"class {name!r} has {100 * share:.1f} % of the training rows"
    if objective == BALANCED_ACCURACY:
        return (
            f"The classes are unbalanced ({rare}) and the objective is balanced accuracy: rare "
            "classes are predicted more often than they occur. Use --objective accuracy to "
            "maximize the share of correct rows."
        )
    return (
        f"The classes are unbalanced ({rare}) and the objective is accuracy: rare classes may be "
        "predicted seldom. Use --objective balanced_accuracy to count all classes equally."
    )


def say_scored(max_rows: int) -> str:
    """Return words on tables of which only some rows scored the candidates."""
    return (
        f"Candidates were scored on at most {max_rows:,} rows of each table, drawn in proportion "
        "to domains and classes. The chosen candidates were then fitted to all rows."
    )


def say_updated(n_right: int, n_before: int, n_labels: int) -> str:
    """Return words on how many labeled rows of a table the updated model is right."""
    return (
        f"The updated model is right on {n_right} of {n_labels} labeled rows, the model before it "
        f"on {n_before}. New rows may do worse: the weights were learned from these."
    )


def say_sampled(n_used: int, n_rows: int) -> str:
    """Return words on a table of which rows were drawn, and how far shares may be off.

    By Hoeffding's inequality, with probability .95, for any one share.
    """
    error = np.sqrt(np.log(2 / 0.05) / (2 * n_used))
    return (
        f"{n_used:,} of {n_rows:,} rows are used, drawn at random: the share of any kind of row is "
        f"within {error:.4f} of that among all rows, with probability .95."
    )


# --- Reports ---

HELD_OUT_ERRORS = (
    "The recommended model predicts each source row by a fit that left it out. Errors on the "
    "target can be larger: the expected scores above allow for that. A domain whose mean error is "
    "far from zero has a level of its own, which the columns do not explain."
)
HELD_OUT_PICTURE = (
    "Left: predicted against true label; on the line both are the same. Right: prediction less "
    "truth by domain, the middle half in the box."
)
FILLED = "missing values count as the training median"
COLUMNS_EXPLAINED = (
    "Values are medians with the range of the middle 90 %, the first and last date, or the most "
    "frequent texts. The distance between training and new rows is from 0 (equally frequent "
    "values) to 1 (no value in common): Kolmogorov-Smirnov for numbers and dates, total variation "
    "for text."
)
