"""Estimators that change the representation, one file each."""

from covshift.adapters.correlation_alignment import CorrelationAlignment
from covshift.adapters.denoising_autoencoder import DenoisingAutoencoder
from covshift.adapters.domain_quantile_transformer import DomainQuantileTransformer
from covshift.adapters.domain_standard_scaler import DomainStandardScaler
from covshift.adapters.fit_many import fit_each, fit_many
from covshift.adapters.linear_monge_alignment import LinearMongeAlignment
from covshift.adapters.periodic_sparse_filtering import PeriodicSparseFiltering
from covshift.adapters.segment_sparse_filtering import SegmentSparseFiltering
from covshift.adapters.source_standard_scaler import SourceStandardScaler
from covshift.adapters.sparse_filtering import SparseFiltering
from covshift.adapters.subspace_alignment import SubspaceAlignment
from covshift.adapters.to_numpy import to_numpy

__all__ = [
    "CorrelationAlignment",
    "DenoisingAutoencoder",
    "DomainQuantileTransformer",
    "DomainStandardScaler",
    "LinearMongeAlignment",
    "PeriodicSparseFiltering",
    "SegmentSparseFiltering",
    "SourceStandardScaler",
    "SparseFiltering",
    "SubspaceAlignment",
    "fit_each",
    "fit_many",
    "to_numpy",
]
