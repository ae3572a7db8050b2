"""What the trials of the speech study say: scores by way of choosing, tests, verdicts.

Three ways of choosing settings, each with its own standing:

- "oracle": the best on the labelled target half, trial by trial, as the paper chose. It reads
  what adaptation does without, and is only there for comparison;
- "source folds": the best with source speakers in the target's place, by the mean over the folds;
- "printed": the configuration that the paper prints, without any choice of ours.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from covshift.measures import clustered_permutation_test, holm, paired_wilcoxon
from covshift.paper.grid_systems import BASELINES, SYSTEMS, best_setting
from covshift.paper.speech.oracle import oracle_choice
from covshift.paper.speech.printed import Configuration
from covshift.studies.report import Verdict
from covshift.studies.store import Record

ORACLE, FOLDS, PRINTED_WAY = "oracle", "source folds", "printed"
WAYS = (ORACLE, FOLDS, PRINTED_WAY)
CHANCE = 0.5  # UAR of guesses, of two classes
LEVEL = 0.05  # of both tests, after Holm's correction over the systems


class Score(NamedTuple):
    """UAR on the test half of one trial, with the settings that one way chose."""

    seed: int
    speaker: str
    uar: float
    chosen: Configuration
    record: Record


@dataclass(frozen=True)
class SpeechResults:
    """Records of trials that did not fail, by kind, corpus and system, in the order of seeds."""

    corpora: list[str]
    leave_out: str
    grid: dict[tuple[str, str], list[Record]] = field(default_factory=dict)
    printed: dict[tuple[str, str], list[Record]] = field(default_factory=dict)
    # By corpus, system and the speaker left out (None: the source is the same for all trials).
    folds: dict[tuple[str, str, str | None], list[Record]] = field(default_factory=dict)
    seeds: frozenset[int] = frozenset()  # of the trials on which settings are chosen

    @property
    def n_trials(self) -> int:
        """Trials of each corpus on which settings are chosen."""
        return len(self.seeds)

    def scores(self, corpus: str, system: str, way: str) -> list[Score]:
        """Scores of the trials on which settings are chosen; fewer where trials failed."""
        if way == PRINTED_WAY:
            printed = self.printed_scores(corpus, system)
            return [score for score in printed if score.seed in self.seeds]
        scores = []
        for record in self.grid.get((corpus, system), []):
            result = record.result or {}
            if way == ORACLE:
                best: tuple[int, int] | None = oracle_choice(result)
            else:
                best = self.fold_choice(corpus, system, result["speaker"])
            if best is not None:
                uar = result["test_uar"][best[0]][best[1]]
                chosen = _configuration(record, *best)
                scores.append(Score(record.trial.seed, result["speaker"], uar, chosen, record))
        return scores

    def printed_scores(self, corpus: str, system: str) -> list[Score]:
        """Scores of all trials with the printed configuration."""
        scores = []
        for record in self.printed.get((corpus, system), []):
            result, settings = record.result or {}, record.trial.settings
            chosen = Configuration(settings["setting"], settings["cost"])
            scores.append(
                Score(record.trial.seed, result["speaker"], result["test_uar"], chosen, record)
            )
        return scores

    def fold_choice(self, corpus: str, system: str, speaker: str) -> tuple[int, int] | None:
        """The best by the mean over the folds; None while one of them is missing."""
        tested_speaker = speaker if self.leave_out == "speaker" else None
        records = self.folds.get((corpus, system, tested_speaker), [])
        if not records or len(records) < records[0].trial.settings["n_folds"]:
            return None
        return best_setting(np.mean([(one.result or {})["fold_uar"] for one in records], axis=0))


def gather(records: Iterable[Record]) -> SpeechResults:
    """Sort the records of a run."""
    records = sorted(records, key=lambda record: record.trial.seed)
    settings = [record.trial.settings for record in records]
    corpora = sorted({one["corpus"] for one in settings})
    leave_out = settings[0]["leave_out"] if settings else "corpus"
    seeds = frozenset(
        record.trial.seed
        for record, one in zip(records, settings, strict=True)
        if one["kind"] == "grid"
    )
    results = SpeechResults(corpora, leave_out, seeds=seeds)
    for record, one in zip(records, settings, strict=True):
        if record.result is None:
            continue
        where = one["corpus"], one["system"]
        if one["kind"] == "fold":
            results.folds.setdefault((*where, one["tested_speaker"]), []).append(record)
        else:
            kind = results.grid if one["kind"] == "grid" else results.printed
            kind.setdefault(where, []).append(record)
    return results


def _configuration(record: Record, setting: int, cost: int) -> Configuration:
    settings = record.trial.settings
    costs = settings["costs"]
    return Configuration(settings["settings"][setting], costs[cost] if costs else None)


class Comparison(NamedTuple):
    """Two systems on the same trials, the first less the second."""

    n_trials: int
    difference: float
    wilcoxon: float
    clustered: float | None  # None with a single speaker
    smallest_clustered: float  # that so many speakers allow
    n_speakers: int
    one_way: bool  # whether the means over trials and over speakers and the ranks agree in sign


def compare(first: Sequence[Score], second: Sequence[Score]) -> Comparison | None:
    """Test two series of scores on the trials that both have; None without any."""
    others = {score.seed: score.uar for score in second}
    pairs = [(score, others[score.seed]) for score in first if score.seed in others]
    if not pairs:
        return None
    a, b = [score.uar for score, _ in pairs], [other for _, other in pairs]
    differences = np.subtract(a, b)
    speakers = [score.speaker for score, _ in pairs]
    n_speakers = len(set(speakers))
    ranks = paired_wilcoxon(a, b)
    signs = [np.sign(differences.mean()), np.sign(ranks.effect_size)]
    clustered, smallest = None, 1.0
    if n_speakers > 1:
        flips = clustered_permutation_test(differences, speakers, random_state=0)
        clustered, smallest = flips.pvalue, flips.smallest_pvalue
        signs.append(np.sign(flips.statistic))
    return Comparison(
        len(pairs),
        float(differences.mean()),
        ranks.pvalue,
        clustered,
        smallest,
        n_speakers,
        len(set(signs)) == 1,
    )


def control_scores(scores: Iterable[Score]) -> list[Score]:
    """Of the same trials, the same fitted without the target rows, where there is such a thing."""
    found = []
    for score in scores:
        uar = (score.record.result or {}).get("without_target_test_uar")
        if uar is not None:
            found.append(score._replace(uar=uar))
    return found


class Tested(NamedTuple):
    """A system against its baseline over all trials with the printed configuration."""

    comparison: Comparison
    wilcoxon_holm: float
    clustered_holm: float | None
    n_systems: int  # over which the clustered test is corrected

    @property
    def could_be_shown(self) -> bool:
        """Whether so many speakers could show any difference, however large."""
        return self.comparison.smallest_clustered * self.n_systems <= LEVEL

    @property
    def verdict(self) -> Verdict:
        """A difference is called one where both tests show it, the many systems considered."""
        pvalues = self.wilcoxon_holm, self.clustered_holm
        if any(pvalue is None or pvalue > LEVEL for pvalue in pvalues):
            return "unclear"
        if not self.comparison.one_way:  # both tests are two-sided
            return "unclear"
        return "helps" if self.comparison.difference > 0 else "harms"


def compare_with_baselines(results: SpeechResults, corpus: str) -> dict[str, Tested]:
    """Every system against its baseline, with Holm's correction over the systems."""
    comparisons = {
        system: compare(
            results.printed_scores(corpus, system), results.printed_scores(corpus, baseline)
        )
        for system, baseline in BASELINES.items()
    }
    known = {system: one for system, one in comparisons.items() if one is not None}
    wilcoxon = holm([one.wilcoxon for one in known.values()])
    # What failed in part may be left with a single speaker: it has no such p-value to correct.
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
        """Whether some system knows more than nothing."""
        return self.pvalue <= LEVEL


def above_chance(results: SpeechResults, corpus: str) -> AboveChance | None:
    """Whether any system's UAR is above one half, clustered by speaker, with Holm's correction.

    Over all trials with the printed configuration; None where there are none, or one speaker.
    """
    means, pvalues = {}, []
    for system in SYSTEMS:
        scores = results.printed_scores(corpus, system)
        speakers = [score.speaker for score in scores]
        if len(set(speakers)) > 1:
            uars = np.array([score.uar for score in scores])
            means[system] = float(uars.mean())
            test = clustered_permutation_test(
                uars - CHANCE, speakers, alternative="greater", random_state=0
            )
            pvalues.append(test.pvalue)
    if not means:
        return None
    best = max(means, key=lambda system: means[system])
    return AboveChance(best, means[best], float(min(holm(pvalues))))
