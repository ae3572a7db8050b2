"""Families with one kind of shift each.

In most, source rows are dealt to domains at random, and the target is shifted. In two, every domain
draws its own shift.
"""

import numpy as np
from scipy.stats import ortho_group

from covshift_bench.families.world import (
    deal_domains,
    draw_groups,
    draw_shift_and_scale,
    map_domains,
    map_target,
)


def shift_and_scale(world):
    """Every feature moves and stretches by its own."""
    return map_target(world, draw_shift_and_scale(world))


def affine(world):
    """The rows are moved by a linear map and a shift."""
    rng, d = world.rng, world.n_informative
    A = np.eye(d) + rng.uniform(0.1, 0.5) * rng.standard_normal((d, d))
    move = rng.standard_normal(d)
    return map_target(world, lambda X: X @ A + move)


def rotation(world):
    """The rows are turned in a random plane."""
    rng, d = world.rng, world.n_informative
    angle = rng.uniform(np.pi / 12, np.pi / 2)
    Q = ortho_group.rvs(d, random_state=rng)
    R = np.eye(d)
    R[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return map_target(world, lambda X: X @ Q.T @ R @ Q)


def radial(world):
    """Classes by direction up to sign; the target lies on the other side, farther out."""
    rng, d = world.rng, world.n_informative
    axes = rng.standard_normal((world.n_classes, d))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    side = axes[0] * rng.uniform(0.3, 1.0)
    stretch = rng.uniform(1.0, 3.0)

    def draw(n, sign, size):
        X = (rng.standard_normal((n, d)) + sign * side) * size
        y = np.argmax(np.abs(X @ axes.T), axis=1)
        return X, y

    return deal_domains(world, lambda n: draw(n, 1, 1.0), lambda n: draw(n, -1, stretch))


def periodic(world):
    """Classes repeat along one direction; the target lies some periods away."""
    rng, d = world.rng, world.n_informative
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    period = rng.uniform(1.5, 4.0)
    away = period * rng.randint(1, 4)
    width = period * rng.uniform(0.6, 1.5)

    def draw(n, center):
        t = center + width * rng.standard_normal(n)
        X = 0.5 * rng.standard_normal((n, d))
        X += np.outer(t - X @ direction, direction)
        y = np.floor(np.mod(t, period) / period * world.n_classes).astype(int)
        return X, np.minimum(y, world.n_classes - 1)

    return deal_domains(world, lambda n: draw(n, 0.0), lambda n: draw(n, away))


def monotone_warps(world):
    """Every feature is bent by a growing function, stretched and moved."""
    rng, d = world.rng, world.n_informative
    power = np.exp(rng.uniform(-0.9, 0.9, size=d))
    scale = np.exp(0.3 * rng.standard_normal(d))
    move = rng.standard_normal(d)
    return map_target(world, lambda X: scale * np.sign(X) * np.abs(X) ** power + move)


def class_shares(world):
    """Only the shares of the classes change."""
    shares = world.other_shares()
    return deal_domains(world, world.draw, lambda n: world.draw(n, shares))


def selection_bias(world):
    """True covariate shift: source rows are kept with a probability that depends on x."""
    rng = world.rng
    direction = rng.standard_normal(world.n_informative)
    steepness = rng.uniform(0.5, 2.5)

    def biased(n):
        rows = []
        while sum(len(X) for X, _ in rows) < n:
            X, y = world.draw(4 * n)
            z = X @ direction
            keep = rng.uniform(size=len(y)) < 1 / (
                1 + np.exp(-steepness * (z - z.mean()) / z.std())
            )
            rows.append((X[keep], y[keep]))
        return tuple(np.concatenate(part)[:n] for part in zip(*rows, strict=True))

    return deal_domains(world, biased, world.draw)


def groups_shift_and_scale(world):
    """Every domain, source or target, moves and stretches by its own."""
    return map_domains(world, lambda: draw_shift_and_scale(world, 0.7))


def groups_class_shares(world):
    """Every domain, source or target, has its own shares of the classes."""

    def draw_group():
        shares = world.rng.dirichlet(np.full(world.n_classes, 2.0))
        return lambda n: world.draw(n, shares)

    return draw_groups(world, draw_group)


def no_shift(world):
    """Nothing moves."""
    return deal_domains(world, world.draw, world.draw)


def nothing_helps(world):
    """All classes of the target, or half of them, are elsewhere, as if drawn again."""
    rng = world.rng
    centers = rng.permutation(world.centers.reshape(-1, world.n_informative))
    centers = centers.reshape(world.centers.shape) + 0.5 * rng.standard_normal(world.centers.shape)
    if rng.uniform() < 0.5:
        kept = rng.permutation(world.n_classes)[: (world.n_classes + 1) // 2]
        centers[kept] = world.centers[kept]
    before = world.centers

    def target(n):
        world.centers = centers
        drawn = world.draw(n)
        world.centers = before
        return drawn

    return deal_domains(world, world.draw, target)


def noise_moves(world):
    """Only features that do not depend on the class move, and far."""
    rng, extra = world.rng, 8
    move = rng.uniform(1.0, 4.0) * rng.standard_normal(extra)

    def draw(n, moved):
        X, y = world.draw(n)
        return np.hstack([X, rng.standard_normal((n, extra)) + moved * move]), y

    return deal_domains(world, lambda n: draw(n, 0), lambda n: draw(n, 1))


def classes_move(world):
    """Each class moves by its own."""
    rng = world.rng
    moves = rng.uniform(0.3, 1.2) * rng.standard_normal((world.n_classes, world.n_informative))
    common = rng.standard_normal(world.n_informative)

    def target(n):
        X, y = world.draw(n)
        return X + moves[y] + common, y

    return deal_domains(world, world.draw, target)


def shares_and_shift(world):
    """Class shares and features move together."""
    shares, mapping = world.other_shares(), draw_shift_and_scale(world, 0.8)

    def target(n):
        X, y = world.draw(n, shares)
        return mapping(X), y

    return deal_domains(world, world.draw, target)


def subpopulations(world):
    """The same clusters in other proportions."""
    rng, n_clusters = world.rng, world.centers.shape[1]
    before, after = rng.dirichlet(np.full(n_clusters, 0.7), size=2)
    return deal_domains(
        world,
        lambda n: world.draw(n, cluster_shares=before),
        lambda n: world.draw(n, cluster_shares=after),
    )


def noisier_target(world):
    """The target has more noise."""
    rng = world.rng
    size = rng.uniform(0.5, 2.0)
    return map_target(world, lambda X: X + size * rng.standard_normal(X.shape))


def dead_features(world):
    """Some features of the target are stuck at a value."""
    rng, d = world.rng, world.n_informative
    dead = rng.choice(d, size=max(1, d // 3), replace=False)
    value = 2 * rng.standard_normal(len(dead))

    def mapping(X):
        X = X.copy()
        X[:, dead] = value + 0.01 * rng.standard_normal((len(X), len(dead)))
        return X

    return map_target(world, mapping)
