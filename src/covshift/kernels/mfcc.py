r"""Mel-frequency cepstral coefficients of a sound, and how they change.

A frame :math:`x_0, \dots, x_{K-1}` is pre-emphasised, windowed and turned into a power spectrum,

.. math:: y_k = x_k - a\,x_{k-1}\ (x_{-1} = x_0), \qquad
          P_f = \Bigl\lvert \sum_k h_k\,y_k\,e^{-2\pi i f k / N} \Bigr\rvert^2, \qquad
          h_k = 0.54 - 0.46 \cos \tfrac{2\pi k}{K - 1},

summed over triangles that are B equal steps wide on the mel scale,
:math:`m(f) = 1127 \ln(1 + f / 700)`, and the logarithms of the bands are turned by a cosine
transform,

.. math:: E_b = \ln \max\Bigl(\text{floor}, \sum_f T_{bf} P_f\Bigr), \qquad
          c_j = \sqrt{\tfrac{2}{B}} \Bigl(1 + \tfrac{Q}{2} \sin \tfrac{\pi j}{Q}\Bigr)
                \sum_{b=1}^{B} E_b \cos \tfrac{\pi j (b - \frac12)}{B}.

A gain adds a constant to all :math:`E_b`, which only :math:`c_0` sees. The change of a coefficient
is the slope of the line through it and its neighbours, the first and last repeated at the ends:

.. math:: d_t = \frac{\sum_{k=1}^{r} k\,(c_{t+k} - c_{t-k})}{2 \sum_{k=1}^{r} k^2}.

No step calls BLAS, whose last bits depend on the number of its threads.

References
----------
S. Davis, P. Mermelstein, "Comparison of parametric representations for monosyllabic word
recognition in continuously spoken sentences", IEEE TASSP 28, 1980. The constants and the shape
of the triangles are those of HTK (S. Young et al., "The HTK book", section 5), as in openSMILE.
"""

import numpy as np
from scipy import sparse
from scipy.fft import dct, rfft

from covshift.kernels.arrays import FloatArray, Rows


def overlapping_frames(signal: FloatArray, size: int, hop: int) -> FloatArray:
    """Whole frames of a signal (n,), one every ``hop`` samples: (n_frames, size), a view."""
    frames: FloatArray = np.lib.stride_tricks.sliding_window_view(signal, size)[::hop]
    return frames


def mel_triangles(n_bands: int, n_fft: int, rate: float, lowest: float, highest: float) -> Rows:
    """T, sparse (n_bands, n_fft // 2 + 1): at most two bands share a frequency."""
    mels = _mel(np.fft.rfftfreq(n_fft, 1 / rate))
    first, last = _mel(np.array([lowest, highest]))
    step = (last - first) / (n_bands + 1)
    centres = first + step * np.arange(1, n_bands + 1)
    return sparse.csr_array(np.maximum(0, 1 - np.abs(mels - centres[:, None]) / step))


def mfccs(
    frames: FloatArray,
    triangles: Rows,
    n_coefficients: int,
    *,
    preemphasis: float,
    lifter: float,
    floor: float,
) -> FloatArray:
    """Coefficients c_1 to c_n of frames (t, K): (t, n_coefficients)."""
    n_bands, n_fft = triangles.shape[0], 2 * (triangles.shape[1] - 1)
    emphasised = frames - preemphasis * np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    spectrum = rfft(emphasised * np.hamming(frames.shape[1]), n_fft, axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    bands = np.log(np.maximum(floor, (triangles @ power.T).T))
    j = np.arange(1, n_coefficients + 1)
    # SciPy's sum has a factor of two in front; sqrt(2 / B) / 2 is left.
    scale = np.sqrt(1 / (2 * n_bands)) * (1 + lifter / 2 * np.sin(np.pi * j / lifter))
    coefficients: FloatArray = dct(bands, axis=1)[:, 1 : n_coefficients + 1] * scale
    return coefficients


def slopes(values: FloatArray, reach: int) -> FloatArray:
    """d_t of each column of values (t, n), over ``reach`` neighbours on each side."""
    n = len(values)
    padded = np.pad(values, ((reach, reach), (0, 0)), mode="edge")
    rises: FloatArray = np.zeros_like(values)
    for k in range(1, reach + 1):
        rises += k * (padded[reach + k : reach + k + n] - padded[reach - k : reach - k + n])
    return rises / (2 * sum(k**2 for k in range(1, reach + 1)))


def _mel(frequency: FloatArray) -> FloatArray:
    mels: FloatArray = 1127 * np.log1p(frequency / 700)
    return mels
