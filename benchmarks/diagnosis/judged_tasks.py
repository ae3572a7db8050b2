"""All tasks that verdicts are judged on, and how many rows they have.

Five sets of families (record 0019): thresholds were set on ``SEEN``, rules made after ``FRESH``,
``LATER`` and, one, ``THIRD`` had been judged; ``FOURTH`` was judged once, when all was set. All but
the first were written by somebody who had seen neither the diagnosis nor its thresholds. In
``UNDECIDABLE`` and ``FRESH_ALONE`` there is one source domain and a target elsewhere.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "selection"))
from families import Task, World
from fourth_structures import FOURTH
from fresh_structures import FRESH, FRESH_ALONE
from later_structures import LATER
from shared_structures import ALONE, SEEN
from third_structures import THIRD

from covshift.datasets import make_diagonal_shift, make_periodic_shift

SIZES = ("few", "many")  # rows
N_TEST = 2000


def _printed_task(make, variant):
    def draw(seed):
        # Half of the test rows play the target: their labels are known to whoever is asked.
        data = make(random_state=seed, variant=variant)
        zeros, half = np.zeros(len(data.X_source), dtype=int), len(data.X_test) // 2
        target, test = np.split(data.X_test, [half])
        y_target, y_test = np.split(data.y_test, [half])
        return Task(data.X_source, data.y_source, zeros, target, y_target, test, y_test)

    return draw


WORLDS = {
    family.__name__: family
    for family in (*SEEN, *ALONE, *FRESH, *FRESH_ALONE, *LATER, *THIRD, *FOURTH)
}
UNDECIDABLE = {
    f"{name}, {variant}": _printed_task(make, variant)
    for name, make in (("periodic", make_periodic_shift), ("diagonal", make_diagonal_shift))
    for variant in ("printed", "reconstructed")
}


def draw_task(family, seed, size="few"):
    """A task of the family, anew while a class is missing where it is needed.

    Of size "few": three to five source domains, 300 to 500 rows in all, 150 to 500 target rows and
    as many test rows. "many": three to eight source domains of 80 to 300 rows each, 200 to 600
    target rows, 2,000 test rows.
    """
    if family in UNDECIDABLE:
        return UNDECIDABLE[family](seed)
    number = list(WORLDS).index(family)
    rng = np.random.RandomState([seed, number] if size == "few" else [seed, 77, number])
    for _ in range(100):
        world = World(rng)
        n_target = _draw_sizes(world, size)
        parts, domain = WORLDS[family](world)
        (X, y), (T, y_target), (X_test, y_test) = world.finish(parts)
        counts = [np.bincount(y[domain == one], minlength=world.n_classes) for one in set(domain)]
        enough = np.min(counts) >= 4 and len(np.unique(y_test)) == world.n_classes
        if enough and len(set(y)) == world.n_classes:
            shown = np.arange(len(T))
            if n_target < len(T):
                shown = rng.choice(len(T), n_target, replace=False)
            return Task(X, y, domain, T[shown], y_target[shown], X_test, y_test)
    raise RuntimeError(f"{family} gives no usable task with seed {seed}")


def _draw_sizes(world, size):
    """Set the rows and domains of the world; returns how many target rows are shown."""
    rng = world.rng
    if size == "few":
        world.n_source = max(world.n_source, 300)
        world.n_domains = int(rng.choice([3, 4, 5]))
        return world.n_side
    world.n_domains = int(rng.randint(3, 9))
    world.n_source = world.n_domains * int(rng.randint(80, 301))
    world.n_side = N_TEST
    return int(rng.randint(200, 601))
