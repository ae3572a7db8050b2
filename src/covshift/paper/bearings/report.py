"""The bearings' study as a document, and as a table for a terminal."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from covshift.kernels.array_types import FloatArray
from covshift.measures import clustered_bootstrap_interval
from covshift.paper.bearings.protocol import RATE, SHIFTS
from covshift.report.document import make_cell, make_document, make_figure, make_section
from covshift.studies.result_tables import (
    CLEAR,
    Frame,
    Verdict,
    build_evidence,
    build_section,
    group_rows,
    number_column,
    text_column,
    tidy,
)
from covshift.studies.store import Record
from covshift.studies.study import Facts, TextTable

BASELINE = "none"


class ShiftScore(NamedTuple):
    """A system on all tasks of a shift: its mean, an interval, and the gain over no adaptation."""

    shift: str
    system: str
    trials: Frame
    mean: float
    interval: tuple[float, float]
    gain: float | None
    worst: float | None  # gain on the task where it gains least

    @property
    def id(self) -> str:
        """Name of the evidence behind its figures."""
        return f"{self.shift}|{self.system}"

    @property
    def text(self) -> str:
        """Mean and interval, for a cell."""
        return f"{self.mean:.3f} ({self.interval[0]:.3f} to {self.interval[1]:.3f})"


def _shift_scores(records: Sequence[Record]) -> list[ShiftScore]:
    """Return every system on every shift, in the order of the shifts and of the trials.

    Intervals (95 %) resample recordings, not windows: those of one recording resemble each other.
    """
    frame = tidy(records, kind=None)
    frame = frame[frame["kind"] == "task"]
    found = []
    groups = group_rows(frame, ("shift", "system"))
    for shift in SHIFTS:
        base = _by_task(groups.get((shift, BASELINE)))
        for (where, system), trials in groups.items():
            if where != shift:
                continue
            own = _by_task(trials)
            pairs = [(name, value) for one in trials["recordings"] for name, value in one.items()]
            names, values = zip(*pairs, strict=True)
            interval = clustered_bootstrap_interval(values, names, random_state=0)
            gains = [own[task] - base[task] for task in own if task in base]
            found.append(
                ShiftScore(
                    shift,
                    system,
                    trials,
                    float(np.mean(list(own.values()))),
                    interval,
                    float(np.mean(gains)) if gains else None,
                    min(gains) if gains else None,
                )
            )
    return found


def _by_task(trials: Frame | None) -> dict[str, float]:
    if trials is None:
        return {}
    return {_task_name(row): row["accuracy"] for row in trials.to_dict("records")}


def _task_name(row: dict[str, Any]) -> str:
    source, target = row["source"], row["target"]
    changed = [key for key in source if source[key] != target[key]]
    return ", ".join(f"{key} {source[key]} → {target[key]}" for key in changed)


def bearings_document(records: Sequence[Record], facts: Facts) -> Any:
    """Return the whole report of the study of bearings."""
    scores = _shift_scores(records)
    sections = [
        make_section("protocol", "Protocol", paragraphs=_protocol()),
        _score_section(scores),
        *_filter_section(records),
    ]
    return make_document(
        "Bearings across loads, sensors and fault sizes",
        _lead(scores),
        sections=sections,
        facts=facts,
        evidence={one.id: _evidence(one) for one in scores},
    )


def bearings_table(records: Sequence[Record]) -> TextTable:
    """Report the balanced accuracy of every system on every shift of the bearings."""
    scores = {(one.shift, one.system): one for one in _shift_scores(records)}
    systems = list(dict.fromkeys(system for _, system in scores))

    def cell(shift: str, system: str) -> str:
        one = scores.get((shift, system))
        return "?" if one is None else f"{one.mean:.3f}"

    return TextTable(
        ["system", *SHIFTS],
        [[[system, *(cell(shift, system) for shift in SHIFTS)] for system in systems]],
        "Balanced accuracy on target windows, mean over tasks; the report has intervals.",
    )


def _protocol() -> list[str]:
    return [
        "Windows of 1,200 samples, 50 of each recording: nine faults (ball, inner race, outer "
        "race; 7, 14, 21 mils) at four loads, seen by two sensors. Healthy recordings are not "
        "among them. Target windows are adapted to without labels, and scored.",
        "Across loads (drive end; 0 → 3, 1 → 3, 0 → 2, 3 → 0 hp) and sensors (0 hp), fault and "
        "size are predicted: nine classes. Across fault sizes (all six pairs; drive end, all "
        "loads, first halves of the recordings), the faulty part is predicted: three classes.",
        "All systems but two end in the same logistic regression. 'segments' learns filters from "
        "segments of the samples and standardizes each domain; all others see amplitude spectra. "
        "'auto' is AutoAdaptedClassifier, the model that diagnose recommends: it reads no label of "
        "the target. The coefficients of 'auto' that the package ships "
        "were fitted on tasks that include these bearings; benchmarks/bearings.py judges it by "
        "coefficients that were not.",
        "Each class of a domain is one recording, or four across fault sizes. A class cannot be "
        "distinguished from its recording here: these figures say little about another machine.",
    ]


def _lead(scores: Sequence[ShiftScore]) -> str:
    parts = []
    for shift in SHIFTS:
        own = [one for one in scores if one.shift == shift]
        if not own:
            continue
        best = max(own, key=lambda one: one.mean)
        text = f"across {shift}, {best.system} is best with {best.mean:.3f}"
        auto = next((one for one in own if one.system == "auto"), None)
        if auto is not None:
            text += f" (automatic choice {auto.mean:.3f})"
        parts.append(text)
    return f"Balanced accuracy: {'; '.join(parts)}. The best of each is known only with hindsight."


def _score_section(scores: Sequence[ShiftScore]) -> Any:
    columns = [
        text_column("shift", cell=lambda one: one.shift),
        text_column("system", cell=lambda one: one.system),
        number_column(
            "score",
            "balanced accuracy",
            cell=lambda one: make_cell(one.text, value=one.mean, evidence=one.id),
            help="mean over the tasks; 95 % interval by resampling recordings",
        ),
        number_column(
            "gain",
            "gain over none",
            cell=lambda one: None if one.gain is None else _gain_cell(one.gain),
        ),
        number_column(
            "worst",
            "least gain of a task",
            cell=lambda one: None if one.worst is None else _gain_cell(one.worst),
        ),
    ]
    return build_section(
        "scores", "Results", "Balanced accuracy on target windows", columns, scores
    )


def _gain_cell(gain: float) -> Any:
    mark: Verdict = "helps" if gain > CLEAR else "harms" if gain < -CLEAR else "unclear"
    return make_cell(f"{gain:+.3f}", value=gain, mark=mark)


def _filter_section(records: Sequence[Record]) -> list[Any]:
    frame = tidy(records, kind=None)
    trials = frame[frame["kind"] == "filters"].to_dict("records")
    if not trials:
        return []
    from covshift.report.figures import png_bytes  # needs an extra

    drawn = _draw_waveforms(np.array(trials[0]["filters"]), RATE)
    figure = make_figure(
        "filters",
        "Filters that sparse filtering learns from segments of 100 samples (drive end, 0 hp): the "
        "waveforms that those with the strongest responses answer to (covariances of segments and "
        "responses), in time (above) and in frequency (below).",
        "Six waveforms, and their amplitude spectra below them.",
        png=png_bytes(drawn),
    )
    return [make_section("filters", "Learned filters", figures=[figure])]


def _draw_waveforms(waveforms: FloatArray, rate: float) -> Any:
    """Draw waveforms (n, length) in time, and their amplitude spectra below, three in a row.

    ``rate``: samples per second.
    """
    from covshift.report.figures import FONT_SIZE, STYLES, new_figure  # needs an extra

    n_columns = min(3, len(waveforms))
    n_rows = -(-len(waveforms) // n_columns)
    figure = new_figure(3.6 * n_rows)
    panels = figure.subplots(2 * n_rows, n_columns, squeeze=False)
    length = waveforms.shape[1]
    milliseconds = 1000 * np.arange(length) / rate
    kilohertz = np.fft.rfftfreq(length, 1 / rate) / 1000
    for number in range(n_rows * n_columns):
        row, column = divmod(number, n_columns)
        in_time, in_frequency = panels[2 * row, column], panels[2 * row + 1, column]
        if number >= len(waveforms):
            in_time.set_axis_off()
            in_frequency.set_axis_off()
            continue
        color = STYLES[1]["color"]
        in_time.plot(milliseconds, waveforms[number], linewidth=1.0, color=color)
        spectrum = np.abs(np.fft.rfft(waveforms[number]))
        in_frequency.plot(kilohertz, spectrum, linewidth=1.0, color=color)
        in_time.set_title(f"filter {number + 1}", fontsize=FONT_SIZE)
        for axes, label in ((in_time, "ms"), (in_frequency, "kHz")):
            axes.set_xlabel(label, fontsize=FONT_SIZE - 2)
            axes.set_yticks([])
            axes.tick_params(labelsize=FONT_SIZE - 2)
    return figure


def _chosen(row: dict[str, Any]) -> str:
    return ", ".join(row.get("chosen") or [])


def _evidence(one: ShiftScore) -> Any:
    columns = [
        text_column("task", cell=_task_name),
        number_column("accuracy", "balanced accuracy", digits=3),
        text_column("chosen", cell=_chosen),
        number_column("seconds", digits=1),
    ]
    return build_evidence(f"{one.system} across {one.shift}", columns, one.trials)
