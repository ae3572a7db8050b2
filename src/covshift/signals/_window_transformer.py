"""Parts shared by transformers of windows: channels, checks, blocks and names."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from covshift.base import all_or_nothing, check_count, check_number
from covshift.kernels.arrays import FloatArray
from covshift.streams import is_streamed, map_rows
from covshift.streams.opening import check_rows_of

# Samples that are worked on at a time: temporary arrays are a few times as large.
BLOCK_SAMPLES = 2**21


class WindowTransformer(TransformerMixin, BaseEstimator):
    """Base: each window is transformed by itself, channel by channel, and nothing is learned.

    A subclass has ``n_channels``, ``_check_parameters``, ``_of_channels`` and ``_names``.
    """

    n_channels: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the windows; nothing is learned from them.

        Parameters
        ----------
        X : {array-like, Dask array} of shape (n_windows, n_channels * length)
            Windows, as `cut_windows` makes them.
        y : None
            Never read.

        Returns
        -------
        self : object
        """
        with all_or_nothing(self):
            check_count("n_channels", self.n_channels, minimum=1)
            if is_streamed(X):
                check_rows_of(X)
                X = np.zeros((min(X.shape[0], 1), X.shape[1]))  # checked where they are read
            X = validate_data(self, X, dtype=(np.float64, np.float32))
            self.window_length_ = channel_length(X.shape[1], self.n_channels)
            self._check_parameters()
        return self

    def transform(self, X: Any) -> Any:
        """Transform each window by itself.

        Parameters
        ----------
        X : {array-like, Dask array} of shape (n_windows, n_channels * length)
            Windows.

        Returns
        -------
        ndarray of shape (n_windows, n_channels * n_outputs)
            A Dask array that is yet to be computed, if X is one.
        """
        check_is_fitted(self)
        if is_streamed(X):
            return map_rows(self, "transform", X)
        X = validate_data(self, X, reset=False, dtype=(np.float64, np.float32))
        return self._in_blocks(X, self._of_channels)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return names of the outputs, such as "30 Hz".

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = self._names()
        if self.n_channels > 1:
            names = [f"channel {c}, {name}" for c in range(self.n_channels) for name in names]
        return np.array(names, dtype=object)

    def _in_blocks(self, X: FloatArray, function: Any, *per_window: Any) -> FloatArray:
        """Call a function of windows by channels by samples on a few windows at a time."""
        step = max(1, BLOCK_SAMPLES // X.shape[1])
        parts = []
        for first in range(0, len(X), step):
            cut = slice(first, first + step)
            block = X[cut].reshape(-1, self.n_channels, self.window_length_)
            found = function(block, *(values[cut] for values in per_window))
            parts.append(found.reshape(len(block), -1).astype(X.dtype, copy=False))
        return np.concatenate(parts)

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _of_channels(self, X: FloatArray) -> FloatArray:
        """Transform windows (n, channels, samples)."""
        raise NotImplementedError

    def _names(self) -> list[str]:
        """Return the names of the outputs of one channel."""
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "window_length_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def channel_length(n_features: int, n_channels: int) -> int:
    """Return the samples of each channel of a window, or say that they do not add up."""
    if n_features % n_channels:
        raise ValueError(
            f"X has {n_features} columns, which cannot be {n_channels} channels of equal length: "
            "check n_channels."
        )
    return n_features // n_channels


def check_rate(rate: Any) -> None:
    """Raise unless a sampling rate is a positive number."""
    check_number("rate", rate, minimum=0, closed="neither")
