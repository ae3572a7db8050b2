"""What there is to choose from: pairs of an adapter and an estimator, with names."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from covshift.predictors import AdaptedClassifier

NO_ADAPTATION = "none"


class Candidate(NamedTuple):
    """An adapter, None for none, and the classifier on top of it.

    Candidates that share one adapter object share its fits: they must not change it.
    """

    adapter_name: str
    estimator_name: str
    adapter: Any
    estimator: Any

    @property
    def name(self) -> str:
        """As in the leaderboard."""
        return f"{self.adapter_name} + {self.estimator_name}"

    @property
    def adapts(self) -> bool:
        """Whether it does anything about the target."""
        return self.adapter_name != NO_ADAPTATION

    def model(self) -> AdaptedClassifier:
        """An unfitted classifier of its own."""
        return AdaptedClassifier(self.adapter, self.estimator)


def check_candidates(candidates: Iterable[Any]) -> list[Candidate]:
    """Make candidates of what a user lists, or say what is wrong with it.

    Entries are `Candidate`, `AdaptedClassifier`, pairs (adapter, estimator) or triples with a
    name before them. "No adaptation" is added for each estimator, where it is missing.
    """
    try:
        entries = list(candidates)
    except TypeError:
        entries = []
    if not entries:
        raise ValueError(
            "candidates must list at least one pair (adapter, estimator), e.g. "
            "[(None, LogisticRegression()), (CorrelationAlignment(), LogisticRegression())]."
        )
    found = [_candidate(entry, number) for number, entry in enumerate(entries)]
    return _with_unique_names(_with_unadapted(found))


def pair(
    adapters: Sequence[tuple[str, Any]], estimators: Sequence[tuple[str, Any]]
) -> list[Candidate]:
    """Every adapter with every estimator, adapter by adapter."""
    return [
        Candidate(adapter_name, estimator_name, adapter, estimator)
        for adapter_name, adapter in adapters
        for estimator_name, estimator in estimators
    ]


def _candidate(entry: Any, number: int) -> Candidate:
    if isinstance(entry, Candidate):
        return entry
    name = None
    if isinstance(entry, AdaptedClassifier):
        adapter, estimator = entry.adapter, entry.estimator or entry._default_estimator()
    elif isinstance(entry, tuple | list) and len(entry) == 2:
        adapter, estimator = entry
    elif isinstance(entry, tuple | list) and len(entry) == 3 and isinstance(entry[0], str):
        name, adapter, estimator = entry
    else:
        raise TypeError(
            f"candidates[{number}] is {entry!r}: expected (adapter, estimator), (name, adapter, "
            "estimator) or an AdaptedClassifier; None as adapter means no adaptation."
        )
    if not (hasattr(estimator, "fit") and is_classifier(estimator)):
        raise TypeError(f"candidates[{number}]: {estimator!r} is no classifier.")
    return Candidate(name or describe(adapter), describe(estimator), adapter, estimator)


def describe(estimator: Any) -> str:
    """A short name: the class, or those of a pipeline's steps."""
    if estimator is None:
        return NO_ADAPTATION
    if isinstance(estimator, Pipeline):
        return " > ".join(describe(step) for _, step in estimator.steps)
    return estimator if isinstance(estimator, str) else type(estimator).__name__


def _with_unadapted(candidates: list[Candidate]) -> list[Candidate]:
    """Put "no adaptation" before the others, for every estimator that lacks it."""
    # By what they are, not by object: the same settings twice are one estimator.
    known = {repr(one.estimator) for one in candidates if one.adapter is None}
    missing: dict[str, Candidate] = {}
    for one in candidates:
        if repr(one.estimator) not in known:
            unadapted = one._replace(adapter_name=NO_ADAPTATION, adapter=None)
            missing.setdefault(repr(one.estimator), unadapted)
    return [*missing.values(), *candidates]


def _with_unique_names(candidates: list[Candidate]) -> list[Candidate]:
    counts: dict[str, int] = {}
    named = []
    for one in candidates:
        count = counts[one.name] = counts.get(one.name, 0) + 1
        if count > 1:
            one = one._replace(estimator_name=f"{one.estimator_name} ({count})")
        named.append(one)
    return named
