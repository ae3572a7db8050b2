"""Distances, tests and scores, as functions of arrays.

Tests of whether rows moved, and by how much. Every test has an effect size, since with
enough rows every p-value is small.
"""

from covshift.measures.accuracy_estimates import (
    accuracy_under_class_shares,
    average_thresholded_confidence,
    calibrated_confidence,
    difference_of_confidences,
    importance_weighted_calibration,
    transported_confidence,
)
from covshift.measures.classifier_two_sample_test import (
    ClassifierTest,
    classifier_two_sample_test,
)
from covshift.measures.cosine_neighborhood import (
    CosineNeighborhood,
    check_cosine_neighborhood,
)
from covshift.measures.ks import KSTest, ks_distance, ks_test
from covshift.measures.labeled_scores import unweighted_average_recall
from covshift.measures.mmd import (
    Estimate,
    MMDChange,
    MMDTest,
    approximate_mmd,
    held_out_mmd_change,
    median_bandwidth,
    mmd,
    mmd_change,
    mmd_test,
    percentage_change,
)
from covshift.measures.paired_tests import (
    ClusteredTest,
    PairedTest,
    clustered_bootstrap_interval,
    clustered_permutation_test,
    holm,
    mean_and_standard_error,
    paired_wilcoxon,
)
from covshift.measures.periods import Period, PeriodShifts, check_period, period_shifts
from covshift.measures.representation_bounds import (
    RepresentationBounds,
    check_representation_bounds,
)
from covshift.measures.weights_and_overlap import (
    SourceSupport,
    SupportOverlap,
    effective_sample_size,
    pareto_k,
    support_overlap,
)

__all__ = [
    "ClassifierTest",
    "ClusteredTest",
    "CosineNeighborhood",
    "Estimate",
    "KSTest",
    "MMDChange",
    "MMDTest",
    "PairedTest",
    "Period",
    "PeriodShifts",
    "RepresentationBounds",
    "SourceSupport",
    "SupportOverlap",
    "accuracy_under_class_shares",
    "approximate_mmd",
    "average_thresholded_confidence",
    "calibrated_confidence",
    "check_cosine_neighborhood",
    "check_period",
    "check_representation_bounds",
    "classifier_two_sample_test",
    "clustered_bootstrap_interval",
    "clustered_permutation_test",
    "difference_of_confidences",
    "effective_sample_size",
    "held_out_mmd_change",
    "holm",
    "importance_weighted_calibration",
    "ks_distance",
    "ks_test",
    "mean_and_standard_error",
    "median_bandwidth",
    "mmd",
    "mmd_change",
    "mmd_test",
    "paired_wilcoxon",
    "pareto_k",
    "percentage_change",
    "period_shifts",
    "support_overlap",
    "transported_confidence",
    "unweighted_average_recall",
]
