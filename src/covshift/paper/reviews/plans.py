"""The supplement's study of reviews as data: grids, what a plan takes of them, what is added.

Zennaro & Chen, supplement to "On the use of sparse filtering for covariate shift adaptation": train
on reviews of dvds, adapt to books, electronics and kitchenware; the 50 words most common in the
training domain, weighed by TF-IDF; systems and grids as in the speech study except for the sizes of
DAE and SSA. Its figures are not at hand, so nothing printed stands beside ours.
"""

from dataclasses import dataclass
from typing import Any

from covshift.paper.grid_systems import declare_settings, draw_settings
from covshift.paper.speech.printed import COSTS, GRIDS, MINI_BATCHES

SOURCE, TARGETS = "dvd", ("books", "electronics", "kitchen")
N_WORDS = 50
N_FOLDS = 3

REVIEW_GRIDS: dict[str, list[dict[str, Any]]] = {
    **GRIDS,
    "SSA": declare_settings({"P": (15, 35, 50)}),
    "DAE": declare_settings(
        {
            "activation": ("sigmoid", "tanh"),
            "L": (50, 70, 100),
            "noise_level": (0.01, 0.05, 0.1),
            "learning_rate": (0.0005, 0.001, 0.005),
            "mini_batches": (MINI_BATCHES,),
        }
    ),
}


@dataclass(frozen=True)
class ReviewPlan:
    """A part of the grids, and the number of draws of halves.

    Attributes
    ----------
    name : str
        As the user knows it.
    grids : dict of str to list of settings
        Of each system.
    costs : tuple of float
        Values of C of the SVMs.
    n_draws : int
        Draws of the two halves of a target.
    """

    name: str
    grids: dict[str, list[dict[str, Any]]]
    costs: tuple[float, ...]
    n_draws: int


# Of 2,000 + 1,000 rows on an idle core, a setting of PSF takes .9 s, one of DAE 2 s, the weights of
# IW+LSPC half a second, all else less: PSF and DAE are what a plan has to save on.
PLANS = {
    "default": ReviewPlan(
        "default",
        {
            **REVIEW_GRIDS,
            "PSF": draw_settings(REVIEW_GRIDS["PSF"], 20),
            "DAE": draw_settings(REVIEW_GRIDS["DAE"], 8),
        },
        (1e-4, 1e-3, 1e-2, 0.1, 1.0),
        3,
    ),
    "full": ReviewPlan("full", REVIEW_GRIDS, COSTS, 10),
}

# Added to the paper: one setting of each system, taken from the middle of its grid beforehand, on
# all pairs of domains and with more words.
FIXED_COST = 1.0
FIXED: dict[str, dict[str, Any]] = {
    "SVM": {},
    "SF": {"L": 50},
    "PSF": {"activation": "sin", "L": 50, "label_reward": 1.0},
    "LSPC": {"sigma": 1.0, "lambda": 0.1},
    "IW+LSPC": {"sigma": 1.0, "lambda": 0.1},
    "SSA": {"P": 35},
    "DAE": {
        "activation": "sigmoid",
        "L": 70,
        "noise_level": 0.05,
        "learning_rate": 0.001,
        "mini_batches": MINI_BATCHES // 5,  # those of the grid would take most of the time
    },
}
TAKES_SPARSE = ("SVM", "SF", "PSF")
# Number of words -> whether rows stay sparse, and pairs of words count.
VOCABULARIES = {50: False, 400: False, 4000: True}
