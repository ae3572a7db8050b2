"""The leaderboard: one page that a browser shows, sorts and filters without a network."""

import json
from importlib.resources import files

import numpy as np
import pandas as pd
from scipy.stats import rankdata, studentized_range

from covshift.registry import records
from covshift_bench.summary import MIN_TEST_ROWS, PARTS, PLAIN, summarize

N_RANKED = 12  # methods of the critical-difference plot: the best by mean, and the plain model
NUMBERS = (
    "score", "gain", "low", "high", "lead", "lead_low", "lead_high", "harm", "sure_harm", "worst",
    "regret", "log_loss", "seconds", "megabytes", "failed",
)  # fmt: skip


def family_of(method):
    """Return the group that a method is shown with."""
    if method.startswith(("auto", "vote", "estimator")):
        return "automatic choice"
    if method.startswith("equal vote"):
        return "equal vote"
    if method.startswith(("plain", "none + ")):
        return "no adaptation"
    if method.startswith("pick by SKADA"):
        return "picked by SKADA's scorers"
    if method.startswith("pick by"):
        return "picked by other scorers"
    if method.startswith(("SKADA", "ADAPT")):
        return method.partition(" ")[0]
    adapters = {record.name for record in records()}
    return "covshift adapter" if method.partition(" + ")[0] in adapters else "submitted"


def critical_difference(n_methods, n_blocks, level=0.05):
    r"""Return the difference of mean ranks that two methods need, by Nemenyi's test.

    :math:`q \sqrt{k (k + 1) / (6 N)}`, where q is the quantile of the studentized range of k
    means, divided by :math:`\sqrt 2`.

    Parameters
    ----------
    n_methods, n_blocks : int
        Methods k, and clusters N that they are ranked on.
    level : float
        Chance of any false difference.

    References
    ----------
    Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7, 2006.
    """
    q = studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_blocks)))


def mean_ranks(scores):
    """Return the mean rank of each column over the rows; 1 is the highest, ties share ranks."""
    return rankdata(-np.asarray(scores), axis=1).mean(axis=0)


def cliques(ranks, difference):
    """Return the longest runs of methods, by rank, whose ranks differ by no more than so much.

    Parameters
    ----------
    ranks : list of float
        In rising order.
    difference : float
        The critical difference.

    Returns
    -------
    list of tuple
        First and last number of each run of two or more that is not a part of another.
    """
    runs, reached = [], -1
    for first, rank in enumerate(ranks):
        last = max(i for i, other in enumerate(ranks) if other - rank <= difference)
        if last > first and last > reached:
            runs.append((first, last))
        reached = max(reached, last)
    return runs


def leaderboard(scored, title="Adaptation without target labels"):
    """Return the page as text.

    Parameters
    ----------
    scored : DataFrame
        Of `summary.score_results`.
    title : str
        Its heading.
    """
    views = []
    for metric in PLAIN:
        for part, marks in PARTS.items():
            chosen = scored[(scored["metric"] == metric) & scored["mark"].isin(marks)]
            if not chosen.empty:
                views.append(_view(chosen, metric, part))
    content = {"title": title, "least": MIN_TEST_ROWS, "views": views}
    text = json.dumps(content, allow_nan=False).replace("<", "\\u003c")
    template = files("covshift_bench").joinpath("leaderboard.html").read_text(encoding="utf-8")
    return template.replace("TITLE", title).replace("LEADERBOARD_DATA", text)


def _view(chosen, metric, part):
    """Figures of the page for one metric and part of the tasks."""
    summary = summarize(chosen, metric)
    clusters = chosen.groupby(["cluster", "method"])[["score", "gain"]].mean()
    gains = clusters["gain"].unstack("method").sort_index()
    scores = clusters["score"].unstack("method").sort_index()
    methods = [
        {"method": row["method"], "family": family_of(row["method"])}
        | {key: _plain_number(row[key]) for key in NUMBERS}
        | {"by": [_plain_number(value) for value in gains[row["method"]]]}
        for _, row in summary.iterrows()
    ]
    return {
        "metric": metric,
        "part": part,
        "tasks": int(chosen["task"].nunique()),
        "clusters": list(gains.index),
        "plain": PLAIN[metric],
        "methods": methods,
        "ranks": _ranks(scores, list(summary["method"]), PLAIN[metric]),
    }


def _ranks(scores, by_score, plain):
    shown = by_score[:N_RANKED]
    shown = shown if plain in shown else [*shown, plain]
    if len(scores) < 2 or len(shown) < 2:
        return None
    ranks = pd.Series(mean_ranks(scores[shown].to_numpy()), index=shown).sort_values()
    difference = critical_difference(len(shown), len(scores))
    return {
        "names": list(ranks.index),
        "ranks": [round(value, 3) for value in ranks],
        "difference": round(difference, 3),
        "cliques": cliques(list(ranks), difference),
    }


def _plain_number(value):
    return None if pd.isna(value) else float(f"{value:.5g}")
