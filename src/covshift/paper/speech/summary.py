"""Summary of the trials of the speech study: scores by way of choosing, tests, verdicts.

Three ways of choosing settings, each with its own standing:

- "oracle": the best on the labeled target half, trial by trial, as the paper chose. It reads
  what adaptation does without, and is only there for comparison;
- "source folds": the best with source speakers in the target's place, by the mean over the folds;
- "printed": the configuration that the paper prints, without any choice of ours.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from covshift.measures import clustered_permutation_test, holm, paired_wilcoxon
from covshift.paper.grid_systems import BASELINES, SYSTEMS, best_setting
from covshift.paper.speech.oracle import oracle_choice
from covshift.paper.speech.printed import Configuration
from covshift.studies.result_tables import Frame, Verdict, group_rows, make_frame, tidy
from covshift.studies.store import Record

ORACLE, FOLDS, PRINTED_WAY = "oracle", "source folds", "printed"
WAYS = (ORACLE, FOLDS, PRINTED_WAY)
CHANCE = 0.5  # UAR of guesses, of two classes
TEST_LEVEL = 0.05  # level of both tests, after Holm's correction over the systems
SYMBOLS = {"label_reward": "λ", "lambda": "λ", "noise_level": "noise", "learning_rate": "rate"}
NOT_SHOWN = ("mini_batches",)  # settings that all systems share
COLUMNS = ("corpus", "system", "way", "seed", "speaker", "uar", "settings", "control", "trial")


class SpeechResults(NamedTuple):
    """Scores of the trials that did not fail, in the order of their seeds.

    Attributes
    ----------
    corpora : list of str
        Those of which speakers are tested.
    leave_out : str
        Rows left out of training with a tested speaker.
    seeds : frozenset of int
        Of the trials on which settings are chosen.
    groups : dict of (corpus, system, way) to pandas.DataFrame
        UAR on the test half of each trial with the settings that were chosen one way; as
        ``control``, the UAR of the same fitted without the target rows.
    """

    corpora: list[str]
    leave_out: str
    seeds: frozenset[int]
    groups: dict[tuple[str, ...], Frame]

    def all_scores(self, corpus: str, system: str, way: str) -> Frame:
        """Scores of all trials; with the printed configuration there are more than to choose on."""
        found = self.groups.get((corpus, system, way))
        return make_frame([], COLUMNS) if found is None else found

    def scores(self, corpus: str, system: str, way: str) -> Frame:
        """Return scores of the trials on which settings are chosen; fewer where trials failed."""
        found = self.all_scores(corpus, system, way)
        return found[found["seed"].isin(self.seeds)]

    def printed_scores(self, corpus: str, system: str) -> Frame:
        """Return the scores of all trials with the printed configuration."""
        return self.all_scores(corpus, system, PRINTED_WAY)


def summarize_records(records: Sequence[Record]) -> SpeechResults:
    """Summarize a run of speech trials: scores with settings chosen in each of the ways."""
    settings = [record.trial.settings for record in records]
    leave_out = settings[0]["leave_out"] if settings else "corpus"
    ordered = sorted(records, key=lambda record: record.trial.seed)
    trials = tidy(ordered, kind=None, without_target_test_uar=None).to_dict("records")
    choices = _fold_choices(trials)
    rows = []
    for trial in trials:
        if trial["kind"] == "printed":
            chosen = Configuration(trial["setting"], trial["cost"])
            rows.append(_score(trial, PRINTED_WAY, trial["test_uar"], chosen))
        elif trial["kind"] == "grid":
            speaker = trial["speaker"] if leave_out == "speaker" else None
            by_folds = choices.get((trial["corpus"], trial["system"], speaker))
            for way, best in ((ORACLE, oracle_choice(trial)), (FOLDS, by_folds)):
                if best is not None:
                    cost = trial["costs"][best[1]] if trial["costs"] else None
                    chosen = Configuration(trial["settings"][best[0]], cost)
                    rows.append(_score(trial, way, trial["test_uar"][best[0]][best[1]], chosen))
    return SpeechResults(
        sorted({one["corpus"] for one in settings}),
        leave_out,
        frozenset(
            record.trial.seed
            for record, one in zip(records, settings, strict=True)
            if one["kind"] == "grid"
        ),
        group_rows(make_frame(rows, COLUMNS), ("corpus", "system", "way")),
    )


def _fold_choices(trials: Sequence[Mapping[str, Any]]) -> dict[Any, tuple[int, int]]:
    """Return the best setting by the mean over the folds, where none of them is missing.

    By corpus, system and the speaker left out (None: the source is the same for all trials).
    """
    folds: dict[Any, list[Mapping[str, Any]]] = {}
    for trial in trials:
        if trial["kind"] == "fold":
            where = trial["corpus"], trial["system"], trial["tested_speaker"]
            folds.setdefault(where, []).append(trial)
    return {
        where: best_setting(np.mean([trial["fold_uar"] for trial in found], axis=0))
        for where, found in folds.items()
        if len(found) >= found[0]["n_folds"]
    }


def _score(trial: Mapping[str, Any], way: str, uar: float, chosen: Configuration) -> dict[str, Any]:
    row = {name: trial[name] for name in ("corpus", "system", "seed", "speaker", "trial")}
    control = trial["without_target_test_uar"]
    return row | {
        "way": way, "uar": uar, "settings": _shown_configuration(chosen), "control": control
    }  # fmt: skip


def _shown_configuration(configuration: Configuration) -> str:
    """Return a configuration as the paper writes it: "cos, L 80, λ 1.8, C 7.5e-05"."""
    parts = [
        value if isinstance(value, str) else f"{SYMBOLS.get(name, name)} {value:g}"
        for name, value in configuration.setting.items()
        if name not in NOT_SHOWN
    ]
    if configuration.cost is not None:
        parts.append(f"C {configuration.cost:g}")
    return ", ".join(parts)


class Comparison(NamedTuple):
    """Two systems on the same trials, the first less the second."""

    n_trials: int
    difference: float
    wilcoxon: float
    clustered: float | None  # None with a single speaker
    smallest_clustered: float  # smallest p-value possible with so few speakers
    n_speakers: int
    one_way: bool  # whether the means over trials and over speakers and the ranks agree in sign


def compare(first: Frame, second: Frame) -> Comparison | None:
    """Test two series of scores for the summary, on the trials that both have; None without any."""
    both = first[["seed", "speaker", "uar"]].merge(
        second[["seed", "uar"]], on="seed", suffixes=("", "_other")
    )
    if not len(both):
        return None
    a, b, speakers = (both[name].tolist() for name in ("uar", "uar_other", "speaker"))
    differences = np.subtract(a, b)
    n_speakers = len(set(speakers))
    ranks = paired_wilcoxon(a, b)
    signs = [np.sign(differences.mean()), np.sign(ranks.effect_size)]
    clustered, smallest = None, 1.0
    if n_speakers > 1:
        flips = clustered_permutation_test(differences, speakers, random_state=0)
        clustered, smallest = flips.pvalue, flips.smallest_pvalue
        signs.append(np.sign(flips.statistic))
    return Comparison(
        len(both),
        float(differences.mean()),
        ranks.pvalue,
        clustered,
        smallest,
        n_speakers,
        len(set(signs)) == 1,
    )


def control_scores(scores: Frame) -> Frame:
    """Summarize the scores of the control: the same trials, fitted without the target rows."""
    known = scores[scores["control"].notna()]
    return known.assign(uar=known["control"])


class Tested(NamedTuple):
    """A system against its baseline over all trials with the printed configuration."""

    comparison: Comparison
    wilcoxon_holm: float
    clustered_holm: float | None
    n_systems: int  # over which the clustered test is corrected

    @property
    def could_be_shown(self) -> bool:
        """Whether this number of speakers could show any difference, however large."""
        return self.comparison.smallest_clustered * self.n_systems <= TEST_LEVEL

    @property
    def verdict(self) -> Verdict:
        """A difference is called one where both tests show it, the many systems considered."""
        pvalues = self.wilcoxon_holm, self.clustered_holm
        if any(pvalue is None or pvalue > TEST_LEVEL for pvalue in pvalues):
            return "unclear"
        if not self.comparison.one_way:  # both tests are two-sided
            return "unclear"
        return "helps" if self.comparison.difference > 0 else "harms"


def compare_with_baselines(results: SpeechResults, corpus: str) -> dict[str, Tested]:
    """Summarize every system against its baseline, with Holm's correction over the systems."""
    comparisons = {
        system: compare(
            results.printed_scores(corpus, system), results.printed_scores(corpus, baseline)
        )
        for system, baseline in BASELINES.items()
    }
    known = {system: one for system, one in comparisons.items() if one is not None}
    wilcoxon = holm([one.wilcoxon for one in known.values()])
    # A study that failed in part may have a single speaker: it has no such p-value to correct.
    clustered = {
        system: one.clustered for system, one in known.items() if one.clustered is not None
    }
    corrected = dict(zip(clustered, holm(list(clustered.values())).tolist(), strict=True))
    return {
        system: Tested(one, float(pvalue), corrected.get(system), len(corrected))
        for (system, one), pvalue in zip(known.items(), wilcoxon, strict=True)
    }


class AboveChance(NamedTuple):
    """The best system of a corpus, and the smallest p-value of any being above chance."""

    system: str
    uar: float
    pvalue: float

    @property
    def shown(self) -> bool:
        """Whether any system is above chance."""
        return self.pvalue <= TEST_LEVEL


def above_chance(results: SpeechResults, corpus: str) -> AboveChance | None:
    """Summarize whether any system's UAR is above one half, clustered by speaker, by Holm.

    Over all trials with the printed configuration; None where there are none, or one speaker.
    """
    means, pvalues = {}, []
    for system in SYSTEMS:
        scores = results.printed_scores(corpus, system)
        speakers = scores["speaker"].tolist()
        if len(set(speakers)) > 1:
            uars = np.array(scores["uar"].tolist())
            means[system] = float(uars.mean())
            test = clustered_permutation_test(
                uars - CHANCE, speakers, alternative="greater", random_state=0
            )
            pvalues.append(test.pvalue)
    if not means:
        return None
    best = max(means, key=lambda system: means[system])
    return AboveChance(best, means[best], float(min(holm(pvalues))))
