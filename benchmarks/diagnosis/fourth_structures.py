"""A fourth set of made-up tasks for judging verdicts, written without knowing how these are made.

Families are functions of a world, as in ``fresh_structures``. In all but one every source domain,
and the target, has its own draw of one kind of shift; ``volunteers`` has a single source domain
with which the target overlaps. Where names begin with "nothing" no adapter can help.
"""

import numpy as np
from fresh_structures import cutter, in_groups, selected
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.distance import cdist
from scipy.stats import ortho_group


def vowels_of_speakers(world):
    """Vowels by formants; a speaker's throat scales all, and habits each of them a little."""
    rng, strength = world.rng, world.rng.uniform(0.3, 1.5)
    _take_classes(world, [2, 3, 3, 4])
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

    return _given_classes(world, draw_own, draw)


def growing_seasons(world):
    """Varieties by the dates of their stages; a year moves all dates by one growing function."""
    rng, d, strength = world.rng, int(world.rng.randint(3, 11)), world.rng.uniform(0.2, 1.0)
    _take_classes(world, [2, 2, 3, 4])
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

    return _given_classes(world, draw_own, draw)


def blurred_spectra(world):
    """Spectra; every device blurs them by its own, a linear map, and adds its smooth baseline."""
    rng, width, n_peaks = world.rng, int(world.rng.randint(10, 26)), int(world.rng.randint(3, 7))
    _take_classes(world, [2, 2, 3, 4], most_noise=10)
    strength, smooth = rng.uniform(0.3, 1.3), np.vander(np.linspace(-1, 1, width), 4).T
    peaks = np.arange(width) - rng.uniform(0, width - 1, size=(n_peaks, 1))
    peaks = np.exp(-((peaks / rng.uniform(0.8, 2.0, size=(n_peaks, 1))) ** 2))
    amounts = 1 + rng.uniform(0.5, 1.0) * rng.standard_normal((world.n_classes, n_peaks))
    dirt, reading = rng.uniform(0.2, 0.6), rng.uniform(0.01, 0.05)

    def draw_own():
        blur, gain = rng.uniform(0, 1.2 * strength), np.exp(0.3 * strength * rng.standard_normal())
        return blur, gain, strength * rng.standard_normal(4) @ smooth

    def draw(y, blur, gain, baseline):
        X = (amounts[y] + 0.5 * rng.standard_normal((len(y), n_peaks))) @ peaks
        X = X + dirt * rng.standard_normal(X.shape)
        X = gain * gaussian_filter1d(X, blur + 0.01, axis=1, mode="nearest") + baseline
        return X + reading * rng.standard_normal(X.shape)

    return _given_classes(world, draw_own, draw)


def tides(world):
    """Heights of a tide, by one direction, time, and of a surge; domains have their own stretch."""
    rng, d = world.rng, int(world.rng.randint(2, 7))
    _take_classes(world, [2, 2, 3], most_noise=0)
    time, *weather = ortho_group.rvs(d, random_state=rng)
    period, blur, overtone = rng.uniform(1.5, 5.0), rng.uniform(0, 0.25), rng.uniform(0, 0.4)
    surge = rng.uniform(0, 0.4) * rng.standard_normal(d - 1) / np.sqrt(d - 1)
    late, differ = rng.uniform(0, 2 * np.pi, size=2), rng.uniform(0, 0.7)
    days = list(rng.permutation(np.arange(-7, 8)) + rng.uniform(-0.5, 0.5, size=15))

    def height(t, usual):
        tide = np.cos(2 * np.pi * t + late[0]) + overtone * np.cos(4 * np.pi * t + late[1])
        return tide + usual @ surge + blur * rng.standard_normal(len(t))

    heights = height(rng.uniform(size=4000), rng.standard_normal((4000, d - 1)))
    ends = np.quantile(heights, np.arange(1, world.n_classes) / world.n_classes)

    def draw_own():
        return days.pop(), rng.uniform(1.0, 2.2), differ * rng.standard_normal(d - 1)

    def draw(n, start, length, climate):
        t, usual = start + length * rng.uniform(size=n), rng.standard_normal((n, d - 1))
        X = np.outer(period * t, time) + (climate + usual) @ weather
        return X, np.digitize(height(t, usual + climate), ends)

    return in_groups(world, draw_own, draw)


def magnetised_rocks(world):
    """The class is the angle of a rock's field with one axis, in zones alike about both poles.

    Rocks of a site have one polarity, mostly, lie to one side of the axis, and are weak or strong.
    """
    rng, d = world.rng, int(world.rng.randint(3, 7))
    _take_classes(world, [2, 2, 3], most_noise=0)
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


def bridges(world):
    """States of bridges by how much they swing in each of a few modes, of unequal size.

    Bridges differ in length, and somewhat in where sensors stand: their leading axes are turned.
    """
    rng, width, n_modes = world.rng, int(world.rng.randint(10, 31)), int(world.rng.randint(3, 5))
    _take_classes(world, [2, 2, 3, 4], most_noise=5)
    places, numbers = np.linspace(0.05, 0.95, width), np.arange(1, n_modes + 1)
    sizes = np.array([14.0, 7.0, 3.5, 2.0])[:n_modes, None]
    centres = rng.uniform(1.0, 2.0) * rng.standard_normal((world.n_classes, n_modes))
    centres[:, 0] *= 0.2
    strength, noise = rng.uniform(0.3, 1.5), rng.uniform(0.3, 0.8)

    def draw_own():
        stand, length = rng.standard_normal(width), np.exp(0.1 * strength * rng.standard_normal())
        modes = np.sin(np.pi * np.outer(numbers, (places + 0.05 * strength * stand) / length))
        return (sizes * modes / np.linalg.norm(modes, axis=1, keepdims=True),)

    def draw(y, modes):
        X = (centres[y] + rng.standard_normal((len(y), n_modes))) @ modes
        return X + noise * rng.standard_normal(X.shape)

    return _given_classes(world, draw_own, draw)


def diluted_proportions(world):
    """Mixtures by proportions; every sample is diluted by its own, and as its laboratory does."""
    rng, d = world.rng, int(world.rng.randint(3, 11))
    _take_classes(world, [2, 2, 3, 4], most_noise=0)
    strength, unlike = rng.uniform(0.3, 1.8), rng.uniform(0.3, 1.0)
    kinds = rng.uniform(0.3, 0.7) * rng.standard_normal((world.n_classes, d))

    def draw(y, usual):
        parts = np.exp(kinds[y] + 0.4 * rng.standard_normal((len(y), d)))
        water = np.exp(usual + unlike * rng.standard_normal((len(y), 1)))
        X = 5 * parts / parts.sum(axis=1, keepdims=True) / water
        return X + 0.02 * rng.standard_normal(X.shape)

    return _given_classes(world, lambda: [strength * rng.standard_normal()], draw)


def volunteers(world):
    """One source domain, of those who answer a survey; the target, mostly of those who do not.

    They say yes or no, or numbers; one straight, blurred rule holds: nothing needs to be done.
    """
    rng, n_asked, n_numbers = world.rng, int(world.rng.randint(2, 9)), int(world.rng.randint(2, 7))
    _take_classes(world, [2, 2, 3])
    agree, worth = rng.uniform(0.25, 0.75, size=n_asked), rng.standard_normal(n_asked + n_numbers)
    worth, doubt = worth / np.linalg.norm(worth), rng.uniform(0.1, 0.6)
    shyness = rng.uniform(0.4, 2.0) * rng.standard_normal(len(worth)) / np.sqrt(len(worth))
    cut = cutter(rng, len(worth), world.n_classes, lambda X: X @ worth)

    def draw(n):
        answers = (rng.uniform(size=(n, n_asked)) < agree) - agree
        X = np.hstack([2 * answers, rng.standard_normal((n, n_numbers))])
        return X, cut(X + doubt * rng.standard_normal((n, 1)) * worth)

    return selected(world, draw, lambda X: X @ shyness)


def soil_types(world):
    """Soils by the nearest of reference soils; regions differ, the list is one: nothing to do."""
    rng, d = world.rng, int(world.rng.randint(2, 8))
    _take_classes(world, [2, 2, 3], most_noise=5)
    names, strength = np.arange(world.n_classes).repeat(rng.choice([1, 2])), rng.uniform(0.2, 0.7)
    references = ortho_group.rvs(max(d, len(names)), random_state=rng)[: len(names), :d]
    references *= rng.uniform(1, 2) / np.linalg.norm(references, axis=1, keepdims=True)
    references += 0.3 * rng.standard_normal(d)

    def draw(n, usual, variety):
        X = usual + np.exp(0.4 * variety) * rng.standard_normal((n, d))
        return X, names[np.argmin(cdist(X, references), axis=1)]

    return in_groups(world, lambda: strength * rng.standard_normal((2, d)), draw)


def nothing_but_own_dictionaries(world):
    """Counts of words in texts on a few topics; in every language other words stand for a topic."""
    rng, n_words = world.rng, int(world.rng.randint(12, 31))
    _take_classes(world, [2, 2, 3, 4], most_noise=0)
    length, stress, strength = rng.uniform(1.5, 4.0), rng.uniform(0.5, 1.2), rng.uniform(0, 0.6)

    def draw_own():
        topic_of = rng.permutation(n_words) % world.n_classes
        return topic_of, strength * rng.standard_normal(n_words)

    def draw(y, topic_of, usual):
        expected = length * np.exp(usual + stress * (topic_of == y[:, None]))
        return np.sqrt(rng.poisson(expected * rng.gamma(6.0, 1 / 6.0, size=(len(y), 1))))

    return _given_classes(world, draw_own, draw)


def nothing_but_own_protocols(world):
    """Every clinic has a tree of its own: one finding says which of two others gives the class."""
    rng, d, strength = world.rng, int(world.rng.randint(7, 13)), world.rng.uniform(0, 1.2)
    _take_classes(world, [2, 2, 3], most_noise=5)

    def draw_own():
        first, *others = rng.choice(d, size=3, replace=False)
        signs = rng.choice([-1, 1], size=2)
        return lambda X: np.where(X[:, first] > 0, *(signs * X[:, others]).T)

    return _moved(world, d, strength, draw_own)


def nothing_but_own_pairs(world):
    """The class is how far two prices move together; every market looks at another pair."""
    rng, d, strength = world.rng, int(world.rng.randint(5, 9)), world.rng.uniform(0, 1.2)
    _take_classes(world, [2, 2, 3], most_noise=0)
    pairs = list(rng.permutation(np.transpose(np.triu_indices(d, 1))))

    def draw_own():
        pair = pairs.pop()
        return lambda X: X[:, pair].prod(axis=1)

    return _moved(world, d, strength, draw_own)


def _take_classes(world, choices, most_noise=25):
    """Draw the number of classes, at most three where domains are small, in like shares."""
    rng, small = world.rng, world.n_source < 60 * world.n_domains
    world.n_classes = min(int(rng.choice(choices)), 3 if small else 4)
    world.shares = rng.dirichlet(np.full(world.n_classes, 40.0))
    world.n_noise = min(world.n_noise, most_noise)


def _moved(world, d, strength, draw_height):
    """Every domain's rows are normal, cut into classes by its own height, and then moved."""

    def draw_own():
        cut = cutter(world.rng, d, world.n_classes, draw_height())
        return cut, strength * world.rng.standard_normal(d)

    def draw(n, cut, move):
        X = world.rng.standard_normal((n, d))
        return X + move, cut(X)

    return in_groups(world, draw_own, draw)


def _given_classes(world, draw_own, draw_rows):
    """Every domain by ``draw_rows(y, *own)``, with its own draw of ``own``."""

    def draw(n, *own):
        y = world.rng.choice(world.n_classes, size=n, p=world.shares)
        return draw_rows(y, *own), y

    return in_groups(world, draw_own, draw)


FOURTH = (
    vowels_of_speakers,
    growing_seasons,
    blurred_spectra,
    tides,
    magnetised_rocks,
    bridges,
    diluted_proportions,
    volunteers,
    soil_types,
    nothing_but_own_dictionaries,
    nothing_but_own_protocols,
    nothing_but_own_pairs,
)
