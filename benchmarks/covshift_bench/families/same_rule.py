"""Families in which one rule of the features holds everywhere, and only the rows differ.

Some have a single source domain that the target overlaps with. Mostly nothing needs to be done.
"""

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import ortho_group

from covshift_bench.families.single_shifts import selection_bias, subpopulations
from covshift_bench.families.world import choose_classes, cutter, in_groups, selected, take_classes


def overlapping(world):
    """True covariate shift on a common support, one source domain."""
    world.n_domains = 1
    return selection_bias(world)


def overlapping_subpopulations(world):
    """The same clusters in other proportions, one source domain."""
    world.n_domains = 1
    return subpopulations(world)


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
    """One source domain; classes of unlike spread, some often mislabeled; rows are selected by x.

    The rule is the same, and seen everywhere: nothing needs to be done.
    """
    rng, d = world.rng, world.n_informative
    spread = np.exp(0.3 * rng.standard_normal(world.n_classes))
    mislabeled = rng.uniform(0, 0.2, size=world.n_classes)
    tilt = rng.uniform(0.4, 1.2) * rng.standard_normal(d) / np.sqrt(d)

    def draw(n):
        y = rng.choice(world.n_classes, size=n, p=world.shares)
        X = world.centers[y, 0] + spread[y, None] * rng.standard_normal((n, d))
        return X, (y + (rng.uniform(size=n) < mislabeled[y])) % world.n_classes

    return selected(world, draw, lambda X: X @ tilt)


def entering_subpopulations(world):
    """Subpopulations enter and leave along a gradient; every site has a place of its own on it.

    One rule holds for all of them, and plain models can learn it: nothing needs to be done.
    """
    rng, d = world.rng, world.n_informative
    world.n_classes = min(world.n_classes, 4)
    places, width = np.linspace(0, 1, int(rng.randint(4, 8))), rng.uniform(0.1, 0.3)
    along, rule = ortho_group.rvs(d, random_state=rng)[:2]
    centers = rng.uniform(3, 7) * np.outer(places - 0.5, along)
    centers += 0.7 * rng.standard_normal(centers.shape)
    rule, doubt = rule + rng.uniform(-0.3, 0.3) * along, rng.uniform(0.1, 0.5)
    cut = cutter(rng, d, world.n_classes, lambda X: X @ rule)

    def draw_own():
        shares = np.exp(-(((places - rng.uniform()) / width) ** 2))
        return (shares / shares.sum(),)

    def draw(n, shares):
        X = centers[rng.choice(len(places), size=n, p=shares)] + rng.standard_normal((n, d))
        return X, cut(X + doubt * rng.standard_normal((n, 1)) * rule)

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


def minority_overlapping(world):
    """One source domain with a minority for whom other findings count; of it the target has most.

    One rule of x, seen everywhere, but not a straight one: weights help models that fit the many.
    """
    rng, d = world.rng, int(world.rng.randint(3, 8))
    choose_classes(world, most=3)
    angle, steepness, apart = rng.uniform(0.3, 2.0), rng.uniform(0.6, 1.8), rng.uniform(1, 2)
    count, blur = np.array([np.cos(angle), np.sin(angle)]), rng.uniform(0, 0.3)
    cut = cutter(
        rng, d, world.n_classes, lambda X: np.where(X[:, 0] > 0, X[:, 1:3] @ count, X[:, 1])
    )

    def draw(n):
        X = rng.standard_normal((n, d))
        X[:, 0] = apart * rng.choice([-1, 1], size=n) + 0.5 * X[:, 0]
        return X, cut(X + blur * rng.standard_normal((n, d)) * (np.arange(d) > 0))

    return selected(world, draw, lambda X: steepness * X[:, 0])


def regional_amounts(world):
    """Skewed amounts, at levels of every region's own; the same doubtful rule of them everywhere.

    Levels that matter to the rule move less than others: nothing needs to be done.
    """
    rng, d, strength = world.rng, max(world.n_informative, 3), world.rng.uniform(0.2, 1.2)
    choose_classes(world, most=3)
    rule, doubt, skewness = rng.standard_normal(d), rng.uniform(0.1, 0.6), rng.uniform(0.1, 0.4)
    rule /= np.linalg.norm(rule)
    cut = cutter(rng, d, world.n_classes, lambda X: X @ rule)

    def draw_own():
        level = strength * rng.standard_normal(d)
        return (level + (np.clip(level @ rule, -0.4, 0.4) - level @ rule) * rule,)

    def draw(n, level):
        X = level + rng.standard_normal((n, d))
        y = cut(X + doubt * rng.standard_normal((n, 1)) * rule)
        return np.expm1(skewness * X) / skewness, y

    return in_groups(world, draw_own, draw)


def outlets_subjects(world):
    """Counts of words: some tell the tone, alike in all outlets; the others tell the subjects.

    Outlets have subjects of their own, which do not depend on the tone: nothing needs to be done.
    """
    rng, n_tone, n_subject = world.rng, *(int(n) for n in world.rng.randint([4, 4], [11, 21]))
    choose_classes(world)
    world.n_noise, strength, in_roots = 0, rng.uniform(0.2, 1.2), rng.uniform() < 0.5
    tone = rng.uniform(0.4, 0.9) * rng.standard_normal((world.n_classes, n_tone))
    tone, usual = tone + rng.uniform(0, 1.5, n_tone), rng.uniform(-0.5, 1.5, n_subject)

    def draw(n, subjects):
        y, length = rng.randint(world.n_classes, size=n), rng.gamma(5.0, 1 / 5.0, size=(n, 1))
        rates = np.hstack([np.exp(tone[y]), length * np.exp(subjects)])
        counts = rng.poisson(rates).astype(float)
        return np.sqrt(counts) if in_roots else counts, y

    return in_groups(world, lambda: (usual + strength * rng.standard_normal(n_subject),), draw)


def volunteers(world):
    """One source domain, of those who answer a survey; the target, mostly of those who do not.

    They say yes or no, or numbers; one straight, blurred rule holds: nothing needs to be done.
    """
    rng, n_asked, n_numbers = world.rng, int(world.rng.randint(2, 9)), int(world.rng.randint(2, 7))
    take_classes(world, [2, 2, 3])
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
    take_classes(world, [2, 2, 3], most_noise=5)
    names, strength = np.arange(world.n_classes).repeat(rng.choice([1, 2])), rng.uniform(0.2, 0.7)
    references = ortho_group.rvs(max(d, len(names)), random_state=rng)[: len(names), :d]
    references *= rng.uniform(1, 2) / np.linalg.norm(references, axis=1, keepdims=True)
    references += 0.3 * rng.standard_normal(d)

    def draw(n, usual, variety):
        X = usual + np.exp(0.4 * variety) * rng.standard_normal((n, d))
        return X, names[np.argmin(cdist(X, references), axis=1)]

    return in_groups(world, lambda: strength * rng.standard_normal((2, d)), draw)
