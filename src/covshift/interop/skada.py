"""Weight estimators inside the pipelines of SKADA.

SKADA's ``make_da_pipeline`` takes adapters of this package that change the representation as they
are. One that weighs rows must return a pair there, the rows and their weights, which no
scikit-learn transformer may: `ReweightAdapter` does. It keeps SKADA's conventions without importing
SKADA, so that this module needs nothing installed.
"""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from covshift.domains import check_fit_domains, check_new_domains
from covshift.kernels.array_types import FloatArray
from covshift.row_checks import validate_rows
from covshift.weights import scale_to_mean_one

__all__ = ["ReweightAdapter"]


class ReweightAdapter(BaseEstimator):
    """Weight estimator as an adapter for SKADA's ``make_da_pipeline``.

    Rows pass through unchanged; their weights reach the next steps that ask for
    ``sample_weight``: call ``set_fit_request(sample_weight=True)`` on the final estimator.

    Parameters
    ----------
    weights : weight estimator
        One of ``covshift``'s, e.g. ``ULSIFWeights()``. A search reaches its parameters by
        ``"reweightadapter__weights__n_bases"``.

    Attributes
    ----------
    estimator_ : fitted weight estimator

    Notes
    -----
    **Cost**: that of the weight estimator.

    Examples
    --------
    In a SKADA pipeline::

        from skada import make_da_pipeline            # pip install skada

        classifier = LogisticRegression().set_fit_request(sample_weight=True)
        model = make_da_pipeline(ReweightAdapter(ULSIFWeights()), classifier)
        model.fit(X, y, sample_domain=sample_domain)

    What it hands on:

    >>> import numpy as np
    >>> from covshift import ULSIFWeights
    >>> from covshift.interop.skada import ReweightAdapter
    >>> rng = np.random.RandomState(0)
    >>> X = np.concatenate([rng.normal(0, 1, (500, 1)), rng.normal(0.8, 0.7, (500, 1))])
    >>> sample_domain = np.repeat([1, -2], 500)
    >>> adapter = ReweightAdapter(ULSIFWeights(random_state=0))
    >>> _, metadata = adapter.fit_transform(X, sample_domain=sample_domain)
    >>> weights = metadata["sample_weight"]
    >>> float(weights[:500].mean().round(6)), float(weights[500:].max())
    (1.0, 0.0)
    """

    __metadata_request__fit = {"sample_domain": True}
    __metadata_request__transform = {"sample_domain": True, "allow_source": True}

    def __init__(self, weights: Any) -> None:
        self.weights = weights

    def fit(self, X: Any, y: Any = None, *, sample_domain: Any = None) -> Self:
        """Fit the weight estimator on the rows of all domains; ``y`` is never read.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of all domains.
        y : None
            Never read.
        sample_domain : array-like of shape (n_samples,), default=None
            Domain of each row: an integer, ``>= 0`` source, ``< 0`` target.

        Returns
        -------
        self : object
        """
        if not hasattr(self.weights, "score_weights"):
            raise TypeError(
                f"{type(self.weights).__name__} does not weigh rows (score_weights). Adapters that "
                "change the representation go into make_da_pipeline as they are."
            )
        estimator = clone(self.weights).fit(X, sample_domain=sample_domain)
        validate_rows(self, X, skip_check_array=True)
        self.estimator_ = estimator
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, sample_domain: Any = None, allow_source: bool = True
    ) -> tuple[Any, dict[str, FloatArray]]:
        """Fit, and return the rows with their weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of all domains.
        y : None
            Never read.
        sample_domain : array-like of shape (n_samples,), default=None
            Domain of each row: an integer, ``>= 0`` source, ``< 0`` target.
        allow_source : bool, default=True
            Without effect.

        Returns
        -------
        X : array-like
            As given.
        metadata : dict
            ``"sample_weight"`` (n_samples,): of mean one over the source rows, zero for target
            rows, as SKADA's own adapters give them.
        """
        self.fit(X, y, sample_domain=sample_domain)
        source = check_fit_domains(sample_domain, None, len(X)).source
        weights = np.zeros(len(X), dtype=self.estimator_.weights_.dtype)
        weights[source] = scale_to_mean_one(self.estimator_.weights_)
        return X, {"sample_weight": weights}

    def transform(self, X: Any, *, sample_domain: Any = None, allow_source: bool = False) -> Any:
        """Return the rows as they are: new rows are not weighed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        sample_domain : array-like of shape (n_samples,), int or str, default=None
            Checked, and without effect.
        allow_source : bool, default=False
            Without effect.

        Returns
        -------
        X : array-like
            As given.
        """
        check_is_fitted(self)
        validate_rows(self, X, reset=False, skip_check_array=True)
        check_new_domains(sample_domain, len(X), has_target=True, domain_names={})
        return X

    def __sklearn_is_fitted__(self):
        return hasattr(self, "estimator_")
