"""Made-up tasks of many families: what the learned score is trained on, and judged on.

A task has labelled source rows in one or more domains, unlabelled target rows, and test rows of the
target, which share no row with the others. Every family draws classes, features, sizes, noise and
domains at random; half of the tasks are rotated, so that no feature stands for itself.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import ortho_group


class Task(NamedTuple):
    """Source rows with labels and domains (0, 1, ...), target rows, test rows with labels.

    Labels of target rows are for experiments with a few labelled rows alone.
    """

    X_source: np.ndarray
    y_source: np.ndarray
    source_domain: np.ndarray
    X_target: np.ndarray
    y_target: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class World:
    """Classes as Gaussian clusters in the informative features, noise in the others."""

    def __init__(self, rng):
        self.rng = rng
        self.n_classes = int(rng.choice([2, 2, 2, 3, 4, 6, 8]))
        self.n_informative = int(rng.randint(2, 13))
        self.n_noise = int(rng.choice([0, 0, 5, 10, 25]))
        self.n_source, self.n_side = (int(n) for n in rng.randint(150, 501, size=2))
        n_clusters = int(rng.choice([1, 1, 2, 3]))
        separation = rng.uniform(1.0, 3.0)
        shape = (self.n_classes, n_clusters, self.n_informative)
        self.centres = separation * rng.standard_normal(shape) / np.sqrt(self.n_informative) * 1.5
        self.mixing = rng.standard_normal((self.n_informative, self.n_informative)) * 0.3
        self.mixing += np.eye(self.n_informative)
        balanced = rng.uniform() < 0.6
        self.shares = rng.dirichlet(np.full(self.n_classes, 50.0 if balanced else 3.0))
        self.label_noise = float(rng.choice([0.0, 0.0, 0.05, 0.1]))
        self.n_domains = int(rng.choice([1, 1, 2, 3, 5]))

    def draw(self, n, shares=None, cluster_shares=None):
        """Rows of informative features, and their classes."""
        rng = self.rng
        y = rng.choice(self.n_classes, size=n, p=self.shares if shares is None else shares)
        n_clusters = self.centres.shape[1]
        cluster = rng.choice(n_clusters, size=n, p=cluster_shares)
        noise = rng.standard_normal((n, self.n_informative)) @ self.mixing
        return self.centres[y, cluster] + noise, y

    def other_shares(self):
        """Class shares clearly unlike those of the source."""
        while True:
            shares = self.rng.dirichlet(np.full(self.n_classes, 1.5))
            if np.abs(shares - self.shares).sum() > 0.4 and shares.min() > 0.03:
                return shares

    def finish(self, parts):
        """Add noise features and labels' noise, rotate in half of the tasks."""
        rng = self.rng
        widths = parts[0][0].shape[1] + self.n_noise
        Q = ortho_group.rvs(widths, random_state=rng) if rng.uniform() < 0.5 else np.eye(widths)
        finished = []
        for X, y in parts:
            X = np.hstack([X, rng.standard_normal((len(X), self.n_noise))]) @ Q
            flipped = rng.uniform(size=len(y)) < self.label_noise
            y = np.where(flipped, rng.randint(self.n_classes, size=len(y)), y)
            finished.append((X, y))
        return finished


def make_task(family, seed):
    """Draw a task of the family, anew while a class is missing where it is needed."""
    rng = np.random.RandomState([seed, sorted(FAMILIES).index(family)])
    for _ in range(100):
        world = World(rng)
        parts, domain = FAMILIES[family](world)
        (X_source, y_source), (X_target, y_target), (X_test, y_test) = world.finish(parts)
        counts = np.bincount(y_source, minlength=world.n_classes)
        if counts.min() >= 8 and len(np.unique(y_test)) == world.n_classes:
            return Task(X_source, y_source, domain, X_target, y_target, X_test, y_test)
    raise RuntimeError(f"{family} gives no usable task with seed {seed}")


def _one_source(world, make_source, make_target):
    """Source rows dealt to domains at random; target and test rows by the other function."""
    source = make_source(world.n_source)
    domain = world.rng.randint(world.n_domains, size=world.n_source)
    return [source, make_target(world.n_side), make_target(world.n_side)], domain


def draw_groups(world, draw_group):
    """Each source domain by its own draw, and the target by another."""
    n_domains = max(2, world.n_domains)
    sizes = np.full(n_domains, world.n_source // n_domains)
    groups = [draw_group()(size) for size in sizes]
    X, y = (np.concatenate(parts) for parts in zip(*groups, strict=True))
    target = draw_group()
    return [(X, y), target(world.n_side), target(world.n_side)], np.repeat(
        np.arange(n_domains), sizes
    )


def _mapped(world, mapping):
    def target(n):
        X, y = world.draw(n)
        return mapping(X), y

    return _one_source(world, world.draw, target)


def draw_shift_and_scale(world, strength=1.0):
    """Draw a map that moves and stretches every feature by its own."""
    rng = world.rng
    move = strength * rng.uniform(0.5, 2.5) * rng.standard_normal(world.n_informative)
    scale = np.exp(strength * 0.5 * rng.standard_normal(world.n_informative))
    return lambda X: X * scale + move


def shift_and_scale(world):
    """Every feature moves and stretches by its own."""
    return _mapped(world, draw_shift_and_scale(world))


def affine(world):
    """The rows are moved by a linear map and a shift."""
    rng, d = world.rng, world.n_informative
    A = np.eye(d) + rng.uniform(0.1, 0.5) * rng.standard_normal((d, d))
    move = rng.standard_normal(d)
    return _mapped(world, lambda X: X @ A + move)


def rotation(world):
    """The rows are turned in a random plane."""
    rng, d = world.rng, world.n_informative
    angle = rng.uniform(np.pi / 12, np.pi / 2)
    Q = ortho_group.rvs(d, random_state=rng)
    R = np.eye(d)
    R[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return _mapped(world, lambda X: X @ Q.T @ R @ Q)


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

    return _one_source(world, lambda n: draw(n, 1, 1.0), lambda n: draw(n, -1, stretch))


def periodic(world):
    """Classes repeat along one direction; the target lies some periods away."""
    rng, d = world.rng, world.n_informative
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    period = rng.uniform(1.5, 4.0)
    away = period * rng.randint(1, 4)
    width = period * rng.uniform(0.6, 1.5)

    def draw(n, centre):
        t = centre + width * rng.standard_normal(n)
        X = 0.5 * rng.standard_normal((n, d))
        X += np.outer(t - X @ direction, direction)
        y = np.floor(np.mod(t, period) / period * world.n_classes).astype(int)
        return X, np.minimum(y, world.n_classes - 1)

    return _one_source(world, lambda n: draw(n, 0.0), lambda n: draw(n, away))


def monotone_warps(world):
    """Every feature is bent by a growing function, stretched and moved."""
    rng, d = world.rng, world.n_informative
    power = np.exp(rng.uniform(-0.9, 0.9, size=d))
    scale = np.exp(0.3 * rng.standard_normal(d))
    move = rng.standard_normal(d)
    return _mapped(world, lambda X: scale * np.sign(X) * np.abs(X) ** power + move)


def class_shares(world):
    """Only the shares of the classes change."""
    shares = world.other_shares()
    return _one_source(world, world.draw, lambda n: world.draw(n, shares))


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

    return _one_source(world, biased, world.draw)


def groups_shift_and_scale(world):
    """Every domain, source or target, moves and stretches by its own."""

    def draw_group():
        mapping = draw_shift_and_scale(world, 0.7)

        def draw(n):
            X, y = world.draw(n)
            return mapping(X), y

        return draw

    return draw_groups(world, draw_group)


def groups_class_shares(world):
    """Every domain, source or target, has its own shares of the classes."""

    def draw_group():
        shares = world.rng.dirichlet(np.full(world.n_classes, 2.0))
        return lambda n: world.draw(n, shares)

    return draw_groups(world, draw_group)


def no_shift(world):
    """Nothing moves."""
    return _one_source(world, world.draw, world.draw)


def nothing_helps(world):
    """All classes of the target, or half of them, are elsewhere, as if drawn anew."""
    rng = world.rng
    centres = rng.permutation(world.centres.reshape(-1, world.n_informative))
    centres = centres.reshape(world.centres.shape) + 0.5 * rng.standard_normal(world.centres.shape)
    if rng.uniform() < 0.5:
        kept = rng.permutation(world.n_classes)[: (world.n_classes + 1) // 2]
        centres[kept] = world.centres[kept]
    before = world.centres

    def target(n):
        world.centres = centres
        drawn = world.draw(n)
        world.centres = before
        return drawn

    return _one_source(world, world.draw, target)


def noise_moves(world):
    """Only features that say nothing of the class move, and far."""
    rng, extra = world.rng, 8
    move = rng.uniform(1.0, 4.0) * rng.standard_normal(extra)

    def draw(n, moved):
        X, y = world.draw(n)
        return np.hstack([X, rng.standard_normal((n, extra)) + moved * move]), y

    return _one_source(world, lambda n: draw(n, 0), lambda n: draw(n, 1))


def classes_move(world):
    """Each class moves by its own."""
    rng = world.rng
    moves = rng.uniform(0.3, 1.2) * rng.standard_normal((world.n_classes, world.n_informative))
    common = rng.standard_normal(world.n_informative)

    def target(n):
        X, y = world.draw(n)
        return X + moves[y] + common, y

    return _one_source(world, world.draw, target)


def shares_and_shift(world):
    """Class shares and features move together."""
    shares, mapping = world.other_shares(), draw_shift_and_scale(world, 0.8)

    def target(n):
        X, y = world.draw(n, shares)
        return mapping(X), y

    return _one_source(world, world.draw, target)


def subpopulations(world):
    """The same clusters in other proportions."""
    rng, n_clusters = world.rng, world.centres.shape[1]
    before, after = rng.dirichlet(np.full(n_clusters, 0.7), size=2)
    return _one_source(
        world,
        lambda n: world.draw(n, cluster_shares=before),
        lambda n: world.draw(n, cluster_shares=after),
    )


def noisier_target(world):
    """The target has more noise."""
    rng = world.rng
    size = rng.uniform(0.5, 2.0)
    return _mapped(world, lambda X: X + size * rng.standard_normal(X.shape))


def dead_features(world):
    """Some features of the target are stuck at a value."""
    rng, d = world.rng, world.n_informative
    dead = rng.choice(d, size=max(1, d // 3), replace=False)
    value = 2 * rng.standard_normal(len(dead))

    def mapping(X):
        X = X.copy()
        X[:, dead] = value + 0.01 * rng.standard_normal((len(X), len(dead)))
        return X

    return _mapped(world, mapping)


PILOT_FAMILIES = {
    family.__name__: family
    for family in (
        shift_and_scale,
        affine,
        rotation,
        radial,
        periodic,
        monotone_warps,
        class_shares,
        selection_bias,
        groups_shift_and_scale,
        groups_class_shares,
        no_shift,
    )
}
FAMILIES = PILOT_FAMILIES | {
    family.__name__: family
    for family in (
        nothing_helps,
        noise_moves,
        classes_move,
        shares_and_shift,
        subpopulations,
        noisier_target,
        dead_features,
    )
}
