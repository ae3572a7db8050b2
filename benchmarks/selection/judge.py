"""Judge rules of choosing on measured tasks, each by a score that never saw its collection.

    python benchmarks/selection/judge.py MADE_UP_FOLDER REAL_FOLDER --out FOLDER

Writes ``report.json`` with the tables of ``docs/results/selection.md`` and prints them. Made-up
tasks: each family by a score learned on the others. Real tasks: each collection by a score learned
on all made-up tasks and no real one, since that is what is shipped.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from labelled import label_table
from learning import SHIPPED, learn, predict, unseen_scores
from measure import MEASURED, SKADA_NAMES
from measured_tasks import read_tasks
from outcomes import judge_rule, lead, split_half_floor, summarise
from rules import (
    balanced,
    best_unadapted,
    by_score,
    equal_vote,
    fixed_methods,
    four_pseudo_targets,
    pick,
    untrained,
    vote,
    vote_guarded,
)

from covshift.report.document import make_cell, make_column, make_section, make_table
from covshift.report.markdown import table_markdown

ADDED = {
    "target-like rows": ("target-like",),
    "clusters of rows": ("residual clusters",),
    "each pseudo-target by itself": (
        "moved: mean and scale", "moved: quantiles", "moved: Gaussian", "moved: by class",
        "resampled: class shares", "resampled: weights",
    ),
    "weighted validation and DEV": ("weighted CV", "DEV"),
    "reverse validation": ("reverse",),
    "agreement": ("committee", "kappa", "spectral"),
    "confidence": ("entropy", "information", "density"),
}  # fmt: skip
COLUMNS = {
    "rule": "rule", "score": "balanced accuracy", "regret": "regret", "above": "above the floor",
    "close": "within .02", "harm LR": "harm", "sure LR": "sure harm", "worst LR": "worst loss",
    "harm best unadapted": "harm (b)", "sure best unadapted": "sure (b)",
    "worst best unadapted": "worst (b)",
}  # fmt: skip


def judge_all(tasks, rule):
    """Outcomes of a rule, a function of a task, in the order of the tasks."""
    return [judge_rule(task, rule(task)) for task in tasks]


def choosing_rules(tasks, combined):
    """Rules that choose, by name; ``combined``: the learned score of each task."""
    known = set.intersection(*(set(task.scores) for task in tasks))
    rules = {
        "vote of 7 by the learned score": lambda t: vote(t, combined[t.name]),
        "pick by the learned score": lambda t: pick(t, combined[t.name]),
        "vote of 7 by what explains": lambda t: vote(t, by_score(t, "what explains")),
        "vote of 7 by the untrained score": lambda t: vote(t, untrained(t)),
        "the same with a guard of .02": lambda t: vote_guarded(t, untrained(t), 0.02),
        "vote of 7 by four pseudo-targets": lambda t: vote(t, four_pseudo_targets(t)),
        "equal vote of all": equal_vote,
        "none + LR, balanced": lambda t: balanced(t, "none + LR"),
        "standardise groups + LR, balanced": lambda t: balanced(t, "standardise groups + LR"),
        "best unadapted, by the source": best_unadapted,
    }
    for name in (*MEASURED, "what explains", *SKADA_NAMES):
        if name in known:
            rules[f"pick by {name}"] = lambda t, name=name: pick(t, by_score(t, name))
    return rules


def fixed_rules(tasks):
    """Every fixed method, by name."""
    names = fixed_methods(tasks[0])
    return {name: lambda t, name=name: fixed_methods(t)[name] for name in names}


def outcome_table(table_id, caption, outcomes, floor):
    """The table of some rules."""
    rows = []
    for name, results in outcomes.items():
        row = summarise(results)
        row["above"] = row["regret"] - floor
        rows.append({"rule": name, **{key: number(key, value) for key, value in row.items()}})
    columns = [make_column(key, label, numeric=key != "rule") for key, label in COLUMNS.items()]
    return make_table(table_id, caption, columns, rows)


def lead_table(table_id, caption, outcomes, tasks):
    """By how much the vote leads every other rule."""
    first, *others = outcomes
    clusters = [task.family for task in tasks]
    rows = []
    for name in others:
        mean, low, high = lead(outcomes[first], outcomes[name], clusters)
        rows.append({"rule": name, "lead": signed(mean), "low": signed(low), "high": signed(high)})
    columns = [make_column("rule", "rule")] + [
        make_column(key, label, numeric=True)
        for key, label in (("lead", f"lead of the {first}"), ("low", "from"), ("high", "to"))
    ]
    return make_table(table_id, caption, columns, rows)


def ablation_table(made_up, real):
    """What the learned score is worth without each group of scores, and with more."""
    variants = {"as shipped": SHIPPED}
    for name in SHIPPED:
        variants[f"without {name}"] = [other for other in SHIPPED if other != name]
    moved = ("moved: mean and scale", "moved: quantiles", "moved: Gaussian")
    variants["rows moved, without class shares"] = [*moved, *SHIPPED[1:]]
    variants["all"] = [*SHIPPED, *(name for names in ADDED.values() for name in names)]
    for group, names in ADDED.items():
        variants[f"with {group}"] = [*SHIPPED, *names]
    rows = []
    for variant, names in variants.items():
        row = {"variant": variant}
        on_made_up = unseen_scores(made_up, names)
        coefficients = learn(made_up, names)
        on_real = {task.name: predict(task, names, *coefficients) for task in real}
        for kind, tasks, combined in (("made", made_up, on_made_up), ("real", real, on_real)):
            results = summarise([judge_rule(t, vote(t, combined[t.name])) for t in tasks])
            row[f"{kind} regret"] = number("regret", results["regret"])
            row[f"{kind} harm"] = number("harm", results["harm LR"])
        rows.append(row)
    columns = [make_column("variant", "learned score")] + [
        make_column(f"{kind} {key}", f"{key}, {words}", numeric=True)
        for kind, words in (("made", "made-up"), ("real", "real"))
        for key in ("regret", "harm")
    ]
    return make_table("ablation", "Vote of 7 by scores learned from other features", columns, rows)


def family_table(table_id, caption, outcomes, tasks):
    """The vote, never adapting and the best fixed method, collection by collection."""
    rows = []
    for collection in sorted({task.collection for task in tasks}):
        chosen = [i for i, task in enumerate(tasks) if task.collection == collection]
        row = {"collection": collection, "tasks": make_cell(str(len(chosen)), value=len(chosen))}
        for key, results in outcomes.items():
            part = summarise([results[i] for i in chosen])
            row[key] = number("score", part["score"])
            if key == next(iter(outcomes)):
                row["regret"] = number("regret", part["regret"])
                row["harm"] = number("harm", part["harm LR"])
        row["best"] = number("score", np.mean([np.nanmax(tasks[i].truth) for i in chosen]))
        rows.append(row)
    labels = {"collection": "collection", "tasks": "tasks", **{key: key for key in outcomes}}
    labels |= {"best": "best of all, by the labels", "regret": "regret of the vote", "harm": "harm"}
    columns = [
        make_column(key, label, numeric=key != "collection") for key, label in labels.items()
    ]
    return make_table(table_id, caption, columns, rows)


def number(key, value):
    """A cell: shares in per cent, others with three decimals."""
    share = key.startswith(("close", "harm", "sure"))
    return make_cell(f"{value:.0%}" if share else f"{value:.3f}", value=float(value))


def signed(value):
    """A cell with its sign."""
    return make_cell(f"{value:+.3f}", value=float(value))


def judge_kind(kind, words, tasks, combined):
    """Tables of one kind of tasks."""
    floor = float(np.mean([split_half_floor(task) for task in tasks]))
    chosen = {n: judge_all(tasks, rule) for n, rule in choosing_rules(tasks, combined).items()}
    fixed = {n: judge_all(tasks, rule) for n, rule in fixed_rules(tasks).items()}
    best_fixed = max(fixed, key=lambda name: summarise(fixed[name])["score"])
    voted = next(iter(chosen))
    shown = {voted: chosen[voted], "none + LR": fixed["none + LR"], best_fixed: fixed[best_fixed]}
    caption = f"{words}; floor of a split-half oracle: {floor:.3f}"
    return [
        outcome_table(f"{kind}-rules", f"Rules that choose, {caption}", chosen, floor),
        outcome_table(f"{kind}-fixed", f"Fixed methods, {caption}", fixed, floor),
        lead_table(
            f"{kind}-leads",
            f"Lead of the vote in balanced accuracy, {words}, with 95 % intervals clustered by "
            "collection",
            chosen | fixed,
            tasks,
        ),
        family_table(f"{kind}-families", f"By collection, {words}", shown, tasks),
    ]


def main():
    """Judge on both kinds of tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("made_up", type=Path)
    parser.add_argument("real", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    made_up, real = read_tasks(options.made_up), read_tasks(options.real)
    coefficients = learn(made_up, SHIPPED)
    on_made_up = unseen_scores(made_up, SHIPPED)
    on_real = {task.name: predict(task, SHIPPED, *coefficients) for task in real}
    tables = [
        *judge_kind("made-up", f"{len(made_up)} made-up tasks", made_up, on_made_up),
        *judge_kind("real", f"{len(real)} real tasks", real, on_real),
        ablation_table(made_up, real),
        label_table(made_up, on_made_up, real, on_real),
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    document = {"sections": [make_section("selection", "Selection", tables=tables)]}
    (options.out / "report.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    print("\n\n".join(table_markdown(table) for table in tables))


if __name__ == "__main__":
    main()
