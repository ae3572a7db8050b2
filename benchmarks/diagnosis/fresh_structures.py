"""More made-up tasks for judging verdicts, written without looking at how verdicts are made.

Families are functions of a world, as in ``shared_structures``. In most of ``FRESH`` every source
domain, and the target, has its own draw of one kind of shift; two families have a single source
domain with which the target overlaps, and where names begin with "nothing" no adapter can help.
In ``FRESH_ALONE`` nobody can know: see ``fresh_alone``.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "selection"))
from families import draw_groups
from fresh_alone import one_source, other_ball_alone, outer_ring_alone, unseen_stretch_alone
from scipy.special import expit
from scipy.stats import ortho_group


def saturating_instruments(world):
    """Every instrument has gains and offsets of its own, and flattens near its full scale."""
    rng, d, strength = world.rng, world.n_informative, world.rng.uniform(0.3, 1.3)

    def draw_own():
        gain, offset = np.exp(0.5 * strength * rng.standard_normal(d)), rng.standard_normal(d)
        return gain, 1.5 * strength * offset, rng.uniform(3, 9)

    def draw(n, gain, offset, full_scale):
        X, y = world.draw(n)
        return full_scale * np.tanh((gain * X + offset) / full_scale), y

    return in_groups(world, draw_own, draw)


def exposed_counts(world):
    """Counts of events; every site watches for its own time and detects each kind by its own."""
    rng, d = world.rng, max(world.n_informative, 3)
    usual = rng.uniform(0.5, 2.5) + 0.7 * rng.standard_normal(d)
    effects = rng.uniform(0.3, 0.9) * rng.standard_normal((world.n_classes, d))
    strength, in_logarithms = rng.uniform(0.4, 1.3), rng.uniform() < 0.5

    def draw_own():
        return (strength * (rng.standard_normal() + 0.7 * rng.standard_normal(d)),)

    def draw(n, exposure):
        y = rng.choice(world.n_classes, size=n, p=world.shares)
        activity = rng.gamma(8.0, 1 / 8.0, size=(n, 1))
        counts = rng.poisson(activity * np.exp(usual + effects[y] + exposure))
        return np.log1p(counts) if in_logarithms else counts.astype(float), y

    return in_groups(world, draw_own, draw)


def turned_factors(world):
    """A few factors hold the classes; every site turns their plane, moves and sizes it by its own.

    Up to that, sites load the factors on the features alike: their leading axes can be aligned.
    """
    rng, rank, width = world.rng, int(world.rng.randint(2, 5)), int(world.rng.randint(8, 31))
    world.n_classes, world.n_noise = int(rng.choice([2, 2, 3, 4])), min(world.n_noise, 5)
    centres = rng.uniform(1.2, 2.5) * rng.standard_normal((world.n_classes, rank))
    loadings = ortho_group.rvs(width, random_state=rng)[:rank] * rng.uniform(1, 2, size=(rank, 1))
    tilt, strength, noise = rng.uniform(0.3, 1.3), rng.uniform(0.3, 1.0), rng.uniform(0.3, 0.7)

    def draw_own():
        turned = loadings + tilt * rng.standard_normal((rank, width)) / np.sqrt(width)
        turned *= np.exp(0.5 * strength * rng.standard_normal())
        move = 2 * rng.standard_normal(rank) @ turned + rng.standard_normal(width)
        return turned, strength * move

    def draw(n, turned, move):
        y = rng.randint(world.n_classes, size=n)
        factors = centres[y] + rng.standard_normal((n, rank))
        return factors @ turned + noise * rng.standard_normal((n, width)) + move, y

    return in_groups(world, draw_own, draw)


def clocks(world):
    """Classes are hours of a clock that runs on, or of two clocks; every domain sees other days.

    One clock: two to four shifts of unequal length. Two clocks, along two directions: two classes
    (both hands in the same half of the dial, or not), or four (the halves of both).
    """
    rng, n_clocks, d = world.rng, int(world.rng.choice([1, 1, 2])), int(world.rng.randint(2, 6))
    world.n_noise, world.n_classes = 0, int(rng.choice([2, 3, 4] if n_clocks == 1 else [2, 4]))
    directions = ortho_group.rvs(d, random_state=rng)[:n_clocks]
    periods, jitter = rng.uniform(1.5, 5.0, size=n_clocks), rng.uniform(0, 0.04)
    ends = np.cumsum(rng.dirichlet(np.full(world.n_classes, 25.0)))[:-1]
    days = list(zip(*(rng.permutation(np.arange(-5, 6)) for _ in range(n_clocks)), strict=True))

    def draw_own():
        return days.pop() + rng.uniform(-0.5, 0.5, size=n_clocks), rng.uniform(1.0, 1.7)

    def draw(n, start, length):
        time = start + length * rng.uniform(size=(n, n_clocks))
        X = 0.5 * rng.standard_normal((n, d))
        X += (time * periods - X @ directions.T) @ directions
        hour = np.mod(time + jitter * rng.standard_normal(time.shape), 1)
        if n_clocks == 1:
            return X, np.digitize(hour[:, 0], ends)
        first, second = (hour > 0.5).astype(int).T
        return X, first ^ second if world.n_classes == 2 else 2 * first + second

    return in_groups(world, draw_own, draw)


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


def bent_overlapping(world):
    """One source domain, and one bent rule; the target has more of the rows that the source lacks.

    A plain model fits the rule where it has seen most rows: weights pay, where the bend is strong.
    """
    rng, d = world.rng, min(world.n_informative, 6)
    world.n_classes = int(rng.choice([2, 2, 3]))
    bend, steepness = rng.uniform(0.3, 1.5), rng.uniform(0.7, 1.6)
    cut = cutter(rng, d, world.n_classes, lambda X: X[:, 1] - bend * (X[:, 0] ** 2 - 1))

    def draw(n):
        X = rng.standard_normal((n, d))
        return X, cut(X)

    return selected(world, draw, lambda X: steepness * X[:, 0])


def noisy_overlapping(world):
    """One source domain; classes of unlike spread, some often mislabelled; rows are selected by x.

    The rule is the same, and seen everywhere: nothing needs to be done.
    """
    rng, d = world.rng, world.n_informative
    spread = np.exp(0.3 * rng.standard_normal(world.n_classes))
    mislabelled = rng.uniform(0, 0.2, size=world.n_classes)
    tilt = rng.uniform(0.4, 1.2) * rng.standard_normal(d) / np.sqrt(d)

    def draw(n):
        y = rng.choice(world.n_classes, size=n, p=world.shares)
        X = world.centres[y, 0] + spread[y, None] * rng.standard_normal((n, d))
        return X, (y + (rng.uniform(size=n) < mislabelled[y])) % world.n_classes

    return selected(world, draw, lambda X: X @ tilt)


def entering_subpopulations(world):
    """Subpopulations enter and leave along a gradient; every site has a place of its own on it.

    One rule holds for all of them, and plain models can learn it: nothing needs to be done.
    """
    rng, d = world.rng, world.n_informative
    world.n_classes = min(world.n_classes, 4)
    places, width = np.linspace(0, 1, int(rng.randint(4, 8))), rng.uniform(0.1, 0.3)
    along, rule = ortho_group.rvs(d, random_state=rng)[:2]
    centres = rng.uniform(3, 7) * np.outer(places - 0.5, along)
    centres += 0.7 * rng.standard_normal(centres.shape)
    rule, doubt = rule + rng.uniform(-0.3, 0.3) * along, rng.uniform(0.1, 0.5)
    cut = cutter(rng, d, world.n_classes, lambda X: X @ rule)

    def draw_own():
        shares = np.exp(-(((places - rng.uniform()) / width) ** 2))
        return (shares / shares.sum(),)

    def draw(n, shares):
        X = centres[rng.choice(len(places), size=n, p=shares)] + rng.standard_normal((n, d))
        return X, cut(X + doubt * rng.standard_normal((n, 1)) * rule)

    return in_groups(world, draw_own, draw)


def nothing_but_own_directions(world):
    """Every domain has a rule along a direction of its own, at right angles to all others."""
    rng, d, strength = world.rng, int(world.rng.randint(7, 13)), world.rng.uniform(0, 1.5)
    world.n_classes, world.n_noise = int(rng.choice([2, 2, 3])), min(world.n_noise, 5)
    directions = list(ortho_group.rvs(d, random_state=rng))

    def draw_own():
        direction, move = directions.pop(), strength * rng.standard_normal(d)
        return move, cutter(rng, d, world.n_classes, lambda X: X @ direction)

    def draw(n, move, cut):
        X = rng.standard_normal((n, d))
        return X + move, cut(X)

    return in_groups(world, draw_own, draw)


def nothing_but_own_features(world):
    """Every site grades its rows by another of some skewed features, in units of its own."""
    rng, d, strength = world.rng, int(world.rng.randint(6, 11)), world.rng.uniform(0, 0.8)
    world.n_classes, world.n_noise = int(rng.choice([2, 2, 3, 4])), 0
    features, skewness = list(rng.permutation(d)), rng.uniform(0.3, 0.8, size=d)

    def draw_own():
        graded, unit = features.pop(), np.exp(strength * rng.standard_normal(d))
        return unit, cutter(rng, d, world.n_classes, lambda X: X[:, graded])

    def draw(n, unit, cut):
        X = rng.standard_normal((n, d))
        return unit * np.exp(skewness * X), cut(X)

    return in_groups(world, draw_own, draw)


def nothing_but_opinions(world):
    """All domains have the same sixteen clusters; each has its own opinion of their classes."""
    rng, d, n_clusters = world.rng, max(world.n_informative, 3), 16
    world.n_classes, world.n_noise = int(rng.choice([2, 3, 4])), 0
    centres = rng.uniform(2.5, 4.0) * rng.standard_normal((n_clusters, d))
    strength = rng.uniform(0, 1.0)

    def draw_own():
        opinion = rng.permutation(n_clusters) % world.n_classes
        return opinion, strength * rng.standard_normal(d), rng.dirichlet(np.full(n_clusters, 8.0))

    def draw(n, opinion, move, shares):
        cluster = rng.choice(n_clusters, size=n, p=shares)
        return centres[cluster] + rng.standard_normal((n, d)) + move, opinion[cluster]

    return in_groups(world, draw_own, draw)


def in_groups(world, draw_own, draw):
    """Every domain by ``draw(n, *own)``, with its own draw of ``own``."""

    def draw_group():
        own = draw_own()
        return lambda n: draw(n, *own)

    return draw_groups(world, draw_group)


def selected(world, draw_all, height):
    """One source domain of rows of low height, mostly; a target of rows of great height, mostly."""

    def draw(n, sign):
        X, y = draw_all(20 * n)
        kept = np.flatnonzero(world.rng.uniform(size=len(y)) < expit(sign * height(X)))[:n]
        return X[kept], y[kept]

    return one_source(world, draw, (-1,), (1,))


def cutter(rng, d, n_classes, height):
    """Classes of rows by their height, in equal shares where rows are standard normal."""
    heights = height(rng.standard_normal((4000, d)))
    ends = np.quantile(heights, np.arange(1, n_classes) / n_classes)
    return lambda X: np.digitize(height(X), ends)


FRESH = (
    saturating_instruments,
    exposed_counts,
    turned_factors,
    clocks,
    band_energies,
    bent_overlapping,
    noisy_overlapping,
    entering_subpopulations,
    nothing_but_own_directions,
    nothing_but_own_features,
    nothing_but_opinions,
)
FRESH_ALONE = (unseen_stretch_alone, outer_ring_alone, other_ball_alone)
