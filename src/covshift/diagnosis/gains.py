r"""What a hypothesis gains over no adaptation where source rows play the target.

Scene by scene every hypothesis is tried on the same rows, so that all comparisons are paired. In
scene s the score of hypothesis h is that of one of its variants (an adapter with a model), the one
that does best in the *other* scenes: a hypothesis with many variants has no advantage of luck.
With :math:`r_{hsi}` = 1 where row i is predicted rightly, the gain over hypothesis 0 is

.. math::

    g_h = \frac{1}{S} \sum_s \frac{1}{K_s} \sum_k \operatorname{mean}_{i \in k}
          \left( r_{hsi} - r_{0si} \right),

a difference of balanced accuracies; for the objective "accuracy", all rows count as one class. Its
distribution is that of a bootstrap which draws scenes, and rows by class within them: domains
differ more than rows do.

That is about the mean over scenes. The target is one more of them, and a gain comes from rows that
are predicted otherwise than without adaptation. Their share is seen without labels, in each scene
(:math:`c_{hs}`, on average :math:`c_h`) and on the target (:math:`c'_h`). So gains are taken to be
in proportion to it, up to an error whose size the scenes show, and the target's own gain is
predicted, as by a ratio estimator, to lie with probability .9 in

.. math::

    \frac{c'_h}{c_h} \left( g_h \pm t_{.95;\, \nu_0 + S - 1} \, s_h \sqrt{1 + 1/S} \right),
    \qquad
    s_h^2 = \frac{\nu_0 s_0^2 + \sum_s (g_{hs} - g_h c_{hs} / c_h)^2}{\nu_0 + S - 1},

where a prior guess :math:`s_0`, worth :math:`\nu_0` scenes, stands against few that agree by luck.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student_t

from covshift.kernels.arrays import BoolArray, FloatArray, IntArray
from covshift.measures import holm

N_RESAMPLES = 999
# Fitted to 97 tasks of three sets of families (benchmarks/families): record 0019.
PRIOR_SPREAD, PRIOR_SCENES = 0.1, 2


class PlayedScene(NamedTuple):
    """Classes of the rows that played the target, and what was said of them: (candidates, rows).

    ``balanced``: classes count equally, else rows.
    """

    codes: IntArray
    predicted: IntArray  # negative where a candidate could not be fitted
    balanced: bool = True

    @property
    def groups(self) -> IntArray:
        """Groups of rows that count equally: the classes, or all rows as one group."""
        return self.codes if self.balanced else np.zeros(len(self.codes), dtype=int)

    @property
    def right(self) -> FloatArray:
        """Who was right: (candidates, rows); NaN where nothing was said."""
        right: FloatArray = np.where(self.predicted < 0, np.nan, self.predicted == self.codes)
        return right

    @property
    def scores(self) -> FloatArray:
        """Balanced accuracy or accuracy of each candidate."""
        right, groups = self.right, self.groups
        of_group = [right[:, groups == k].mean(axis=1) for k in np.unique(groups)]
        scores: FloatArray = np.mean(of_group, axis=0)
        return scores


class Gains(NamedTuple):
    """Scores of the hypotheses, and their gains over the first, with intervals.

    ``pvalues`` are of a gain of zero, ``behind`` of being as good as the best; both by Holm.
    """

    scores: FloatArray  # (H,), mean over the scenes
    by_scene: FloatArray  # (S, H)
    gains: FloatArray
    intervals: FloatArray  # (H, 2), 95 %, of the mean
    changed: FloatArray  # (H,): share of rows predicted otherwise than by the first
    changed_target: FloatArray  # (H,): the same of the target's rows
    predicted: FloatArray  # (H,): gain on the target
    predicted_intervals: FloatArray  # (H, 2), 90 %, of it
    pvalues: FloatArray
    behind: FloatArray
    variants: IntArray  # (H,): the candidate that does best over all scenes, -1: none


def measure_gains(
    scenes: Sequence[PlayedScene],
    hypothesis_of: IntArray,
    n_hypotheses: int,
    target: IntArray,
    rng: np.random.RandomState,
) -> Gains:
    """Gains of hypotheses from scenes; ``hypothesis_of`` has that of each candidate.

    ``target`` (candidates, rows) has the classes predicted for target rows, negative: none.
    """
    scores = np.array([scene.scores for scene in scenes])  # (S, candidates)
    chosen = np.array(
        [
            [_best_elsewhere(scores, hypothesis_of == h, s) for h in range(n_hypotheses)]
            for s in range(len(scenes))
        ]
    )
    by_scene = np.array(
        [[np.nan if c < 0 else scores[s, c] for c in chosen[s]] for s in range(len(scenes))]
    )
    able = ~np.isnan(by_scene).any(axis=0)
    means = np.where(able, by_scene.mean(axis=0), np.nan)
    drawn = _resample(scenes, chosen, able, rng)  # (resamples, H)
    gains = means - means[0]
    differences = drawn - drawn[:, :1]
    best = int(np.nanargmax(means))
    variants = np.array(
        [_best_elsewhere(scores, hypothesis_of == h, None) for h in range(n_hypotheses)]
    )
    changed_by_scene = np.array(
        [_changed(scene.predicted, c) for scene, c in zip(scenes, chosen, strict=True)]
    )
    changed = changed_by_scene.mean(axis=0)
    changed_target = _changed(target, variants)
    # Where nothing changed in the scenes, there is no gain to carry over.
    carried = np.divide(changed_target, changed, out=np.zeros(n_hypotheses), where=changed > 0)
    carried = np.where(able, carried, np.nan)
    return Gains(
        scores=means,
        by_scene=by_scene,
        gains=gains,
        intervals=np.where(
            able[:, None], np.quantile(np.nan_to_num(differences), [0.025, 0.975], axis=0).T, np.nan
        ),
        changed=np.where(able, changed, np.nan),
        changed_target=np.where(able, changed_target, np.nan),
        predicted=carried * gains,
        predicted_intervals=carried[:, None]
        * _one_more(by_scene - by_scene[:, :1], changed_by_scene),
        pvalues=_adjusted(_two_sided(differences), able & (np.arange(n_hypotheses) > 0)),
        behind=_adjusted(
            _share(drawn >= drawn[:, [best]]), able & (np.arange(n_hypotheses) != best)
        ),
        variants=variants,
    )


def _best_elsewhere(scores: FloatArray, members: BoolArray, scene: int | None) -> int:
    """The candidate of a hypothesis that does best in the other scenes; -1, if none can."""
    others = scores if scene is None or len(scores) == 1 else np.delete(scores, scene, axis=0)
    means = np.where(members & ~np.isnan(scores).any(axis=0), others.mean(axis=0), np.nan)
    return -1 if np.isnan(means).all() else int(np.nanargmax(means))


def _changed(predicted: IntArray, chosen: IntArray) -> FloatArray:
    """Share of rows on which the chosen candidate of each hypothesis differs from the first's.

    NaN where it says nothing.
    """
    said = predicted[chosen]
    share: FloatArray = np.where(said < 0, np.nan, said != said[0]).mean(axis=1)
    return share


def _resample(
    scenes: Sequence[PlayedScene], chosen: IntArray, able: BoolArray, rng: np.random.RandomState
) -> FloatArray:
    """Mean scores of the hypotheses over drawn scenes with drawn rows."""
    by_scene = np.full((len(scenes), N_RESAMPLES, len(able)), np.nan)
    for s, scene in enumerate(scenes):
        groups, right, recalls = scene.groups, scene.right, []
        for k in np.unique(groups):
            rows = right[np.ix_(chosen[s][able], groups == k)]  # (able hypotheses, n_k)
            n = rows.shape[1]
            counts = rng.multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES)
            recalls.append(counts @ rows.T / n)
        by_scene[s][:, able] = np.mean(recalls, axis=0)
    picked = rng.randint(len(scenes), size=(N_RESAMPLES, len(scenes)))
    drawn: FloatArray = by_scene[picked, np.arange(N_RESAMPLES)[:, None]].mean(axis=1)
    return drawn


def _one_more(gains: FloatArray, changed: FloatArray) -> FloatArray:
    """Interval (H, 2) of the gain in one more scene that changes as much as they do on average.

    ``gains``, ``changed`` (S, H): of the scenes played.
    """
    n_scenes = len(gains)
    mean, degrees = gains.mean(axis=0), PRIOR_SCENES + n_scenes - 1
    usual = changed.mean(axis=0)
    relative = np.divide(changed, usual, out=np.ones_like(changed), where=usual > 0)
    squares = PRIOR_SCENES * PRIOR_SPREAD**2 + np.square(gains - mean * relative).sum(axis=0)
    half = student_t.ppf(0.95, degrees) * np.sqrt(squares / degrees * (1 + 1 / n_scenes))
    return np.column_stack([mean - half, mean + half])


def _share(true: BoolArray) -> FloatArray:
    """Share of resamples, never quite zero."""
    share: FloatArray = (1 + true.sum(axis=0)) / (1 + len(true))
    return share


def _two_sided(differences: FloatArray) -> FloatArray:
    p: FloatArray = np.minimum(
        1, 2 * np.minimum(_share(differences <= 0), _share(differences >= 0))
    )
    return p


def _adjusted(pvalues: FloatArray, tested: BoolArray) -> FloatArray:
    """Holm over the tested hypotheses; the others have nothing to be refuted by."""
    adjusted = np.ones(len(pvalues))
    if tested.any():
        adjusted[tested] = holm(pvalues[tested])
    return adjusted
