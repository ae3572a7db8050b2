"""Made-up families of tasks: what is shared by source and target is known.

A task has labeled source rows in one or more domains, target rows, and test rows of the target.
Every family draws classes, features, sizes, noise and domains at random. Half of the tasks are
rotated, so that no feature stands for itself. There are two groups: those with one kind of shift,
on which choices among candidates were made, and those on which the diagnosis was judged, in sets
(design record 0019).
"""

import numpy as np

from covshift.datasets import make_diagonal_shift, make_periodic_shift
from covshift_bench.families import (
    feature_maps,
    mixed_features,
    nothing_shared,
    one_domain,
    repeating_rules,
    rules_up_to_sign,
    same_rule,
    single_shifts,
)
from covshift_bench.families.world import World

MODULES = (
    single_shifts, feature_maps, mixed_features, repeating_rules, rules_up_to_sign, same_rule,
    nothing_shared, one_domain,
)  # fmt: skip
# The order gives each family its seed: add new families at the end of the last set.
SINGLE_SHIFTS = (
    "shift_and_scale", "affine", "rotation", "radial", "periodic", "monotone_warps", "class_shares",
    "selection_bias", "groups_shift_and_scale", "groups_class_shares", "no_shift", "nothing_helps",
    "noise_moves", "classes_move", "shares_and_shift", "subpopulations", "noisier_target",
    "dead_features",
)  # fmt: skip
# Sets of families, in the order in which they were written. All but the first were written by
# somebody who had seen neither the diagnosis nor its thresholds.
SETS = {
    "thresholds set on": (
        "shifted_groups", "periodic_groups", "nothing_but_shares", "overlapping", "affine_groups",
        "warped_groups", "radial_groups", "nothing_groups", "overlapping_subpopulations",
        "axial_groups", "striped_groups", "gained_groups", "correlated_groups",
        "nothing_but_names",
    ),
    # In some draws the target overlaps, and the task can be decided.
    "one source domain": ("shifted_alone", "swapped_alone", "radial_alone"),
    "first rules made on": (
        "saturating_instruments", "exposed_counts", "turned_factors", "clocks", "band_energies",
        "bent_overlapping", "noisy_overlapping", "entering_subpopulations",
        "nothing_but_own_directions", "nothing_but_own_features", "nothing_but_opinions",
    ),
    "beyond a gap": ("unseen_stretch_alone", "outer_ring_alone", "other_ball_alone"),
    "second rules made on": (
        "warming_sensors", "rating_scales", "half_calibrated", "seasons", "dipoles",
        "camera_frames", "points_scores", "referred_extremes", "nothing_but_own_signs",
        "nothing_but_own_windows", "nothing_but_own_terrains",
    ),
    "judged before the last rule": (
        "diluted_samples", "spilling_dyes", "exposed_pictures", "turned_caps", "fringes",
        "fibre_orientations", "minority_overlapping", "regional_amounts", "outlets_subjects",
        "nothing_but_own_codebooks", "nothing_but_own_tastes", "nothing_but_own_cables",
    ),
    "judged once": (
        "vowels_of_speakers", "growing_seasons", "blurred_spectra", "tides", "magnetised_rocks",
        "bridges", "diluted_proportions", "volunteers", "soil_types",
        "nothing_but_own_dictionaries", "nothing_but_own_protocols", "nothing_but_own_pairs",
    ),
}  # fmt: skip
OF_SETS = [name for names in SETS.values() for name in names]
PAPER = {
    f"{name}, {variant}": (make, variant)
    for name, make in (("periodic", make_periodic_shift), ("diagonal", make_diagonal_shift))
    for variant in ("printed", "reconstructed")
}
GROUPS = {"selection": SINGLE_SHIFTS, "diagnosis": (*OF_SETS, *PAPER)}
N_TEST = 2000  # of large tasks


def draw_made_up(group, family, seed, size="standard"):
    """Draw a task, and again while a class is missing where it is needed.

    Parameters
    ----------
    group : {"selection", "diagnosis"}
        Key of `GROUPS`.
    family : str
        Name in the group.
    seed : int
        Of everything that is drawn.
    size : {"standard", "large"}
        Single shifts and data sets of the paper have one size. Standard tasks of the sets have
        three to five source domains, 300 to 500 source rows, 150 to 500 target rows and as many
        test rows. Large ones have three to eight source domains of 80 to 300 rows, 200 to 600
        target rows and 2,000 test rows.

    Returns
    -------
    source, target, test : tuple of arrays
        Rows and classes.
    domain : ndarray
        Domain of each source row: 0, 1, ...
    """
    if family in PAPER:
        return _draw_of_paper(family, seed)
    draw = next(getattr(module, family) for module in MODULES if hasattr(module, family))
    single = group == "selection"
    number = sorted(SINGLE_SHIFTS).index(family) if single else OF_SETS.index(family)
    large = size == "large" and not single
    rng = np.random.RandomState([seed, 77, number] if large else [seed, number])
    for _ in range(100):
        world = World(rng)
        n_target = None if single else _draw_sizes(world, large)
        parts, domain = draw(world)
        source, target, test = world.finish(parts)
        enough = _rarest(source[1], domain, world.n_classes, single) >= (8 if single else 4)
        if enough and len(np.unique(test[1])) == world.n_classes:
            if n_target is not None and n_target < len(target[1]):
                shown = rng.choice(len(target[1]), n_target, replace=False)
                target = tuple(values[shown] for values in target)
            return source, target, test, domain
    raise RuntimeError(f"{family} gives no usable task with seed {seed}")


def _rarest(y, domain, n_classes, single):
    """Rows of the rarest class: of single shifts in all, else in a source domain."""
    where = np.zeros_like(domain) if single else domain
    return min(np.bincount(y[where == one], minlength=n_classes).min() for one in set(where))


def _draw_of_paper(family, seed):
    make, variant = PAPER[family]
    data = make(random_state=seed, variant=variant)
    # Half of the test rows are taken as the target: their labels can be asked for.
    half = len(data.X_test) // 2
    target, test = zip(
        *(np.split(part, [half]) for part in (data.X_test, data.y_test)), strict=True
    )
    return (data.X_source, data.y_source), target, test, np.zeros(len(data.X_source), dtype=int)


def _draw_sizes(world, large):
    """Set the rows and domains of the world; returns how many target rows are shown."""
    rng = world.rng
    if not large:
        world.n_source = max(world.n_source, 300)
        world.n_domains = int(rng.choice([3, 4, 5]))
        return world.n_side
    world.n_domains = int(rng.randint(3, 9))
    world.n_source = world.n_domains * int(rng.randint(80, 301))
    world.n_side = N_TEST
    return int(rng.randint(200, 601))
