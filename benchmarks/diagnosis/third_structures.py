"""Made-up tasks for judging verdicts, the third set, written without looking at how these are made.

Families are functions of a world, as in ``fresh_structures``. In all but one every source domain,
and the target, has its own draw of one kind of shift; ``minority_overlapping`` has a single source
domain with which the target overlaps. Where names begin with "nothing" no adapter can help.
"""

import numpy as np
from fresh_structures import cutter, in_groups, selected
from scipy.special import expit
from scipy.stats import ortho_group


def diluted_samples(world):
    """Logarithms of concentrations; every batch is diluted by its own, and read above its blanks.

    The dilution is common to all substances, recoveries are not; near the blank readings flatten.
    """
    rng, d, strength = world.rng, world.n_informative, world.rng.uniform(0.3, 1.6)
    _keep_few_classes(world)
    low = np.quantile(world.draw(4000)[0], 0.1, axis=0) - 0.5

    def draw_own():
        thinner = 1.5 * rng.standard_normal() + 0.7 * rng.standard_normal(d)
        return strength * thinner, low + 0.7 * strength * rng.standard_normal(d)

    def draw(n, thinner, blank):
        X, y = world.draw(n)
        return np.logaddexp(X, blank) - thinner, y

    return in_groups(world, draw_own, draw)


def spilling_dyes(world):
    """Every lot of dyes has its own brightness and background, and spills into nearby channels."""
    rng, d = world.rng, world.n_informative
    _keep_few_classes(world)
    spilling, strength = rng.uniform(0.1, 0.7), rng.uniform(0.3, 1.4)
    apart = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))

    def draw_own():
        spill = np.where(apart == 0, 1.0, rng.uniform(0, spilling, (d, d)) ** apart * (apart < 3))
        brightness = np.exp(0.4 * strength * rng.standard_normal((d, 1)))
        return brightness * spill, 2 * strength * rng.standard_normal(d)

    def draw(n, spill, background):
        X, y = world.draw(n)
        return X @ spill + background, y

    return in_groups(world, draw_own, draw)


def exposed_pictures(world):
    """Brightness of patches; every camera has one exposure and one gamma for all of them."""
    rng, d, strength = world.rng, world.n_informative, world.rng.uniform(0.3, 1.3)
    _keep_few_classes(world)
    usual, grain = world.draw(4000)[0], rng.uniform(0, 0.15)
    middle, spread = usual.mean(axis=0), usual.std(axis=0)

    def draw(n, exposure, gamma):
        X, y = world.draw(n)
        light = exposure * expit(1.5 * (X - middle) / spread)
        return 5 * light**gamma + grain * rng.standard_normal((n, d)), y

    return in_groups(world, lambda: np.exp(strength * rng.standard_normal(2) * [1.0, 0.5]), draw)


def turned_caps(world):
    """Electrodes around a head hear three sources; every person's cap is turned, and axes with it.

    The loudest hardly knows the class, and is heard where another cap hears a lesser one.
    """
    rng, width = world.rng, int(world.rng.randint(8, 25))
    _choose_classes(world)
    world.n_noise = min(world.n_noise, 5)
    electrodes = np.linspace(0, 2 * np.pi, width, endpoint=False)
    places = rng.uniform(0.7, 1.1) * np.arange(3)
    centres = rng.uniform(1.2, 2.2) * rng.standard_normal((world.n_classes, 3)) * [0.2, 1.0, 1.0]
    focus, farthest, noise = rng.uniform(1, 2.5), rng.uniform(0.4, 1.1), rng.uniform(0.1, 0.5)

    def draw_own():
        turn = farthest * rng.uniform(-1, 1)
        heard = np.exp(focus * np.cos(electrodes - places[:, None] - turn))
        return (heard / np.linalg.norm(heard, axis=1, keepdims=True) * [[8.0], [3.5], [1.8]],)

    def draw(n, heard):
        y = rng.randint(world.n_classes, size=n)
        X = (centres[y] + rng.standard_normal((n, 3))) @ heard
        return X + noise * rng.standard_normal((n, width)), y

    return in_groups(world, draw_own, draw)


def fringes(world):
    """The class is the brightness of fringes that repeat along a direction, with an overtone.

    In a period a class may come more than once; every domain sees its own stretch, near or far.
    """
    rng, d = world.rng, int(world.rng.randint(2, 6))
    _choose_classes(world, most=3)
    world.n_noise, (direction, *others) = 0, ortho_group.rvs(d, random_state=rng)
    period, scatter, jitter = rng.uniform(1.5, 5.0), rng.uniform(0.2, 0.6), rng.uniform(0, 0.03)
    overtone, lag, reach = rng.uniform(0, 0.5), rng.uniform(0, 2 * np.pi), rng.uniform(1.5, 7)

    def brightness(place):
        return np.cos(2 * np.pi * place) + overtone * np.cos(4 * np.pi * place + lag)

    ends = _equal_shares(world, brightness(np.linspace(0, 1, 4000)))

    def draw(n, start, length):
        place = start + length * rng.uniform(size=n)
        X = np.outer(period * place, direction) + scatter * rng.standard_normal((n, d - 1)) @ others
        return X, np.digitize(brightness(place + jitter * rng.standard_normal(n)), ends)

    return in_groups(world, lambda: (reach * rng.uniform(-1, 1), rng.uniform(1.2, 2.5)), draw)


def fibre_orientations(world):
    """Fibres are traced as arrows; the class is a sector of their orientation, whichever the end.

    Every slide has its own magnification, favours an orientation, and is traced from a side of its
    own, mostly. There may be depths, which say nothing of the class.
    """
    rng, d = world.rng, int(world.rng.randint(2, 6))
    _choose_classes(world)
    world.n_noise, turn, begin = 0, ortho_group.rvs(d, random_state=rng), rng.uniform(0, np.pi)
    ends = np.pi * np.cumsum(rng.dirichlet(np.full(world.n_classes, 40.0)))[:-1]
    followed, largest, blur = rng.uniform(0.7, 1), rng.uniform(0.2, 1.5), rng.uniform(0.02, 0.1)

    def draw_own():
        return *rng.uniform(0, 2 * np.pi, size=2), np.exp(largest * rng.uniform(-1, 1))

    def draw(n, side, favourite, size):
        angle = rng.uniform(0, np.pi, size=n)
        angle = np.mod(angle + 0.15 * np.sin(2 * angle - favourite), np.pi)
        arrows = np.stack([np.cos(angle + begin), np.sin(angle + begin)], axis=1)
        arrows *= np.sign(arrows @ [np.cos(side), np.sin(side)])[:, None]
        arrows *= np.where(rng.uniform(size=(n, 1)) < followed, 1, -1)
        X = np.hstack([arrows, 0.5 * rng.standard_normal((n, d - 2))])
        X = np.exp(0.3 * rng.standard_normal((n, 1))) * X + blur * rng.standard_normal((n, d))
        return size * X @ turn, np.digitize(angle, ends)

    return in_groups(world, draw_own, draw)


def minority_overlapping(world):
    """One source domain with a minority for whom other findings count; of it the target has most.

    One rule of x, seen everywhere, but not a straight one: weights help models that fit the many.
    """
    rng, d = world.rng, int(world.rng.randint(3, 8))
    _choose_classes(world, most=3)
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
    _choose_classes(world, most=3)
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

    Outlets have subjects of their own, which say nothing of the tone: nothing needs to be done.
    """
    rng, n_tone, n_subject = world.rng, *(int(n) for n in world.rng.randint([4, 4], [11, 21]))
    _choose_classes(world)
    world.n_noise, strength, in_roots = 0, rng.uniform(0.2, 1.2), rng.uniform() < 0.5
    tone = rng.uniform(0.4, 0.9) * rng.standard_normal((world.n_classes, n_tone))
    tone, usual = tone + rng.uniform(0, 1.5, n_tone), rng.uniform(-0.5, 1.5, n_subject)

    def draw(n, subjects):
        y, length = rng.randint(world.n_classes, size=n), rng.gamma(5.0, 1 / 5.0, size=(n, 1))
        rates = np.hstack([np.exp(tone[y]), length * np.exp(subjects)])
        counts = rng.poisson(rates).astype(float)
        return np.sqrt(counts) if in_roots else counts, y

    return in_groups(world, lambda: (usual + strength * rng.standard_normal(n_subject),), draw)


def nothing_but_own_codebooks(world):
    """Every site numbers answers by codebooks of its own; rows are spread alike everywhere."""
    rng, n_fields, n_answers = world.rng, *(int(n) for n in world.rng.randint([2, 4], [4, 6]))
    _choose_classes(world, most=3)
    world.n_noise, blur = 0, rng.uniform(0.05, 0.2)
    worth = np.linspace(-1, 1, n_answers) * rng.uniform(0.5, 1.5, size=(n_fields, 1))

    def score(answers):
        worths = worth[np.arange(n_fields), answers].sum(axis=1)
        return worths + 0.2 * rng.standard_normal(len(answers))

    ends = _equal_shares(world, score(rng.randint(n_answers, size=(4000, n_fields))))

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
    _choose_classes(world, most=3)
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
    _choose_classes(world, most=3)
    world.n_noise, d = min(world.n_noise, 5), world.n_classes * int(rng.randint(2, 5))

    def draw(n, plugs, move):
        signals = rng.gamma(shape, 1 / np.sqrt(shape), size=(n, d))
        strongest = signals.reshape(n, world.n_classes, -1).max(axis=2)
        return signals[:, plugs] + move, np.argmax(strongest, axis=1)

    return in_groups(world, lambda: (rng.permutation(d), strength * rng.standard_normal(d)), draw)


def _choose_classes(world, most=4):
    """Two to four classes, fewer where domains are small."""
    most = min(most, 3 if world.n_source // world.n_domains < 80 else 4)
    world.n_classes = min(int(world.rng.choice([2, 2, 3, 4])), most)


def _keep_few_classes(world):
    """Keep two to four classes of the world, in shares that are not too unlike."""
    world.n_classes = min(world.n_classes, 3 if world.n_source // world.n_domains < 80 else 4)
    shares = world.shares[: world.n_classes] / world.shares[: world.n_classes].sum()
    world.shares = 0.3 * shares + 0.7 / world.n_classes


def _equal_shares(world, heights):
    """Where to cut heights into classes of equal shares."""
    return np.quantile(heights, np.arange(1, world.n_classes) / world.n_classes)


THIRD = (
    diluted_samples,
    spilling_dyes,
    exposed_pictures,
    turned_caps,
    fringes,
    fibre_orientations,
    minority_overlapping,
    regional_amounts,
    outlets_subjects,
    nothing_but_own_codebooks,
    nothing_but_own_tastes,
    nothing_but_own_cables,
)
