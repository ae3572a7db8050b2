"""What there is to choose from: pairs of an adapter and an estimator, with names."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from covshift.predictors import AdaptedClassifier
from covshift.registry import NO_ADAPTATION, AdapterRecord, Size, find_record, records
from covshift.selection.models import make_model, model_name


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


def check_candidates(candidates: Iterable[Any], size: Size) -> list[Candidate]:
    """Make candidates of what a user lists, or say what is wrong with it.

    Entries are `Candidate`, `AdaptedClassifier`, pairs (adapter, estimator) or triples with a
    name before them; the adapter may be given by its name in the registry. "No adaptation" is
    added for each estimator, where it is missing.
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
    found = [_candidate(entry, number, size) for number, entry in enumerate(entries)]
    return _with_unique_names(_with_unadapted(found))


def default_candidates(size: Size) -> list[Candidate]:
    """Candidates that are tried when the user names none: the registry's, with their models."""
    candidates = registered_candidates(size, "automatic")
    # Trees last: they cost most, and ties go to the earlier candidate.
    return sorted(candidates, key=lambda one: one.estimator_name == "boosting")


def registered_candidates(
    size: Size, use: Literal["automatic", "diagnosed"], n_fitted: int | None = None
) -> list[Candidate]:
    """Adapters of the registry with the models that they are paired with for this use.

    ``n_fitted``: source rows that models will be fitted to in the end, if these are more than
    those of ``size``.
    """
    candidates = []
    for record, adapter in build_adapters(size, use):
        n_features = min(size.n_features, record.n_outputs or size.n_features)
        for name in getattr(record, use):
            model = make_model(name, n_fitted or size.n_source, n_features)
            candidates.append(Candidate(record.name, name, adapter, model))
    return candidates


def candidates_around(estimator: Any, size: Size) -> list[Candidate]:
    """Every adapter around the user's own model; first the model as it is."""
    name = model_name(estimator)
    candidates = [Candidate(NO_ADAPTATION, name, None, estimator)]
    for record, adapter in build_adapters(size, "automatic"):
        if record.name != NO_ADAPTATION:
            candidates.append(Candidate(record.name, name, adapter, estimator))
    return candidates


def build_adapters(size: Size, use: str) -> list[tuple[AdapterRecord, Any]]:
    """Adapters for this use, each once: on few features two records may mean the same model."""
    built: dict[str, tuple[AdapterRecord, Any]] = {}
    for record in records():
        if getattr(record, use) and record.suits(size):
            key = repr((record.path, record.before, sorted(record.settings_for(size).items())))
            if key not in built:
                built[key] = record, record.build(size)
    return list(built.values())


def named_classifier(adapter: str, model: str, n_source: int, n_features: int) -> AdaptedClassifier:
    """Return an unfitted `AdaptedClassifier` by the names of its two parts.

    Parameters
    ----------
    adapter : str
        A name of `covshift.registry`.
    model : str
        A name of `covshift.selection.models`.
    n_source, n_features : int
        Size of the problem.

    Returns
    -------
    AdaptedClassifier

    Examples
    --------
    >>> from covshift.selection.candidates import named_classifier
    >>> named_classifier("standardise", "linear", 100, 5).adapter
    'standardize'
    """
    record = find_record(adapter)
    n_features = min(n_features, record.n_outputs or n_features)
    return AdaptedClassifier(record.name, make_model(model, n_source, n_features))


def _candidate(entry: Any, number: int, size: Size) -> Candidate:
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
        raise TypeError(f"candidates[{number}]: {estimator!r} is not a classifier.")
    if isinstance(adapter, str):
        record = find_record(adapter)
        name, adapter = name or record.name, record.build(size)
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
