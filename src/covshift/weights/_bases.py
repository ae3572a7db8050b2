"""Weights modelled as a sum of Gaussians at target rows: choosing bandwidth and bases."""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from covshift.base import bandwidth_candidates, check_candidates, check_count
from covshift.kernels.arrays import FloatArray
from covshift.kernels.gaussian_bases import gaussian_mixture, squares_to_bases
from covshift.solvers.blas_threads import one_blas_thread
from covshift.weights._base import NEGLIGIBLE, WeightEstimator


class Squares(NamedTuple):
    """Squared distances of source rows and target rows to the bases."""

    source: FloatArray
    target: FloatArray


class GaussianBasesWeights(WeightEstimator):
    """Base of the weight estimators with ``n_bases``, ``sigmas`` and ``random_state``.

    A subclass has ``_search(squares, sigmas, rng)``, which sets ``bandwidth_``, ``coefficients_``
    and its table of scores.
    """

    n_bases: Any
    sigmas: Any
    random_state: Any

    def _check_parameters(self) -> None:
        check_count("n_bases", self.n_bases, minimum=1)
        if self.sigmas is not None:
            check_candidates("sigmas", self.sigmas)
        check_random_state(self.random_state)

    def _estimate(self, source: FloatArray, target: FloatArray) -> FloatArray:
        rng = check_random_state(self.random_state)
        chosen = rng.choice(len(target), min(self.n_bases, len(target)), replace=False)
        self.bases_ = target[np.sort(chosen)]
        squares = Squares(*(squares_to_bases(rows, self.bases_) for rows in (source, target)))
        sigmas = bandwidth_candidates(self.sigmas, source, target)
        # The matrices between bases are small: threads would wait for each other.
        with one_blas_thread():
            self._search(squares, sigmas, rng)
        weights = self._evaluate(source)
        if weights.mean() < NEGLIGIBLE:
            # Half of the kernels between source and bases are then above exp(-1/2).
            fallback = float(np.sqrt(np.median(squares.source))) or 1.0
            self._warn(
                f"all kernels underflow at the bandwidths {sigmas.tolist()}; the median distance "
                f"between source rows and bases, {fallback:.3g}, is used instead"
            )
            self._search(squares, np.array([fallback]), rng)
            weights = self._evaluate(source)
        return weights

    @abstractmethod
    def _search(self, squares: Squares, sigmas: FloatArray, rng: np.random.RandomState) -> None:
        """Choose among the candidates and store what was chosen."""

    def _evaluate(self, X: FloatArray) -> FloatArray:
        values = gaussian_mixture(X, self.bases_, self.coefficients_, self.bandwidth_)
        return np.maximum(values, 0, out=values)
