"""Least-squares fits of a density ratio: choosing bandwidth and regularisation."""

from typing import Any

import numpy as np

from covshift.base import check_candidates, check_option
from covshift.kernels.arrays import FloatArray, IntArray
from covshift.kernels.gaussian_bases import gaussian
from covshift.kernels.ulsif import (
    basis_sums,
    fit_coefficients,
    leave_one_out_scores,
    solve_ridge,
)
from covshift.streams import RowStream
from covshift.weights._bases import GaussianBasesWeights, Squares

# Decades around the size of the entries of H, which are at most one.
LAMBDAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


class LeastSquaresWeights(GaussianBasesWeights):
    """Base of uLSIF and RuLSIF, which have ``lambdas`` and ``clip`` too."""

    lambdas: Any
    clip: Any
    alpha: Any = 0.0

    PAPER_SIGMAS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0)
    PAPER_LAMBDAS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_candidates("lambdas", self.lambdas)
        check_option("clip", self.clip, ("weights", "coefficients"))

    def _search(self, squares: Squares, sigmas: FloatArray, rng: np.random.RandomState) -> None:
        self.sigmas_, self.lambdas_ = sigmas, check_candidates("lambdas", self.lambdas)
        clipped = self.clip == "coefficients"
        self.score_table_ = np.stack(
            [
                leave_one_out_scores(
                    gaussian(squares.source, sigma),
                    gaussian(squares.target, sigma),
                    self.lambdas_,
                    self.alpha,
                    clip_coefficients=clipped,
                )
                for sigma in sigmas
            ]
        )
        row, column = np.unravel_index(self.score_table_.argmin(), self.score_table_.shape)
        self.bandwidth_ = float(sigmas[row])
        self.regularization_ = float(self.lambdas_[column])
        theta = fit_coefficients(
            gaussian(squares.source, self.bandwidth_),
            gaussian(squares.target, self.bandwidth_),
            self.regularization_,
            self.alpha,
        )
        self.coefficients_ = np.maximum(theta, 0) if clipped else theta

    def _refine(self, stream: RowStream, is_target: IntArray) -> None:
        """Coefficients from the sums over all rows, at what a sample has chosen."""
        split = stream.split(is_target)
        sums, products, counts = stream.sums(basis_sums, split, self.bases_, self.bandwidth_)
        H = (1 - self.alpha) / counts[0] * products[0] + self.alpha / counts[1] * products[1]
        theta = solve_ridge(H, sums[1] / counts[1], self.regularization_)
        self.coefficients_ = np.maximum(theta, 0) if self.clip == "coefficients" else theta
