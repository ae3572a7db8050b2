"""The types that a model file may name, beyond those that skops itself trusts.

skops trusts plain values and containers, arrays, NumPy's random states and ufuncs, and every
public estimator of scikit-learn except the arrays inside of trees. To be added here, a type must
do nothing when it is made without its constructor and given attributes from a file, and index no
memory by numbers from it, unless `covshift.persistence.content_checks` checks them.
"""

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
