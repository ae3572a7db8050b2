"""Families in which the class depends on a direction or an energy, and not on the sign.

Every domain lies on its own sides of the origin, near or far.
"""

import numpy as np
from scipy.stats import ortho_group

from covshift_bench.families.world import choose_classes, draw_groups, in_groups, take_classes


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


def band_energies(world):
    """The class is the band, of one or two features, with most energy; the sign plays no part.

    Every domain has a loudness of its own and leans to sides of its own; rows have heavy tails.
    """
    rng, n_classes = world.rng, int(world.rng.choice([2, 2, 3]))
    band = np.repeat(np.arange(n_classes), rng.choice([1, 2, 2], size=n_classes))
    world.n_classes, world.n_noise, d = n_classes, 0, len(band)
    turn, lean = ortho_group.rvs(d, random_state=rng), rng.uniform(0.5, 1.5)

    def draw_own():
        return lean * rng.standard_normal(d), np.exp(rng.uniform(-1.2, 1.2))

    def draw(n, side, loudness):
        X = side + rng.standard_t(5, size=(n, d))
        energies = [np.mean(X[:, band == one] ** 2, axis=1) for one in range(n_classes)]
        return loudness * X @ turn, np.argmax(energies, axis=0)

    return in_groups(world, draw_own, draw)


def dipoles(world):
    """A class is a pattern over channels, of either polarity; rows have strengths of their own.

    Every recording has its own loudness, and its own share of rows of reversed polarity.
    """
    rng, d = world.rng, int(world.rng.randint(4, 11))
    world.n_classes, world.n_noise = int(rng.choice([2, 2, 3, 4])), 0
    patterns = ortho_group.rvs(d, random_state=rng)[: world.n_classes]
    patterns = patterns + 0.4 * rng.standard_normal(patterns.shape) / np.sqrt(d)
    noise, evenness, loudest = rng.uniform(0.1, 0.4), rng.uniform(0.1, 0.6), rng.uniform(0.2, 1.3)

    def draw_own():
        return rng.beta(evenness, evenness), np.exp(rng.uniform(-loudest, loudest))

    def draw(n, reversed_share, loudness):
        y = rng.randint(world.n_classes, size=n)
        polarity = np.where(rng.uniform(size=n) < reversed_share, -1, 1)
        strength = polarity * np.exp(0.4 * rng.standard_normal(n))
        X = strength[:, None] * patterns[y] + noise * rng.standard_normal((n, d))
        return loudness * X, y

    return in_groups(world, draw_own, draw)


def fibre_orientations(world):
    """Fibres are traced as arrows; the class is a sector of their orientation, whichever the end.

    Every slide has its own magnification, favors an orientation, and is traced from a side of its
    own, mostly. There may be depths, which do not depend on the class.
    """
    rng, d = world.rng, int(world.rng.randint(2, 6))
    choose_classes(world)
    world.n_noise, turn, begin = 0, ortho_group.rvs(d, random_state=rng), rng.uniform(0, np.pi)
    ends = np.pi * np.cumsum(rng.dirichlet(np.full(world.n_classes, 40.0)))[:-1]
    followed, largest, blur = rng.uniform(0.7, 1), rng.uniform(0.2, 1.5), rng.uniform(0.02, 0.1)

    def draw_own():
        return *rng.uniform(0, 2 * np.pi, size=2), np.exp(largest * rng.uniform(-1, 1))

    def draw(n, side, favorite, size):
        angle = rng.uniform(0, np.pi, size=n)
        angle = np.mod(angle + 0.15 * np.sin(2 * angle - favorite), np.pi)
        arrows = np.stack([np.cos(angle + begin), np.sin(angle + begin)], axis=1)
        arrows *= np.sign(arrows @ [np.cos(side), np.sin(side)])[:, None]
        arrows *= np.where(rng.uniform(size=(n, 1)) < followed, 1, -1)
        X = np.hstack([arrows, 0.5 * rng.standard_normal((n, d - 2))])
        X = np.exp(0.3 * rng.standard_normal((n, 1))) * X + blur * rng.standard_normal((n, d))
        return size * X @ turn, np.digitize(angle, ends)

    return in_groups(world, draw_own, draw)


def magnetised_rocks(world):
    """The class is the angle of a rock's field with one axis, in zones alike about both poles.

    Rocks of a site have one polarity, mostly, lie to one side of the axis, and are weak or strong.
    """
    rng, d = world.rng, int(world.rng.randint(3, 7))
    take_classes(world, [2, 2, 3], most_noise=0)
    axis, *others = ortho_group.rvs(d, random_state=rng)
    evenness, gathered, strongest = rng.uniform(0.1, 0.7), rng.uniform(0.5, 3), rng.uniform(0.3, 2)
    blur, unlike = rng.uniform(0.02, 0.12), rng.uniform(0.3, 0.8)

    def draw_own():
        around = gathered * rng.standard_normal(d - 1) / np.sqrt(d - 1)
        return rng.beta(evenness, evenness), around, rng.uniform(-strongest, strongest)

    def draw(n, reversed_share, around, strength):
        along = rng.uniform(size=n)
        y = np.clip(along + blur * rng.standard_normal(n), 0, 0.999) * world.n_classes // 1
        across = around + rng.standard_normal((n, d - 1))
        across *= np.sqrt((1 - along**2) / np.sum(across**2, axis=1))[:, None]
        along *= np.where(rng.uniform(size=n) < reversed_share, -1, 1)
        X = np.outer(along, axis) + across @ others
        return np.exp(strength + unlike * rng.standard_normal((n, 1))) * X, y.astype(int)

    return in_groups(world, draw_own, draw)
