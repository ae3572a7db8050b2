"""Families with one source domain and a target elsewhere.

In those beyond a gap it cannot be known: one of several stories, drawn by chance, gives the
target's labels. Rows and source labels are drawn in the same way whichever it is.
"""

import numpy as np
from scipy.stats import beta, ortho_group

from covshift_bench.families.single_shifts import radial, shift_and_scale
from covshift_bench.families.world import one_source


def shifted_alone(world):
    """One source domain; the target is moved and stretched, far."""
    world.n_domains = 1
    return shift_and_scale(world)


def swapped_alone(world):
    """One source domain; in the target, moved and stretched, the classes have changed places."""
    parts, domain = shifted_alone(world)
    source, *target = parts
    return [source, *((X, (y + 1) % world.n_classes) for X, y in target)], domain


def radial_alone(world):
    """One source domain; the target lies on the other side, farther out."""
    world.n_domains = 1
    return radial(world)


def unseen_stretch_alone(world):
    """Stripes, seen little more than once; the target lies farther along their direction.

    Stories: stripes repeat; came along with the rows; are mirrored; or have changed their names.
    """
    rng, d = world.rng, int(world.rng.randint(2, 6))
    world.n_classes, world.n_noise = int(rng.choice([2, 2, 3])), min(world.n_noise, 5)
    direction = ortho_group.rvs(d, random_state=rng)[0]
    period, width = rng.uniform(1.5, 4.0), rng.uniform(1.0, 1.6)
    # No whole number of periods: stripes that repeat are not those that came along.
    away, begin = rng.randint(3, 7) + rng.uniform(0.25, 0.75), rng.uniform()
    phase, sign, renamed = [(away, 1, 0), (0, 1, 0), (0, -1, 0), (0, 1, 1)][rng.randint(4)]

    def draw(n, start, phase, sign, renamed):
        place, X = width * rng.uniform(-0.5, 0.5, size=n), 0.4 * rng.standard_normal((n, d))
        X += np.outer(period * (start + place) - X @ direction, direction)
        y = np.floor(np.mod(begin + phase + sign * place, 1) * world.n_classes).astype(int)
        return X, (y + renamed) % world.n_classes

    return one_source(world, draw, (0, 0, 1, 0), (away, phase, sign, renamed))


def outer_ring_alone(world):
    """Classes are sectors of a disc; the target is a ring around it, beyond a gap.

    Stories: sectors reach outwards; lie opposite; are turned; or have changed their names.
    """
    rng, d, size = world.rng, int(world.rng.randint(2, 6)), world.rng.uniform(0.7, 3.0)
    world.n_classes, world.n_noise = int(rng.choice([2, 3, 4])), min(world.n_noise, 5)
    radii, begin, turn = (rng.uniform(1.8, 3.0), rng.uniform(3.5, 5.0)), *rng.uniform(0.2, 0.8, 2)
    turn, renamed = [(0, 0), (0.5, 0), (turn, 0), (0, 1)][rng.randint(4)]

    def draw(n, radii, turn, renamed):
        angle, X = rng.uniform(size=n), 0.2 * rng.standard_normal((n, d))
        X[:, 0], X[:, 1] = np.cos(2 * np.pi * angle), np.sin(2 * np.pi * angle)
        X[:, :2] *= rng.uniform(*radii, size=(n, 1))
        y = np.floor(np.mod(angle + begin + turn, 1) * world.n_classes).astype(int)
        return size * X, (y + renamed) % world.n_classes

    return one_source(world, draw, ((0.3, 1.0), 0, 0), (radii, turn, renamed))


def other_ball_alone(world):
    """A ball of rows, cut into slices; the target is a ball of another size, beyond a gap.

    Stories: slices came along; are mirrored; are cut across; or have changed their names.
    """
    rng, d, size = world.rng, world.n_informative, world.rng.uniform(1.5, 3.0)
    world.n_classes, world.n_noise = min(world.n_classes, 4), min(world.n_noise, 5)
    along, across, away = ortho_group.rvs(d, random_state=rng)[[0, 1, -1]]
    stretch, away = np.exp(rng.uniform(-0.7, 0.7)), away + rng.uniform(-1, 1) * along
    away *= (1 + stretch + rng.uniform(1.0, 3.0)) / np.linalg.norm(away)
    rule, renamed = [(along, 0), (-along, 0), (across, 0), (along, 1)][rng.randint(4)]
    # Slices of equal shares: a coordinate of a full ball, between 0 and 1, is a beta variable.
    ends = 2 * beta.ppf(np.arange(1, world.n_classes) / world.n_classes, *[(d + 1) / 2] * 2) - 1

    def draw(n, stretch, away, rule, renamed):
        X = rng.standard_normal((n, d))
        X *= rng.uniform(size=(n, 1)) ** (1 / d) / np.linalg.norm(X, axis=1, keepdims=True)
        y = (np.digitize(X @ rule, ends) + renamed) % world.n_classes
        return size * (stretch * X + away), y

    return one_source(world, draw, (1, 0, along, 0), (stretch, away, rule, renamed))
