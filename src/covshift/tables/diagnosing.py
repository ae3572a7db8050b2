"""Two tables -> a `Diagnosis`, and its report."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from covshift.diagnosis import Diagnosis, diagnose
from covshift.diagnosis.report import make_report
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.feature_scales import feature_deviations
from covshift.measures import ks_test
from covshift.measures.labeled_scores import score_numbers
from covshift.output_files import write_whole
from covshift.report.document import (
    Cell,
    Document,
    Figure,
    Row,
    Section,
    make_cell,
    make_column,
    make_figure,
    make_section,
    make_table,
    validate_document,
)
from covshift.selection.assessment_words import say_number
from covshift.selection.label_tasks import NumberTask
from covshift.solvers.threads import one_blas_thread
from covshift.tables.columns import column_categories, column_days, column_numbers
from covshift.tables.dates import is_days
from covshift.tables.encoder import TableEncoder
from covshift.tables.matching import MatchedTables
from covshift.tables.messages import one_line
from covshift.tables.table_words import (
    COLUMNS_EXPLAINED,
    FILLED,
    HELD_OUT_ERRORS,
    HELD_OUT_PICTURE,
)


def diagnose_tables(tables: MatchedTables, **options: Any) -> Diagnosis:
    """Diagnose a training table and a new one.

    Rows are encoded and ordered as `TableClassifier` does, so that the advice is about the model
    that `adapt_tables` fits with the same settings and seed.

    Parameters
    ----------
    tables : MatchedTables
        From `read_pair` or `match_tables`, with known labels of new rows if ``with_new_labels`` has
        read some.
    **options
        ``objective``, ``min_gain``, ``max_risk``, ``max_rows``, ``time_budget``, ``n_jobs``,
        ``random_state``, ``verbose``, ``progress`` of `diagnose`.

    Returns
    -------
    Diagnosis
        Its features are the encoded columns; rows are in the order of ``tables.stack()``.
    """
    stacked = tables.stack()
    encoder = TableEncoder().fit(
        stacked.X, sample_domain=stacked.sample_domain, schema=tables.schema
    )
    features = pd.DataFrame(encoder.transform(stacked.X), columns=encoder.get_feature_names_out())
    with one_blas_thread():  # as `adapt_tables` does
        return diagnose(
            features,
            stacked.y,
            sample_domain=stacked.sample_domain,
            label_mask=tables.label_mask,
            domain_names=dict(tables.domain_names),
            task=tables.task,
            **options,
        )


# --- The report of a diagnosis ---


if TYPE_CHECKING:
    from covshift.diagnosis.diagnosis import Diagnosis


# --- Numbers predicted for source rows that a fit left out, beside the true ones: a section ---
#
# The recommended model predicts every source row by fits that left it out, three folds, as a row of
# its own domain. Labels of the target are not needed for that, and the errors there may be larger.

MAX_SHOWN_DOMAINS = 30  # in the table, those with the most rows first


class HeldOut(NamedTuple):
    """Source rows: true label, prediction by a fit that left the row out, domain."""

    truth: FloatArray
    predicted: FloatArray
    domain: IntArray


def _held_out_numbers(diagnosis: "Diagnosis") -> HeldOut | None:
    """Return predictions of the recommended model for source rows that its fits left out.

    None where the label is a class, or no candidate has predicted all source rows.
    """
    bench, weights = diagnosis._bench, diagnosis._weights
    problem, task = bench.problem, bench.task
    if not isinstance(task, NumberTask) or problem.values is None:
        return None
    parts = [
        (weight, numbers[:, 0])
        for weight, numbers in zip(weights, bench.probabilities_left_out(), strict=True)
        if numbers is not None and weight > 0
    ]
    if not parts:
        return None
    mixed = np.average([one for _, one in parts], axis=0, weights=[weight for weight, _ in parts])
    return HeldOut(task.restore(problem.values), task.restore(mixed), problem.source_domain)


def _held_out_section(diagnosis: "Diagnosis", domain_names: Mapping[int, str]) -> list[Section]:
    """Return a section with predicted against true numbers, and errors by domain, if it has one.

    Parameters
    ----------
    diagnosis : Diagnosis
        Of a label that is a number; for classes the section is left out.
    domain_names : mapping of int to str
        Names of the source domains.

    Returns
    -------
    list of Section
        One or none.
    """
    found = _held_out_numbers(diagnosis)
    if found is None:
        return []
    names = np.array([domain_names.get(int(one), str(one)) for one in found.domain])
    scores = score_numbers(found.truth, found.predicted, names)
    domains = sorted(scores["domains"], key=lambda one: -one["n_rows"])
    shown = domains[:MAX_SHOWN_DOMAINS] if len(domains) > 1 else []
    rows = [_row_of_outcomes("all", scores), *(_row_of_outcomes(one["name"], one) for one in shown)]
    columns = [
        make_column("domain", "source domain"),
        make_column("rows", "rows", numeric=True),
        make_column("bias", "mean error", numeric=True, help="prediction less truth"),
        make_column("mae", "mean absolute error (95 % interval)", numeric=True),
        make_column("r2", "R² (95 % interval)", numeric=True),
    ]
    rest = len(domains) - MAX_SHOWN_DOMAINS
    caption = "Errors on held-out source rows" + (f", {rest} more domains not shown" * (rest > 0))
    return [
        make_section(
            "held-out",
            "Predicted against true on held-out source rows",
            paragraphs=[HELD_OUT_ERRORS],
            tables=[make_table("residuals", caption, columns, rows)],
            figures=[_draw(found, names)],
        )
    ]


def _row_of_outcomes(name: str, scores: Mapping[str, Any]) -> Row:
    return {
        "domain": name,
        "rows": scores["n_rows"],
        "bias": make_cell(say_number(scores["bias"]), value=scores["bias"]),
        "mae": _figure(scores["mae"], say_number),
        "r2": _figure(scores["r2"], "{:.2f}".format),
    }


def _figure(figure: Mapping[str, float | None], show: Any) -> Cell:
    value, low, high = (figure[name] for name in ("value", "low", "high"))
    if value is None:
        return "undefined"
    shown = show(value) if low is None else f"{show(value)} ({show(low)} to {show(high)})"
    return make_cell(shown, value=value)


def _draw(found: HeldOut, names: Any) -> Figure:
    from covshift.report.figures import (
        draw_predicted,
        png_bytes,  # needs an extra
    )

    figure = draw_predicted(found.truth, found.predicted, names)
    alt = "Scatter of predicted against true labels, and boxes of the errors of each domain."
    return make_figure("held-out", HELD_OUT_PICTURE, alt, png=png_bytes(figure))


MAX_SHOWN_COLUMNS = 100  # rows of the section about the tables' columns
MAX_SHOWN_TEXTS = 3  # examples shown of a text column


def write_report(
    path: Any,
    diagnosis: Diagnosis,
    tables: MatchedTables,
    *,
    facts: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
    how_to_label: str,
) -> None:
    """Write the diagnosis of two tables as one self-contained page; needs the extra ``report``.

    Parameters
    ----------
    path : path
        File to write.
    diagnosis : Diagnosis
        From `diagnose_tables`.
    tables : MatchedTables
        Tables of the diagnosis.
    facts : sequence of (name, text)
        Shown at the head.
    notes : sequence of str
        Decisions about the files.
    how_to_label : str
        How labels are brought in, where they are wanted.
    """
    from covshift.report.page import render_page  # needs an extra

    report = make_report(diagnosis, facts, how_to_label)
    held_out = _held_out_section(diagnosis, tables.domain_names)
    report = {**report, "sections": [*report["sections"], *held_out]}
    page = render_page(describe_tables(report, tables, notes))
    write_whole(Path(path), lambda file: file.write(page.encode()))


def describe_tables(
    document: Document, tables: MatchedTables, notes: Sequence[str] = ()
) -> Document:
    """Return the document of a diagnosis with means in natural units and the files described."""
    sections = [_in_natural_units(section, tables) for section in document["sections"]]
    described: Document = {**document, "sections": [*sections, look_at_files(tables, notes)]}
    validate_document(described)
    return described


def look_at_files(tables: MatchedTables, notes: Sequence[str] = ()) -> Section:
    """Return a diagnosis's section on columns: kind, missing cells, values, movement."""
    names = tables.names[:MAX_SHOWN_COLUMNS]
    rest = len(tables.names) - len(names)
    caption = "Columns that are used" + (f", the first {len(names)}" if rest else "")
    columns = [
        make_column("column", "column"),
        make_column("kind", "read as"),
        make_column("missing", "missing, training", numeric=True),
        make_column("missing new", "missing, new", numeric=True),
        make_column("values", "values, training"),
        make_column("values new", "values, new"),
        make_column("distance", "distance", numeric=True),
    ]
    return make_section(
        "files",
        "Files",
        paragraphs=[*notes, COLUMNS_EXPLAINED],
        tables=[make_table("columns", caption, columns, [_row(tables, name) for name in names])],
    )


def _row(tables: MatchedTables, name: str) -> Row:
    kind = tables.kinds[name]
    spelling = tables.spellings.get(name, "")
    both = [_values(frame[name], kind, tables) for frame in (tables.X_train, tables.X_new)]
    shares = [float(np.mean(_is_missing(values))) for values in both]
    return {
        "column": one_line(name, 100),
        "kind": f"number ({spelling})" if _is_unit(kind, spelling) else kind,
        "missing": _percent(shares[0]),
        "missing new": _percent(shares[1]),
        "values": _summary(both[0], kind),
        "values new": _summary(both[1], kind),
        "distance": _distance(*both),
    }


def _values(column: Any, kind: str, tables: MatchedTables) -> Any:
    """Return numbers, NaN where missing (dates: days), or texts, None where missing."""
    spelling = tables.spellings.get(str(column.name), "")
    if kind == "date":
        return column_days(column, spelling)
    if kind != "text":
        return column_numbers(column, spelling, tables.missing)
    texts, places = column_categories(column, tables.missing)
    return np.array([*texts, None], dtype=object)[places]


def _is_missing(values: Any) -> Any:
    return pd.isna(values)


def _is_unit(kind: str, spelling: str) -> bool:
    return kind == "number" and bool(spelling) and not is_days(spelling)


def _summary(values: Any, kind: str) -> str:
    there = values[~_is_missing(values)]
    if not len(there):
        return "none"
    if kind == "text":
        texts, counts = np.unique(there.astype(str), return_counts=True)
        order = np.argsort(-counts, kind="stable")
        most = [
            f"{one_line(texts[i], 30)} {counts[i] / len(there):.0%}"
            for i in order[:MAX_SHOWN_TEXTS]
        ]
        rest = len(texts) - len(most)
        return ", ".join(most).replace("%", " %") + (f", {rest:,} more" if rest else "")
    if kind == "boolean":
        return f"true {there.mean():.0%}".replace("%", " %")
    if kind == "date":
        first, last = (_say_date(value) for value in (there.min(), there.max()))
        return f"{first} to {last}"
    low, median, high = np.quantile(there, [0.05, 0.5, 0.95])
    return f"{say_number(median)} ({say_number(low)} to {say_number(high)})"


def _distance(A: Any, B: Any) -> Cell:
    A, B = A[~_is_missing(A)], B[~_is_missing(B)]
    if not (len(A) and len(B)):
        return None
    if A.dtype == object:
        _, codes = np.unique(np.concatenate([A, B]).astype(str), return_inverse=True)
        shares = [
            np.bincount(part, minlength=codes.max() + 1) / len(part)
            for part in (codes[: len(A)], codes[len(A) :])
        ]
        distance = float(np.abs(shares[0] - shares[1]).sum() / 2)
    else:
        distance = float(ks_test(A, B).statistics[0])
    return make_cell(f"{distance:.2f}", value=distance)


def _in_natural_units(section: Section, tables: MatchedTables) -> Section:
    """Return the section about movement with the means of features as the files have them."""
    if section["id"] != "moved":
        return section
    encoder = TableEncoder().fit(tables.X_train, schema=tables.schema)
    places = {name: place for place, name in enumerate(encoder.get_feature_names_out())}
    Z, Z_new = (encoder.transform(frame) for frame in (tables.X_train, tables.X_new))
    features, *others = section["tables"]
    rows: list[Row] = []
    for row in features["rows"]:
        place = places[str(row["feature"])]
        before, after = float(Z[:, place].mean()), float(Z_new[:, place].mean())
        spread = float(feature_deviations(Z[:, place]))
        moved = (after - before) / spread if spread > 0 else None
        natural: dict[str, Cell] = {
            "before": make_cell(say_number(before), value=before),
            "after": make_cell(say_number(after), value=after),
            "moved": None if moved is None else make_cell(f"{moved:+.2f}", value=moved),
        }
        rows.append({**row, **natural})
    columns = [
        {
            "before": make_column("before", "mean, training", numeric=True, help=FILLED),
            "after": make_column("after", "mean, new", numeric=True, help=FILLED),
        }.get(column["key"], column)
        for column in features["columns"]
    ]
    at = [column["key"] for column in columns].index("after") + 1
    label = "moved by, in standard deviations"
    columns.insert(at, make_column("moved", label, numeric=True, help="of the training rows"))
    table = make_table(features["id"], features["caption"], columns, rows)
    natural_section: Section = {**section, "tables": [table, *others]}
    return natural_section


def _percent(share: float) -> Cell:
    text = "0" if not share else "<0.1 %" if share < 0.001 else f"{100 * share:.3g} %"
    return make_cell(text, value=share)


def _say_date(days: float) -> str:
    return str(np.datetime64(0, "D") + np.timedelta64(int(days // 1), "D"))
