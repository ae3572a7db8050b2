"""How the examples of the gallery are run: figures alike, warnings as errors."""

import warnings

STYLE = {
    "figure.dpi": 100,
    "savefig.dpi": 100,
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 10,
}
_before = []


def quiet_and_strict(gallery_conf, fname, when):
    """Set both before each example and undo them after it; sphinx-gallery calls this."""
    import matplotlib

    if when == "before":
        matplotlib.rcParams.update(STYLE)
        _before.append(warnings.filters[:])
        warnings.simplefilter("error")
    elif _before:
        warnings.filters[:] = _before.pop()
