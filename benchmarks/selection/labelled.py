"""A few labelled target rows: labels alone, the score alone, and both together."""

import numpy as np
from outcomes import judge_rule, summarise
from rules import pick, vote

from covshift.report.document import make_cell, make_column, make_table
from covshift.selection.metrics import balanced_accuracy
from covshift.selection.vote import combine_with_labels

COUNTS = (5, 20, 80)
N_DRAWS = 5  # of the rows that are labelled, on each task


def label_scores(task, rows):
    """Balanced accuracy of each candidate on these target rows, as the package scores them."""
    scores = []
    for logits in task.target_logits[:, rows]:
        known = not np.isnan(logits).any()
        scores.append(
            balanced_accuracy(task.target_codes[rows], logits.argmax(axis=1)) if known else np.nan
        )
    return np.array(scores)


def draw_rows(task, count, draw):
    """Numbers of the target rows that get labels."""
    rng = np.random.RandomState([draw, count])
    return rng.permutation(len(task.target_codes))[:count]


def outcomes_with_labels(tasks, combined, count):
    """Outcomes of the three rules, over tasks and draws."""
    outcomes = {"labels alone, pick": [], "labels alone, vote": [], "both, vote": []}
    for task in tasks:
        for draw in range(N_DRAWS):
            rows = draw_rows(task, count, draw)
            scores = label_scores(task, rows)
            both = combine_with_labels(combined[task.name], scores, len(rows), task.allowed)
            labels = np.nan_to_num(scores, nan=-1.0)
            outcomes["labels alone, pick"].append(judge_rule(task, pick(task, labels)))
            outcomes["labels alone, vote"].append(judge_rule(task, vote(task, labels)))
            outcomes["both, vote"].append(
                judge_rule(task, vote(task, np.nan_to_num(both, nan=-1.0)))
            )
    return outcomes


def label_table(made_up, on_made_up, real, on_real):
    """Regret and harm by the number of labels; without labels: the score alone."""
    kinds = {"made-up": (made_up, on_made_up), "real": (real, on_real)}
    rows = {}
    for kind, (tasks, combined) in kinds.items():
        found = {
            (0, "score alone, vote"): [judge_rule(t, vote(t, combined[t.name])) for t in tasks]
        }
        for count in COUNTS:
            found |= {
                (count, rule): outcomes
                for rule, outcomes in outcomes_with_labels(tasks, combined, count).items()
            }
        for (count, rule), outcomes in found.items():
            row = rows.setdefault((count, rule), {"labels": str(count), "rule": rule})
            summary = summarise(outcomes)
            regret, harm = summary["regret"], summary["harm LR"]
            row[f"{kind} regret"] = make_cell(f"{regret:.3f}", value=float(regret))
            row[f"{kind} harm"] = make_cell(f"{harm:.0%}", value=float(harm))
    columns = [make_column("labels", "labelled rows"), make_column("rule", "rule")] + [
        make_column(f"{kind} {key}", f"{key}, {kind}", numeric=True)
        for kind in kinds
        for key in ("regret", "harm")
    ]
    return make_table("labels", "With labels of some target rows", columns, list(rows.values()))
