"""Batches over time -> a document with a chart, and its page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from covshift._version import __version__
from covshift.output_files import write_whole
from covshift.report.document import (
    Chart,
    Document,
    Point,
    make_cell,
    make_column,
    make_document,
    make_figure,
    make_section,
    make_table,
)
from covshift.report.page import render_page
from covshift.tables.messages import one_line
from covshift.tables.monitoring_history import count_covered
from covshift.tables.monitoring_series import is_below
from covshift.tables.monitoring_words import (
    CANNOT_SEE,
    say_covered,
    say_marks_of_batches,
    say_tests,
)

MAX_POINTS = 200  # of the chart and the table; the latest


def write_monitor_report(
    path: Any, found: Mapping[str, Any], *, alert: float | None, model: str
) -> None:
    """Write the page of what ``covshift monitor`` found; the file is written atomically.

    Parameters
    ----------
    path : path
        The page.
    found : mapping
        From `covshift.tables.monitoring_series.monitor_series`, with ``past``, the batches of the
        history.
    alert : float or None
        Least score that is fine.
    model : str
        Name of the model file.
    """
    document = monitor_document(
        found["past"], found["objective"], found["notes"], alert=alert, model=model
    )
    page = render_page(document)
    write_whole(Path(path), lambda file: file.write(page.encode("utf-8", "replace")))


def monitor_document(
    past: Sequence[Mapping[str, Any]],
    objective: str,
    notes: Sequence[str],
    *,
    alert: float | None,
    model: str,
) -> Document:
    """Return a report of what monitoring knows of all batches, as a document.

    Parameters
    ----------
    past : sequence of mappings
        Batches in their order, from `read_history` or `monitor_series`.
    objective : str
        Metric of the scores.
    notes : sequence of str
        Of the last call.
    alert : float or None
        Least score that is fine.
    model : str
        Name of the model file.

    Returns
    -------
    Document
    """
    measure = objective.replace("_", " ")
    shown = list(past)[-MAX_POINTS:]
    points = [_point(one, measure, alert) for one in shown]
    levels = [("alert", f"alert below {alert:g}", float(alert))] if alert is not None else []
    reference = next((one["reference"] for one in reversed(shown) if one.get("reference")), None)
    if reference is not None:
        levels.append(("reference", f"held-out training rows {reference:.2f}", float(reference)))
    chart: Chart = {"points": points, "levels": levels}
    alt = f"{measure} of {len(shown)} batches over time"
    figure = make_figure("scores", say_marks_of_batches(measure), alt, chart=chart)
    lead = _lead(shown, points, measure)
    paragraphs = [CANNOT_SEE]
    told = count_covered(shown)
    if told["batches"]:
        paragraphs.insert(0, say_covered(measure, told["covered"], told["batches"]))
    if len(past) > len(shown):
        paragraphs.append(f"The latest {len(shown)} of {len(past):,} batches are shown.")
    sections = [
        make_section(
            "time", f"{measure.capitalize()} over time", paragraphs=paragraphs, figures=[figure]
        ),
        make_section("batches", "Batches", tables=[_table(shown, points, measure)]),
    ]
    if notes:
        sections.append(make_section("notes", "Notes of the last run", paragraphs=list(notes)))
    facts = [
        ("Model", one_line(model, 200)),
        ("Batches", f"{len(past):,}"),
        ("Test", say_tests(float(shown[-1]["level"]))),
        ("Version", f"covshift {__version__}"),
    ]
    return make_document("Monitoring", lead, sections=sections, facts=facts)


def _point(one: Mapping[str, Any], measure: str, alert: float | None) -> Point:
    estimate = one.get("updated") or one.get("estimate") or {}
    observed = one.get("observed") or {}
    value = estimate.get("value")
    parts = [str(one["name"]), f"{one['rows']:,} rows", "moved" if one["moved"] else "not moved"]
    if value is not None:
        low, high = estimate["low"], estimate["high"]
        parts.append(f"expected {measure} {value:.3f} (90 % interval {low:.3f} to {high:.3f})")
    if observed:
        parts.append(f"observed {observed['value']:.3f} on {one['n_labels']} labeled rows")
    return {
        "name": one_line(one["name"], 60) or "(no name)",
        "kind": "alert" if is_below(one, alert) else "moved" if one["moved"] else "fine",
        "title": one_line("; ".join(parts), 300),
        "value": value,
        "low": estimate.get("low"),
        "high": estimate.get("high"),
        "observed": observed.get("value"),
    }


def _lead(shown: Sequence[Mapping[str, Any]], points: Sequence[Point], measure: str) -> str:
    last, moved = points[-1], sum(bool(one["moved"]) for one in shown)
    n_below = sum(one["kind"] == "alert" for one in points)
    text = f"{moved} of {len(shown)} batches moved. "
    if n_below:
        text += f"{n_below} gave an alert. "
    return f"{text}Last batch: {last['title']}."


def _table(shown: Sequence[Mapping[str, Any]], points: Sequence[Point], measure: str) -> Any:
    columns = [
        make_column("batch"),
        make_column("rows", numeric=True),
        make_column("moved"),
        make_column("what", "what moved"),
        make_column("features", "features that moved most"),
        make_column(
            "expected", f"expected {measure}", numeric=True, help="With its 90 % interval."
        ),
        make_column("observed", f"observed {measure}", numeric=True, help="On labeled rows."),
        make_column("covered", "interval covered it"),
    ]
    rows = []
    for one, point in zip(reversed(shown), reversed(points), strict=True):
        value, observed = point.get("value"), point.get("observed")
        features = [f["feature"] if isinstance(f, Mapping) else f for f in one["features"][:3]]
        rows.append(
            {
                "batch": one_line(one["name"], 60),
                "rows": one["rows"],
                "moved": "yes" if one["moved"] else "no",
                "what": ", ".join(one["what_moved"]) or None,
                "features": ", ".join(map(one_line, features)) if one["moved"] else None,
                "expected": None
                if value is None
                else make_cell(
                    f"{value:.3f} ({point['low']:.3f} to {point['high']:.3f})", value=value
                ),
                "observed": None
                if observed is None
                else make_cell(f"{observed:.3f} ({one['n_labels']} labels)", value=observed),
                "covered": {True: "yes", False: "no"}.get(one.get("covered")),  # type: ignore
            }
        )
    return make_table("batches", "All batches, the latest first", columns, rows)
