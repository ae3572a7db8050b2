"""Defaults of the filters: the start and the label reward, the released values beside "auto".

python benchmarks/filter_defaults.py DATA [--trials 20] [--only NAME ...]

Accuracy (UAR for speech) of a linear model on `SparseFiltering()` and `PeriodicSparseFiltering()`
with `init_scale` and `label_reward` as below and otherwise the defaults, beside the same linear
model without adaptation. Sets of tasks:

- the paper's four synthetic sets, reconstructed, two features, no scaling;
- families of rules that repeat (`families/repeating_rules.py`), no scaling;
- pairs of domains of real collections with at most 20 features, scaled by the source;
- EMODB by speaker, one speaker left out: trials of `covshift reproduce speech --leave-out speaker`,
  with the settings that the paper prints (L, activation, KS stop and C); "speech-defaults" adds
  the defaults of the package, which take ten times as long.

Target labels only score. Means and standard errors are over tasks.
"""

import argparse
import warnings

import numpy as np
from covshift_bench import families
from covshift_bench.tasks import draw_task, read_tasks
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from covshift import PeriodicSparseFiltering, SparseFiltering
from covshift.datasets import load_speech_corpus
from covshift.measures import mean_and_standard_error, unweighted_average_recall
from covshift.paper.grid_systems import PRECISION, periodic_filter, sparse_filter
from covshift.paper.speech.printed import printed_configuration
from covshift.paper.speech.protocol import draw_trial, table_of
from covshift.paper.synthetic.trials import draw_trial as draw_synthetic

REPEATING = ("periodic_groups", "striped_groups", "clocks", "seasons", "fringes", "tides")
SYNTHETIC = ("radial", "periodic", "smooth", "diagonal")
MAX_FEATURES = 20
PAIRS = 1  # tasks of a collection
QUARTER = "auto / 4"  # of the reward of "auto": the number of all rows for each that has a label
# Values of init_scale and label_reward, by the method.
VARIANTS = {
    "SF": {"1": {"init_scale": 1.0}, "auto": {"init_scale": "auto"}},
    "PSF": {
        "1, 1": {"init_scale": 1.0, "label_reward": 1.0},
        "auto, 1": {"init_scale": "auto", "label_reward": 1.0},
        "1, auto": {"init_scale": 1.0, "label_reward": "auto"},
        "auto, auto": {"init_scale": "auto", "label_reward": "auto"},
        "auto, auto / 4": {"init_scale": "auto", "label_reward": QUARTER},
    },
}
DEFAULT_COSTS = (0.01, 1.0)  # of the SVM on speech, where filters have their defaults
FILTERS = {"SF": SparseFiltering, "PSF": PeriodicSparseFiltering}
MODEL = LinearSVC(C=1.0)


def score_variants(task, seed, *, scale=False):
    """Accuracy on the test rows of each variant, and of the model without an adapter."""
    X_source, y_source, X_target, X_test, y_test = task
    if scale:
        scaler = StandardScaler().fit(X_source)
        X_source, X_target, X_test = map(scaler.transform, (X_source, X_target, X_test))
    X, sample_domain = np.concatenate([X_source, X_target]), _roles(X_source, X_target)
    y = np.concatenate([y_source, np.full(len(X_target), y_source[0])])
    found = {("none", ""): MODEL}
    for method, variants in VARIANTS.items():
        for name, values in variants.items():
            known = _resolve(values, len(X) / len(X_source))
            found[method, name] = FILTERS[method](random_state=seed, **known)
    scores = {}
    for key, one in found.items():
        if key[0] == "none":
            model, Z_test = clone(MODEL).fit(X_source, y_source), X_test
        else:
            one.fit(X, y, sample_domain=sample_domain)
            Z = one.transform(X, sample_domain=sample_domain)[: len(X_source)]
            model, Z_test = clone(MODEL).fit(Z, y_source), one.transform(X_test)
        scores[key] = float(np.mean(model.predict(Z_test) == y_test))
    return scores


def _resolve(values, rows_per_label):
    reward = values.get("label_reward")
    return values | {"label_reward": rows_per_label} if reward == QUARTER else values


def _roles(X_source, X_target):
    return np.repeat([0, -1], [len(X_source), len(X_target)])


def synthetic(name, n_trials):
    """Yield tasks and seeds of a synthetic set of the paper."""
    for seed in range(n_trials):
        data, start = draw_synthetic(name, seed)
        yield tuple(data), start


def repeating(name, n_trials):
    """Yield tasks and seeds of a family of repeating rules."""
    for seed in range(n_trials):
        source, target, test, _ = families.draw_made_up("diagnosis", name, seed)
        yield (*source, target[0], *test), seed


def few_features(data):
    """Yield real pairs of domains with few features, one of a collection."""
    taken = {}
    for task in read_tasks():
        few = task.kind == "pair" and task.n_features <= MAX_FEATURES
        if few and taken.setdefault(task.collection, 0) < PAIRS:
            taken[task.collection] += 1
            drawn = draw_task(task, data)
            yield (drawn.X_source, drawn.y_source, drawn.X_target, drawn.X_test, drawn.y_test), 0


def speech_scores(tables, seed, with_defaults):
    """UAR of each variant on one trial, with the printed settings, and with the defaults."""
    halves, training, X_test, start = draw_trial(tables, "emodb", "speaker", seed)
    X, source = training.X.astype(PRECISION), training.sample_domain >= 0
    y_test = tables["emodb"].y[halves.test]
    scores = {}

    def score(key, rows, test, C):
        model = LinearSVC(C=C, random_state=start).fit(rows, training.y[source])
        scores[key] = unweighted_average_recall(y_test, model.predict(test))

    printed_cost = printed_configuration("emodb", "SVM").cost
    for C in (printed_cost, *DEFAULT_COSTS):
        score(("none", f"C {C:g}"), training.X[source], X_test, C)
    for method, build in (("SF", sparse_filter), ("PSF", periodic_filter)):
        setting, cost = printed_configuration("emodb", method)
        ways = {"printed": (build(setting, len(X), start), (cost,))}
        if with_defaults:
            ways["defaults"] = FILTERS[method](random_state=start), DEFAULT_COSTS
        for way, (filter_, costs) in ways.items():
            for name, values in VARIANTS[method].items():
                if way == "printed" and values.get("label_reward") == 1.0:
                    values = values | {"label_reward": setting["label_reward"]}
                    name = name.replace(", 1", f", {setting['label_reward']:g}")
                one = clone(filter_).set_params(**_resolve(values, len(X) / source.sum()))
                one.fit(X, training.y, sample_domain=training.sample_domain)
                Z = one.transform(X, sample_domain=training.sample_domain)[source]
                Z_test = one.transform(X_test.astype(PRECISION))
                for C in costs:
                    score((method, f"{way}, C {C:g}: {name}"), Z, Z_test, C)
    return scores


def print_scores(title, found):
    """Print the mean of each variant, and its difference to the first of its method."""
    print(f"\n{title}, {len(found)} tasks\n\n| method | values | mean | to the first |")
    print("|---|---|---:|---:|")
    first = {}
    for key in found[0]:
        values = np.array([scores[key] for scores in found])
        group = (key[0], key[1].partition(":")[0] if ":" in key[1] else "")
        difference = values - first.setdefault(group, values)
        mean, error = mean_and_standard_error(values)
        change, spread = mean_and_standard_error(difference)
        shown = f"{change:+.3f} ± {spread:.3f}" if difference.any() else ""
        print(f"| {key[0]} | {key[1]} | {mean:.3f} ± {error:.3f} | {shown} |")


def main():
    """Measure the sets and print a table for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", help="folder with the collections")
    parser.add_argument("--trials", type=int, default=20, help="of synthetic sets and families")
    parser.add_argument("--speech-trials", type=int, default=100)
    names = "radial, ..., periodic_groups, ..., real, speech, speech-defaults"
    parser.add_argument("--only", nargs="+", help=f"sets: {names}")
    parser.add_argument("--values", nargs="+", help='variants, such as "1, 1" and "1, auto"')
    options = parser.parse_args()
    for variants in VARIANTS.values():
        for name in set(variants) - set(options.values or variants):
            del variants[name]
    wanted = set(options.only or (*SYNTHETIC, *REPEATING, "real", "speech"))
    for draw, names in ((synthetic, SYNTHETIC), (repeating, REPEATING)):
        for name in [one for one in names if one in wanted]:
            tasks = draw(name, options.trials)
            print_scores(name, [score_variants(task, seed) for task, seed in tasks])
    if "real" in wanted:
        tasks = few_features(options.data)
        found = [score_variants(task, seed, scale=True) for task, seed in tasks]
        print_scores(f"real collections, at most {MAX_FEATURES} features", found)
    if wanted & {"speech", "speech-defaults"}:
        tables = {"emodb": table_of(load_speech_corpus(f"{options.data}/emodb", "emodb"))}
        for name in [one for one in ("speech", "speech-defaults") if one in wanted]:
            with_defaults = name == "speech-defaults"
            n_trials = options.speech_trials
            found = [speech_scores(tables, seed, with_defaults) for seed in range(n_trials)]
            print_scores(f"EMODB by speaker ({name}), UAR", found)


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
