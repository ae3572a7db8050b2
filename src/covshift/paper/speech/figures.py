"""The figure of the speech study: UAR by system, with error bars."""

from typing import Any

from covshift.paper.grid_systems import SYSTEMS
from covshift.paper.speech.summary import WAYS, SpeechResults
from covshift.paper.speech.tables import WAY_LABELS
from covshift.report.document import make_figure
from covshift.studies.report import estimate


def draw_score_figure(results: SpeechResults) -> Any:
    """Means and standard errors of every system, by the way settings were chosen."""
    from covshift.report.figures import png_bytes  # needs an extra
    from covshift.report.score_figures import draw_scores

    panels: dict[str, dict[str, dict[str, tuple[float, float | None]]]] = {}
    for corpus in results.corpora:
        panels[corpus] = {}
        for way in WAYS:
            series = panels[corpus].setdefault(WAY_LABELS[way], {})
            for system in SYSTEMS:
                found = estimate([one.uar for one in results.scores(corpus, system, way)])
                if found is not None:
                    series[system] = found
    return make_figure(
        "uar",
        "UAR on test halves, mean and standard error over the trials. The oracle reads labels of "
        "the target half.",
        "Points with error bars for every system and corpus, in one colour and shape for each way "
        "of choosing settings; a dotted line marks chance.",
        png=png_bytes(draw_scores(panels, score_name="UAR", chance=0.5)),
    )
