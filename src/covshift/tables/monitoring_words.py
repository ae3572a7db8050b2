"""Sentences about batches over time, for the command and for the report of monitoring."""

CANNOT_SEE = (
    "Rows without labels cannot show whether rows like these now have other labels than in "
    "training. To check: label some rows with covshift label."
)
MOVED_NOT_BELOW = (
    "A batch moved and gave no alert. That does not mean that the score is fine: the estimate "
    "misses losses in which the model stays confident, such as a noisy sensor or a new group of "
    "rows. To check: label some rows with covshift label."
)
OF_CLASSES_ONLY = (
    "Without labels, only scores of classifiers are estimated, and this model predicts numbers. "
    "With labels, covshift score states its error. Intervals of single predictions come from "
    "covshift predict --sets, or predict_interval in Python."
)
LABELS_DIFFER = (
    "The score on the labeled rows is outside the interval that was expected without labels. "
    "Either rows like these now have other labels than in training, or the assumptions of the "
    "estimate do not hold."
)
WINDOWS_ALIKE = (
    "Windows of one recording resemble each other: another recording of an unchanged machine can "
    "count as moved. Compare batches of several recordings."
)


def say_kept_batch(share: float, *, low_auc: bool) -> str:
    """Return words of monitoring on rows of the batch that a model keeps.

    ``low_auc``: the AUC is below .5.
    """
    below = " That is why the AUC is below 0.5." if low_auc else ""
    return (
        f"{100 * share:.0f} % of the compared rows of the batch are among the rows that the model "
        f"keeps. Rows compared with themselves cannot have moved.{below} Give rows that are new "
        "to the model."
    )


def say_false_alarms(level: float) -> str:
    """Return words of monitoring on what the level of a test means for several batches."""
    return (
        "In 20 batches that have not moved, the probability of a false alarm is at most "
        f"{2000 * level:.0f} %."
    )


def say_covered(measure: str, n_covered: int, n_batches: int) -> str:
    """Return words of monitoring on how many intervals held the score that labels showed."""
    return (
        f"The 90 % interval held the {measure} on labeled rows in {n_covered} of {n_batches} "
        "batches."
    )


def say_tests(level: float) -> str:
    """Return words of monitoring on which tests a batch is put to."""
    return (
        "Features together, each feature, its spread, predictions and predicted class proportions, "
        f"with Holm's correction, at level {level:g} for each batch. {say_false_alarms(level)}"
    )


def say_marks_of_batches(measure: str) -> str:
    """Return words of monitoring: the caption of the chart of batches over time."""
    return (
        f"Expected {measure} of each batch with its 90 % interval. Triangles: the batch has moved. "
        "Diamonds: alert. Crosses: observed on labeled rows."
    )
