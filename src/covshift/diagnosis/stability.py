"""Whether P(y | x) is the same in all source domains.

If it is, the domain of a row adds no information about its class: y and the
domain are independent given x (`covshift.diagnosis.stability`). That can be tested only
where domains overlap; where every row gives its domain away, x and the domain are one, and nothing
can be known. If it is not, one rule for all rows, weighted or not, cannot be right everywhere.

A difference may be of class shares alone: they change P(y | x) too, where classes overlap. And a
rule more bent than the fits can follow is taken for a difference where domains lie apart: on the
made-up `periodic_groups`, with one rule for all domains, it was refuted in 7 of 16 tasks.

Where the label is a number, its classes are groups between its quantiles: whatever changes its
distribution given x, the mean or the spread, changes their probabilities.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from covshift.diagnosis.movement import LEVEL
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.drawn_rows import deal_folds
from covshift.report.document import to_plain
from covshift.selection.bench import N_FOLDS, Bench
from covshift.solvers.threads import one_blas_thread
from covshift.warning_filters import ignored_warnings

# --- Whether y and d are independent given x, from what x leaves unexplained of both ---
#
# With residuals R_{ik} = [y_i = k] - \hat P(k \mid x_i) and
# D_{im} = [d_i = m] - \hat P(m \mid x_i), both of rows that took no part in the fits, and
# functions w_j(x_i),
#
#     T = \max_{k, m, j} \; \sqrt{n} \,
#         \frac{|\operatorname{mean}_i \Pi_{i,kmj}|}{\operatorname{sd}_i \Pi_{i,kmj}},
#     \qquad \Pi_{i,kmj} = R_{ik} \, D_{im} \, w_j(x_i).
#
# If y and d are independent given x, all means tend to zero, even if one of both fits is poor, as
# the errors enter as a product. The distribution of T is that of the same maximum with each
# centered row of \Pi multiplied by a normal number of its own.
#
# References
# ----------
# R. D. Shah, J. Peters, "The hardness of conditional independence testing and the generalized
# covariance measure", Annals of Statistics 48, 2020. C. Scheidegger, J. Hörrmann, P. Bühlmann, "The
# weighted generalized covariance measure", JMLR 23, 2022.


def _residual_products(R: FloatArray, D: FloatArray, W: FloatArray) -> FloatArray:
    """Return the products (n, K M J) of residuals (n, K), (n, M) and functions of x (n, J)."""
    products: FloatArray = np.einsum("ik,im,ij->ikmj", R, D, W).reshape(len(R), -1)
    return products


def largest_covariance(
    products: FloatArray, n_resamples: int, rng: np.random.RandomState
) -> tuple[float, float]:
    """T of products (n, P), for stability, and its p-value; 0 and 1, if no product varies."""
    n = len(products)
    means, spreads = products.mean(axis=0), products.std(axis=0)
    # Spreads that are rounding errors of zero would inflate means without limit.
    varies = spreads > 1e-9 * max(float(spreads.max(initial=0.0)), 1e-300)
    if not varies.any():
        return 0.0, 1.0
    scaled = (products[:, varies] - means[varies]) / spreads[varies]
    statistic = float(np.sqrt(n) * np.max(np.abs(means[varies] / spreads[varies])))
    drawn = np.abs(rng.standard_normal((n_resamples, n)) @ scaled / np.sqrt(n)).max(axis=1)
    return statistic, float((1 + np.sum(drawn >= statistic)) / (1 + n_resamples))


N_RESAMPLES = 499
N_LANDMARKS = 100
# How bent a rule may be, C and width of the kernel times the features: whatever fits rows left out.
SETTINGS = ((1.0, 1.0), (100.0, 8.0))
# A row that may be of several domains counts for one, a row that gives its domain away for none.
MIN_SHARED_ROWS = 30
MIN_DOMAIN_ROWS = 10


class Stability(NamedTuple):
    """Result of `measure_stability`; NaN where nothing can be tested."""

    tested: bool
    obstacle: str  # "one domain", "no overlap", or "" where it is tested
    statistic: float
    pvalue: float
    n_shared: float  # rows, as far as they might as well be of another domain

    @property
    def refuted(self) -> bool:
        """Whether P(y | x) differs between source domains."""
        return self.tested and self.pvalue <= LEVEL

    def to_dict(self) -> dict[str, Any]:
        """As plain numbers and texts."""
        plain: dict[str, Any] = to_plain(self)
        return plain | {"refuted": self.refuted}


def measure_stability(bench: Bench) -> Stability:
    """Test whether P(y | x) is the same in the source domains of the bench's problem."""
    problem, rng = bench.problem, bench.rng("stability")
    sizes = {one: int(np.sum(problem.source_domain == one)) for one in problem.source_domains}
    large = [one for one, size in sizes.items() if size >= MIN_DOMAIN_ROWS]
    if len(large) < 2:
        return _untested("one domain", np.nan)
    rows = np.isin(problem.source_domain, large)
    X, codes = problem.X_source[rows], problem.codes[rows]
    domain = np.searchsorted(large, problem.source_domain[rows])
    fold_of = deal_folds(codes * len(large) + domain, N_FOLDS, rng)
    seed = int(rng.randint(2**31 - 1))
    with one_blas_thread(), ignored_warnings(ConvergenceWarning):
        P_domain = _left_out_probabilities(X, domain, fold_of, seed)
        # The largest doubt there can be, with M domains alike, is 1 - 1 / M.
        doubt = (1 - np.square(P_domain).sum(axis=1)) / (1 - 1 / len(large))
        n_shared = float(doubt.sum())
        if n_shared < MIN_SHARED_ROWS:
            return _untested("no overlap", n_shared)
        P_class = _left_out_probabilities(X, codes, fold_of, seed)
    R = np.eye(P_class.shape[1])[codes] - P_class
    D = np.eye(len(large))[domain] - P_domain
    # The residuals of a reversed rule cancel over all rows, but not among the confident rows.
    W = np.hstack([np.ones((len(X), 1)), P_class])
    statistic, pvalue = largest_covariance(_residual_products(R, D, W), N_RESAMPLES, rng)
    return Stability(True, "", statistic, pvalue, n_shared)


def _left_out_probabilities(
    X: FloatArray, codes: IntArray, fold_of: IntArray, seed: int
) -> FloatArray:
    """Probabilities (n, K) of rows by fits that left them out: the setting with the least loss."""
    tried = [_cross_fit(X, codes, fold_of, seed, *setting) for setting in SETTINGS]
    rows = np.arange(len(X))
    losses = [-np.mean(np.log(np.maximum(P[rows, codes], 1e-12))) for P in tried]
    return tried[int(np.argmin(losses))]


def _cross_fit(
    X: FloatArray, codes: IntArray, fold_of: IntArray, seed: int, C: float, width: float
) -> FloatArray:
    P = np.zeros((len(X), int(codes.max()) + 1))
    for fold in range(N_FOLDS):
        left_out = fold_of == fold
        n_landmarks = min(N_LANDMARKS, int((~left_out).sum()))
        bent = Nystroem(gamma=width / X.shape[1], n_components=n_landmarks, random_state=seed)
        model = make_pipeline(
            StandardScaler(),
            make_union(FunctionTransformer(), bent),
            LogisticRegression(C=C, max_iter=100),
        )
        model.fit(X[~left_out], codes[~left_out])
        P[np.ix_(left_out, model.classes_)] = model.predict_proba(X[left_out])
    return P


def _untested(obstacle: str, n_shared: float) -> Stability:
    return Stability(False, obstacle, np.nan, np.nan, n_shared)
