"""Use every estimator from many threads at once and compare with one thread.

python hardening/thread_storm.py [--threads 8] [--rounds 3] [--seed 0]

Each round fits every estimator once in the main thread and in all threads at once, saves the models
of all threads to one path, and loads that file in all threads. The results must have the same bits,
the file must be whole, and the process's filters of warnings must be as they were.
"""

import argparse
import random
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def outputs(model: Any, X_new: Any) -> list[bytes]:
    """Return all results of a model as bytes."""
    import numpy as np

    names = ("predict", "predict_proba", "transform")
    found = [getattr(model, name)(X_new) for name in names if hasattr(model, name)]
    found += [model.weights_] if hasattr(model, "weights_") else []
    return [np.asarray(one).tobytes() for one in found]


def storm(estimator: Any, n_threads: int, folder: Path) -> list[str]:
    """Return what went wrong with one estimator."""
    from sklearn.base import clone
    from tests.estimators import problem_for

    from covshift import load, save

    X, y, sample_domain, X_new = problem_for(estimator)
    path = folder / "model.skops"

    def fit_and_save(_: int) -> list[bytes]:
        model = clone(estimator).fit(X, y, sample_domain=sample_domain)
        save(model, path)
        return outputs(model, X_new)

    expected = fit_and_save(0)
    faults = []
    with ThreadPoolExecutor(n_threads) as pool:
        if any(one != expected for one in pool.map(fit_and_save, range(n_threads))):
            faults.append("fits in threads differ from one in the main thread")
        loaded = pool.map(lambda _: outputs(load(path), X_new), range(n_threads))
        if any(one != expected for one in loaded):
            faults.append("models loaded in threads differ")
    if [one.name for one in folder.iterdir()] != [path.name]:
        faults.append("files were left behind")
    return faults


def main(arguments: list[str] | None = None) -> int:
    """Return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="of the order of the estimators")
    parser.add_argument("--estimators", type=int, default=10**6, help="at most this many a round")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(ROOT))
    from sklearn.exceptions import ConvergenceWarning
    from tests.estimators import ESTIMATORS
    from tests.test_warning_filters import own_filters
    from tests.weights.estimators import WEIGHTS

    warnings.simplefilter("ignore", ConvergenceWarning)
    rng, n_storms, n_faults = random.Random(options.seed), 0, 0
    shown = warnings.showwarning, warnings._showwarnmsg_impl  # type: ignore[attr-defined]
    filters = own_filters()
    # The two classes that CONTRIBUTING.md shows are not part of the package: files need trust.
    every = [one for one in [*ESTIMATORS, *WEIGHTS] if type(one).__module__.startswith("covshift")]
    for _ in range(options.rounds):
        for estimator in rng.sample(every, min(len(every), options.estimators)):
            with tempfile.TemporaryDirectory() as folder:
                faults = storm(estimator, options.threads, Path(folder))
            for fault in faults:
                print(f"{estimator!r}: {fault}", flush=True)
            n_storms, n_faults = n_storms + 1, n_faults + len(faults)
    now = warnings.showwarning, warnings._showwarnmsg_impl  # type: ignore[attr-defined]
    if now != shown or own_filters() != filters:
        print("The filters of warnings have changed.")
        n_faults += 1
    print(f"{n_storms} storms of {options.threads} threads, {n_faults} faults.")
    return int(n_faults > 0)


if __name__ == "__main__":
    sys.exit(main())
