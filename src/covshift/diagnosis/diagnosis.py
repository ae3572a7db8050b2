"""`Diagnosis`: what was found, what follows, and the rows to label where nobody can know."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from covshift.diagnosis.decidability import Decidability
from covshift.diagnosis.document import make_report
from covshift.diagnosis.evidence import Evidence
from covshift.diagnosis.expectation import Expectation
from covshift.diagnosis.expected_accuracy import expect_accuracy
from covshift.diagnosis.gains import Gains
from covshift.diagnosis.hypotheses import all_hypotheses
from covshift.diagnosis.labelling import (
    LabelEvidence,
    add_labels,
    locate_labels,
    rows_to_label,
    weigh_labels,
)
from covshift.diagnosis.movement import Movement
from covshift.diagnosis.pictures import draw_gains
from covshift.diagnosis.plain import to_plain
from covshift.diagnosis.stability import Stability
from covshift.diagnosis.verdict import Verdict, decide_by_labels
from covshift.diagnosis.weighting import Weighting
from covshift.diagnosis.words import HOW_TO_LABEL, describe, describe_html, summarise
from covshift.kernels.arrays import BoolArray, FloatArray, IntArray
from covshift.output_files import write_whole
from covshift.predictors import AdaptedClassifier
from covshift.selection import AutoAdaptedClassifier
from covshift.selection.bench import Bench
from covshift.selection.candidates import Candidate


class Stages(NamedTuple):
    """What each stage found."""

    movement: Movement
    weighting: Weighting
    stability: Stability
    decidability: Decidability
    evidence: Evidence
    verdict: Verdict
    labels: LabelEvidence | None
    skipped: list[str]  # kinds of evidence for which there was no time


class Diagnosis:
    """What moved, which assumption holds, what to do; made by `diagnose`.

    Attributes
    ----------
    verdict : Verdict
        ``kind`` is "adapt", "no adaptation", "not moved" or "undecidable".
    leading : str or None
        Name of the hypothesis that leads, be its gain sure or not.
    recommended : AdaptedClassifier or AutoAdaptedClassifier
        The model to fit: with the leading adapter where all others are refuted, else a vote of
        those that survive; without adapter where nothing is to be gained, or nothing is known.
    movement, weighting, stability, decidability, evidence, labels
        What the stages found.
    expectations : list of Expectation
        Accuracy of the recommended model on the target, estimated without labels, or why not.
    """

    def __init__(
        self,
        stages: Stages,
        bench: Bench,
        hypothesis_of: IntArray,
        *,
        classes: Any,
        target_rows: IntArray,
        n_rows: tuple[int, int],
        feature_names: Sequence[str] | None,
        domain_names: dict[int, str],
        objective: str,
        asked: FloatArray | None = None,
    ) -> None:
        self.stages = stages
        self.movement, self.weighting, self.stability, self.decidability = stages[:4]
        self.evidence, self.verdict, self.labels, self.skipped = stages[4:]
        self.classes = classes
        self.target_rows = target_rows
        self.n_rows = n_rows
        self.feature_names = feature_names
        self.domain_names = domain_names
        self.objective = objective
        self._bench = bench
        self._hypothesis_of = hypothesis_of
        # Numbers of the target rows that have labels, their classes, and their weights.
        self._asked = np.empty((3, 0)) if asked is None else asked

    @property
    def n_rows_looked_at(self) -> tuple[int, int]:
        """Source and target rows that the evidence is from."""
        problem = self._bench.problem
        return len(problem.X_source), len(problem.X_target)

    @property
    def leading(self) -> str | None:
        """Name of the leading hypothesis."""
        number = self.verdict.leading
        return None if number is None else all_hypotheses()[number].name

    @property
    def surviving(self) -> list[str]:
        """Names of the hypotheses that are not refuted."""
        return [all_hypotheses()[number].name for number in self.verdict.surviving]

    @property
    def share_changed(self) -> float:
        """Share of the target rows that the leading hypothesis predicts otherwise than the first.

        NaN where nothing leads. What it gains or harms, it does on these rows.
        """
        number = self.verdict.leading
        if number is None or number not in self._able:
            return float("nan")
        return float(np.mean(self._predictions[number] != self._predictions[0]))

    @cached_property
    def variants(self) -> list[Candidate | None]:
        """For each hypothesis, the adapter and model that serve it best; None: none can be fitted.

        By the evidence that decides; where none does, by source rows moved like the target.
        """
        return [None if c < 0 else self._bench.candidates[c] for c in self._variant_numbers]

    @property
    def recommended(self) -> Any:
        """An unfitted model: fit it with ``fit(X, y, sample_domain=...)``."""
        verdict, plain = self.verdict, self.variants[0]
        assert plain is not None
        leader = self.variants[verdict.followed]
        if verdict.followed == 0 or leader is None:
            return self._alone(plain)
        if verdict.clearly:
            return self._alone(leader)
        members = [
            one
            for one, hypothesis in zip(self._bench.candidates, self._hypothesis_of, strict=True)
            if hypothesis in verdict.surviving and one.adapts
        ]
        return AutoAdaptedClassifier(candidates=members, objective=self.objective, random_state=0)

    def _alone(self, candidate: Candidate) -> AdaptedClassifier:
        """Return one candidate as a model, adapter or scaler included."""
        # Without probabilities, the estimator decides in its own way.
        decides = hasattr(candidate.estimator, "predict_proba")
        model = candidate.model()
        model.objective = self.objective if decides else None
        return model

    @cached_property
    def expectations(self) -> list[Expectation]:
        """Accuracy on the target to expect of what is advised, estimated without labels."""
        number = int(self._variant_numbers[self.verdict.followed])
        if number < 0:
            return []
        return expect_accuracy(
            self._bench,
            number,
            self.weighting,
            self.stability,
            by_domains=self.decidability.domains_like_target,
        )

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row for each hypothesis: what it assumes, its remedy, its gains, its fate."""
        rows = []
        for number, hypothesis in enumerate(all_hypotheses()):
            variant = self.variants[number]
            row: dict[str, Any] = {
                "hypothesis": hypothesis.name,
                "assumption": hypothesis.assumption,
                "remedy": hypothesis.remedy,
                "variant": None if variant is None else variant.name,
                "survives": number in self.verdict.surviving,
                "leads": number == self.verdict.leading,
            }
            for kind, gains in self.evidence.items():
                row[f"gain: {kind}"] = to_plain(gains.gains[number])
                row[f"interval: {kind}"] = to_plain(gains.intervals[number])
                row[f"p-value: {kind}"] = to_plain(gains.pvalues[number])
            if self.labels is not None:
                row["gain: labels"] = to_plain(self.labels.gains[number])
            rows.append(row)
        return rows

    def rows_to_label(self, n_rows: int = 20) -> IntArray:
        """Positions in X of the target rows whose labels would tell most, the most telling first.

        Between the surviving hypotheses, or, where one is left, between it and all others. Fewer
        come back where these agree on all other rows.
        """
        return self.target_rows[self._ask(n_rows)[0]]

    def _ask(self, n_rows: int) -> tuple[IntArray, FloatArray]:
        """Numbers of the target rows to label, and their weights."""
        between = self.verdict.surviving if len(self.verdict.surviving) > 1 else self._able
        rng = self._bench.rng("rows to label")
        return rows_to_label(self._predictions[between], n_rows, rng, self._asked[0].astype(int))

    def update(self, rows: Any, labels: Any) -> "Diagnosis":
        """Use the labels of some target rows; returns a new diagnosis.

        Parameters
        ----------
        rows : array-like of int
            Positions in X, from `rows_to_label` or any target rows that were looked at
            (``target_rows``).
        labels : array-like
            Their labels.

        Returns
        -------
        Diagnosis
        """
        numbers, codes = locate_labels(self.target_rows, self.classes, rows, labels)
        asked = add_labels(self._asked, self._ask(len(numbers)), numbers, codes)
        rng = self._bench.rng("turns of signs")
        labelled, classes, weights = asked
        evidence = weigh_labels(
            self._predictions, labelled.astype(int), classes.astype(int), weights, rng
        )
        verdict = decide_by_labels(evidence, self._able)
        return Diagnosis(
            self.stages._replace(labels=evidence, verdict=verdict),
            self._bench,
            self._hypothesis_of,
            classes=self.classes,
            target_rows=self.target_rows,
            n_rows=self.n_rows,
            feature_names=self.feature_names,
            domain_names=self.domain_names,
            objective=self.objective,
            asked=asked,
        )

    def outside_support(self, X: Any) -> BoolArray:
        """Which rows lie where the source has none: what is predicted there is extrapolation."""
        support = self.weighting.support
        if support is None:
            return np.zeros(len(X), dtype=bool)
        return support.outside(np.asarray(X, dtype=np.float64))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, texts and lists."""
        return {
            "verdict": to_plain(self.verdict)
            | {"leading": self.leading, "surviving": self.surviving},
            "summary": summarise(self),
            "objective": self.objective,
            "rows": list(self.n_rows),
            "rows looked at": list(self.n_rows_looked_at),
            "hypotheses": self.table,
            "movement": self.movement.to_dict(),
            "weighting": self.weighting.to_dict(),
            "stability": self.stability.to_dict(),
            "decidability": to_plain(self.decidability),
            "expectations": [one.to_dict() for one in self.expectations],
            "labels": None if self.labels is None else to_plain(self.labels),
            "skipped": list(self.skipped),
        }

    def plot(self) -> Any:
        """A matplotlib figure of the gains of all hypotheses. The extra ``report``."""
        return draw_gains(self)

    def to_html(
        self,
        path: Any = None,
        *,
        facts: Sequence[tuple[str, str]] = (),
        how_to_label: str = HOW_TO_LABEL,
    ) -> str:
        """The report as one self-contained page; also written to ``path``. The extra ``report``.

        ``facts`` are pairs of a name and a text to be shown at the head; ``how_to_label`` tells
        the reader how to bring in labels, where they are wanted.
        """
        from covshift.report.page import render_page  # needs an extra

        page = render_page(make_report(self, facts, how_to_label))
        if path is not None:
            write_whole(Path(path), lambda file: file.write(page.encode()))
        return page

    def __repr__(self) -> str:
        return describe(self)

    def _repr_html_(self) -> str:
        """For notebooks: the sentences and the table of hypotheses."""
        return describe_html(self)

    @cached_property
    def _variant_numbers(self) -> IntArray:
        for gains in self._by_worth():
            if gains is not None:
                return gains.variants
        first = [np.flatnonzero(self._hypothesis_of == h) for h in range(len(all_hypotheses()))]
        return np.array([numbers[0] if len(numbers) else -1 for numbers in first])

    def _by_worth(self) -> list[Gains | None]:
        """Evidence to choose variants by: what can decide comes before what cannot."""
        domains, overlap, moved = self.evidence
        decidability = self.decidability
        worthy = [domains if decidability.by_domains else None]
        worthy.append(overlap if decidability.by_overlap else None)
        return [*worthy, moved, overlap, domains]

    @property
    def _able(self) -> list[int]:
        """Hypotheses whose variant predicts the target."""
        return [
            h
            for h, c in enumerate(self._variant_numbers)
            if c >= 0 and self._bench.target[c].logits is not None
        ]

    @cached_property
    def _predictions(self) -> IntArray:
        """Class numbers of the target rows by each hypothesis; -2 where it predicts none."""
        predictions = np.full((len(all_hypotheses()), len(self._bench.problem.X_target)), -2)
        for h in self._able:
            predictions[h] = self._bench.target[self._variant_numbers[h]].codes
        return predictions
