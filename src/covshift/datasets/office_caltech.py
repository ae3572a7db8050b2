"""Images of ten kinds of objects from four places (Gong et al. 2012)."""

import os
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.io import loadmat
from sklearn.utils import Bunch

from covshift.datasets.collection import damaged_data, find_file, find_folder, make_collection
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.shared_docs import documented_like

FILES = {
    "amazon": "amazon_SURF_L10.mat",
    "caltech": "Caltech10_SURF_L10.mat",
    "dslr": "dslr_SURF_L10.mat",
    "webcam": "webcam_SURF_L10.mat",
}
CLASSES = (
    "backpack", "bike", "calculator", "headphones", "keyboard",
    "laptop", "monitor", "mouse", "mug", "projector",
)  # fmt: skip
WHERE = f"Office-Caltech10 (SURF) of Gong et al. 2012 has {', '.join(FILES.values())}."
DESCRIPTION = """Office-Caltech10: ten kinds of objects in images from four places

2533 images as histograms of 800 visual words (SURF), each divided by its sum. Domains: amazon (shop
pictures), caltech (Caltech-256), dslr and webcam (the same office, two cameras). The code book was
made from images of amazon.

No license is stated. Cite: B. Gong, Y. Shi, F. Sha, K. Grauman, "Geodesic flow kernel for
unsupervised domain adaptation", CVPR 2012; K. Saenko, B. Kulis, M. Fritz, T. Darrell, "Adapting
visual category models to new domains", ECCV 2010; G. Griffin, A. Holub, P. Perona, "Caltech-256
object category dataset", 2007."""


@documented_like(find_folder)
def load_office_caltech(folder: str | os.PathLike[str]) -> Bunch:
    """Load the images of Office-Caltech10 as histograms that sum to one.

    Parameters
    ----------
    folder : path
        Folder with ``amazon_SURF_L10.mat``, ``Caltech10_SURF_L10.mat``, ``dslr_SURF_L10.mat``,
        ``webcam_SURF_L10.mat``, each with ``fts`` (n, 800) and ``labels`` (n, 1) from 1 to 10.

    Returns
    -------
    Bunch
        ``data`` of shape (n, 800), ``target`` (0 to 9), ``target_names``, ``domain``,
        ``domain_names``, ``feature_names``, ``DESCR``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from scipy.io import savemat
    >>> from covshift.datasets import load_office_caltech
    >>> folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
    >>> for name in ("amazon", "Caltech10", "dslr", "webcam"):  # as in the archive, but smaller
    ...     arrays = {"fts": rng.integers(9, size=(10, 5)), "labels": np.arange(1, 11)[:, None]}
    ...     savemat(folder / f"{name}_SURF_L10.mat", arrays)
    >>> load_office_caltech(folder).data.shape
    (40, 5)
    """
    path = find_folder(folder, WHERE)
    histograms: list[FloatArray] = []
    labels: list[IntArray] = []
    domains: list[str] = []
    for domain, name in FILES.items():
        counts, target = _read(find_file(path, name, WHERE))
        if histograms and counts.shape[1] != histograms[0].shape[1]:
            raise damaged_data(
                path / name, f"has {counts.shape[1]} features, others {histograms[0].shape[1]}"
            )
        histograms.append(counts)
        labels.append(target)
        domains += [domain] * len(counts)
    data = np.concatenate(histograms)
    sums = data.sum(axis=1, keepdims=True)
    return make_collection(
        data / np.where(sums > 0, sums, 1.0),  # an image without any visual word stays zero
        np.concatenate(labels) - 1,
        domains,
        list(FILES),
        feature_names=[f"word {number}" for number in range(data.shape[1])],
        description=DESCRIPTION,
        target_names=list(CLASSES),
    )


def _read(path: Path) -> tuple[FloatArray, IntArray]:
    """Return the counts and labels of one domain."""
    try:
        arrays = loadmat(path, variable_names=["fts", "labels"])
    # SciPy raises many errors for bytes that are not a file of MATLAB, or end too soon.
    except Exception as error:
        raise damaged_data(path, f"cannot be read ({error})") from error
    missing = [name for name in ("fts", "labels") if name not in arrays]
    if missing:
        raise damaged_data(path, f"has no array {' and '.join(missing)}")
    if any(sparse.issparse(part) for part in arrays.values()):
        raise damaged_data(path, "holds sparse matrices")
    counts, labels = arrays["fts"], arrays["labels"].ravel()
    if counts.ndim != 2 or counts.shape[0] != len(labels) or not len(labels):
        raise damaged_data(path, f"has fts {counts.shape} and labels {arrays['labels'].shape}")
    if counts.dtype.kind not in "uif" or labels.dtype.kind not in "uif":
        raise damaged_data(path, "holds values that are not numbers")
    counts = counts.astype(np.float64)  # before any sum: the files hold single bytes
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise damaged_data(path, "holds counts below zero or not finite")
    if not np.isin(labels, np.arange(1, len(CLASSES) + 1)).all():
        raise damaged_data(path, f"holds labels outside 1 to {len(CLASSES)}")
    return counts, labels.astype(np.int64)
