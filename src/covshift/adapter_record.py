"""The record of one adapter: what it says, and what is built from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeAlias

NO_ADAPTATION = "none"
RAW = "raw"  # an explicit ``None`` as adapter: the rows unchanged
AUTO = "auto"  # "choose one": where a name is asked for, it is not an adapter's
# Of `covshift.selection.candidates`.
MODEL_NAMES = (
    "logistic", "linear-svm", "rbf", "kernel-ridge", "forest", "boosting", "joint",
    "joint-no-graph",
)  # fmt: skip

# The same for labels that are numbers.
NUMBER_MODEL_NAMES = ("ridge", "kernel-ridge", "forest", "boosting")

SCALED_PATH = "covshift.adapters.source_standard_scaler:SourceStandardScaler"
STANDARDIZED_PATH = "covshift.adapters.domain_standard_scaler:DomainStandardScaler"


class Size(NamedTuple):
    """Size of a problem: settings of adapters depend on it."""

    n_source: int
    n_target: int
    n_features: int
    n_classes: int = 2
    spread: float = 1.0  # mean standard deviation of a feature within a source domain
    n_domains: int = 2  # source and target domains together


Settings: TypeAlias = Mapping[str, Any] | Callable[[Size], Mapping[str, Any]]
Step: TypeAlias = Literal["scale", "standardize"] | int
METHODS = {"transformer": "transform", "weights": "score_weights"}  # what a kind needs


@dataclass(frozen=True, kw_only=True)
class AdapterRecord:
    """Facts about one adapter.

    Attributes
    ----------
    name : str
        Short name: lower case, hyphens.
    path : str
        Import path of the class, "package.module:Class".
    title : str
        The method in a few words, without its name.
    assumption, fixes, harms : str
        Sentences: its assumption on P(y | x), which shift it removes, where it harms.
    kind : {"transformer", "weights"}
        Whether it changes the representation of rows or weighs the source rows.
    reads_labels, needs_target, uses_domains : bool
        Whether known labels change its fit; whether a fit without target rows is refused; whether
        the fit depends on which rows are the target's.
    learns_targets, streams, runs_on_device, exports_to_onnx : bool
        Whether, with the settings below, it learns a new target without the training rows
        (``adapt_target``), is fitted to rows in blocks, to tensors on a GPU, and can be exported.
        The steps before it count: scalers take NumPy arrays only, so that filters after them do not
        run on a GPU, though their classes do.
    before : tuple
        Steps before it: "scale" (all rows in units of the source), "standardize" (each role by
        itself), or a number: principal components, where there are more features than that.
    settings : dict or callable
        Parameters for automatic use, or ``settings(size)`` that returns them.
    automatic : tuple of str
        Models that it is paired with in the default candidates, by the names of
        `covshift.selection.candidates`.
    automatic_numbers : tuple of str
        The same where the label is a number.
    needs_classes : str
        Why it cannot serve a label that is a number; empty: it can.
    max_features : int or None
        Features above which automatic use skips it, because it would take too long.
    min_domains : int
        Domains, of source and target together, below which automatic use skips it, because it
        would be the same as another one.
    n_outputs : int or None
        Most features that it yields, where that is fewer than it gets and models should know.
    aliases : tuple of str
        Older names, which are still accepted.

    Examples
    --------
    >>> from covshift.registry import find_record
    >>> find_record("coral").path
    'covshift.adapters.correlation_alignment:CorrelationAlignment'
    """

    name: str
    path: str
    title: str
    assumption: str
    fixes: str
    harms: str
    kind: Literal["transformer", "weights"] = "transformer"
    reads_labels: bool = False
    needs_target: bool = False
    uses_domains: bool = True
    learns_targets: bool = False
    streams: bool = False
    runs_on_device: bool = False
    exports_to_onnx: bool = False
    before: tuple[Step, ...] = ("scale",)
    settings: Settings = field(default_factory=dict)
    automatic: tuple[str, ...] = ()
    automatic_numbers: tuple[str, ...] = ()
    needs_classes: str = ""
    max_features: int | None = None
    min_domains: int = 2
    n_outputs: int | None = None
    aliases: tuple[str, ...] = ()

    @property
    def class_name(self) -> str:
        """Name of the class."""
        return self.path.partition(":")[2]

    def suits(self, size: Size) -> bool:
        """Return whether automatic use tries it on a problem of this size."""
        few_enough = self.max_features is None or size.n_features <= self.max_features
        return few_enough and size.n_domains >= self.min_domains

    def load_class(self) -> Any:
        """Import the class."""
        found = _load(self.path)
        method = METHODS[self.kind]
        if not all(hasattr(found, name) for name in ("fit", method)):
            raise TypeError(f"{self.path} has no fit and {method}, which kind={self.kind!r} needs")
        return found

    def settings_for(self, size: Size) -> dict[str, Any]:
        """Return the parameters of the class for a problem of this size."""
        found = self.settings(size) if callable(self.settings) else self.settings
        if not isinstance(found, Mapping):
            raise TypeError(f"settings(size) must return a mapping, got {found!r}")
        return dict(found)

    def build(self, size: Size) -> Any:
        """Return the unfitted adapter with its preprocessing, for a problem of this size."""
        adapter = self.load_class()(**self.settings_for(size))
        steps = [*_steps_before(self.before, size), adapter]
        if len(steps) == 1:
            return steps[0]
        from sklearn.pipeline import make_pipeline  # records are read without scikit-learn

        return make_pipeline(*steps)


def _steps_before(before: tuple[Step, ...], size: Size) -> list[Any]:
    steps: list[Any] = []
    for step in before:
        if step == "scale":
            steps.append(_load(SCALED_PATH)())
        elif step == "standardize":
            steps.append(_load(STANDARDIZED_PATH)())
        elif isinstance(step, int) and size.n_features > step:
            from sklearn.decomposition import PCA

            steps.append(PCA(max(1, min(step, size.n_source // 2)), random_state=0))
    return steps


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
