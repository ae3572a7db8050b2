"""The figure of the results page: which methods it shows."""

import pandas as pd
from covshift_bench.picture import N_OTHERS, chosen_rows


def test_the_figure_shows_what_decides_for_the_metric_and_the_best_others():
    names = ["auto", "auto, accuracy", "vote, balanced", "equal vote, accuracy",
             "plain best, accuracy", *(f"coral + {i}" for i in range(12))]  # fmt: skip
    summary = pd.DataFrame({"method": names, "gain": [-i / 100 for i in range(len(names))]})
    shown = [row["method"] for row in chosen_rows(summary, "accuracy")]
    assert shown[:2] == ["auto, accuracy", "equal vote, accuracy"]
    assert shown[2:] == [f"coral + {i}" for i in range(N_OTHERS)]
    shown = [row["method"] for row in chosen_rows(summary, "balanced accuracy")]
    assert shown[:2] == ["auto", "vote, balanced"]
