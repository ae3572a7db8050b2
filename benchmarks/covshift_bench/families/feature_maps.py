"""Families in which every domain measures each feature in its own way.

Each domain, the target too, draws its own gains, offsets or growing functions of the features.
"""

import numpy as np
from scipy.special import expit

from covshift_bench.families.world import (
    draw_shift_and_scale,
    given_classes,
    in_groups,
    keep_classes,
    keep_even_classes,
    map_domains,
    take_classes,
)


def shifted_groups(world):
    """Every domain moves and stretches by its own, and far."""
    return map_domains(world, lambda: draw_shift_and_scale(world, 1.2))


def warped_groups(world):
    """Every domain bends each feature by a growing function of its own."""
    rng, d = world.rng, world.n_informative

    def draw_map():
        power = np.exp(rng.uniform(-0.9, 0.9, size=d))
        scale, move = np.exp(0.4 * rng.standard_normal(d)), 1.5 * rng.standard_normal(d)
        return lambda X: scale * np.sign(X) * np.abs(X) ** power + move

    return map_domains(world, draw_map)


def gained_groups(world):
    """Sensors of skewed readings, each with a gain and an offset of its own in every domain."""
    rng, d = world.rng, world.n_informative

    def draw_map():
        gain, offset = np.exp(0.7 * rng.standard_normal(d)), 3 * rng.standard_normal(d)
        return lambda X: gain * np.logaddexp(0, X) + offset

    return map_domains(world, draw_map)


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


def warming_sensors(world):
    """Gains and offsets of all sensors follow one unseen temperature, each at a rate of its own.

    Every domain is recorded at a temperature of its own, which hardly changes from row to row.
    """
    rng, d, strength = world.rng, world.n_informative, world.rng.uniform(0.4, 1.6)
    keep_classes(world)
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
    keep_classes(world)
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
    keep_classes(world)
    raw = rng.permutation(d) < (d + 1) // 2
    strength, noise = rng.uniform(0.4, 1.5), rng.uniform(0.3, 1.5)

    def draw_own():
        unit, zero = np.exp(0.6 * strength * rng.standard_normal(d)), 2 * rng.standard_normal(d)
        return np.where(raw, unit, 1.0), np.where(raw, strength * zero, 0.0)

    def draw(n, unit, zero):
        X, y = world.draw(n)
        return unit * (X + noise * ~raw * rng.standard_normal((n, d))) + zero, y

    return in_groups(world, draw_own, draw)


def diluted_samples(world):
    """Logarithms of concentrations; every batch is diluted by its own, and read above its blanks.

    The dilution is common to all substances, recoveries are not; near the blank readings flatten.
    """
    rng, d, strength = world.rng, world.n_informative, world.rng.uniform(0.3, 1.6)
    keep_even_classes(world)
    low = np.quantile(world.draw(4000)[0], 0.1, axis=0) - 0.5

    def draw_own():
        thinner = 1.5 * rng.standard_normal() + 0.7 * rng.standard_normal(d)
        return strength * thinner, low + 0.7 * strength * rng.standard_normal(d)

    def draw(n, thinner, blank):
        X, y = world.draw(n)
        return np.logaddexp(X, blank) - thinner, y

    return in_groups(world, draw_own, draw)


def exposed_pictures(world):
    """Brightness of patches; every camera has one exposure and one gamma for all of them."""
    rng, d, strength = world.rng, world.n_informative, world.rng.uniform(0.3, 1.3)
    keep_even_classes(world)
    usual, grain = world.draw(4000)[0], rng.uniform(0, 0.15)
    middle, spread = usual.mean(axis=0), usual.std(axis=0)

    def draw(n, exposure, gamma):
        X, y = world.draw(n)
        light = exposure * expit(1.5 * (X - middle) / spread)
        return 5 * light**gamma + grain * rng.standard_normal((n, d)), y

    return in_groups(world, lambda: np.exp(strength * rng.standard_normal(2) * [1.0, 0.5]), draw)


def vowels_of_speakers(world):
    """Vowels by formants; a speaker's throat scales all, and habits each of them a little."""
    rng, strength = world.rng, world.rng.uniform(0.3, 1.5)
    take_classes(world, [2, 3, 3, 4])
    shape = int(rng.randint(2, 5)), int(rng.randint(1, 4))
    vowels = rng.uniform(0.15, 0.3) * rng.standard_normal((world.n_classes, shape[0], 1))
    vowels = vowels + 0.06 * rng.standard_normal((world.n_classes, *shape))
    vowels += np.log([0.5, 1.5, 2.5, 3.5])[: shape[0], None]
    care, in_logarithms = rng.uniform(0.08, 0.16), rng.uniform() < 0.5

    def draw_own():
        return 0.2 * strength * rng.standard_normal(), 0.06 * strength * rng.standard_normal(shape)

    def draw(y, throat, habits):
        formants = vowels[y] + throat + habits + care * rng.standard_normal((len(y), *shape))
        return 5 * (formants if in_logarithms else np.exp(formants)).reshape(len(y), -1)

    return given_classes(world, draw_own, draw)


def growing_seasons(world):
    """Varieties by the dates of their stages; a year moves all dates by one growing function."""
    rng, d, strength = world.rng, int(world.rng.randint(3, 11)), world.rng.uniform(0.2, 1.0)
    take_classes(world, [2, 2, 3, 4])
    varieties = rng.uniform(0.6, 1.3) * rng.standard_normal((world.n_classes, d))
    varieties, grid = varieties + rng.uniform(0, 10, size=d), np.linspace(-8, 18, 200)

    def draw_own():
        lengths, starts = rng.uniform(6, 20, size=3), rng.uniform(0, 2 * np.pi, size=3)
        pace = 0.6 * np.sin(2 * np.pi * grid[:, None] / lengths + starts).sum(axis=1)
        pace = np.exp(strength * (pace + 0.3 * rng.standard_normal()))
        passed = np.cumsum(pace) * (grid[1] - grid[0])
        return (passed - np.interp(5, grid, passed) + 2 * strength * rng.standard_normal(),)

    def draw(y, passed):
        dates = varieties[y] + 0.3 * rng.standard_normal((len(y), 1))
        return np.interp(dates + rng.standard_normal((len(y), d)), grid, passed)

    return given_classes(world, draw_own, draw)


def diluted_proportions(world):
    """Mixtures by proportions; every sample is diluted by its own, and as its laboratory does."""
    rng, d = world.rng, int(world.rng.randint(3, 11))
    take_classes(world, [2, 2, 3, 4], most_noise=0)
    strength, unlike = rng.uniform(0.3, 1.8), rng.uniform(0.3, 1.0)
    kinds = rng.uniform(0.3, 0.7) * rng.standard_normal((world.n_classes, d))

    def draw(y, usual):
        parts = np.exp(kinds[y] + 0.4 * rng.standard_normal((len(y), d)))
        water = np.exp(usual + unlike * rng.standard_normal((len(y), 1)))
        X = 5 * parts / parts.sum(axis=1, keepdims=True) / water
        return X + 0.02 * rng.standard_normal(X.shape)

    return given_classes(world, lambda: [strength * rng.standard_normal()], draw)
