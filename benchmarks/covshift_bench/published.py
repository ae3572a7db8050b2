"""Others' ground: tasks by published protocols, and the published figures beside our own.

- ``simulated``: the made-up part of SKADA-Bench. Its generator with its settings (one cluster of
  points has 100 rows, 300 for "subspace"; noise .8, .6 for covariate shift, .4 for subspace), seeds
  0 to 4, five splits: four fifths of both domains to fit on, the rest of the target to test on.
- ``skada``: collections of SKADA-Bench that are among ours, with the same splits. What differs is
  said in `DIFFERENCES`.
- ``drift``: tables with drift in time from the evaluation of Drift-Resilient TabPFN. Each table is
  split at three points in time: earlier domains are the source, all later ones the target. The
  points are ours: a half, six tenths and seven tenths of the domains. The target is halved.

SKADA's base estimator for the simulated part is an SVC with its defaults.
"""

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from covshift.report.document import make_column, make_table
from covshift.report.files import table_markdown
from covshift_bench import tasks
from covshift_bench.real_collections import read_cuts
from covshift_bench.results import OK, decode_codes, decode_probabilities
from covshift_bench.summary import shown
from covshift_bench.tasks import DrawnTask, Task

KINDS = {
    "covariate": ("covariate_shift", 0.6, 1),
    "target": ("target_shift", 0.8, 1),
    "concept": ("conditional_shift", 0.8, 1),
    "subspace": ("subspace", 0.4, 3),
}
SIMULATED = "SKADA-Bench simulated"
PAIRS = {
    "mushrooms": (("enlarging", "tapering"), ("tapering", "enlarging")),
    "phishing": (
        ("having_IP_Address = -1", "having_IP_Address = 1"),
        ("having_IP_Address = 1", "having_IP_Address = -1"),
    ),
    "digits_mnist_usps": None,  # every ordered pair
    "amazon_reviews": None,
}
DRIFT = (
    "absenteeism",
    "chess",
    "diabetes_questionnaire",
    "free_light_chain",
    "housing_ames",
    "indian_liver",
    "istanbul_stock",
    "parking_weeks",
    "pima_diabetes",
)
POINTS = (0.5, 0.6, 0.7)  # of the domains, in time
N_SEEDS, N_SPLITS, TEST_SHARE = 5, 5, 0.2
GROUNDS = ("simulated", "skada", "drift")

# Accuracy on the target's test rows, from the raw outputs of SKADA-Bench (June 2024): cuts in the
# order of their names, or the mean alone. Adapters of real collections: circular validation.
PUBLISHED = {
    SIMULATED: {
        "unadapted": (0.662, 0.881, 0.190, 0.850),
        "best method with a label-free scorer": 0.725,
        "oracle over methods": (0.818, 0.913, 0.857, 0.932),
    },
    "mushrooms": {"unadapted": (0.673, 0.772), "linear OT": (0.716, 0.805), "SA": (0.926, 0.842)},
    "phishing": {"unadapted": (0.944, 0.881), "linear OT": (0.914, 0.901)},
    "digits_mnist_usps": {
        "unadapted": (0.657, 0.427),
        "CORAL": (0.739, 0.508),
        "linear OT": (0.744, 0.532),
        "SA": (0.713, 0.411),
    },
    "amazon_reviews": {
        "unadapted": (
            *(0.714, 0.6505, 0.7095, 0.7205, 0.657, 0.716),
            *(0.6945, 0.709, 0.746, 0.7105, 0.7, 0.7105),
        ),
        "CORAL": (
            *(0.716, 0.624, 0.724, 0.7305, 0.6085, 0.721),
            *(0.691, 0.6955, 0.7425, 0.7045, 0.702, 0.7),
        ),
        "linear OT": (
            *(0.715, 0.636, 0.731, 0.7335, 0.612, 0.7285),
            *(0.6885, 0.6965, 0.7425, 0.706, 0.703, 0.701),
        ),
        "SA": (
            *(0.674, 0.632, 0.6965, 0.6915, 0.632, 0.698),
            *(0.6445, 0.641, 0.6915, 0.675, 0.668, 0.6405),
        ),
    },
}
DIFFERENCES = {
    "mushrooms": "2,500 rows a domain, without the column that is the domain",
    "phishing": "4,000 rows a domain at most, without the column that is the domain",
    "digits_mnist_usps": "images of 16 x 16 pixels in place of 32 x 32, and fewer of them",
    "amazon_reviews": "word counts in place of sentence embeddings",
}


def published_tasks(ground, data=None):
    """Return the tasks of a ground.

    Parameters
    ----------
    ground : {"simulated", "skada", "drift"}
        Whose protocol.
    data : path
        Folder with the collections; the simulated part needs none.

    Returns
    -------
    list of Task
    """
    if ground == "simulated":
        return [
            _task(SIMULATED, kind, kind, split, (seed,))
            for seed in range(N_SEEDS)
            for kind in KINDS
            for split in range(N_SPLITS)
        ]
    if ground == "skada":
        return [
            _task(name, f"{source} > {target}", name, split, ())
            for name, pairs in PAIRS.items()
            for source, target in pairs or _all_pairs(read_cuts(str(data), name)[""])
            for split in range(N_SPLITS)
        ]
    return [
        _task(name, f"later than {point:.0%} of the domains", name, number, ())
        for name in DRIFT
        for number, point in enumerate(POINTS)
    ]


def _task(collection, cut, cluster, split, sources):
    seed = f", seed {sources[0]}" if sources else ""
    name = f"published: {collection}: {cut}{seed}, split {split}"
    return Task(name, collection, cut, cluster, "published", sources, split, rows="1")


def _all_pairs(cut):
    names = cut.domain_names
    return [(a, b) for a in names for b in names if a != b]


def draw_task(task, data=None, size="standard"):
    """Return the rows of any task, published or not."""
    if task.kind != "published":
        return tasks.draw_task(task, data, size)
    if task.collection == SIMULATED:
        return _draw_simulated(task)
    cut = read_cuts(str(data), task.collection)[""]
    if " > " in task.cut:
        source, target = (
            np.flatnonzero(cut.domain == cut.domain_names.index(name))
            for name in task.cut.split(" > ")
        )
        X = np.concatenate([cut.X[source], cut.X[target]]).astype(np.float64)
        y = np.concatenate([cut.y[source], cut.y[target]])
        return _split(X, y, np.repeat([1, -2], [len(source), len(target)]), task.target)
    return _draw_later(task, cut)


def _draw_simulated(task):
    from skada.datasets import make_shifted_datasets

    shift, noise, factor = KINDS[task.cut]
    X, y, sample_domain = make_shifted_datasets(
        n_samples_source=100 * factor,
        n_samples_target=100 * factor,
        shift=shift,
        noise=noise,
        label="binary",
        center_cov_shift=(-0.4, 3),
        random_state=task.sources[0],
    )
    return _split(X, np.asarray(y).astype(int), sample_domain, task.target)


def _split(X, y, sample_domain, number):
    """One of SKADA's stratified splits: rows to fit on, and the target's test rows."""
    from skada.model_selection import StratifiedDomainShuffleSplit

    splitter = StratifiedDomainShuffleSplit(n_splits=N_SPLITS, test_size=TEST_SHARE, random_state=0)
    fitted, tested = list(splitter.split(X, y, sample_domain))[number]
    source, target = fitted[sample_domain[fitted] >= 0], fitted[sample_domain[fitted] < 0]
    test = tested[sample_domain[tested] < 0]
    test = test[np.isin(y[test], y[source])]
    return _drawn(X, y, np.zeros(len(source), dtype=int), source, target, test)


def _draw_later(task, cut):
    """Earlier domains as sources; half of all later rows to adapt to, half to test on."""
    domains = np.unique(cut.domain)
    first = round(POINTS[task.target] * len(domains))
    source = np.flatnonzero(np.isin(cut.domain, domains[:first]))
    later = np.flatnonzero(np.isin(cut.domain, domains[first:]))
    counts = np.bincount(cut.y[source], minlength=cut.y.max() + 1)
    known = np.flatnonzero(counts >= tasks.MIN_OF_CLASS)
    source, later = (rows[np.isin(cut.y[rows], known)] for rows in (source, later))
    adapted = tasks.halve(
        cut.y[later], [unit[later] for unit in cut.units], np.random.RandomState(0)
    )
    X = np.concatenate(tasks.impute(cut.X[source], cut.X[later]))
    y = np.concatenate([cut.y[source], cut.y[later]])
    where = np.unique(cut.domain[source], return_inverse=True)[1].ravel()
    rows = np.arange(len(source), len(X))
    return _drawn(X, y, where, np.arange(len(source)), rows[adapted], rows[~adapted])


def _drawn(X, y, source_domain, source, target, test):
    return DrawnTask(
        X[source],
        y[source],
        source_domain,
        X[target],
        np.full(len(target), -1),
        X[test],
        y[test],
        y[target],
    )


def score_published(lines, published):
    """Return a frame with accuracy and AUC of each task, method and seed.

    Parameters
    ----------
    lines : list of dict
        Of `results.read_results`; failures are left out.
    published : list of Task
        Of `published_tasks`.
    """
    known = {task.name: task for task in published}
    rows = []
    for line in lines:
        if line["task"] not in known or line["status"] != OK:
            continue
        task = known[line["task"]]
        truth = decode_codes(line["truth"])
        P = line["probabilities"]
        rows.append(
            {
                "collection": task.collection,
                "cut": task.cut,
                "task": task.name,
                "method": line["method"],
                "seed": line["seed"],
                "accuracy": float(np.mean(truth == decode_codes(line["predicted"]))),
                "auc": np.nan if P is None else _auc(truth, decode_probabilities(P, len(truth))),
            }
        )
    return pd.DataFrame(rows)


def _auc(truth, P):
    """Area under the curve, one class against the rest, of the classes among the test rows."""
    present = np.unique(truth)
    return float(np.mean([roc_auc_score(truth == k, P[:, k]) for k in present]))


def mean_by_cut(scored, column="accuracy"):
    """Return means by method and cut, over splits after seeds, with the mean of the cuts."""
    per_task = scored.groupby(["method", "cut", "task"])[column].mean()
    table = per_task.groupby(["method", "cut"]).mean().unstack("cut")
    table["mean"] = table.mean(axis=1, skipna=False)
    return table.sort_values("mean", ascending=False)


def tables_beside_published(scored, ground):
    """Return a frame of each collection with a row for each method, the published ones first.

    Parameters
    ----------
    scored : DataFrame
        Of `score_published`.
    ground : {"simulated", "skada", "drift"}
        Whose protocol. The tables with drift in time share a frame: means over tables.
    """
    if ground == "drift":
        tables = scored.groupby(["method", "collection"])[["accuracy", "auc"]].mean()
        means = tables.groupby("method").mean().sort_values("accuracy", ascending=False)
        return {f"Means over {scored['collection'].nunique()} tables": means}
    return {
        name: _beside_published(mean_by_cut(part), name)
        for name, part in scored.groupby("collection", sort=False)
    }


def _beside_published(table, collection):
    rows = {}
    for name, values in PUBLISHED.get(collection, {}).items():
        if isinstance(values, float):
            rows[f"published: {name}"] = {"mean": values}
        elif len(values) == len(table.columns) - 1:  # otherwise cuts are missing in this run
            cells = zip(table.columns, [*values, np.mean(values)], strict=True)
            rows[f"published: {name}"] = dict(cells)
    published = pd.DataFrame.from_dict(rows, orient="index")
    return pd.concat([published.reindex(columns=table.columns), table])


def published_markdown(tables):
    """Return the frames of `tables_beside_published` as Markdown."""
    found = []
    for name, frame in tables.items():
        columns = [
            make_column("method", "method"),
            *(make_column(key, key, numeric=True) for key in frame.columns),
        ]
        rows = [
            {"method": method} | {key: shown(value, ".3f") for key, value in row.items()}
            for method, row in frame.iterrows()
        ]
        caption = ": ".join([name, *filter(None, [DIFFERENCES.get(name)])])
        found.append(table_markdown(make_table(name, caption, columns, rows)))
    return "\n\n".join(found)
