"""Tables of ``docs/results/selection.md``: regret and harm of all ways to choose a candidate.

    covshift-bench run DATA --out runs/results.jsonl --made-up 30 \
        --methods "plain logistic" auto "pick by*"
    python benchmarks/selection_tables.py DATA runs/results.jsonl --out runs/selection

*Regret* is the score of the best candidate on the test rows, by their labels, minus that of the
method. That best one is partly luck: the *floor* is the regret of an oracle that sees half of the
test labels, judged on the other half. Harm and gains: see ``summary.py``.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
from candidate_results import read_candidates
from covshift_bench.methods.automatic import N_MEMBERS
from covshift_bench.results import decode_codes, read_results
from covshift_bench.runner import arrays_path
from covshift_bench.summary import cluster_mean, score, score_results, summarize, tasks_of
from covshift_bench.tasks import MADE_UP, draw_task

from covshift.report.document import make_cell, make_column, make_section, make_table
from covshift.report.files import table_markdown
from covshift.selection.vote import combine_with_labels, vote_weights

METRIC = "balanced accuracy"
CLOSE = 0.02
N_SPLITS = 20
LABEL_COUNTS = (5, 20, 80)
N_DRAWS = 5  # of the rows that are labeled, on each task
RULES = {
    "method": ("method", "s"),
    "score": (METRIC, ".3f"),
    "regret": ("regret", ".3f"),
    "close": ("within .02", ".0%"),
    "gain": ("gain over plain", "+.3f"),
    "harm": ("harm", ".0%"),
    "sure_harm": ("sure harm", ".0%"),
    "worst": ("largest loss", ".3f"),
}


def add_regret(scored, candidates):
    """Add the columns ``regret`` and ``close`` to scores of `summary.score_results`."""
    best = {one.task.name: np.nanmax(one.true_scores(METRIC)) for one in candidates}
    scored = scored[(scored["metric"] == METRIC) & scored["task"].isin(list(best))]
    regret = scored["task"].map(best) - scored["score"]
    return scored.assign(regret=regret, close=regret <= CLOSE)


def split_half_floor(one):
    """Return the regret of an oracle that sees half of the test labels, on the other half."""
    rng = np.random.RandomState(0)
    predicted = [decode_codes(line["predicted"]) for line in one.lines if line is not None]
    regrets = []
    for _ in range(N_SPLITS):
        seen = rng.uniform(size=len(one.truth)) < 0.5
        on_seen, on_other = (
            np.array([score(one.truth[part], codes[part], METRIC) for codes in predicted])
            for part in (seen, ~seen)
        )
        regrets.append(on_other.max() - on_other[on_seen.argmax()])
    return np.mean(regrets)


def frame_table(table_id, caption, frame, columns):
    """Return a table of a frame; ``columns`` are labels and formats by key."""
    rows = [{key: _cell(row[key], form) for key, (_, form) in columns.items()} for row in frame]
    made = [make_column(key, label, numeric=form != "s") for key, (label, form) in columns.items()]
    return make_table(table_id, caption, made, rows)


def _cell(value, form):
    if form == "s":
        return value
    return None if np.isnan(value) else make_cell(format(value, form), value=float(value))


def rule_table(kind, scored, candidates):
    """Return the table of all methods on one kind of tasks."""
    floor = np.mean([split_half_floor(one) for one in candidates])
    summary = summarize(scored, METRIC)
    for column in ("regret", "close"):
        by_method = {name: cluster_mean(part, column) for name, part in scored.groupby("method")}
        summary[column] = summary["method"].map(by_method)
    caption = f"Ways to choose, {len(candidates)} {kind} tasks; floor of the regret: {floor:.3f}"
    return frame_table(f"{kind}-rules", caption, summary.to_dict("records"), RULES)


def family_table(kind, scored):
    """Return score, regret and harm of the default and score of the plain model, by cluster."""
    rows = []
    for cluster, part in scored.groupby("cluster"):
        auto, plain = (part[part["method"] == name] for name in ("auto", "plain best, balanced"))
        row = {"cluster": cluster, "tasks": len(auto), "plain": plain["score"].mean()}
        row |= {key: auto[key].mean() for key in ("score", "regret", "harm")}
        rows.append(row | {"best": row["score"] + row["regret"]})
    columns = {
        "cluster": ("cluster", "s"),
        "tasks": ("tasks", "d"),
        "score": ("auto", ".3f"),
        "plain": ("plain best", ".3f"),
        "best": ("best of all, by the labels", ".3f"),
        "regret": ("regret of auto", ".3f"),
        "harm": ("harm", ".0%"),
    }
    return frame_table(f"{kind}-families", f"By cluster, {kind} tasks", rows, columns)


def label_scores(one, rows, codes, arrays):
    """Return the score of each candidate on some target rows; NaN if it failed."""
    found = np.full(len(one.names), np.nan)
    for number in range(len(one.names)):
        if f"target, {number}" in arrays:
            predicted = arrays[f"target, {number}"][rows].argmax(axis=1)
            found[number] = score(codes[rows], predicted, METRIC)
    return found


def label_table(candidates, combined, data, out):
    """Return regret with labels of some target rows: by labels alone, and with the score.

    ``combined`` is the expected gain by "auto", by name of the task.
    """
    rows = []
    for one in candidates:
        kind = "made_up" if one.task.collection == MADE_UP else "real"
        drawn = draw_task(one.task, data)
        codes = np.searchsorted(np.unique(drawn.y_source), drawn.y_target)
        best = np.nanmax(one.true_scores(METRIC))
        with np.load(arrays_path(out, one.auto)) as arrays:
            for count in LABEL_COUNTS:
                for draw in range(N_DRAWS):
                    shown = np.random.RandomState([draw, count]).permutation(len(codes))[:count]
                    found = label_scores(one, shown, codes, arrays)
                    known = combined[one.task.name]
                    both = combine_with_labels(known, found, len(shown), one.allowed)
                    for rule, by in (("labels alone", found), ("labels and score", both)):
                        row = {"labels": count, "rule": rule, "kind": kind}
                        rows.append(row | {"regret": best - _vote(one, by)})
    frame = pd.DataFrame(rows).groupby(["labels", "rule", "kind"])["regret"].mean().unstack("kind")
    frame = frame.reindex(columns=["made_up", "real"]).reset_index()
    columns = {
        "labels": ("labeled rows", "d"),
        "rule": (f"vote of {N_MEMBERS} by", "s"),
        "made_up": ("regret, made-up", ".3f"),
        "real": ("regret, real", ".3f"),
    }
    caption = "With labels of some target rows"
    return frame_table("labels", caption, frame.to_dict("records"), columns)


def all_tables(data, out):
    """Return all tables of a file of results."""
    lines = read_results([out])
    candidates = read_candidates([out])
    scored = add_regret(score_results(lines, tasks_of(lines)), candidates)
    combined = {
        one.task.name: np.array(one.auto["extras"]["scores"]["expected gain"], dtype=float)
        for one in candidates
    }
    tables = []
    for kind in ("made-up", "real"):
        of_kind = scored["collection"] == MADE_UP
        part = scored[of_kind if kind == "made-up" else ~of_kind]
        names = set(part["task"])
        if names:
            some = [one for one in candidates if one.task.name in names]
            tables += [rule_table(kind, part, some), family_table(kind, part)]
    return [*tables, label_table(candidates, combined, data, out)]


def _vote(one, combined):
    """Return the score of the vote by expected gains."""
    return one.vote(vote_weights(combined, one.allowed, N_MEMBERS), METRIC)


def main():
    """Print the tables, and write them where --out says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with the collections")
    parser.add_argument("results", type=Path, help="results, with their folder beside")
    parser.add_argument("--out", type=Path, required=True, help="folder for report.json")
    options = parser.parse_args()
    tables = all_tables(options.data, options.results)
    options.out.mkdir(parents=True, exist_ok=True)
    document = {"sections": [make_section("selection", "Selection", tables=tables)]}
    (options.out / "report.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    print("\n\n".join(table_markdown(table) for table in tables))


if __name__ == "__main__":
    main()
