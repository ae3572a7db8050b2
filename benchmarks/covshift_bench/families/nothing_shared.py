"""Families in which every domain has classes of its own: no adapter can help."""

import numpy as np
from scipy.stats import norm, ortho_group

from covshift_bench.families.single_shifts import groups_class_shares
from covshift_bench.families.world import (
    choose_classes,
    cutter,
    draw_groups,
    draw_shift_and_scale,
    equal_shares,
    given_classes,
    in_groups,
    take_classes,
)


def nothing_but_names(world):
    """In every domain the classes have changed their names, and the rows have moved."""
    rng = world.rng

    def draw_group():
        names, mapping = rng.permutation(world.n_classes), draw_shift_and_scale(world, 0.7)

        def draw(n):
            X, y = world.draw(n)
            return mapping(X), names[y]

        return draw

    return draw_groups(world, draw_group)


def nothing_groups(world):
    """In every domain the classes are elsewhere."""
    rng, shape = world.rng, world.centers.shape

    def draw_group():
        centers = 2.5 * rng.standard_normal(shape) / np.sqrt(shape[2]) * 1.5
        move = 1.5 * rng.standard_normal(shape[2])

        def draw(n):
            y = rng.choice(world.n_classes, size=n, p=world.shares)
            cluster = rng.randint(shape[1], size=n)
            return centers[y, cluster] + rng.standard_normal((n, shape[2])) + move, y

        return draw

    return draw_groups(world, draw_group)


def nothing_but_shares(world):
    """Domains differ in their class shares alone."""
    return groups_class_shares(world)


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
    centers = rng.uniform(2.5, 4.0) * rng.standard_normal((n_clusters, d))
    strength = rng.uniform(0, 1.0)

    def draw_own():
        opinion = rng.permutation(n_clusters) % world.n_classes
        return opinion, strength * rng.standard_normal(d), rng.dirichlet(np.full(n_clusters, 8.0))

    def draw(n, opinion, move, shares):
        cluster = rng.choice(n_clusters, size=n, p=shares)
        return centers[cluster] + rng.standard_normal((n, d)) + move, opinion[cluster]

    return in_groups(world, draw_own, draw)


def nothing_but_own_signs(world):
    """The same findings count everywhere, for or against by every site's own signs."""
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


def nothing_but_own_codebooks(world):
    """Every site numbers answers by codebooks of its own; rows are spread alike everywhere."""
    rng, n_fields, n_answers = world.rng, *(int(n) for n in world.rng.randint([2, 4], [4, 6]))
    choose_classes(world, most=3)
    world.n_noise, blur = 0, rng.uniform(0.05, 0.2)
    worth = np.linspace(-1, 1, n_answers) * rng.uniform(0.5, 1.5, size=(n_fields, 1))

    def score(answers):
        worths = worth[np.arange(n_fields), answers].sum(axis=1)
        return worths + 0.2 * rng.standard_normal(len(answers))

    ends = equal_shares(world, score(rng.randint(n_answers, size=(4000, n_fields))))

    def draw_own():
        return (np.array([rng.permutation(n_answers) for _ in range(n_fields)]),)

    def draw(n, codes):
        answers = rng.randint(n_answers, size=(n, n_fields))
        X = codes[np.arange(n_fields), answers] + blur * rng.standard_normal((n, n_fields))
        return X, np.digitize(score(answers), ends)

    return in_groups(world, draw_own, draw)


def nothing_but_own_tastes(world):
    """The same things are offered everywhere; the class is the distance to a site's own ideal."""
    rng, d, strength = world.rng, int(world.rng.randint(2, 5)), world.rng.uniform(0, 1.2)
    choose_classes(world, most=3)
    world.n_noise, far = min(world.n_noise, 5), rng.uniform(1.0, 2.5)

    def draw_own():
        ideal = rng.standard_normal(d)
        ideal *= far / np.linalg.norm(ideal)
        cut = cutter(rng, d, world.n_classes, lambda X: np.linalg.norm(X - ideal, axis=1))
        return strength * rng.standard_normal(d), cut

    def draw(n, move, cut):
        X = rng.standard_normal((n, d))
        return X + move, cut(X)

    return in_groups(world, draw_own, draw)


def nothing_but_own_cables(world):
    """The class is the group of sensors with the strongest signal; cables are plugged in anyhow."""
    rng, strength, shape = world.rng, world.rng.uniform(0, 1.0), world.rng.uniform(1.0, 5.0)
    choose_classes(world, most=3)
    world.n_noise, d = min(world.n_noise, 5), world.n_classes * int(rng.randint(2, 5))

    def draw(n, plugs, move):
        signals = rng.gamma(shape, 1 / np.sqrt(shape), size=(n, d))
        strongest = signals.reshape(n, world.n_classes, -1).max(axis=2)
        return signals[:, plugs] + move, np.argmax(strongest, axis=1)

    return in_groups(world, lambda: (rng.permutation(d), strength * rng.standard_normal(d)), draw)


def nothing_but_own_dictionaries(world):
    """Counts of words in texts on a few topics; in every language other words stand for a topic."""
    rng, n_words = world.rng, int(world.rng.randint(12, 31))
    take_classes(world, [2, 2, 3, 4], most_noise=0)
    length, stress, strength = rng.uniform(1.5, 4.0), rng.uniform(0.5, 1.2), rng.uniform(0, 0.6)

    def draw_own():
        topic_of = rng.permutation(n_words) % world.n_classes
        return topic_of, strength * rng.standard_normal(n_words)

    def draw(y, topic_of, usual):
        expected = length * np.exp(usual + stress * (topic_of == y[:, None]))
        return np.sqrt(rng.poisson(expected * rng.gamma(6.0, 1 / 6.0, size=(len(y), 1))))

    return given_classes(world, draw_own, draw)


def nothing_but_own_protocols(world):
    """Every clinic has a tree of its own: one finding says which of two others gives the class."""
    rng, d, strength = world.rng, int(world.rng.randint(7, 13)), world.rng.uniform(0, 1.2)
    take_classes(world, [2, 2, 3], most_noise=5)

    def draw_own():
        first, *others = rng.choice(d, size=3, replace=False)
        signs = rng.choice([-1, 1], size=2)
        return lambda X: np.where(X[:, first] > 0, *(signs * X[:, others]).T)

    return _cut_by_own_height(world, d, strength, draw_own)


def nothing_but_own_pairs(world):
    """The class is how far two prices move together; every market looks at another pair."""
    rng, d, strength = world.rng, int(world.rng.randint(5, 9)), world.rng.uniform(0, 1.2)
    take_classes(world, [2, 2, 3], most_noise=0)
    pairs = list(rng.permutation(np.transpose(np.triu_indices(d, 1))))

    def draw_own():
        pair = pairs.pop()
        return lambda X: X[:, pair].prod(axis=1)

    return _cut_by_own_height(world, d, strength, draw_own)


def _cut_by_own_height(world, d, strength, draw_height):
    """Every domain's rows are normal, cut into classes by its own height, and then moved."""

    def draw_own():
        cut = cutter(world.rng, d, world.n_classes, draw_height())
        return cut, strength * world.rng.standard_normal(d)

    def draw(n, cut, move):
        X = world.rng.standard_normal((n, d))
        return X + move, cut(X)

    return in_groups(world, draw_own, draw)
