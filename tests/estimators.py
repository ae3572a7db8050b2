"""Every estimator of the package, for the tests that all of them must pass.

Adapters and weight estimators come from the registry: a new record puts its class through the
contract, and nothing has to be added here. The two that CONTRIBUTING.md shows are tested as well.
"""

import dataclasses
import inspect
import re
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from covshift import (
    AdaptedClassifier,
    AdaptedRegressor,
    AutoAdaptedClassifier,
    AutoAdaptedRegressor,
    DomainStandardScaler,
    JointAlignmentClassifier,
    LSPClassifier,
    PeriodicSparseFiltering,
    SparseFiltering,
    registry,
)
from covshift.adapters.sparse_filtering import SparseFilter
from covshift.base import DomainTransformer
from covshift.registry import BUILT_IN
from tests.shifted import make_problem

PAGE = (Path(__file__).resolve().parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")


def skeleton(name, module):
    """Define in a module the class that CONTRIBUTING.md shows: it must pass what it is said to.

    By name in that module, where pickling looks for it.
    """
    exec(class_code(name), module)
    return module[name]


def class_code(name):
    """The file that CONTRIBUTING.md shows for a class."""
    (code,) = re.findall(rf"```python\n([^`]*\nclass {name}\(.*?)```", PAGE, flags=re.DOTALL)
    return code


def record_codes():
    """The records that CONTRIBUTING.md shows, as they go into the registry."""
    return re.findall(r"```python\n(AdapterRecord\(.*?)```", PAGE, flags=re.DOTALL)


def shown_records():
    """The same as records, each with its class in this module."""
    found = []
    for code in record_codes():
        record = eval(code, dict(vars(registry)))
        # The registry has it where the page was followed (tests/test_contributing.py).
        if record.name not in [one.name for one in BUILT_IN]:
            skeleton(record.class_name, globals())
            path = f"{__name__}:{record.class_name}"
            found.append(dataclasses.replace(record, path=path))
    return found


RECORDS = [*BUILT_IN, *shown_records()]


# Settings that make fits short, or that reach more of the code than the defaults do.
SETTINGS = {
    "CorrelationAlignment": {"direction": "target_to_source", "pooling": "domain"},
    "DenoisingAutoencoder": {"n_components": 2, "max_epochs": 5},
    "DomainStandardScaler": {"pooling": "domain"},
    "LinearMongeAlignment": {"direction": "target_to_source"},
    "PeriodicSparseFiltering": {"n_restarts": 2},
    "SegmentSparseFiltering": {"n_components": 4, "n_segments": 200, "max_iter": 10},
    "SubspaceAlignment": {"center": True, "scale": True, "pooling": "domain"},
}


def registered(kind):
    """One instance of every class of the registry of this kind, seeded."""
    found = {}
    for record in RECORDS:
        if record.kind == kind and record.class_name not in found:
            kind_of = record.load_class()
            settings = dict(SETTINGS.get(record.class_name, {}))
            if "random_state" in inspect.signature(kind_of).parameters:
                settings["random_state"] = 0
            found[record.class_name] = kind_of(**settings)
    return list(found.values())


def classes_with(capability):
    """Names of the classes of which some record has this capability."""
    return {record.class_name for record in RECORDS if getattr(record, capability)}


ADAPTERS = registered("transformer")
FILTERS = [one for one in ADAPTERS if isinstance(one, SparseFilter)]
READS_LABELS = classes_with("reads_labels")
NEEDS_TARGET = classes_with("needs_target") | {"AutoAdaptedClassifier", "AutoAdaptedRegressor"}
USES_DOMAINS = classes_with("uses_domains")

# scikit-learn's checks ask for good scores on blobs and on a linear function, where sparse
# filtering's own assumption does not hold: these filters stay close to linear.
MILD_FILTERS = SparseFiltering(
    n_components=20, activation="sin", init_scale=0.1, max_iter=0, random_state=0
)

PREDICTORS = [
    AdaptedClassifier(),
    AdaptedClassifier(estimator=LogisticRegression()),
    AdaptedClassifier(MILD_FILTERS, LogisticRegression(C=100.0)),
    AdaptedClassifier(
        make_pipeline(StandardScaler(), PeriodicSparseFiltering(n_restarts=2, random_state=0)),
        LogisticRegression(C=100.0),
    ),
    AdaptedClassifier(MILD_FILTERS, LogisticRegression(C=100.0), class_shares="estimated"),
    LSPClassifier(random_state=0),
    JointAlignmentClassifier(),
    JointAlignmentClassifier(graph_weight=0, n_landmarks=20, n_components=2, random_state=0),
    JointAlignmentClassifier(alignment_weight=0, graph_weight=0),
    AutoAdaptedClassifier(
        candidates=[(DomainStandardScaler(), LogisticRegression())], random_state=0
    ),
    AdaptedRegressor(),
    AdaptedRegressor(MILD_FILTERS, Ridge(alpha=1e-3)),
    AutoAdaptedRegressor(candidates=[(DomainStandardScaler(), Ridge())], random_state=0),
]

ESTIMATORS = ADAPTERS + PREDICTORS


def reads_labels(estimator):
    """Whether labels make a difference to this estimator."""
    name = type(estimator).__name__
    return not isinstance(estimator, DomainTransformer) or name in READS_LABELS


def treats_domains_alike(estimator):
    """Whether the split into source and target makes no difference to this estimator."""
    name = type(estimator).__name__
    return isinstance(estimator, DomainTransformer) and name not in USES_DOMAINS


def needs_target(adapter):
    """Whether this estimator refuses a ``sample_domain`` without target rows."""
    aligns_scores = getattr(adapter, "alignment_weight", 0) > 0  # of JointAlignmentClassifier
    return aligns_scores or type(adapter).__name__ in NEEDS_TARGET


def problem_for(estimator, **options):
    """A problem with classes, or with numbers for a regressor."""
    return make_problem(kind="number" if is_regressor(estimator) else "class", **options)


@cache
def fitted(estimator, masked_by="role"):
    """Fit a clone to its problem, once for all tests: not to be changed.

    Labels are known by role, or ("label_mask") in three of four rows of either role.
    """
    X, y, sample_domain, _ = problem_for(estimator)
    mask = {} if masked_by == "role" else {"label_mask": np.arange(len(y)) % 4 != 0}
    return clone(estimator).fit(X, y, sample_domain=sample_domain, **mask)


def with_injected_split(estimator):
    """Return the estimator as one whose ``fit`` makes about a quarter of its rows a target.

    scikit-learn's checks ignore domains; through this subclass they exercise the
    adapting path as well. A row's role depends on what it holds, not on where it stands, so
    that shuffled and repeated rows keep theirs; new rows are target rows, by default.
    """
    parent = type(estimator)

    def fit(self, X, y=None):
        return parent.fit(self, X, y, sample_domain=_split_by_content(X))

    def fit_with_weights(self, X, y=None, sample_weight=None):
        domain = _split_by_content(X)
        return parent.fit(self, X, y, sample_domain=domain, sample_weight=sample_weight)

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X)

    weighted = has_fit_parameter(estimator, "sample_weight")
    methods = {"fit": fit_with_weights if weighted else fit, "__module__": __name__}
    if hasattr(parent, "transform"):
        has_transform = available_if(lambda self: hasattr(self, "transform"))
        methods["fit_transform"] = has_transform(fit_transform)
    name = f"Split{parent.__name__}"
    # Pickling finds a class by its name in its module.
    subclass = globals().setdefault(name, type(name, (parent,), methods))
    return subclass(**estimator.get_params(deep=False))


def _split_by_content(X):
    values = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if values.ndim != 2 or values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        return None  # bad input: the estimator has to say so
    target = np.modf(np.abs(values.astype(np.float32).sum(axis=1)) * 97.0)[0] < 1 / 4
    if target.all() or not target.any():
        return None
    return np.where(target, -1, 0)
