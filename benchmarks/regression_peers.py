"""Regressors of other packages on the tasks of `regression.py`, in an environment of theirs.

    python benchmarks/regression_peers.py runs/regression --package skada
    python benchmarks/regression_peers.py runs/regression --package adapt

Reads the files that ``regression.py rows`` wrote, which have no target labels, and adds a file of
predictions beside each. Needs NumPy, scikit-learn and the package, and nothing of covshift.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler


def skada_regressors(rows):
    """Yield names and predictions of SKADA's adapters around a ridge regression."""
    import skada

    X = np.concatenate([rows["X_source"], rows["X_target"]])
    y = np.concatenate([rows["y_source"], np.full(len(rows["X_target"]), np.nan)])
    domain = np.concatenate(
        [np.ones(len(rows["X_source"])), np.full(len(rows["X_target"]), -2)]
    ).astype(int)
    where = np.full(len(rows["X_test"]), -2)
    for name in ("CORALAdapter", "LinearOTMappingAdapter", "KMMReweightAdapter"):
        last = Ridge()
        if name.endswith("ReweightAdapter"):
            last = last.set_fit_request(sample_weight=True)
        adapter = getattr(skada, name)()
        model = skada.make_da_pipeline(StandardScaler(), adapter, last)
        model.fit(X, y, sample_domain=domain)
        yield f"SKADA {name}", model.predict(rows["X_test"], sample_domain=where)


def adapt_regressors(rows):
    """Yield names and predictions of ADAPT's shallow methods around a ridge regression."""
    from adapt.feature_based import CORAL
    from adapt.instance_based import KLIEP, KMM

    scaler = StandardScaler().fit(rows["X_source"])
    Xs, Xt, X_test = (scaler.transform(rows[k]) for k in ("X_source", "X_target", "X_test"))
    for method in (CORAL, KMM, KLIEP):
        model = method(Ridge(), Xt=Xt, random_state=0, verbose=0)
        model.fit(Xs, rows["y_source"])
        settings = {"domain": "tgt"} if method is CORAL else {}
        yield f"ADAPT {method.__name__}", np.ravel(model.predict(X_test, **settings))


PACKAGES = {"skada": skada_regressors, "adapt": adapt_regressors}


def main():
    """Predict the test rows of all tasks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--package", choices=tuple(PACKAGES), required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for path in sorted(options.folder.glob("rows-*.npz")):
        out = path.with_name(path.name.replace("rows-", f"{options.package}-"))
        if out.exists():
            continue
        with np.load(path) as file:
            rows = dict(file)
        found = {}
        try:
            for name, predicted in PACKAGES[options.package](rows):
                if np.isfinite(predicted).all():
                    found[name] = predicted
        except Exception as error:  # a peer that fails on a task is left out there
            print(f"{path.name}: {type(error).__name__}: {error}"[:150], flush=True)
        np.savez_compressed(out, **found)


if __name__ == "__main__":
    main()
