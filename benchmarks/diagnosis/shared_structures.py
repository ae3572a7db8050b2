"""Made-up tasks for judging verdicts: what is shared is known, and whether anybody could know it.

Families of groups have several source domains, each with its own draw of the same kind of shift;
"overlapping" ones have a single source domain with which the target overlaps; those ``ALONE`` have
one, and a target near or far. In families whose names begin with "nothing", no adapter can help.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "selection"))
from families import FAMILIES, draw_groups, draw_shift_and_scale
from scipy.stats import ortho_group


def shifted_groups(world):
    """Every domain moves and stretches by its own, and far."""
    return _by_maps(world, lambda: draw_shift_and_scale(world, 1.2))


def affine_groups(world):
    """Every domain is mapped by a linear map of its own."""
    rng, d = world.rng, world.n_informative

    def draw_map():
        A = np.eye(d) + rng.uniform(0.2, 0.5) * rng.standard_normal((d, d))
        move = 1.5 * rng.standard_normal(d)
        return lambda X: X @ A + move

    return _by_maps(world, draw_map)


def warped_groups(world):
    """Every domain bends each feature by a growing function of its own."""
    rng, d = world.rng, world.n_informative

    def draw_map():
        power = np.exp(rng.uniform(-0.9, 0.9, size=d))
        scale, move = np.exp(0.4 * rng.standard_normal(d)), 1.5 * rng.standard_normal(d)
        return lambda X: scale * np.sign(X) * np.abs(X) ** power + move

    return _by_maps(world, draw_map)


def radial_groups(world):
    """Classes by direction up to sign; every domain lies on a side of its own, near or far."""
    rng, d = world.rng, min(world.n_informative, 4)
    axes = ortho_group.rvs(max(d, world.n_classes), random_state=rng)[: world.n_classes, :d]

    def draw_group():
        side, size = 0.8 * rng.standard_normal(d), np.exp(rng.uniform(-1.5, 1.5))

        def draw(n):
            X = (rng.standard_normal((n, d)) + side) * size
            return X, np.argmax(np.abs(X @ axes.T), axis=1)

        return draw

    world.n_noise = 0
    return draw_groups(world, draw_group)


def periodic_groups(world):
    """Classes repeat along one direction; every domain lies some periods away from the others."""
    rng, d = world.rng, min(world.n_informative, 5)
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    period, n_classes = rng.uniform(1.5, 4.0), 2
    places = list(rng.permutation(np.arange(-4, 5)))
    world.n_classes, world.n_noise = n_classes, 0

    def draw_group():
        centre = period * (places.pop() + rng.uniform(-0.3, 0.3))

        def draw(n):
            t = centre + period * rng.uniform(-0.8, 0.8, size=n)
            X = 0.5 * rng.standard_normal((n, d))
            X += np.outer(t - X @ direction, direction)
            return X, np.floor(np.mod(t, period) / period * n_classes).astype(int) % n_classes

        return draw

    return draw_groups(world, draw_group)


def axial_groups(world):
    """Classes lie along axes of their own, on either side of the origin, domain by domain."""
    rng, d = world.rng, int(world.rng.randint(2, 5))
    world.n_classes, world.n_noise = int(rng.randint(2, d + 1)), 0
    axes = ortho_group.rvs(d, random_state=rng)[: world.n_classes]

    def draw_group():
        sides, size = rng.choice([-1, 1], size=world.n_classes), np.exp(rng.uniform(-1, 1))

        def draw(n):
            y = rng.randint(world.n_classes, size=n)
            length = rng.uniform(1.0, 3.0, size=(n, 1))
            X = sides[y, None] * length * axes[y] + 0.4 * rng.standard_normal((n, d))
            return size * X, y

        return draw

    return draw_groups(world, draw_group)


def striped_groups(world):
    """Stripes of unequal width that repeat; every domain sees two periods or so, elsewhere."""
    rng, d = world.rng, int(world.rng.randint(2, 5))
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    period, share = rng.uniform(1.0, 3.0), rng.uniform(0.4, 0.6)
    places = list(rng.permutation(np.arange(-6, 7)))
    world.n_classes, world.n_noise = 2, 0

    def draw_group():
        centre, spread = period * places.pop(), period * rng.uniform(0.8, 1.2)

        def draw(n):
            t = centre + spread * rng.uniform(-1, 1, size=n)
            X = rng.uniform(0.3, 1.0) * rng.standard_normal((n, d))
            X += np.outer(t - X @ direction, direction)
            return X, (np.mod(t, period) < share * period).astype(int)

        return draw

    return draw_groups(world, draw_group)


def gained_groups(world):
    """Sensors of skewed readings, each with a gain and an offset of its own in every domain."""
    rng, d = world.rng, world.n_informative

    def draw_map():
        gain, offset = np.exp(0.7 * rng.standard_normal(d)), 3 * rng.standard_normal(d)
        return lambda X: gain * np.logaddexp(0, X) + offset

    return _by_maps(world, draw_map)


def correlated_groups(world):
    """Every domain has its own correlations: a symmetric, positive map of the rows, and a move."""
    rng, d = world.rng, world.n_informative

    def draw_map():
        Q = ortho_group.rvs(max(d, 2), random_state=rng)[:d, :d]
        A = (Q * np.exp(0.8 * rng.standard_normal(d))) @ Q.T
        move = 1.5 * rng.standard_normal(d)
        return lambda X: X @ A + move

    return _by_maps(world, draw_map)


def nothing_but_names(world):
    """In every domain the classes have changed their names, and the rows have moved."""
    rng = world.rng

    def draw_group():
        names, mapping = rng.permutation(world.n_classes), draw_shift_and_scale(world, 0.7)

        def draw(n):
            X, y = world.draw(n)
            return mapping(X), names[y]

        return draw

    return draw_groups(world, draw_group)


def nothing_groups(world):
    """In every domain the classes are elsewhere."""
    rng, shape = world.rng, world.centres.shape

    def draw_group():
        centres = 2.5 * rng.standard_normal(shape) / np.sqrt(shape[2]) * 1.5
        move = 1.5 * rng.standard_normal(shape[2])

        def draw(n):
            y = rng.choice(world.n_classes, size=n, p=world.shares)
            cluster = rng.randint(shape[1], size=n)
            return centres[y, cluster] + rng.standard_normal((n, shape[2])) + move, y

        return draw

    return draw_groups(world, draw_group)


def nothing_but_shares(world):
    """Domains differ in their class shares alone."""
    return FAMILIES["groups_class_shares"](world)


def overlapping(world):
    """True covariate shift on a common support, one source domain."""
    world.n_domains = 1
    return FAMILIES["selection_bias"](world)


def overlapping_subpopulations(world):
    """The same clusters in other proportions, one source domain."""
    world.n_domains = 1
    return FAMILIES["subpopulations"](world)


def radial_alone(world):
    """One source domain; the target lies on the other side, farther out."""
    world.n_domains = 1
    return FAMILIES["radial"](world)


def swapped_alone(world):
    """One source domain; in the target, moved and stretched, the classes have changed places."""
    parts, domain = shifted_alone(world)
    source, *target = parts
    return [source, *((X, (y + 1) % world.n_classes) for X, y in target)], domain


def shifted_alone(world):
    """One source domain; the target is moved and stretched, far."""
    world.n_domains = 1
    return FAMILIES["shift_and_scale"](world)


def _by_maps(world, draw_map):
    def draw_group():
        mapping = draw_map()

        def draw(n):
            X, y = world.draw(n)
            return mapping(X), y

        return draw

    return draw_groups(world, draw_group)


SEEN = (
    shifted_groups,
    periodic_groups,
    nothing_but_shares,
    overlapping,
    affine_groups,
    warped_groups,
    radial_groups,
    nothing_groups,
    overlapping_subpopulations,
    axial_groups,
    striped_groups,
    gained_groups,
    correlated_groups,
    nothing_but_names,
)
# In some draws the target overlaps, and the task can be decided.
ALONE = (shifted_alone, swapped_alone, radial_alone)
