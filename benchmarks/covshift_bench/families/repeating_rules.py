"""Families in which the classes repeat along a direction.

Every domain sees its own stretch of it.
"""

import numpy as np
from scipy.stats import ortho_group

from covshift_bench.families.world import (
    choose_classes,
    draw_groups,
    equal_shares,
    in_groups,
    take_classes,
)


def periodic_groups(world):
    """Classes repeat along one direction; every domain lies some periods away from the others."""
    rng, d = world.rng, min(world.n_informative, 5)
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    period, n_classes = rng.uniform(1.5, 4.0), 2
    places = list(rng.permutation(np.arange(-4, 5)))
    world.n_classes, world.n_noise = n_classes, 0

    def draw_group():
        center = period * (places.pop() + rng.uniform(-0.3, 0.3))

        def draw(n):
            t = center + period * rng.uniform(-0.8, 0.8, size=n)
            X = 0.5 * rng.standard_normal((n, d))
            X += np.outer(t - X @ direction, direction)
            return X, np.floor(np.mod(t, period) / period * n_classes).astype(int) % n_classes

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
        center, spread = period * places.pop(), period * rng.uniform(0.8, 1.2)

        def draw(n):
            t = center + spread * rng.uniform(-1, 1, size=n)
            X = rng.uniform(0.3, 1.0) * rng.standard_normal((n, d))
            X += np.outer(t - X @ direction, direction)
            return X, (np.mod(t, period) < share * period).astype(int)

        return draw

    return draw_groups(world, draw_group)


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


def fringes(world):
    """The class is the brightness of fringes that repeat along a direction, with an overtone.

    In a period a class may come more than once; every domain sees its own stretch, near or far.
    """
    rng, d = world.rng, int(world.rng.randint(2, 6))
    choose_classes(world, most=3)
    world.n_noise, (direction, *others) = 0, ortho_group.rvs(d, random_state=rng)
    period, scatter, jitter = rng.uniform(1.5, 5.0), rng.uniform(0.2, 0.6), rng.uniform(0, 0.03)
    overtone, lag, reach = rng.uniform(0, 0.5), rng.uniform(0, 2 * np.pi), rng.uniform(1.5, 7)

    def brightness(place):
        return np.cos(2 * np.pi * place) + overtone * np.cos(4 * np.pi * place + lag)

    ends = equal_shares(world, brightness(np.linspace(0, 1, 4000)))

    def draw(n, start, length):
        place = start + length * rng.uniform(size=n)
        X = np.outer(period * place, direction) + scatter * rng.standard_normal((n, d - 1)) @ others
        return X, np.digitize(brightness(place + jitter * rng.standard_normal(n)), ends)

    return in_groups(world, lambda: (reach * rng.uniform(-1, 1), rng.uniform(1.2, 2.5)), draw)


def tides(world):
    """Heights of a tide, by one direction, time, and of a surge; domains have their own stretch."""
    rng, d = world.rng, int(world.rng.randint(2, 7))
    take_classes(world, [2, 2, 3], most_noise=0)
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
