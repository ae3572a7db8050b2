"""Office-Caltech10 by the published protocol: joint alignment beside other models.

    python benchmarks/office_caltech.py FOLDER
    python benchmarks/office_caltech.py FOLDER --models logistic joint automatic --pairs 4

All 12 ordered pairs of the four domains, all rows, accuracy on the target rows, which are also
the rows to adapt to. Histograms of visual words (SURF) are divided by their sums, then standardized
in each domain by itself, as in the literature. One setting for all pairs: the defaults of
`JointAlignmentClassifier`, which are the figures of its papers. "automatic" is
`AutoAdaptedClassifier` with its defaults on rows that are not standardized, "plain" the unadapted
model beside it; a fit takes minutes. Pairs with the fewest rows come first.

Published, same protocol: MEDA 52.7 %, JGSA 50.0, CORAL 48.8, JDA 46.8, SVM 41.1.
"""

import argparse
import time
import warnings
from itertools import permutations

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from covshift import (
    AdaptedClassifier,
    AutoAdaptedClassifier,
    JointAlignmentClassifier,
    stack_domains,
)
from covshift.datasets import load_office_caltech

ADAPTER = "standardize-domains"
# Two pairs have more than 2,000 rows, for which landmarks are drawn.
JOINT = JointAlignmentClassifier(random_state=0)
MODELS = {
    "logistic": LogisticRegression(max_iter=1000),
    "kernel ridge": clone(JOINT).set_params(alignment_weight=0, graph_weight=0),
    "joint, no graph": clone(JOINT).set_params(graph_weight=0),
    "joint": JOINT,
}
AUTOMATIC = "automatic"


def measure(data, source, target, name):
    """Accuracies in percent on all rows of the target by column, and CPU seconds of the fit."""
    (X_source, y_source), (X_target, y_target) = (
        (data.data[data.domain == one], data.target[data.domain == one]) for one in (source, target)
    )
    X, y, sample_domain = stack_domains(X_source, y_source, X_target)
    start = time.process_time()
    if name == AUTOMATIC:
        fitted = AutoAdaptedClassifier(random_state=0).fit(X, y, sample_domain=sample_domain)
        columns = {"plain": fitted.plain_, name: fitted}
    else:
        model = AdaptedClassifier(ADAPTER, MODELS[name]).fit(X, y, sample_domain=sample_domain)
        columns = {name: model}
    seconds = time.process_time() - start
    return {
        column: (100 * model.score(X_target, y_target), seconds)
        for column, model in columns.items()
    }


def main():
    """Measure the pairs, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", help="folder with the four .mat files")
    names = [*MODELS, AUTOMATIC]
    parser.add_argument("--models", nargs="+", choices=names, default=list(MODELS))
    parser.add_argument("--pairs", type=int, default=12, help="number of pairs, the smallest first")
    arguments = parser.parse_args()
    data = load_office_caltech(arguments.folder)
    n_rows = {one: int(np.sum(data.domain == one)) for one in data.domain_names}
    pairs = sorted(
        permutations(data.domain_names, 2), key=lambda pair: n_rows[pair[0]] + n_rows[pair[1]]
    )
    found = []
    for source, target in pairs[: arguments.pairs]:
        pair = {}
        for name in arguments.models:
            pair |= measure(data, source, target, name)
        if not found:
            print(f"| source → target | {' | '.join(pair)} |\n|---|{'---:|' * len(pair)}")
        found.append(list(pair.values()))
        cells = [f"{accuracy:.1f}" for accuracy, _ in pair.values()]
        print(
            f"| {data.domain_names[source]} → {data.domain_names[target]} | {' | '.join(cells)} |",
            flush=True,
        )
    accuracy, seconds = np.moveaxis(np.array(found), 2, 0)
    print(f"| mean | {' | '.join(f'{value:.1f}' for value in accuracy.mean(axis=0))} |")
    print(
        f"| CPU seconds of a fit | {' | '.join(f'{value:.2f}' for value in seconds.mean(axis=0))} |"
    )


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
