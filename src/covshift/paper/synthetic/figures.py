"""Figures of the synthetic study: the data, what filters make of them, how they were fitted."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from covshift.datasets import ShiftedData
from covshift.domains import stack_domains
from covshift.kernels.arrays import FloatArray
from covshift.paper.synthetic.systems import DATA_SETS, READINGS, RECONSTRUCTED, build
from covshift.paper.synthetic.trials import draw_trial
from covshift.report.document import make_figure

# Whose assumption each data set is built on.
ASSUMPTIONS = {
    "radial": "sparse filtering (SF)",
    "periodic": "periodic sparse filtering (PSF)",
    "smooth": "importance weighting",
    "diagonal": "subspace alignment",
}
SHOWN = (("radial", "SF"), ("periodic", "PSF"))  # each filter where its assumption holds
GRID_POINTS = 200


def draw_figures(seed: int) -> list[Any]:
    """Return the figures of the trial with this seed, for the report."""
    from covshift.report import figures  # needs an extra

    fitted = {
        (data_set, system): _fit(data_set, system, seed)
        for data_set in DATA_SETS
        for system in ("SF", "PSF")
    }
    return [
        make_figure(
            "data-sets",
            "The four data sets. Dots are source rows, triangles target rows; colors are labels.",
            "Scatter plots of radial, periodic, smooth and diagonal, and of the printed variants "
            "of periodic and diagonal: target rows lie beside the source rows.",
            png=figures.png_bytes(figures.draw_data_sets(_data_sets(seed))),
        ),
        make_figure(
            "filters",
            "Output of each filter over the plane, for rows of the target: used well, SF on "
            "radial and PSF on periodic.",
            "Shaded planes: the answers of SF fan out from the origin, those of PSF repeat in "
            "stripes along the first feature.",
            png=figures.png_bytes(
                figures.draw_filters([_bank(*shown, *fitted[shown]) for shown in SHOWN])
            ),
        ),
        make_figure(
            "representations",
            "The same rows before and after: the two main directions of the representation.",
            "Scatter plots: before, source and target lie apart; after, they lie on top of each "
            "other with the labels kept apart.",
            png=figures.png_bytes(
                figures.draw_data_sets(
                    {
                        title: data
                        for shown in SHOWN
                        for title, data in _before_and_after(*shown, *fitted[shown]).items()
                    },
                    ("first direction", "second direction"),
                )
            ),
        ),
        make_figure(
            "histories",
            "Loss of the kept start at every iteration.",
            "Falling curves of both filters on each data set.",
            png=figures.png_bytes(
                figures.draw_histories(
                    {
                        data_set: {
                            system: fitted[data_set, system][1].loss_curve_
                            for system in ("SF", "PSF")
                        }
                        for data_set in DATA_SETS
                    }
                )
            ),
        ),
    ]


def _data_sets(seed: int) -> dict[str, Any]:
    panels = {
        f"{name}: the assumption of\n{ASSUMPTIONS[name]}": draw_trial(name, seed).data._asdict()
        for name in DATA_SETS
    }
    for name in RECONSTRUCTED:
        panels[f"{name}, as printed"] = draw_trial(name, seed, "printed").data._asdict()
    return panels


def _fit(data_set: str, system: str, seed: int) -> tuple[ShiftedData, Any]:
    data, start = draw_trial(data_set, seed)
    adapter = build(READINGS["used well"][system]["adapter"], data, start)
    X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return data, adapter.fit(X, y, sample_domain=sample_domain)


def _bank(data_set: str, system: str, data: ShiftedData, adapter: Any) -> Any:
    """Return one block of the figure of filters."""
    rows = np.concatenate([data.X_source, data.X_test])
    low, high = rows.min(axis=0), rows.max(axis=0)
    margin = 0.05 * (high - low)
    x1, x2 = np.linspace(low - margin, high + margin, GRID_POINTS).T
    Z = adapter.transform(np.stack(np.meshgrid(x1, x2), axis=-1).reshape(-1, 2))
    names = [f"filter {index + 1}" for index in range(len(adapter.components_))]
    for label, group in enumerate(getattr(adapter, "feature_groups_", ())):
        for index in group.nonzero()[0]:
            names[index] += f", for label {label}"
    return {
        "title": f"{system} on {data_set}",
        "x1": x1,
        "x2": x2,
        "Z": Z.reshape(GRID_POINTS, GRID_POINTS, -1),
        "names": names,
        "data": data._asdict(),
    }


def _before_and_after(
    data_set: str, system: str, data: ShiftedData, adapter: Any
) -> dict[str, dict[str, Any]]:
    source = adapter.transform(data.X_source, sample_domain=0)
    test = adapter.transform(data.X_test)
    labels = {"y_source": data.y_source, "y_test": data.y_test}
    before = dict(zip(("X_source", "X_test"), _main_plane(data.X_source, data.X_test), strict=True))
    after = dict(zip(("X_source", "X_test"), _main_plane(source, test), strict=True))
    return {
        f"{data_set}, before": {**before, **labels},
        f"{data_set}, after {system}": {**after, **labels},
    }


def _main_plane(source: FloatArray, test: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both along the two main directions of all of them together."""
    rows = np.concatenate([source, test])
    center = rows.mean(axis=0)
    _, _, directions = np.linalg.svd(rows - center, full_matrices=False)
    return (source - center) @ directions[:2].T, (test - center) @ directions[:2].T
