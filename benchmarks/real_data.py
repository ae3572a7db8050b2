"""Our alignments beside SKADA's on real pairs of domains: the same rows, estimator and scores.

python benchmarks/real_data.py --data vowels=DIR office-caltech=DIR reviews=DIR [--trials 1]

Pairs, halves, components, estimator and its C are those of `covshift compare`; what differs is
the adapter alone. Ours shrink covariance matrices by an estimated amount; SKADA's adapters have
their defaults. Scores are balanced accuracies, mean and standard error over pairs.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from covshift import CorrelationAlignment, LinearMongeAlignment, SubspaceAlignment, stack_domains
from covshift.measures import mean_and_standard_error, unweighted_average_recall
from covshift.studies.comparison.collections import (
    MAX_ROWS,
    domain_pairs,
    draw_pair,
    load_collection,
)
from covshift.studies.comparison.study import choose_c, common_estimator

N_COMPONENTS = 60


def adapters(n_features):
    """Pairs of ours and SKADA's by the name of the method."""
    from skada import CORALAdapter, LinearOTMappingAdapter, SubspaceAlignmentAdapter

    few = max(1, min(20, n_features // 2))
    return {
        "none": {"ours": None},
        "CORAL": {"ours": CorrelationAlignment(), "SKADA": CORALAdapter()},
        "linear OT map": {"ours": LinearMongeAlignment(), "SKADA": LinearOTMappingAdapter()},
        "subspace alignment": {
            "ours": SubspaceAlignment(few, center=True),
            "SKADA": SubspaceAlignmentAdapter(n_components=few),
        },
    }


def adapt(adapter, X, sample_domain, X_test):
    """Source rows and test rows as the adapter represents them."""
    if adapter is None:
        return X[sample_domain >= 0], X_test
    # Copies: SKADA writes into what it is given.
    adapter.fit(X.copy(), sample_domain=sample_domain.copy())
    Z = adapter.transform(X.copy(), sample_domain=sample_domain.copy(), allow_source=True)
    target = np.full(len(X_test), -1)
    Z_test = adapter.transform(X_test.copy(), sample_domain=target, allow_source=True)
    return np.asarray(Z)[sample_domain >= 0], np.asarray(Z_test)


def measure(collection, source, target, seed):
    """Score and seconds of every adapter on one pair; seconds are of the adapter alone."""
    draw = draw_pair(collection, source, target, seed, MAX_ROWS)
    data, C = draw.data, choose_c(draw)
    X, _, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    n_components = min(N_COMPONENTS, X.shape[1], len(data.X_source) // 2)
    components = make_pipeline(StandardScaler(), PCA(n_components)).fit(X)
    X, X_test = components.transform(X), components.transform(data.X_test)
    for method, both in adapters(X.shape[1]).items():
        for whose, adapter in both.items():
            start = time.perf_counter()
            rows, test = adapt(adapter, X, sample_domain, X_test)
            seconds = time.perf_counter() - start
            model = common_estimator(C).fit(rows, data.y_source)
            score = unweighted_average_recall(data.y_test, model.predict(test))
            yield (method, whose), score, seconds


def main():
    """Measure all pairs, and print one table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", nargs="+", required=True, metavar="NAME=PATH")
    parser.add_argument("--trials", type=int, default=1)
    arguments = parser.parse_args()
    print("| data | method | whose | balanced accuracy | difference to none | seconds |")
    print("|---|---|---|---:|---:|---:|")
    for text in arguments.data:
        name, _, path = text.partition("=")
        collection = load_collection(name, path)
        scores, seconds = {}, {}
        for source, target in domain_pairs(collection, 0):
            found = {}
            for seed in range(arguments.trials):
                for key, score, taken in measure(collection, source, target, seed):
                    found.setdefault(key, []).append(score)
                    seconds.setdefault(key, []).append(taken)
            for key, values in found.items():
                scores.setdefault(key, []).append(np.mean(values))
        for (method, whose), values in scores.items():
            mean, error = mean_and_standard_error(values)
            difference = np.subtract(values, scores["none", "ours"])
            change, spread = mean_and_standard_error(difference)
            shown = "" if method == "none" else f"{change:+.3f} ± {spread:.3f}"
            who = "" if method == "none" else whose
            took = np.median(seconds[method, whose])
            cells = [name, method, who, f"{mean:.3f} ± {error:.3f}", shown, f"{took:.3f}"]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
