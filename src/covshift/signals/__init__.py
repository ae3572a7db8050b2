"""Machine signals: long recordings to windows, and windows to spectra."""

from covshift.signals.order_tracking import OrderTracking
from covshift.signals.spectra import EnvelopeSpectrum, Spectrum
from covshift.signals.windows import Windows, check_recordings_apart, cut_windows, iter_windows

__all__ = [
    "EnvelopeSpectrum",
    "OrderTracking",
    "Spectrum",
    "Windows",
    "check_recordings_apart",
    "cut_windows",
    "iter_windows",
]
