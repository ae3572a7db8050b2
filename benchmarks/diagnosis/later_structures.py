"""Later made-up tasks for judging verdicts, also written without looking at how these are made.

Families are functions of a world, as in ``fresh_structures``. In all but one every source domain,
and the target, has its own draw of one kind of shift; ``referred_extremes`` has a single source
domain with which the target overlaps. Where names begin with "nothing" no adapter can help.
"""

import numpy as np
from fresh_structures import cutter, in_groups, selected
from scipy.spatial.transform import Rotation
from scipy.stats import norm, ortho_group


def warming_sensors(world):
    """Gains and offsets of all sensors follow one unseen temperature, each at a rate of its own.

    Every domain is recorded at a temperature of its own, which hardly changes from row to row.
    """
    rng, d, strength = world.rng, world.n_informative, world.rng.uniform(0.4, 1.6)
    _keep_few_classes(world)
    gain_rate, offset_rate = 0.5 * rng.standard_normal(d), 2 * rng.standard_normal(d)

    def draw_own():
        return (strength * rng.standard_normal(),)

    def draw(n, temperature):
        X, y = world.draw(n)
        warmth = temperature + 0.05 * rng.standard_normal((n, 1))
        return np.exp(gain_rate * warmth) * X + offset_rate * warmth, y

    return in_groups(world, draw_own, draw)


def rating_scales(world):
    """Traits are rated in a few grades; raters differ in leniency, in boldness and in bend.

    A rater's grades are growing functions of the traits, of that rater's own.
    """
    rng, d, n_grades = world.rng, world.n_informative, int(world.rng.randint(5, 11))
    _keep_few_classes(world)
    strength, usual = rng.uniform(0.3, 1.2), world.draw(4000)[0]
    middle, spread = usual.mean(axis=0), usual.std(axis=0)
    steps = np.linspace(-1.8, 1.8, n_grades - 1)

    def draw_own():
        leniency = strength * (0.6 * rng.standard_normal() + 0.6 * rng.standard_normal((d, 1)))
        boldness = np.exp(0.4 * strength * rng.standard_normal((d, 1)))
        bend = np.exp(0.4 * strength * rng.standard_normal((d, 1)))
        limits = boldness * np.sign(steps) * np.abs(steps) ** bend - leniency
        return (middle[:, None] + spread[:, None] * limits,)

    def draw(n, limits):
        X, y = world.draw(n)
        return np.sum(X[:, :, None] > limits, axis=2).astype(float), y

    return in_groups(world, draw_own, draw)


def half_calibrated(world):
    """Half of the channels are calibrated, but noisy; the others have units of every site's own."""
    rng, d = world.rng, world.n_informative
    _keep_few_classes(world)
    raw = rng.permutation(d) < (d + 1) // 2
    strength, noise = rng.uniform(0.4, 1.5), rng.uniform(0.3, 1.5)

    def draw_own():
        unit, zero = np.exp(0.6 * strength * rng.standard_normal(d)), 2 * rng.standard_normal(d)
        return np.where(raw, unit, 1.0), np.where(raw, strength * zero, 0.0)

    def draw(n, unit, zero):
        X, y = world.draw(n)
        return unit * (X + noise * ~raw * rng.standard_normal((n, d))) + zero, y

    return in_groups(world, draw_own, draw)


def seasons(world):
    """Every class has its season, with blurred ends; every survey spans other years.

    The date is one direction of the features; in the others, sites differ and the class is not.
    """
    rng, d = world.rng, int(world.rng.randint(2, 7))
    world.n_classes, world.n_noise = int(rng.choice([2, 2, 3, 4])), 0
    date, *others = ortho_group.rvs(d, random_state=rng)
    peaks = np.arange(world.n_classes) + rng.uniform(-0.15, 0.15, world.n_classes)
    peaks = peaks / world.n_classes + rng.uniform()
    sharpness, year, differ = rng.uniform(4, 15), rng.uniform(1.5, 5.0), rng.uniform(0, 0.6)
    years = list(rng.permutation(np.arange(-7, 8)))

    def draw_own():
        start = years.pop() + rng.uniform(-0.5, 0.5)
        return start, rng.uniform(1.0, 2.2), differ * rng.standard_normal(d - 1)

    def draw(n, start, length, site):
        time = start + length * rng.uniform(size=n)
        X = np.outer(year * time, date) + (site + 0.5 * rng.standard_normal((n, d - 1))) @ others
        season = sharpness * np.cos(2 * np.pi * (time[:, None] - peaks))
        return X, np.argmax(season + rng.gumbel(size=season.shape), axis=1)

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


def camera_frames(world):
    """Points of a body in space, seen by cameras that are each turned by its own angle.

    Three modes of movement, of unequal size; the lesser ones hold the classes. With the camera all
    modes turn, and the greatest is seen where another camera sees a lesser one.
    """
    rng, n_points = world.rng, int(world.rng.randint(3, 8))
    world.n_classes, world.n_noise = int(rng.choice([2, 2, 3, 4])), min(world.n_noise, 5)
    modes = ortho_group.rvs(3 * n_points, random_state=rng)[:3] * np.array([[10.0], [3.0], [1.5]])
    modes = modes.reshape(3, n_points, 3)
    centres = rng.uniform(1.0, 2.0) * rng.standard_normal((world.n_classes, 3)) * [0.2, 1.0, 1.0]
    body = rng.uniform(0, 3.0) * rng.standard_normal((n_points, 3))
    farthest, noise = rng.uniform(0.5, 1.6), rng.uniform(0.1, 0.5)

    def draw_own():
        axis = rng.standard_normal(3)
        angle = rng.uniform(-farthest, farthest)
        return (Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix(),)

    def draw(n, turn):
        y = rng.randint(world.n_classes, size=n)
        amounts = centres[y] + rng.standard_normal((n, 3))
        points = (body + np.tensordot(amounts, modes, axes=1)) @ turn
        return points.reshape(n, -1) + noise * rng.standard_normal((n, 3 * n_points)), y

    return in_groups(world, draw_own, draw)


def points_scores(world):
    """Findings above their limits give points, and the points the class, the same at every site.

    Sites differ in their patients, but plain models can learn the rule: nothing needs to be done.
    """
    rng, d = world.rng, max(world.n_informative, 4)
    world.n_classes, n_findings = int(rng.choice([2, 2, 3])), min(d, int(rng.randint(3, 6)))
    limits, points = 0.5 * rng.standard_normal(n_findings), rng.uniform(0.5, 1.5, n_findings)
    strength = rng.uniform(0.2, 0.9)
    cut = cutter(rng, d, world.n_classes, lambda X: (X[:, :n_findings] > limits) @ points)

    def draw_own():
        return strength * rng.standard_normal(d), np.exp(0.3 * strength * rng.standard_normal(d))

    def draw(n, usual, variety):
        X = usual + variety * rng.standard_normal((n, d))
        return X, cut(X)

    return in_groups(world, draw_own, draw)


def referred_extremes(world):
    """One source domain of usual rows, mostly; to the target the unusual ones are referred, mostly.

    One straight, blurred rule, seen on all sides by the source: nothing needs to be done.
    """
    rng, d = world.rng, world.n_informative
    world.n_classes = int(rng.choice([2, 2, 3]))
    rule, blur = rng.standard_normal(d), rng.uniform(0.1, 0.6)
    rule, steepness = rule / np.linalg.norm(rule), rng.uniform(0.5, 2.0)
    cut = cutter(rng, d, world.n_classes, lambda X: X @ rule)

    def draw(n):
        X = rng.standard_normal((n, d))
        return X, cut(X + blur * rng.standard_normal((n, 1)) * rule)

    return selected(world, draw, lambda X: steepness * (np.sum(X**2, axis=1) - d) / np.sqrt(2 * d))


def nothing_but_own_signs(world):
    """The same findings count everywhere, but for or against by every site's own signs."""
    rng, d, strength = world.rng, int(world.rng.randint(6, 13)), world.rng.uniform(0, 1.2)
    world.n_classes, world.n_noise = int(rng.choice([2, 2, 3])), min(world.n_noise, 5)
    worth = rng.uniform(0.5, 1.5, size=d)

    def draw_own():
        signed = worth * rng.choice([-1, 1], size=d)
        move = strength * rng.standard_normal(d)
        return move, cutter(rng, d, world.n_classes, lambda X: X @ signed)

    def draw(n, move, cut):
        X = rng.standard_normal((n, d))
        return X + move, cut(X)

    return in_groups(world, draw_own, draw)


def nothing_but_own_windows(world):
    """Along one direction, every site has its own window for a class, though rows are spread alike.

    Where a window ends on one side it goes on at the other: no place is usual for a class.
    """
    rng, d, strength = world.rng, int(world.rng.randint(2, 7)), world.rng.uniform(0, 1.2)
    world.n_classes, world.n_noise = int(rng.choice([2, 2, 3])), 0
    direction = ortho_group.rvs(d, random_state=rng)[0]
    starts = list(rng.permutation(6) / 6)

    def draw_own():
        return starts.pop() + rng.uniform(-0.05, 0.05), strength * rng.standard_normal(d)

    def draw(n, start, move):
        X = rng.standard_normal((n, d))
        place = np.mod(norm.cdf(X @ direction) - start, 1)
        return X + move, np.floor(world.n_classes * place).astype(int) % world.n_classes

    return in_groups(world, draw_own, draw)


def nothing_but_own_terrains(world):
    """Every site has its own hills and valleys; the class is the height of the ground."""
    rng, d, strength = world.rng, int(world.rng.randint(2, 4)), world.rng.uniform(0, 1.2)
    world.n_classes, world.n_noise = int(rng.choice([2, 2, 3])), 0
    ruggedness = rng.uniform(0.8, 1.5)

    def draw_own():
        waves, starts = ruggedness * rng.standard_normal((d, 30)), rng.uniform(0, 2 * np.pi, 30)
        cut = cutter(rng, d, world.n_classes, lambda X: np.cos(X @ waves + starts).sum(axis=1))
        return strength * rng.standard_normal(d), cut

    def draw(n, move, cut):
        X = rng.standard_normal((n, d))
        return X + move, cut(X)

    return in_groups(world, draw_own, draw)


def _keep_few_classes(world, most=4):
    """Drop classes beyond the first few from the world, and share out their rows."""
    world.n_classes = min(world.n_classes, most)
    world.shares = world.shares[: world.n_classes] / world.shares[: world.n_classes].sum()


LATER = (
    warming_sensors,
    rating_scales,
    half_calibrated,
    seasons,
    dipoles,
    camera_frames,
    points_scores,
    referred_extremes,
    nothing_but_own_signs,
    nothing_but_own_windows,
    nothing_but_own_terrains,
)
