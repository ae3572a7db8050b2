"""The tasks: real ones from a fixed list (``tasks.csv``), and made-up ones.

    covshift-bench tasks DATA            # check that the list can be reproduced
    covshift-bench tasks DATA --write    # write it again
    covshift-bench tasks FOLDER --list my_tasks.csv --write    # a list of other collections

A task has labeled source rows in one or more domains, target rows to adapt to and test rows of the
target. The rules of the list:

- A task is an ordered pair of domains, or a domain that is left out of all others. Where domains
  are ordered (time, age, load), sources are earlier than the target. Domains have at least 30 rows.
- At most 8 tasks of a collection, drawn with a fixed seed, in turn from each way to cut the
  collection into domains and from both kinds of tasks.
- Target rows belong to classes that occur at least twice in the source. At least 30 source rows
  and 30 target rows are left, and two classes in both halves of the target.
- Half of the target is adapted to, half is tested on, stratified by class. Rows of one unit (a
  person, machine or recording) are never in both, and a unit that occurs in source and target is
  kept on one side only. Exception: where most classes of a target have a single recording, each
  recording is halved in time.
- At most 600 rows of the source, to adapt to and to test on, or 1,500 in tasks of size "large":
  as many of each source domain, classes in proportion.
- Missing values are replaced by the median of the source rows.

Collections that share a source form one cluster: see `CLUSTERS`. A collection is a *control* if a
model of the source is nearly as good as one of the target: see `MARGIN`.
"""

import csv
import warnings
import zlib
from itertools import chain, permutations, zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from covshift_bench import families
from covshift_bench.real_collections import collection_names, read_cuts

LIST = Path(__file__).with_suffix(".csv")
SEED = 0
MAX_TASKS = 8  # of a collection
MIN_ROWS = 30  # of a domain, of the source and of the target
MIN_OF_CLASS = 2  # source rows
SIZES = {"standard": 600, "large": 1500}  # most rows of the source, to adapt to, to test on
MADE_UP = "made up"

CLUSTERS = {
    "bank_churn": "banks",
    "bank_marketing": "banks",
    "cwru_raw": "cwru",
    "cwru_spectra": "cwru",
    "digits_8x8": "digits",
    "digits_mnist_usps": "digits",
    "abortion_gss": "general social survey",
    "emodb": "acted emotions",
    "emotion_speech": "acted emotions",
    "gss_children": "general social survey",
    "parking_sites": "parking",
    "parking_weeks": "parking",
    "vowels_deterding": "vowels",
    "vowels_h95": "vowels",
    "vowels_pb52": "vowels",
}

# A collection is marked "shift" if logistic regression within the target has a balanced accuracy
# higher by at least `MARGIN` than one on the source, else "control". The differences below are
# means over up to six tasks with up to 1,200 source rows and 1,000 target rows, published with the
# collections. For other collections, and other ways to cut them, `measure_gap` gives the figure.
MARGIN = 0.05
PUBLISHED_GAPS = {
    "vowels_deterding": 0.63, "digits_mnist_usps": 0.59, "digits_8x8": 0.50,
    "spoken_digits": 0.46, "gas_drift": 0.38, "cwru_spectra": 0.35, "computers": 0.35,
    "emotion_speech": 0.33, "parking_sites": 0.31, "steel_plates": 0.30, "housing_ames": 0.27,
    "wisdm": 0.26, "mfpt_bearings": 0.26, "eeg_eye": 0.23, "gas_turbine": 0.20,
    "vowels_pb52": 0.20, "mushrooms": 0.19, "diabetes_questionnaire": 0.19,
    "sao_paulo_traffic": 0.18, "parking_weeks": 0.16, "youtube_spam": 0.12, "indian_liver": 0.12,
    "turbofan": 0.11, "pima_diabetes": 0.10, "sentiment_sentences": 0.09, "lalonde": 0.08,
    "mice_protein": 0.08, "bank_marketing": 0.07, "chess": 0.07, "online_shoppers": 0.05,
    "absenteeism": 0.05, "personality": 0.04, "movies": 0.04, "student_performance": 0.04,
    "diamonds": 0.03, "phishing": 0.03, "chile_vote": 0.03, "drug_consumption": 0.02,
    "private_insurance": 0.02, "car_loan_synthetic": 0.02, "istanbul_stock": 0.02,
    "communities_crime": 0.01, "ozone_days": 0.01, "wilms_tumour": 0.00, "free_light_chain": 0.00,
    "credit_default": -0.01, "employment_ma": -0.01, "abalone": -0.01, "bank_churn": -0.01,
    "california_housing": -0.02, "breast_biopsy": -0.02, "adult": -0.02,
}  # fmt: skip


class Task(NamedTuple):
    """A task by name: which domains of which collection, and what is known about it.

    ``cut`` is the way to cut the collection into domains ("" for the main one). ``rows`` is a
    checksum of the numbers of the rows of standard size. ``none`` and ``within`` are the balanced
    accuracies that `measure_gap` returns. Made-up tasks have the family as ``cluster``, the seed
    as ``target``, and the mark "unknown".
    """

    name: str
    collection: str
    cut: str
    cluster: str
    kind: str  # "pair", "left out" or "made up"
    sources: tuple
    target: int
    mark: str = "unknown"  # "shift", "control" or "unknown"
    n_source: int = 0
    n_target: int = 0
    n_test: int = 0
    n_features: int = 0
    n_classes: int = 0
    none: float = np.nan
    within: float = np.nan
    rows: str = ""


class DrawnTask(NamedTuple):
    """The rows of a task.

    ``y_test`` judges methods; these are given None. Only methods that ask for labels see
    ``y_target``.
    """

    X_source: np.ndarray
    y_source: np.ndarray
    source_domain: np.ndarray  # 0, 1, ...
    X_target: np.ndarray
    target_domain: np.ndarray  # -1
    X_test: np.ndarray
    y_test: np.ndarray | None
    y_target: np.ndarray | None

    def without_target_labels(self):
        """Return what a method may see."""
        return self._replace(y_test=None, y_target=None)


def read_tasks(path=LIST):
    """Return the committed list of real tasks."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        return [_parse(row) for row in csv.DictReader(file)]


def write_tasks(tasks, path=LIST):
    """Write the list."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Task._fields)
        for task in tasks:
            scores = {"none": f"{task.none:.3f}", "within": f"{task.within:.3f}"}
            sources = " ".join(map(str, task.sources))
            writer.writerow(task._replace(sources=sources, **scores))


def made_up_tasks(n_seeds):
    """Return tasks of the made-up families, seed by seed."""
    return [
        Task(f"{MADE_UP}: {family}, seed {seed}", MADE_UP, group, family, MADE_UP, (), seed)
        for seed in range(n_seeds)
        for group, names in families.GROUPS.items()
        for family in names
    ]


def draw_task(task, data=None, size="standard"):
    """Return the rows of a task.

    Parameters
    ----------
    task : Task
        Of `read_tasks` or `made_up_tasks`.
    data : path
        Data folder; made-up tasks need none.
    size : {"standard", "large"}
        At most 600 or 1,500 rows a side. Made-up families draw their own numbers of rows.

    Returns
    -------
    DrawnTask
    """
    if task.collection == MADE_UP:
        source, target, test, domain = families.draw_made_up(
            task.cut, task.cluster, task.target, size
        )
        where = np.full(len(target[1]), -1)
        return DrawnTask(*source, domain, target[0], where, *test, target[1])
    cut = read_cuts(str(data), task.collection)[task.cut]
    source, target, test = draw_rows(task, cut, SIZES[size])
    X_source, X_target, X_test = impute(*(cut.X[rows] for rows in (source, target, test)))
    return DrawnTask(
        X_source,
        cut.y[source],
        np.unique(cut.domain[source], return_inverse=True)[1].ravel(),
        X_target,
        np.full(len(target), -1),
        X_test,
        cut.y[test],
        cut.y[target],
    )


def draw_rows(task, cut, max_rows):
    """Return the numbers of the source rows, the rows to adapt to and the test rows."""
    rng = np.random.RandomState([SEED, zlib.crc32(task.name.encode())])
    source = np.flatnonzero(np.isin(cut.domain, task.sources))
    target = np.flatnonzero(cut.domain == task.target)
    if cut.units:
        source, target = keep_apart(source, target, cut.units[0], rng)
    source = thin(source, cut.domain, cut.y, max_rows, rng)
    known = np.flatnonzero(np.bincount(cut.y[source], minlength=1) >= MIN_OF_CLASS)
    source, target = (rows[np.isin(cut.y[rows], known)] for rows in (source, target))
    adapted = halve(cut.y[target], [unit[target] for unit in cut.units], rng)
    halves = (target[adapted], target[~adapted])
    return source, *(thin(half, cut.domain, cut.y, max_rows, rng) for half in halves)


def keep_apart(source, target, unit, rng):
    """Deal the units that occur on both sides: half stay in the source, half in the target."""
    shared = rng.permutation(np.intersect1d(unit[source], unit[target]))
    in_source, in_target = np.split(shared, [len(shared) // 2])
    return source[~np.isin(unit[source], in_target)], target[~np.isin(unit[target], in_source)]


def halve(y, units, rng):
    """Return which rows are adapted to: whole units, about half of each class.

    ``units``: identifiers from coarse to fine. The coarsest that most classes have two of is used.
    """
    if not units:
        return _deal(y, np.arange(len(y)), rng)
    for unit in units:
        n_units = [len(np.unique(unit[y == k])) for k in np.unique(y)]
        if np.mean(np.array(n_units) >= 2) >= 0.5:
            return _deal(y, unit, rng)
    first = np.zeros(len(y), dtype=bool)
    for one in np.unique(units[-1]):
        rows = np.flatnonzero(units[-1] == one)  # in the order of time
        first[rows[: (len(rows) + 1) // 2]] = True
    return first


def _deal(y, unit, rng):
    """Each unit goes to the half with fewer rows of its main class, then with fewer rows."""
    names, number = np.unique(unit, return_inverse=True)
    counts = np.zeros((len(names), y.max(initial=0) + 1), dtype=int)
    np.add.at(counts, (number.ravel(), y), 1)
    main = counts.argmax(axis=1)
    adapted = np.zeros(len(names), dtype=bool)
    dealt = np.zeros((2, counts.shape[1]), dtype=int)  # rows by half and class
    for one in np.lexsort([rng.uniform(size=len(names)), main]):
        half = int(np.lexsort([dealt.sum(axis=1), dealt[:, main[one]]])[0])
        dealt[half] += counts[one]
        adapted[one] = half == 0
    return adapted[number.ravel()]


def thin(rows, domain, y, max_rows, rng):
    """Return at most this number of rows: as many of each domain, classes in proportion.

    With the same seed, the rows of a smaller number are among those of a larger one.
    """
    domain, y = domain[rows], y[rows]
    place = rng.uniform(size=len(rows))
    if len(rows) <= max_rows:
        return rows
    turn = np.empty(len(rows))
    for one in np.unique(domain):
        inside = domain == one
        for k in np.unique(y[inside]):
            part = inside & (y == k)
            place[part] = (_ranks(place[part]) + place[part]) / part.sum()
        turn[inside] = _ranks(place[inside])
    return np.sort(rows[np.lexsort([place, turn])[:max_rows]])


def _ranks(values):
    return values.argsort().argsort()


def impute(X_source, *others):
    """Replace missing values by the median of the source rows; by 0 if these have none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column without any value
        median = np.nan_to_num(np.nanmedian(X_source, axis=0))
    parts = (np.asarray(X, dtype=np.float64) for X in (X_source, *others))
    return [np.where(np.isnan(X), median, X) for X in parts]


def declare_tasks(data):
    """Return the tasks that the rules give, without marks and measured figures."""
    return list(
        chain.from_iterable(_declare(data, collection) for collection in collection_names(data))
    )


def _declare(data, collection):
    """At most `MAX_TASKS` of a collection, in turn from every cut and kind."""
    rng = np.random.RandomState([SEED, zlib.crc32(collection.encode())])
    drawn = []
    for name, cut in read_cuts(str(data), collection).items():
        for kind in cut.kinds:
            tasks = _possible(collection, name, cut, kind)
            order = rng.permutation(len(tasks))
            drawn.append(_usable([tasks[i] for i in order], cut))
    chosen = []
    for turn in zip_longest(*drawn):
        chosen += [task for task in turn if task is not None]
        if len(chosen) >= MAX_TASKS:
            break
    return sorted(chosen[:MAX_TASKS])


def _possible(collection, name, cut, kind):
    counts = np.bincount(cut.domain, minlength=len(cut.domain_names))
    domains = [number for number, count in enumerate(counts) if count >= MIN_ROWS]
    if kind == "pair":
        where = [((a,), b) for a, b in permutations(domains, 2) if a < b or not cut.ordered]
    else:
        where = [
            (tuple(a for a in domains if (a < b if cut.ordered else a != b)), b) for b in domains
        ]
        where = [(sources, target) for sources, target in where if len(sources) > 1]
    tasks = []
    for sources, target in where:
        several = "all before" if cut.ordered else "all others"
        source = cut.domain_names[sources[0]] if kind == "pair" else several
        prefix = f"{collection} ({name})" if name else collection
        task_name = f"{prefix}: {source} > {cut.domain_names[target]}"
        cluster = CLUSTERS.get(collection, collection)
        tasks.append(Task(task_name, collection, name, cluster, kind, sources, target))
    return tasks


def _usable(tasks, cut):
    for task in tasks:
        checked = _check(task, cut)
        if checked is not None:
            yield checked


def _check(task, cut):
    """The task with its sizes, or None if it breaks a rule."""
    source, target, test = parts = draw_rows(task, cut, SIZES["standard"])
    classes = [len(np.unique(cut.y[rows])) for rows in parts]
    if len(source) < MIN_ROWS or len(target) + len(test) < MIN_ROWS or min(classes) < 2:
        return None
    numbers = np.concatenate([source, [-1], target, [-1], test]).astype("<i8")
    return task._replace(
        n_source=len(source),
        n_target=len(target),
        n_test=len(test),
        n_features=cut.X.shape[1],
        n_classes=classes[0],
        rows=f"{zlib.crc32(numbers.tobytes()):08x}",
    )


def measure_gap(drawn):
    """ORACLE, reads target labels: balanced accuracy on the target by source and target models.

    Returns
    -------
    none, within : float
        Logistic regression on the source, standardized by the source; five-fold cross-validation
        within the target.
    """
    X = np.concatenate([drawn.X_target, drawn.X_test])
    y = np.concatenate([drawn.y_target, drawn.y_test])
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    folds = StratifiedKFold(5, shuffle=True, random_state=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes of fewer than five rows, convergence
        source = model.fit(drawn.X_source, drawn.y_source).predict(X)
        within = cross_val_predict(model, X, y, cv=folds)
        return tuple(balanced_accuracy_score(y, predicted) for predicted in (source, within))


def mark_tasks(tasks):
    """Mark measured tasks "shift" or "control", a cut of a collection at a time."""
    gaps = {}
    for task in tasks:
        gaps.setdefault((task.collection, task.cut), []).append(task.within - task.none)
    marks = {}
    for (collection, cut), measured in gaps.items():
        published = PUBLISHED_GAPS.get(collection) if cut == "" else None
        gap = np.mean(measured) if published is None else published
        marks[collection, cut] = "shift" if gap >= MARGIN else "control"
    return [task._replace(mark=marks[task.collection, task.cut]) for task in tasks]


def _parse(row):
    numbers = ("target", "n_source", "n_target", "n_test", "n_features", "n_classes")
    return Task(
        **row
        | {name: int(row[name]) for name in numbers}
        | {name: float(row[name]) for name in ("none", "within")}
        | {"sources": tuple(map(int, row["sources"].split()))}
    )


def write_list(data, path=LIST, progress=print):
    """Measure the tasks that the rules give, mark them and write the list."""
    tasks = declare_tasks(data)
    for number, task in enumerate(tasks):
        none, within = measure_gap(draw_task(task, data))
        tasks[number] = task._replace(none=round(none, 3), within=round(within, 3))
        progress(f"{number + 1} of {len(tasks)}: {task.name}: {none:.3f}, {within:.3f}")
    write_tasks(mark_tasks(tasks), path)


def check_list(data, path=LIST):
    """Return the tasks that the rules give, and whether the list has the same."""
    tasks = declare_tasks(data)
    listed = [
        task._replace(mark="unknown", none=np.nan, within=np.nan) for task in read_tasks(path)
    ]
    return tasks, [str(task) for task in listed] == [str(task) for task in tasks]
