"""Data that a scorer may see: labeled source rows, target rows, and no label of the latter."""

from typing import Any, NamedTuple

import numpy as np

from covshift.domains import FitDomains
from covshift.kernels.arrays import FloatArray, IntArray
from covshift.kernels.distinct_rows import draw_rows
from covshift.predictors.fitting import problem_size
from covshift.predictors.objective import class_shares
from covshift.registry import Size
from covshift.selection.label_tasks import CLASSES, ClassTask, NumberTask


class Problem(NamedTuple):
    """Rows to learn from and rows to adapt to. Classes are numbers from 0 to n_classes - 1.

    Where the label is a number, ``values`` holds it in units of the source, ``task`` the units, and
    the classes are groups of equally many rows by the label: by these, rows are drawn and dealt.
    """

    X_source: FloatArray
    codes: IntArray
    source_domain: IntArray
    X_target: FloatArray
    target_domain: IntArray
    n_classes: int
    values: FloatArray | None = None
    task: ClassTask | NumberTask = CLASSES

    @property
    def truth(self) -> Any:
        """Labels that predictions are compared with: class numbers, or numbers."""
        return self.codes if self.values is None else self.values

    @property
    def source_domains(self) -> IntArray:
        """Distinct source domains."""
        return np.unique(self.source_domain)

    @property
    def class_shares(self) -> FloatArray:
        """Shares of the classes among the source rows."""
        return class_shares(self.codes, self.n_classes)

    @property
    def size(self) -> Size:
        """Size of the problem, by which settings of adapters are chosen."""
        scene = target_scene(self)
        n_classes = self.n_classes if self.values is None else 1  # as in `AdaptedRegressor`
        return problem_size(scene.X, n_classes, scene.sample_domain)

    def thinned(self, max_rows: int, rng: np.random.RandomState) -> "Problem":
        """Largest number of rows of each role, drawn in proportion to domains and classes."""
        return self.take(*self.draw_rows(max_rows, rng))

    def draw_rows(self, max_rows: int, rng: np.random.RandomState) -> tuple[IntArray, IntArray]:
        """Return the numbers of the source rows and of the target rows that `thinned` keeps."""
        source = _draw(self.source_domain * self.n_classes + self.codes, max_rows, rng)
        return source, _draw(self.target_domain, max_rows, rng)

    def take(self, source: IntArray, target: IntArray) -> "Problem":
        """Return the problem of some of the rows."""
        return self._replace(
            X_source=self.X_source[source],
            codes=self.codes[source],
            source_domain=self.source_domain[source],
            X_target=self.X_target[target],
            target_domain=self.target_domain[target],
            values=None if self.values is None else self.values[source],
        )


class Scene(NamedTuple):
    """One fit of every candidate: training rows, rows to adapt to (code -1), rows to predict.

    ``values``: labels of the training rows that are numbers; None: the codes are the labels.
    """

    X: FloatArray
    codes: IntArray
    sample_domain: IntArray
    X_test: FloatArray
    test_domain: IntArray
    values: FloatArray | None = None

    @property
    def labels(self) -> Any:
        """Labels of the training rows: class numbers, or numbers."""
        return self.codes[self.codes >= 0] if self.values is None else self.values

    @property
    def domains(self) -> FitDomains:
        """Where the rows to fit come from, and which of them have a label."""
        return FitDomains(self.sample_domain, self.codes >= 0, given=True)


def make_scene(
    X_source: FloatArray,
    codes: IntArray,
    source_domain: IntArray,
    X_target: FloatArray,
    target_domain: IntArray,
    *,
    test: tuple[FloatArray, IntArray] | None = None,
    values: FloatArray | None = None,
) -> Scene:
    """Stack source and target rows; the rows to predict are the target's, or others.

    ``values``: labels of the source rows that are numbers.
    """
    X_test, test_domain = (X_target, target_domain) if test is None else test
    return Scene(
        np.concatenate([X_source, X_target]),
        np.concatenate([codes, np.full(len(X_target), -1)]),
        np.concatenate([source_domain, target_domain]),
        X_test,
        test_domain,
        values,
    )


def target_scene(problem: Problem) -> Scene:
    """Return the problem itself: learn from the source, adapt to the target, predict the target."""
    return make_scene(*problem[:5], values=problem.values)


def _draw(strata: Any, max_rows: int, rng: np.random.RandomState) -> IntArray:
    if len(strata) <= max_rows:
        return np.arange(len(strata))
    _, numbers = np.unique(strata, return_inverse=True)
    return np.sort(draw_rows(numbers, max_rows, rng))
