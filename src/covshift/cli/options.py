"""Options that several commands share, alone and in groups, and the checks of their values."""

import csv
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from covshift.cli.terminal import fail

TRUST = "--trust"
LARGEST_SEED = 2**32 - 1  # largest seed of NumPy's RandomState

Out = Annotated[Path, typer.Option(help="Folder to write to; created if missing.")]
Draws = Annotated[int, typer.Option(help="Random draws of each data set, at least 1.")]
FirstSeed = Annotated[int, typer.Option(help="Seed of the first draw; the next is one more.")]
Jobs = Annotated[int, typer.Option(help="Processes; -1: all processors.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Discard earlier results in the folder.")]

# Of the commands on users' files.
OutFile = Annotated[Path, typer.Option("--out", help="Output file (written atomically).")]
Domain = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Column that names each row's site, user or sensor."),
]
# Of the commands on models.
ModelDomain = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Column that names each row's site, user or sensor; by default the one of TRAIN.",
    ),
]
NewTable = Annotated[
    Path | None,
    typer.Argument(
        metavar="NEW",
        help="Table of new rows; without it, --target-domain or --time splits TRAIN.",
    ),
]
TimeBudget = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Time limit for scoring the candidates.")
]
Objective = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What to maximize: accuracy (default), or balanced_accuracy, which counts all classes "
        "equally. With --task regression: r2 (default) or mae, the mean absolute error.",
    ),
]
MinGain = Annotated[
    float | None,
    typer.Option(
        metavar="G",
        help="Adapt where the expected gain over the plain model is at least G (default: 0.0075, "
        "or 0 in R²; 0: wherever a gain is expected).",
    ),
]
MaxRisk = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        help="Accepted probability, 0 to 1, that the advised model loses more than 0.01 (0.02 "
        "in R²) against the plain model; where it is larger, the plain model is kept.",
    ),
]
Task = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="classification (default), or regression: predict a number."),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TYPE",
        help="Adapter plug-in in the model file that you trust: its code will run. May be "
        "repeated.",
    ),
]
Estimator = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Your own model in place of --model, by import path: lightgbm.LGBMClassifier, "
        "xgboost.XGBClassifier, or a classifier of scikit-learn, such as "
        "sklearn.ensemble.RandomForestClassifier; with --task regression, their regressors.",
    ),
]
EstimatorParams = Annotated[
    str | None,
    typer.Option(
        metavar="JSON", help="Parameters of --estimator, such as '{\"n_estimators\": 50}'."
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLS", help="Columns to leave out, separated by commas. May be repeated."
    ),
]
Use = Annotated[
    list[str] | None,
    typer.Option(metavar="COLS", help="Columns to use although they look like identifiers."),
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="Character between cells of a text file, or tab; detected by default.",
        # Shells make it hard to write the character itself.
        callback=lambda given: "\t" if given in ("tab", "\\t") else given,
    ),
]
Decimal = Annotated[str | None, typer.Option(help='Decimal sign, "." or ","; detected by default.')]
NoHeader = Annotated[
    bool,
    typer.Option("--no-header", help="The first row holds data; columns are named 'column 1', ..."),
]
SkipRows = Annotated[
    int | None,
    typer.Option(metavar="N", help="Lines to skip above the column names; detected by default."),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Encoding of a text file, such as cp1251; detected by default."
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(metavar="TEXTS", help="Cells that mean missing, such as -999 (--missing=-999)."),
]
NotMissing = Annotated[
    list[str] | None,
    typer.Option(metavar="TEXTS", help="Cells that are values, such as NA for Namibia."),
]
AsKind = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="COL=KIND",
        help="Read a column as number, text, boolean, date or days (a date as a number); with a "
        "unit or an order of day and month: price=number:EUR, visit=date:dmy. May be repeated.",
    ),
]
TargetDomain = Annotated[
    list[str] | None,
    typer.Option(metavar="NAMES", help="Without NEW: the domains of TRAIN that are the target."),
]
Time = Annotated[
    str | None,
    typer.Option("--time", metavar="COL", help="Without NEW: column to split TRAIN by."),
]
TrainBefore = Annotated[
    str | None,
    typer.Option(
        metavar="DATE", help="With --time: rows before DATE train; or a share, such as 0.8."
    ),
]
Database = Annotated[
    Path | None,
    typer.Option("--db", metavar="FILE", help="DuckDB database; tables are then SELECT queries."),
]
Bins = Annotated[
    int | None,
    typer.Option(metavar="N", help="Cut a numeric label into N ranges, which are the classes."),
]
MaxRows = Annotated[
    int | None,
    typer.Option(
        help="Rows of each table to use at most, drawn at random; by default as many as fill 20 "
        "million cells."
    ),
]
AsSignals = Annotated[
    bool,
    typer.Option(
        "--signals",
        help="The tables list recordings, one per row, with their files in a column 'file'; rows "
        "are the windows of these, and columns their spectra.",
    ),
]
Rate = Annotated[
    float | None,
    typer.Option(
        metavar="HZ", help="Samples per second, if neither the table nor the files state it."
    ),
]
WindowLength = Annotated[
    int | None, typer.Option(metavar="SAMPLES", help="Length of a window; needed by --signals.")
]
Overlap = Annotated[
    float | None, typer.Option(help="Share of a window that the next one repeats; default 0.")
]
SignalFeatures = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Features of a window: spectrum (default), or envelope, the spectrum of its envelope.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print results and errors, no progress and no notes."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")]
Seed = Annotated[int, typer.Option(help="Seed of all random draws.")]


def check_jobs(command: str, jobs: int) -> None:
    """Refuse options of numbers of processes that cannot be."""
    if jobs == 0 or jobs < -1:
        fail(command, f"--jobs must be at least 1, or -1 for all processors, got {jobs}.")


def check_seed(command: str, seed: int) -> None:
    """Refuse options of a seed that cannot be."""
    if not 0 <= seed <= LARGEST_SEED:
        fail(command, f"--seed must be from 0 to {LARGEST_SEED}, got {seed}.")


def parse_paths(command: str, option: str, form: str, texts: Sequence[str]) -> dict[str, Path]:
    """Split options NAME=PATH; each name once. Errors name ``form`` as what the option takes."""
    paths: dict[str, Path] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not name.strip() or not path.strip():
            fail(command, f"--{option} takes {form}, got {text!r}.")
        if name in paths:
            fail(command, f"--{option} names {name!r} twice: give one path for each name.")
        paths[name] = Path(path)
    return paths


def split_at_commas(texts: list[str] | None) -> list[str]:
    """Split options that list columns: commas between names, a name with a comma in quotes."""
    names = [name for text in texts or [] for name in next(csv.reader([text]), [])]
    return [name.strip() for name in names if name.strip()]


def own_model_option(
    estimator: str | None, parameters: str | None, adapter: str, seed: int, jobs: int, task: str
) -> Any:
    """Return the user's own model, unfitted; None where no option names one."""
    from covshift.tables.messages import TableError  # here: --help stays fast

    if estimator is None:
        if parameters is not None:
            raise TableError("--estimator-params needs --estimator, whose parameters they are.")
        return None
    from covshift.registry import AUTO
    from covshift.tables.own_models import make_own_model

    # The automatic choice runs candidates in processes, which would each start as many threads.
    n_jobs = 1 if adapter == AUTO else jobs
    return make_own_model(estimator, parameters, seed=seed, n_jobs=n_jobs, task=task)


def load_model(path: Path, trusted: Sequence[str] | None) -> Any:
    """Load a model file; an error about types names the option instead of Python's argument."""
    # Imported here: --help stays fast, and a missing extra becomes a one-line error.
    from covshift.persistence import ModelFileError, UntrustedTypesError, load
    from covshift.persistence.model_files import explain_untrusted

    try:
        return load(path, trusted=list(trusted or ()))
    except UntrustedTypesError as error:
        told = explain_untrusted(error.types, trust_options(error.types), f"{TRUST} TYPE")
        raise ModelFileError(f"Cannot read the model {path}: {told}") from None


def trust_options(types: Sequence[str]) -> str:
    """Return the command-line options that trust these types."""
    return " ".join(f"{TRUST} {name}" for name in types)


@dataclass(frozen=True)
class Reading:
    """How the tables of a command are read."""

    separator: Separator = None
    decimal: Decimal = None
    no_header: NoHeader = False
    skip_rows: SkipRows = None
    encoding: Encoding = None
    db: Database = None

    @property
    def layout(self) -> dict[str, Any]:
        """Arguments of `open_table`."""
        return {
            "separator": self.separator, "decimal": self.decimal, "header": not self.no_header,
            "skip_rows": self.skip_rows, "encoding": self.encoding,
        }  # fmt: skip

    def file_of(self, table: Path) -> Path:
        """Return the file of a table argument; with --db it is a query, whose rows are read."""
        if self.db is None:
            return table
        from covshift.tables.file_formats import query_file  # here: --help stays fast

        return query_file(self.db, str(table))


@dataclass(frozen=True)
class Cells:
    """Options about the cells of the training table."""

    missing: Missing = None
    not_missing: NotMissing = None
    as_kind: AsKind = None

    def to_intake(self) -> Any:
        """Return the `Intake` of `read_pair`."""
        # Imported here: --help stays fast.
        from covshift.tables.schema import Intake, parse_kinds

        kinds = parse_kinds(self.as_kind or [])
        return Intake(split_at_commas(self.missing), split_at_commas(self.not_missing), kinds)


@dataclass(frozen=True)
class Splitting:
    """How one table is split into training rows and new rows."""

    target_domain: TargetDomain = None
    time: Time = None
    train_before: TrainBefore = None

    def to_split(self) -> Any:
        """Return the `Split` of `read_pair`; None where no option says so."""
        if self.target_domain is None and self.time is None and self.train_before is None:
            return None
        from covshift.tables.file_pairs import Split  # here: --help stays fast

        return Split(split_at_commas(self.target_domain), self.time, self.train_before)


@dataclass(frozen=True)
class Signals:
    """Whether the tables of a command list recordings, and how these are cut into windows."""

    signals: AsSignals = False
    rate: Rate = None
    window: WindowLength = None
    overlap: Overlap = None
    features: SignalFeatures = None

    @property
    def _given(self) -> dict[str, Any]:
        named = ("rate", "window", "overlap", "features")
        return {name: value for name in named if (value := getattr(self, name)) is not None}

    def settings(self) -> Any:
        """Return the `WindowSettings` of tables of recordings; None: the tables are others."""
        from covshift.tables.messages import TableError  # here: --help stays fast
        from covshift.tables.recordings import WindowSettings

        if not self.signals:
            if self._given:
                raise TableError(f"--{next(iter(self._given))} needs --signals.")
            return None
        if self.window is None:
            raise TableError("--signals needs --window SAMPLES, the length of a window.")
        return WindowSettings(**self._given)

    def table_for(self, model: Path, table: Path) -> Any:
        """Return a table as the model file wants it: of recordings, if it was learned from such."""
        from covshift.persistence import read_card  # here: --help stays fast
        from covshift.tables.messages import TableError
        from covshift.tables.recordings import RecordingTable, WindowSettings

        card = read_card(model)
        if "signals" not in card:
            if self.signals or self._given:
                raise TableError(f"{model} was not made with --signals: it reads plain tables.")
            return table
        own = WindowSettings.from_card(card["signals"])
        for name, value in self._given.items():
            if value != getattr(own, name):
                raise TableError(
                    f"--{name} {value} differs from the model's, {getattr(own, name)}: leave it "
                    "out, or learn another model."
                )
        return RecordingTable(table, own)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let each parameter whose type is a dataclass of options stand for these options.

    Parameters
    ----------
    command : callable
        Function for Typer; parameters that stand for a group are passed by keyword.

    Returns
    -------
    callable
        The same command with the options one by one, in the place of their group.
    """
    signature = inspect.signature(command)
    groups: dict[str, Any] = {
        one.name: one.annotation
        for one in signature.parameters.values()
        if is_dataclass(one.annotation)
    }
    parameters = []
    for one in signature.parameters.values():
        if one.name not in groups:
            parameters.append(one)
            continue
        hints = get_type_hints(groups[one.name], include_extras=True)
        parameters += [
            one.replace(name=option.name, annotation=hints[option.name], default=option.default)
            for option in fields(groups[one.name])
        ]

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{option.name: given.pop(option.name) for option in fields(group)})
        command(**given)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run
