"""Worlds that made-up tasks are drawn from, and the ways to draw source, target and test rows.

A family is a function of a `World`. It returns the rows and classes of source, target and test
rows, and the domain of each source row.
"""

import numpy as np
from scipy.special import expit
from scipy.stats import ortho_group


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
        self.centers = separation * rng.standard_normal(shape) / np.sqrt(self.n_informative) * 1.5
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
        n_clusters = self.centers.shape[1]
        cluster = rng.choice(n_clusters, size=n, p=cluster_shares)
        noise = rng.standard_normal((n, self.n_informative)) @ self.mixing
        return self.centers[y, cluster] + noise, y

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


def deal_domains(world, make_source, make_target):
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
    domain = np.repeat(np.arange(n_domains), sizes)
    return [(X, y), target(world.n_side), target(world.n_side)], domain


def in_groups(world, draw_own, draw):
    """Every domain by ``draw(n, *own)``, with its own draw of ``own``."""

    def draw_group():
        own = draw_own()
        return lambda n: draw(n, *own)

    return draw_groups(world, draw_group)


def one_source(world, draw, source, target):
    """One source domain by ``draw(n, *source)``; target and test rows by the other arguments."""
    n, n_side, world.n_domains = world.n_source, world.n_side, 1
    parts = [draw(n, *source), draw(n_side, *target), draw(n_side, *target)]
    return parts, np.zeros(n, dtype=int)


def selected(world, draw_all, height):
    """One source domain of rows of low height, mostly; a target of rows of great height, mostly."""

    def draw(n, sign):
        X, y = draw_all(20 * n)
        kept = np.flatnonzero(world.rng.uniform(size=len(y)) < expit(sign * height(X)))[:n]
        return X[kept], y[kept]

    return one_source(world, draw, (-1,), (1,))


def given_classes(world, draw_own, draw_rows):
    """Every domain by ``draw_rows(y, *own)``, with its own draw of ``own``."""

    def draw(n, *own):
        y = world.rng.choice(world.n_classes, size=n, p=world.shares)
        return draw_rows(y, *own), y

    return in_groups(world, draw_own, draw)


def map_domains(world, draw_map):
    """Every domain's rows are those of the world, by its own draw of a map."""

    def draw_group():
        mapping = draw_map()

        def draw(n):
            X, y = world.draw(n)
            return mapping(X), y

        return draw

    return draw_groups(world, draw_group)


def map_target(world, mapping):
    """Source rows of the world, dealt to domains at random; target rows by the map."""

    def target(n):
        X, y = world.draw(n)
        return mapping(X), y

    return deal_domains(world, world.draw, target)


def draw_shift_and_scale(world, strength=1.0):
    """Draw a map that moves and stretches every feature by its own."""
    rng = world.rng
    move = strength * rng.uniform(0.5, 2.5) * rng.standard_normal(world.n_informative)
    scale = np.exp(strength * 0.5 * rng.standard_normal(world.n_informative))
    return lambda X: X * scale + move


def cutter(rng, d, n_classes, height):
    """Classes of rows by their height, in equal shares where rows are standard normal."""
    heights = height(rng.standard_normal((4000, d)))
    ends = np.quantile(heights, np.arange(1, n_classes) / n_classes)
    return lambda X: np.digitize(height(X), ends)


def equal_shares(world, heights):
    """Where to cut heights into classes of equal shares."""
    return np.quantile(heights, np.arange(1, world.n_classes) / world.n_classes)


def keep_classes(world, most=4):
    """Drop classes beyond the first few from the world, and share out their rows."""
    world.n_classes = min(world.n_classes, most)
    world.shares = world.shares[: world.n_classes] / world.shares[: world.n_classes].sum()


def keep_even_classes(world):
    """Keep two to four classes of the world, in shares that are not too unlike."""
    world.n_classes = min(world.n_classes, 3 if world.n_source // world.n_domains < 80 else 4)
    shares = world.shares[: world.n_classes] / world.shares[: world.n_classes].sum()
    world.shares = 0.3 * shares + 0.7 / world.n_classes


def choose_classes(world, most=4):
    """Two to four classes, fewer where domains are small."""
    most = min(most, 3 if world.n_source // world.n_domains < 80 else 4)
    world.n_classes = min(int(world.rng.choice([2, 2, 3, 4])), most)


def take_classes(world, choices, most_noise=25):
    """Draw the number of classes, at most three where domains are small, in like shares."""
    rng, small = world.rng, world.n_source < 60 * world.n_domains
    world.n_classes = min(int(rng.choice(choices)), 3 if small else 4)
    world.shares = rng.dirichlet(np.full(world.n_classes, 40.0))
    world.n_noise = min(world.n_noise, most_noise)
