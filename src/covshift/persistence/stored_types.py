"""The types that a model file may name, beyond those that skops itself trusts, and older names.

skops trusts plain values and containers, arrays, NumPy's random states and ufuncs, and every
public estimator of scikit-learn except the arrays inside of trees. To be added here, a type must
do nothing when it is made without its constructor and given attributes from a file, and index no
memory by numbers from it, unless `covshift.persistence.content_checks` checks them.

Types had other modules when older versions of the package wrote them: descriptions are brought up
to date before they are read. And scikit-learn warns at every part that another version of it wrote;
`covshift.load` warns once for all of them, so that users' filters of warnings stay unchanged.
"""

import io
import json
from collections.abc import Iterator
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import sklearn

from covshift.persistence.archive import SCHEMA
from covshift.registry import BUILT_IN

# Estimators that are not in the registry, by module. Those of the registry are trusted if they are
# of this package: a plug-in is not, unless the caller of `load` names its types.
ESTIMATORS = {
    "covshift.interop.skada": ["ReweightAdapter"],
    "covshift.predictors.adapted_classifier": ["AdaptedClassifier"],
    "covshift.predictors.adapted_regressor": ["AdaptedRegressor"],
    "covshift.predictors.gaussian_kernel_ridge": ["GaussianKernelRidge"],
    "covshift.predictors.joint_alignment_classifier": ["JointAlignmentClassifier"],
    "covshift.predictors.lsp_classifier": ["LSPClassifier"],
    "covshift.predictors.numbered_classes": ["NumberedClasses"],
    "covshift.selection.auto_adapted_classifier": ["AutoAdaptedClassifier"],
    "covshift.selection.auto_adapted_regressor": ["AutoAdaptedRegressor"],
    "covshift.signals.order_tracking": ["OrderTracking"],
    "covshift.signals.spectra": ["EnvelopeSpectrum", "Spectrum"],
    "covshift.tables.classifier": ["TableClassifier"],
    "covshift.tables.encoder": ["TableEncoder"],
    "covshift.tables.regressor": ["TableRegressor"],
}

# Types of attributes of estimators.
PARTS = {
    "covshift.domains.source_only_split": ["SourceOnlySplit"],
    "covshift.kernels.vector_scaling": ["Scaling"],
    "covshift.persistence.boosted_models": ["StoredModel"],
    "covshift.selection.assessment": ["Assessment", "Determinability"],
    "covshift.selection.candidates": ["Candidate"],
    "covshift.selection.expectations": ["Estimate"],
    "covshift.selection.label_tasks": ["NumberTask"],
    "covshift.selection.leaderboard": ["Leaderboard"],
    "covshift.selection.members": ["Member"],
    # scikit-learn's, of which skops knows the public ones only.
    "sklearn.calibration": ["_CalibratedClassifier", "_SigmoidCalibration"],
    "sklearn.ensemble._hist_gradient_boosting.predictor": ["TreePredictor"],
    "sklearn.metrics._scorer": ["_PassthroughScorer"],
    "sklearn.tree._tree": ["Tree"],
    "sklearn.utils._metadata_requests": ["MetadataRequest", "MethodMetadataRequest"],
    "sklearn.utils._bunch": ["Bunch"],
    "numpy": ["dtype"],
    "scipy.sparse._csr": ["csr_array", "csr_matrix"],
}

# Functions, which are looked up and not called.
FUNCTIONS = {
    "covshift.weights.classifier": ["_with_squares"],
}

TRUSTED = (
    *sorted({record.path.replace(":", ".") for record in BUILT_IN}),
    *(
        f"{module}.{name}"
        for table in (ESTIMATORS, PARTS, FUNCTIONS)
        for module, names in table.items()
        for name in names
    ),
)

# Old module and class -> the module that has the class now.
MOVED = {
    (
        "covshift.selection.source_standard_scaler",
        "SourceStandardScaler",
    ): "covshift.adapters.source_standard_scaler",
}


def follow_moves(content: io.BytesIO) -> io.BytesIO:
    """Return an unpacked archive whose schema names types and versions as they are now."""
    with ZipFile(content) as archive:
        schema = json.loads(archive.read(SCHEMA))
        # Both walk the whole schema.
        if not sum([_rename(schema), _set_versions(schema)]):
            return content
        moved = io.BytesIO()
        with ZipFile(moved, "w", ZIP_STORED) as copy:
            for name in archive.namelist():
                copy.writestr(name, json.dumps(schema) if name == SCHEMA else archive.read(name))
    moved.seek(0)
    return moved


def _rename(schema: Any) -> bool:
    """Rename types in a description, in place; return whether there were any."""
    found = False
    for part in _dictionaries_in(schema):
        module, name = part.get("__module__"), part.get("__class__")
        # A dictionary of the user's may have such keys, too, with values that are not text.
        if isinstance(module, str) and isinstance(name, str) and (module, name) in MOVED:
            part["__module__"], found = MOVED[module, name], True
    return found


def _set_versions(schema: Any) -> bool:
    """Say of scikit-learn's estimators that this version wrote them; return whether none did."""
    found, current = False, json.dumps(sklearn.__version__)
    for part in _dictionaries_in(schema):
        if part.get("__loader__") == "ObjectNode" and isinstance(part.get("content"), dict):
            attributes = part["content"].get("content")
            version = attributes.get("_sklearn_version") if isinstance(attributes, dict) else None
            if isinstance(version, dict) and version.get("content") not in (None, current):
                version["content"], found = current, True
    return found


def _dictionaries_in(node: Any) -> Iterator[dict[str, Any]]:
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
