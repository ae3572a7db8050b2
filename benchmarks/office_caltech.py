"""Office-Caltech10 by the published protocol: joint alignment beside other models.

    python benchmarks/office_caltech.py FOLDER

All 12 ordered pairs of the four domains, all rows, accuracy on the target rows, which are also
the rows to adapt to. Histograms of visual words (SURF) are divided by their sums, then standardized
in each domain by itself, as in the literature. One setting for all pairs: the defaults of
`JointAlignmentClassifier`, which are the figures of its papers.

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

from covshift import AdaptedClassifier, JointAlignmentClassifier, stack_domains
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


def measure(data, source, target, model):
    """Accuracy in percent on all rows of the target, and CPU seconds of the fit."""
    (X_source, y_source), (X_target, y_target) = (
        (data.data[data.domain == one], data.target[data.domain == one]) for one in (source, target)
    )
    X, y, sample_domain = stack_domains(X_source, y_source, X_target)
    start = time.process_time()
    fitted = AdaptedClassifier(ADAPTER, model).fit(X, y, sample_domain=sample_domain)
    return 100 * fitted.score(X_target, y_target), time.process_time() - start


def main():
    """Measure all pairs, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", help="folder with the four .mat files")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    arguments = parser.parse_args()
    data = load_office_caltech(arguments.folder)
    print(f"| source → target | {' | '.join(arguments.models)} |")
    print("|---|" + "---:|" * len(arguments.models))
    found = []
    for source, target in permutations(data.domain_names, 2):
        pair = [measure(data, source, target, MODELS[name]) for name in arguments.models]
        found.append(pair)
        cells = [f"{accuracy:.1f}" for accuracy, _ in pair]
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
