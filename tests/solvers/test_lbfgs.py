import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from covshift.solvers.device_arrays import Places, copy_to_host, dot
from covshift.solvers.lbfgs import (
    FARTHEST,
    MAX_DENSE,
    NEAREST,
    Curvature,
    DenseCurvature,
    _growth,
    _interpolate,
    begin_search,
    judge_steps,
)
from covshift.solvers.lbfgs import minimize_lbfgs as minimize_all
from tests.array_libraries import LIBRARIES

START = np.array([-1.2, 1.0])


def rosenbrock(x):
    return float(rosen(x)), rosen_der(x)


def quadratic(x):
    """Minimum 3 where every entry equals its number; curvatures from 1 to 10."""
    target = np.arange(x.size, dtype=x.dtype).reshape(x.shape)
    curvature = np.linspace(1, 10, x.size, dtype=x.dtype).reshape(x.shape)
    return float(3 + 0.5 * np.sum(curvature * (x - target) ** 2)), curvature * (x - target)


def minimize_lbfgs(loss_and_gradient, x0, *, distance=None, progress=None, **options):
    """Minimize one problem."""

    def evaluate(x, which):
        assert which.tolist() == [0]
        loss, gradient = loss_and_gradient(x[0])
        return np.array([loss]), gradient[None]

    (path,) = minimize_all(
        evaluate,
        x0[None],
        distance=None if distance is None else lambda position, x: distance(x),
        progress=progress,
        **options,
    )
    return path


class Recorder:
    """A loss that remembers its evaluations, and callbacks that remember the iterates."""

    def __init__(self, loss_and_gradient, distances=()):
        self.loss_and_gradient = loss_and_gradient
        self.distances = list(distances)
        self.evaluated, self.iterates = [], []

    def __call__(self, x):
        self.evaluated.append(x.copy())
        return self.loss_and_gradient(x)

    def distance(self, x):
        self.iterates.append(x.copy())
        return self.distances[len(self.iterates) - 1]

    def watch(self, x):
        """A distance that falls, so that the last iterate is kept."""
        self.iterates.append(x.copy())
        return -float(len(self.iterates))


def test_finds_the_minimum_of_rosenbrock():
    path = minimize_lbfgs(rosenbrock, START, max_iter=200, tol=1e-8)
    assert path.converged
    assert path.n_iter < 100
    assert path.iteration == path.n_iter
    np.testing.assert_allclose(path.x, [1.0, 1.0], atol=1e-6)
    assert path.loss == path.losses[-1] == rosen(path.x)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3), (2, 1, 3)])
def test_finds_the_minimum_of_a_quadratic_of_any_shape(shape):
    path = minimize_lbfgs(quadratic, np.full(shape, -4.0), max_iter=100, tol=1e-8)
    assert path.converged
    assert path.x.shape == shape
    assert path.loss == pytest.approx(3)
    np.testing.assert_allclose(path.x, np.arange(np.prod(shape)).reshape(shape), atol=1e-5)


@pytest.mark.parametrize("max_iter", [1, 2, 7, 200])
def test_records_the_loss_and_gradient_of_every_iterate(max_iter):
    recorder = Recorder(rosenbrock)
    path = minimize_lbfgs(recorder, START, max_iter=max_iter, tol=1e-8, distance=recorder.watch)
    np.testing.assert_array_equal(recorder.iterates[0], START)
    np.testing.assert_array_equal(recorder.iterates[-1], path.x)
    assert len(recorder.iterates) == len(path.losses) == path.n_iter + 1
    assert path.losses == [rosen(x) for x in recorder.iterates]
    assert path.gradient_norms == [np.abs(rosen_der(x)).max() for x in recorder.iterates]
    assert (np.diff(path.losses) < 0).all()


def test_max_iter_counts_iterations_not_evaluations():
    recorder = Recorder(rosenbrock)
    path = minimize_lbfgs(recorder, START, max_iter=10, tol=1e-8)
    assert path.n_iter == 10
    assert not path.converged
    assert len(recorder.evaluated) > 11  # the line search needs several


def test_max_iter_zero_only_evaluates():
    recorder = Recorder(rosenbrock, distances=[0.5])
    path = minimize_lbfgs(recorder, START, max_iter=0, tol=1e-8, distance=recorder.distance)
    np.testing.assert_array_equal(path.x, START)
    assert len(recorder.evaluated) == len(recorder.iterates) == 1
    assert path.losses == [path.loss] == [rosen(START)]
    assert (path.n_iter, path.iteration, path.converged) == (0, 0, False)
    assert path.distances == [0.5]


def test_a_start_at_the_minimum_has_converged():
    recorder = Recorder(rosenbrock)
    path = minimize_lbfgs(recorder, np.ones(2), max_iter=10, tol=1e-8)
    assert path.converged
    assert len(recorder.evaluated) == 1
    assert path.n_iter == 0


def test_a_gradient_of_zero_is_not_above_a_tolerance_of_zero():
    path = minimize_lbfgs(quadratic, np.arange(3.0), max_iter=10, tol=0.0)
    assert (path.converged, path.n_iter, path.iteration) == (True, 0, 0)


def test_a_forgotten_problem_begins_anew():
    curvature = DenseCurvature(np.zeros((2, 3)))
    steps, changes = np.ones((2, 3)), np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 1.0]])
    curvature.add(Places(np.arange(2), all_rows=True), steps, changes)
    other = curvature.inverse[1].copy()
    curvature.forget(Places(np.array([0]), all_rows=False))
    np.testing.assert_array_equal(curvature.inverse[0], np.eye(3))
    np.testing.assert_array_equal(curvature.inverse[1], other)
    assert curvature.known.tolist() == [False, True]


@pytest.mark.parametrize("kind", [DenseCurvature, Curvature])
def test_directions_of_a_forgotten_problem_are_downhill_again(kind):
    curvature = kind(np.zeros((2, 3)))
    steps, changes = np.ones((2, 3)), np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 1.0]])
    curvature.add(Places(np.arange(2), all_rows=True), steps, changes)
    gradients = np.array([[1.0, -2.0, 0.5], [0.3, 1.0, -1.0]])
    before = curvature.directions(np.arange(2), gradients)
    assert np.abs(before + gradients).max(axis=1).min() > 0.1
    curvature.forget(Places(np.array([0]), all_rows=False))
    after = curvature.directions(np.arange(2), gradients)
    np.testing.assert_array_equal(after, [-gradients[0], before[1]])


def test_stops_at_the_first_gradient_below_the_tolerance():
    path = minimize_lbfgs(rosenbrock, START, max_iter=200, tol=1e-3)
    assert path.converged
    assert path.gradient_norms[-1] <= 1e-3
    assert min(path.gradient_norms[:-1]) > 1e-3


def test_stops_when_asked_to():
    answers = iter([False, False, False, True])  # one line search has two evaluations
    path = minimize_lbfgs(rosenbrock, START, max_iter=200, tol=0, should_stop=lambda: next(answers))
    assert path.n_iter == 3
    assert path.loss == path.losses[-1]


@pytest.mark.parametrize(
    ("distances", "kept"),
    [
        ([5, 4, 3, 2, 1, 0], 5),
        ([5, 1, 3, 1, 1, 4], 1),  # the first of equals
        ([1, 2, 3, 1, 2, 3], 0),  # the start counts
        ([9, 8, 9, 7, 9, 9], 3),
    ],
)
def test_keeps_the_first_iterate_of_smallest_distance(distances, kept):
    recorder = Recorder(rosenbrock, distances)
    path = minimize_lbfgs(recorder, START, max_iter=5, tol=1e-8, distance=recorder.distance)
    assert path.distances == distances
    assert path.iteration == kept
    np.testing.assert_array_equal(path.x, recorder.iterates[kept])
    assert path.loss == path.losses[kept] == rosen(recorder.iterates[kept])
    assert path.n_iter == 5


def test_the_distance_does_not_change_the_path():
    recorder = Recorder(rosenbrock, distances=range(100))
    watched = minimize_lbfgs(recorder, START, max_iter=99, tol=1e-8, distance=recorder.distance)
    plain = minimize_lbfgs(rosenbrock, START, max_iter=99, tol=1e-8)
    assert watched.losses == plain.losses
    np.testing.assert_array_equal(watched.x, START)


@pytest.mark.parametrize("loss", [np.nan, np.inf, -np.inf, 1.0])
def test_a_start_that_is_not_finite_is_an_error(loss):
    gradient = np.array([0.0, np.nan if np.isfinite(loss) else 1.0])
    with pytest.raises(FloatingPointError, match="not finite at the start"):
        minimize_lbfgs(lambda x: (loss, gradient), START, max_iter=5, tol=1e-5)


def test_single_precision_evaluates_and_returns_single_precision():
    recorder = Recorder(quadratic)
    x0 = np.full((2, 3), -4, dtype=np.float32)
    path = minimize_lbfgs(recorder, x0, max_iter=100, tol=1e-6, distance=recorder.watch)
    assert {x.dtype for x in recorder.evaluated + recorder.iterates} == {np.dtype(np.float32)}
    assert path.x.dtype == np.float32
    assert path.converged
    assert path.losses == [quadratic(x)[0] for x in recorder.iterates]
    np.testing.assert_allclose(path.x, np.arange(6).reshape(2, 3), atol=1e-3)


@pytest.mark.parametrize("max_iter", [0, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_start_is_not_changed_nor_aliased(dtype, max_iter):
    x0 = np.full((3, 2), -4, dtype=dtype).T
    kept = x0.copy()
    path = minimize_lbfgs(quadratic, x0, max_iter=max_iter, tol=1e-8)
    np.testing.assert_array_equal(x0, kept)
    assert not np.shares_memory(path.x, x0)


# ---- several problems at once ----

STARTS = np.random.default_rng(0).uniform(-2, 2, size=(9, 5))


def rosenbrocks(x, which):
    """Rosenbrock functions that differ in their scale by problem, evaluated one by one."""
    scale = 1.0 + which
    return scale * [rosen(row) for row in x], scale[:, None] * [rosen_der(row) for row in x]


def alone(position, **options):
    """The path of one of the problems by itself."""
    (path,) = minimize_all(
        lambda x, which: rosenbrocks(x, np.array([position])),
        STARTS[position : position + 1],
        **options,
    )
    return path


@pytest.mark.parametrize("max_iter", [0, 3, 200])
def test_problems_do_not_affect_each_other(max_iter):
    together = minimize_all(rosenbrocks, STARTS, max_iter=max_iter, tol=1e-8)
    assert len({path.n_iter for path in together}) > (3 if max_iter == 200 else 0)
    for position, path in enumerate(together):
        single = alone(position, max_iter=max_iter, tol=1e-8)
        np.testing.assert_array_equal(path.x, single.x)
        assert path.losses == single.losses
        assert path.gradient_norms == single.gradient_norms
        assert (path.converged, path.iteration) == (single.converged, single.iteration)


def test_finished_problems_leave_the_batch():
    sizes = []

    def watched(x, which):
        sizes.append(len(which))
        assert (np.diff(which) > 0).all()
        return rosenbrocks(x, which)

    paths = minimize_all(watched, STARTS, max_iter=200, tol=1e-8)
    assert all(path.converged for path in paths)
    assert sizes[0] == len(STARTS)
    assert sizes[-1] < len(STARTS)
    assert (np.diff(sizes) <= 0).all()


def test_needs_about_as_many_evaluations_as_scipy():
    counts = {"ours": 0, "theirs": 0}

    def watched(x, which):
        counts["ours"] += len(which)
        return rosenbrocks(x, which)

    paths = minimize_all(watched, STARTS, max_iter=500, tol=1e-6)
    for position, start in enumerate(STARTS):
        scale = 1.0 + position
        result = minimize(
            lambda x, scale=scale: (scale * rosen(x), scale * rosen_der(x)),
            start, jac=True, method="L-BFGS-B", options={"gtol": 1e-6, "ftol": 0},
        )  # fmt: skip
        counts["theirs"] += result.nfev
        # In five dimensions the function has a second minimum, at 3.93.
        assert min(abs(paths[position].loss / scale - loss) for loss in (0, 3.9308394)) < 1e-6
    assert counts["ours"] < 1.2 * counts["theirs"]


def test_a_wall_of_values_that_are_not_finite_is_kept_away_from():
    def walled(x):
        """A parabola whose minimum, at 3, is hidden behind a wall at 2."""
        if x[0] > 2:
            return np.nan, np.array([np.nan])
        return float((x[0] - 3) ** 2), 2 * (x - 3)

    path = minimize_lbfgs(walled, np.array([-5.0]), max_iter=100, tol=1e-8)
    assert np.isfinite(path.losses).all()
    assert 1.9 < path.x[0] <= 2
    assert not path.converged


@pytest.mark.parametrize("asarray", LIBRARIES)
@pytest.mark.parametrize("n_entries", [5, 50])  # the whole inverse Hessian, and pairs
@pytest.mark.parametrize("max_iter", [0, 12, 200])
def test_runs_on_any_array_library(asarray, n_entries, max_iter):
    starts = np.random.default_rng(0).uniform(-2, 2, size=(9, n_entries))

    def evaluate(x, which):
        losses, gradients = rosenbrocks(copy_to_host(x), copy_to_host(which))
        return asarray(losses), asarray(gradients)

    ours = minimize_all(evaluate, asarray(starts), max_iter=max_iter, tol=1e-8)
    theirs = minimize_all(rosenbrocks, starts, max_iter=max_iter, tol=1e-8)
    for one, other in zip(ours, theirs, strict=True):
        assert type(one.x) is type(asarray(starts))
        if max_iter == 12:  # the paths are the same until rounding has grown
            assert one.n_iter == other.n_iter
            np.testing.assert_allclose(one.losses, other.losses, rtol=1e-8)
            np.testing.assert_allclose(one.gradient_norms, other.gradient_norms, rtol=1e-6)
        if n_entries == 5 or max_iter < 200:  # in 50 dimensions minima lie close together
            np.testing.assert_allclose(copy_to_host(one.x), other.x, atol=1e-6)
            assert one.converged == other.converged
        assert one.loss == one.losses[-1]
        assert one.iteration == one.n_iter


@pytest.mark.parametrize("asarray", LIBRARIES)
def test_distances_and_progress_on_any_array_library(asarray):
    seen = []

    def evaluate(x, which):
        losses, gradients = rosenbrocks(copy_to_host(x), copy_to_host(which))
        return asarray(losses), asarray(gradients)

    paths = minimize_all(
        evaluate, asarray(STARTS), max_iter=6, tol=1e-8,
        distance=lambda position, x: abs(float(x[0]) - 1.0),
        progress=lambda position, iteration, loss, norm: seen.append((position, iteration)),
    )  # fmt: skip
    assert sorted(seen) == [(position, i) for position in range(len(STARTS)) for i in range(7)]
    for path in paths:
        assert path.iteration == int(np.argmin(path.distances))
        assert path.loss == path.losses[path.iteration]


def test_a_round_asks_a_device_few_questions():
    """Each is a wait: their number must not grow with that of the problems."""
    strict = pytest.importorskip("array_api_strict")
    Array = type(strict.asarray(0))

    def questions(starts, monkeypatch):
        asked = []
        for name in ("__bool__", "__int__", "__float__", "__index__"):
            original = getattr(Array, name)
            monkeypatch.setattr(
                Array, name, lambda x, original=original: (asked.append(1), original(x))[1]
            )
        rounds = []

        def evaluate(x, which):
            rounds.append(1)
            losses, gradients = rosenbrocks(np.asarray(x), np.asarray(which))
            return strict.asarray(losses), strict.asarray(gradients)

        minimize_all(evaluate, strict.asarray(starts), max_iter=30, tol=1e-8)
        return len(asked) / len(rounds)

    starts = np.random.default_rng(0).uniform(-2, 2, size=(40, 50))
    with pytest.MonkeyPatch.context() as few, pytest.MonkeyPatch.context() as many:
        assert questions(starts[:2], few) < 4
        assert questions(starts, many) < 4


def test_the_tolerance_is_that_of_each_problem():
    """The small problem ends where it would alone, while the large one goes on."""
    scales = np.array([1e-3, 1.0, 1e3])

    def evaluate(x, which):
        each = [quadratic(one) for one in x]
        losses = np.array([loss for loss, _ in each]) * scales[which]
        return losses, np.stack([gradient for _, gradient in each]) * scales[which, None]

    starts = np.full((3, 5), -4.0)
    together = minimize_all(evaluate, starts, max_iter=50, tol=1e-2)
    assert len({path.n_iter for path in together}) == 3
    for position, path in enumerate(together):
        (alone,) = minimize_all(
            lambda x, which, position=position: evaluate(x, which + position),
            starts[:1],
            max_iter=50,
            tol=1e-2,
        )
        np.testing.assert_array_equal(path.losses, alone.losses)
        assert path.gradient_norms[-1] <= 1e-2 < path.gradient_norms[-2]


@pytest.mark.parametrize(
    ("f", "d", "accepted", "long"),
    [
        (0.5, -0.5, True, False),  # lower, and flatter
        (0.999, -0.5, True, False),  # just low enough: 1 - 1e-3 * 1 * 1
        (0.9991, -0.5, False, True),  # not low enough
        (1.0, 0.0, False, True),
        (0.5, -0.9, True, False),  # just flat enough
        (0.5, -0.91, False, False),  # still steep: too short
        (0.5, 0.9, True, False),
        (0.5, 0.91, False, True),  # steep upward: too long
        (np.nan, 0.0, False, True),
        (0.5, np.nan, False, True),
    ],
)
def test_the_strong_wolfe_conditions(f, d, accepted, long):
    search = begin_search(np.array([1.0]), np.array([-1.0]), np.array([1.0]))
    verdict = judge_steps(search, np.array([f]), np.array([d]), 1e-16)
    assert (bool(verdict.accepted[0]), bool(verdict.long[0])) == (accepted, long)
    assert not verdict.failed[0]


@pytest.mark.parametrize("n_entries", [3, MAX_DENSE + 1])
def test_an_uphill_direction_is_replaced_by_the_gradient(n_entries, monkeypatch):
    kind = DenseCurvature if n_entries <= MAX_DENSE else Curvature
    directions, forget, forgotten, n_calls = kind.directions, kind.forget, [], 0

    def spoiled(self, rows, gradients):
        nonlocal n_calls
        n_calls += 1
        return gradients if n_calls == 1 else directions(self, rows, gradients)

    def spy(self, places):
        forgotten.append(n_calls)
        forget(self, places)

    monkeypatch.setattr(kind, "directions", spoiled)
    monkeypatch.setattr(kind, "forget", spy)
    recorder = Recorder(quadratic)
    path = minimize_lbfgs(
        recorder, np.full(n_entries, -4.0), max_iter=100, tol=1e-8, distance=recorder.watch
    )
    assert path.converged
    assert forgotten == [1]
    move = recorder.iterates[2] - recorder.iterates[1]
    downhill = -quadratic(recorder.iterates[1])[1]
    cosine = move @ downhill / np.linalg.norm(move) / np.linalg.norm(downhill)
    assert cosine == pytest.approx(1)


def test_a_step_too_short_to_change_the_loss_is_not_a_decrease():
    """The loss that would be low enough rounds to that of the start."""
    search = begin_search(np.array([1.0]), np.array([-1e-20]), np.array([1.0]))
    verdict = judge_steps(search, np.array([1.0]), np.array([0.0]), 1e-16)
    assert verdict.long[0]
    assert not verdict.accepted[0]


def naive_direction(pairs, gradient):
    """Minus the inverse Hessian of BFGS, as a matrix, times the gradient."""
    identity = np.eye(len(gradient))
    scale = next((s @ y / (y @ y) for s, y in reversed(pairs) if s @ y > 0), 1.0)
    inverse = scale * identity
    for s, y in pairs:
        if s @ y > 0:
            left = identity - np.outer(s, y) / (s @ y)
            inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
    return -inverse @ gradient


@pytest.mark.parametrize("size", [1.0, 0.01])
@pytest.mark.parametrize("bad", [(), (0,), (2,), (3,)], ids=["all of use", "0", "2", "the newest"])
@pytest.mark.parametrize("which", [0, slice(None)], ids=["of one", "of both"])
def test_directions_are_those_of_the_updated_matrix(which, bad, size):
    """Two problems; pairs along which the gradient falls are of no use and have no effect."""
    rng = np.random.RandomState(0)
    factor = rng.standard_normal((2, 6, 6))
    hessians = size * (factor @ factor.swapaxes(1, 2) + np.eye(6))
    curvature = Curvature(np.zeros((2, 6)))
    assert curvature.size == 10
    places, kept = Places(np.arange(2), all_rows=True), [[], []]
    for number in range(4):
        steps = rng.standard_normal((2, 6))
        changes = np.einsum("kij,kj->ki", hessians, steps)
        if number in bad:
            changes[which] *= -1
        curvature.add(places, steps, changes)
        for problem in range(2):
            kept[problem].append((steps[problem], changes[problem]))
    gradients = rng.standard_normal((2, 6))
    found = curvature.directions(np.arange(2), gradients)
    for problem in range(2):
        expected = naive_direction(kept[problem], gradients[problem])
        np.testing.assert_allclose(found[problem], expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_steps_are_interpolated_by_the_cubic_through_values_and_slopes(seed):
    rng = np.random.RandomState(seed)
    a, b = 1.0, 1.0 + rng.uniform(0.5, 3)
    # Downhill at a and uphill at b: the minimum lies between.
    f_a, f_b, d_a, d_b = 2.0, 2.0 + rng.uniform(-0.3, 0.3), -rng.uniform(1, 3), rng.uniform(1, 3)
    conditions = [
        [a**3, a**2, a, 1],
        [b**3, b**2, b, 1],
        [3 * a**2, 2 * a, 1, 0],
        [3 * b**2, 2 * b, 1, 0],
    ]
    cubic = np.poly1d(np.linalg.solve(conditions, [f_a, f_b, d_a, d_b]))
    flat = [root.real for root in cubic.deriv().roots if cubic.deriv(2)(root.real) > 0]
    assert len(flat) == 1
    step = _interpolate(*(np.array([one]) for one in (a, f_a, d_a, b, f_b, d_b)))
    kept_away = np.clip(flat[0], a + NEAREST * (b - a), b - NEAREST * (b - a))
    assert step[0] == pytest.approx(kept_away)


@pytest.mark.parametrize(
    ("d_low", "d", "expected"),
    [
        (-2.0, -1.0, 1 + NEAREST),  # the line reaches zero one move further: a little more
        (-1.0, -0.5 - 0.25, 3.0),
        (-1.0, -1.0, FARTHEST),  # not flatter at all
        (-1.0, -2.0, FARTHEST),
        (-1.0, -0.99, FARTHEST),
    ],
)
def test_moves_grow_to_where_the_slope_would_be_zero(d_low, d, expected):
    growth = _growth(np.array([d_low]), np.array([d]))
    assert growth[0] == pytest.approx(min(max(expected, 1 + NEAREST), FARTHEST))


@pytest.mark.parametrize("asarray", LIBRARIES)
def test_products_of_single_precision_are_summed_in_double(asarray):
    a = np.array([[1e8, 1.0, -1e8]], dtype=np.float32)
    found = dot(asarray(a), asarray(np.ones_like(a)))
    assert copy_to_host(found).tolist() == [1.0]
