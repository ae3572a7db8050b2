"""Saved models: files that hold no code, with a card inside that says what they are.

`save` writes a fitted estimator of this package, of scikit-learn, or a pipeline of both; `load`
reads it back, and predictions are the same to the bit on the same versions of the libraries.
``read_card`` reads the card alone. The extra ``models`` (skops) is needed for `save` and `load`.

**Format.** A zip archive in the format of skops (``schema.json`` and NumPy arrays) with one
entry of ours, ``covshift.json``: the version of the format and the card.

**Compatibility.** Every later covshift of the same major version reads format 1. A file of a
newer format is refused, and the error names the covshift that wrote it. The scikit-learn
objects inside are those of the version that wrote them: another version of scikit-learn reads them
with a `ModelVersionWarning`, since scikit-learn itself promises nothing there.

**Safety.** There is no pickle anywhere. Before anything is built, the whole file is
checked: members of the archive, declared sizes (2 GiB in all, unless ``max_bytes`` says
otherwise), headers of arrays, and the type of every object, by name, against an allow-list
(`covshift.persistence.schema_audit`). No module is imported that the list does not name. Trees,
kernel machines, sparse matrices and random states are checked again once they are built, since
compiled code follows the numbers in them. Classifiers of LightGBM and XGBoost are stored in the
text of the one and the JSON of the other, checked likewise before these libraries read them. A file
that fails any of this raises `ModelFileError`, in one line. ``trusted=[...]`` adds types of your
own: their construction runs their code. Some ensembles of trees (gradient boosting without
histograms, isolation forests) cannot be checked and need ``trusted`` too. Remaining trust:
docs/design/0016-saved-models.md.
"""

from covshift.persistence.archive import ModelFileError, UntrustedTypesError
from covshift.persistence.model_files import ModelVersionWarning, load, read_card, save

__all__ = [
    "ModelFileError",
    "ModelVersionWarning",
    "UntrustedTypesError",
    "load",
    "read_card",
    "save",
]
