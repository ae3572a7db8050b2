"""SKADA's adapters with their defaults: a scaler, the adapter, a model."""

from functools import partial
from importlib.util import find_spec

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from covshift_bench.method import Method, Prediction, stacked

MODELS = {"logistic": partial(LogisticRegression, max_iter=1000), "rbf": SVC}
# Adapters, and whether their defaults draw at random.
ADAPTERS = {
    "CORAL": False,
    "LinearOTMapping": False,
    "SubspaceAlignment": False,
    "OTMapping": False,
    "EntropicOTMapping": False,
    "ClassRegularizerOTMapping": False,
    "TransferComponentAnalysis": False,
    "KMMReweight": False,
    "KLIEPReweight": True,
    "GaussianReweight": False,
    "DensityReweight": False,
    "DiscriminatorReweight": False,
    "NearestNeighborReweight": False,
    "MMDTarSReweight": False,
    "OTLabelProp": False,
}
WITH_KERNEL = ("KLIEPReweight", "MMDTarSReweight")  # no default width
ON_COMPONENTS = ("SubspaceAlignment", "TransferComponentAnalysis")
WITH_BOTH_MODELS = ("CORAL", "LinearOTMapping")


def skada_pipeline(task, seed, adapter, model):
    """Fit a pipeline of SKADA."""
    import skada  # turns metadata routing on for all of scikit-learn: only in its own process

    settings = {}
    if adapter in ON_COMPONENTS:
        settings["n_components"] = max(1, min(20, task.X_source.shape[1] // 2))
    if adapter in WITH_KERNEL:
        settings["gamma"] = 1 / task.X_source.shape[1]
    if ADAPTERS[adapter]:
        settings["random_state"] = seed
    last = MODELS[model]()
    if adapter.endswith("Reweight"):
        last = last.set_fit_request(sample_weight=True)
    steps = StandardScaler(), getattr(skada, f"{adapter}Adapter")(**settings), last
    return fit_skada(skada.make_da_pipeline(*steps), task)


def joint_transport(task, seed):
    """Fit SKADA's classifier by joint optimal transport, with its defaults."""
    import skada

    return fit_skada(skada.make_da_pipeline(StandardScaler(), skada.JDOTClassifier()), task)


def fit_skada(pipeline, task):
    """Fit on source and target as SKADA numbers them, and predict the test rows."""
    X, y, sample_domain = stacked(task)
    target = sample_domain < 0
    classes, y = np.unique(y, return_inverse=True)
    # Source domains count from 1; -1 as label means "unknown".
    sample_domain = np.where(target, -1, sample_domain + 1)
    pipeline.fit(X, np.where(target, -1, y), sample_domain=sample_domain)
    where = np.full(len(task.X_test), -1)
    labels = np.asarray(pipeline.predict(task.X_test, sample_domain=where), dtype=int)
    return Prediction(classes[labels], _probabilities(pipeline, task.X_test, where, len(classes)))


def _probabilities(pipeline, X, where, n_classes):
    if not hasattr(pipeline, "predict_proba"):
        return None
    P = np.asarray(pipeline.predict_proba(X, sample_domain=where))
    return P if P.shape == (len(X), n_classes) and np.isfinite(P).all() else None


def _methods():
    for adapter, random in ADAPTERS.items():
        for model in MODELS:
            function = partial(skada_pipeline, adapter=adapter, model=model)
            default = model == "logistic" or adapter in WITH_BOTH_MODELS
            name = f"SKADA {adapter} + {model}"
            yield Method(name, "2", function, random=random, by_default=default)
    yield Method("SKADA JDOT classifier", "1", joint_transport)


METHODS = list(_methods()) if find_spec("skada") else []
