"""Checks of ``schema.json`` before skops reads it: of types, of names, of the tree itself.

skops describes objects as a tree of nodes, nested dictionaries of JSON. The keys of a node:

``__loader__``
    The class of skops that builds the object, such as ``ObjectNode`` or ``NdArrayNode``.
``__module__``, ``__class__``
    The type of the object.
``__id__``
    Its number, its address in the memory that wrote it. An object that occurs several times has one
    number, and skops builds it once.
``content``, ``file``
    The nodes of its parts, or the member of the archive that holds its array.

skops checks the types. A file whose types are all trusted can still make its loaders do harm. So
the tree itself is checked here:

- only loaders that put values into place; none that calls a method, a function or a constructor
  of the file's choice;
- names are names: no path that could be read in two ways;
- an object that occurs again is described again, in full, as skops writes it. A mere reference
  would let a small file stand for exponentially many nodes;
- an array belongs to one object, so that the archive's size bounds what is read.
"""

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import sklearn

from covshift.persistence.archive import SCHEMA, ModelFileError, check_array, check_sparse
from covshift.registry import BUILT_IN

# --- Types that a model file may name, beyond those that skops itself trusts, and older names ---
#
# skops trusts plain values and containers, arrays, NumPy's random states and ufuncs, and every
# public estimator of scikit-learn except the arrays inside of trees. To be added here, a type must
# do nothing when it is made without its constructor and given attributes from a file, and index no
# memory by numbers from it, unless `covshift.persistence.content_checks` checks them.
#
# Types had other modules when older versions of the package wrote them: descriptions are brought
# up to date before they are read. And scikit-learn warns at every part that another version of it
# wrote; `covshift.load` warns once for all of them, so that users' filters of warnings stay
# unchanged.


# Estimators that are not in the registry, by module. Those of the registry are trusted if they are
# of this package: a plug-in is not, unless the caller of `load` names its types.
ESTIMATORS = {
    "covshift.interop.skada": ["ReweightAdapter"],
    "covshift.predictors.adapted": ["AdaptedClassifier", "AdaptedRegressor"],
    "covshift.predictors.gaussian_kernel_ridge": ["GaussianKernelRidge"],
    "covshift.predictors.joint_alignment_classifier": ["JointAlignmentClassifier"],
    "covshift.predictors.lsp_classifier": ["LSPClassifier"],
    "covshift.tables.own_models": ["NumberedClasses"],
    "covshift.selection.auto_adapted": ["AutoAdaptedClassifier", "AutoAdaptedRegressor"],
    "covshift.signals.order_tracking": ["OrderTracking"],
    "covshift.signals.spectra": ["EnvelopeSpectrum", "Spectrum"],
    "covshift.tables.encoder": ["TableEncoder"],
    "covshift.tables.table_models": ["TableClassifier", "TableRegressor"],
}

# Types of attributes of estimators.
PARTS = {
    "covshift.domains.source_only_split": ["SourceOnlySplit"],
    "covshift.kernels.probabilities": ["Scaling"],
    "covshift.persistence.boosted_models": ["StoredModel"],
    "covshift.selection.assessment": ["Assessment", "Determinability"],
    "covshift.selection.candidates": ["Candidate"],
    "covshift.selection.expected_scores": ["Estimate"],
    "covshift.selection.label_tasks": ["NumberTask"],
    "covshift.selection.leaderboard": ["Leaderboard"],
    "covshift.selection.vote": ["Member"],
    # scikit-learn's, of which skops knows the public ones only.
    "sklearn.calibration": ["_CalibratedClassifier", "_SigmoidCalibration"],
    "sklearn.ensemble._hist_gradient_boosting.predictor": ["TreePredictor"],
    "sklearn.metrics._scorer": ["_PassthroughScorer"],
    "sklearn.tree._tree": ["Tree"],
    "sklearn.utils._metadata_requests": ["MetadataRequest", "MethodMetadataRequest"],
    "sklearn.utils._bunch": ["Bunch"],
    "numpy": ["dtype"],
    "scipy.sparse._csr": ["csr_array", "csr_matrix"],
}

# Functions, which are looked up and not called.
FUNCTIONS = {
    "covshift.weights.classifier": ["_with_squares"],
}

TRUSTED = (
    *sorted({record.path.replace(":", ".") for record in BUILT_IN}),
    *(
        f"{module}.{name}"
        for table in (ESTIMATORS, PARTS, FUNCTIONS)
        for module, names in table.items()
        for name in names
    ),
)

# Modules that are no more -> those that have their classes now.
MOVED = {
    "covshift.kernels.vector_scaling": "covshift.kernels.probabilities",
    "covshift.predictors.adapted_classifier": "covshift.predictors.adapted",
    "covshift.predictors.adapted_regressor": "covshift.predictors.adapted",
    "covshift.predictors.numbered_classes": "covshift.tables.own_models",
    "covshift.selection.auto_adapted_classifier": "covshift.selection.auto_adapted",
    "covshift.selection.auto_adapted_regressor": "covshift.selection.auto_adapted",
    "covshift.selection.expectations": "covshift.selection.expected_scores",
    "covshift.selection.members": "covshift.selection.vote",
    "covshift.selection.source_standard_scaler": "covshift.adapters.source_standard_scaler",
    "covshift.tables.classifier": "covshift.tables.table_models",
    "covshift.tables.regressor": "covshift.tables.table_models",
}


def follow_moves(content: io.BytesIO) -> io.BytesIO:
    """Return an archive whose schema, to be audited, has types and versions as they are now."""
    with ZipFile(content) as archive:
        schema = json.loads(archive.read(SCHEMA))
        # Both walk the whole schema.
        if not sum([_rename(schema), _set_versions(schema)]):
            return content
        moved = io.BytesIO()
        with ZipFile(moved, "w", ZIP_STORED) as copy:
            for name in archive.namelist():
                copy.writestr(name, json.dumps(schema) if name == SCHEMA else archive.read(name))
    moved.seek(0)
    return moved


def _rename(schema: Any) -> bool:
    """Rename types in a description, in place; return whether there were any."""
    found = False
    for part in _dictionaries_in(schema):
        module = part.get("__module__")
        # A dictionary of the user's may have such keys, too, with values that are not text.
        if isinstance(module, str) and isinstance(part.get("__class__"), str) and module in MOVED:
            part["__module__"], found = MOVED[module], True
    return found


def _set_versions(schema: Any) -> bool:
    """Say of scikit-learn's estimators that this version wrote them; return whether none did."""
    found, current = False, json.dumps(sklearn.__version__)
    for part in _dictionaries_in(schema):
        if part.get("__loader__") == "ObjectNode" and isinstance(part.get("content"), dict):
            attributes = part["content"].get("content")
            version = attributes.get("_sklearn_version") if isinstance(attributes, dict) else None
            if isinstance(version, dict) and version.get("content") not in (None, current):
                version["content"], found = current, True
    return found


def _dictionaries_in(node: Any) -> Iterator[dict[str, Any]]:
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


# Files of format 1 are written by skops' protocol 2. Older protocols have other loaders.
PROTOCOL = 2
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
MODULE = re.compile(rf"{NAME.pattern}(\.{NAME.pattern})*", re.ASCII)
# JSON has texts for keys: true and false would both come back as True, null not at all.
UNFAITHFUL_KEYS = ("bool", "bool_", "NoneType")
SEED_POOL = 4  # words, NumPy's default; a file could ask for any number


def _children_of_array(state: Mapping[str, Any]) -> list[Any]:
    return [] if state["type"] == "numpy" else [*state["content"], state["shape"]]


CHILDREN: dict[str, Callable[[Mapping[str, Any]], list[Any]]] = {
    "DictNode": lambda state: [state["key_types"], *state["content"].values()],
    "DTypeNode": lambda state: [state["content"]],
    "FunctionNode": lambda state: [],
    "JsonNode": lambda state: [],
    "ListNode": lambda state: list(state["content"]),
    "LossNode": lambda state: [state["content"], state["__reduce__"]["args"]],
    "MaskedArrayNode": lambda state: [state["content"]["data"], state["content"]["mask"]],
    "NdArrayNode": _children_of_array,
    "ObjectNode": lambda state: [state["content"]] if state.get("content") is not None else [],
    "RandomGeneratorNode": lambda state: [
        state["content"]["bit_generator"],
        state["content"]["seed_seq"],
    ],
    "RandomStateNode": lambda state: [state["content"]],
    "SetNode": lambda state: list(state["content"]),
    "SliceNode": lambda state: [],
    "SparseMatrixNode": lambda state: [],
    "TreeNode": lambda state: [state["content"], state["__reduce__"]["args"]],
    "TupleNode": lambda state: list(state["content"]),
    "TypeNode": lambda state: [],
}


class SchemaAudit:
    """One walk over the schema of an archive whose members are checked already."""

    def __init__(self, archive: ZipFile, max_bytes: int) -> None:
        self._archive = archive
        # Sparse matrices are archives within the archive: what they unpack to counts, too, or a
        # file of a few kilobytes could fill the memory.
        self._bytes_left = max_bytes - sum(member.file_size for member in archive.infolist())
        self._described: dict[int, Any] = {}
        self._files: set[str] = set()
        self._digests: dict[str, bytes] = {}

    def check(self) -> None:
        """Raise `ModelFileError` unless all is as skops writes it."""
        schema = json.loads(self._archive.read(SCHEMA))
        if schema["protocol"] != PROTOCOL:
            raise ModelFileError(
                f"It is of skops' protocol {schema['protocol']!r}; expected {PROTOCOL}."
            )
        # Before anything is built: once skops makes objects, a bad part is found too late.
        self._check_node(schema)

    def _check_node(self, state: Any) -> None:
        loader, module, name, number = (
            state[key] for key in ("__loader__", "__module__", "__class__", "__id__")
        )
        # Numbers stand for objects that occur several times. skops gives the address in memory,
        # which is positive; True would be taken for 1.
        if type(number) is not int or number <= 0:
            raise ModelFileError(f"Its object {module}.{name} has an invalid number, {number!r}.")
        # skops takes what it read first for all that has this number.
        if number in self._described:
            if not self._alike(self._described[number], state):
                raise ModelFileError(f"It describes one object, {module}.{name}, in two ways.")
            return
        self._described[number] = state
        # An allow-list: a loader that a later skops adds is refused until somebody has read it.
        if loader not in CHILDREN:
            raise ModelFileError(
                f"It holds {module}.{name} in a form ({loader}) that runs code, or that no "
                "model needs."
            )
        if not (NAME.fullmatch(name) and MODULE.fullmatch(module)):
            raise ModelFileError(
                f"It holds {module}.{name}, which has no name to find it by: a lambda or a local "
                "function or class must be moved to the top of a module."
            )
        self._check_details(state, loader)
        for child in CHILDREN[loader](state):
            self._check_node(child)

    def _check_details(self, state: Mapping[str, Any], loader: str) -> None:
        if loader == "SparseMatrixNode" or (loader == "NdArrayNode" and state["type"] == "numpy"):
            self._check_file(state["file"], loader)
        elif loader == "DictNode":
            key_types = {key["__class__"] for key in state["key_types"]["content"]}
            if key_types & set(UNFAITHFUL_KEYS):
                raise ModelFileError(
                    "It holds a dictionary with keys True, False or None, which files cannot "
                    "distinguish. Use numbers or texts."
                )
        elif loader == "RandomGeneratorNode":
            pool = state["content"]["seed_seq"]["content"]["pool_size"]
            if pool["__loader__"] != "JsonNode" or json.loads(pool["content"]) != SEED_POOL:
                raise ModelFileError("It holds a random generator with an unusual seed.")
        # A tree is made by its constructor, in compiled code that believes these numbers.
        elif loader == "TreeNode":
            self._check_tree(state["__reduce__"]["args"]["content"])

    def _check_tree(self, arguments: Any) -> None:
        """Refuse numbers of classes other than as many as a tree will read when it is made."""
        n_features, n_classes, n_outputs = arguments
        loaders = [one["__loader__"] for one in arguments]
        if loaders != ["JsonNode", "NdArrayNode", "JsonNode"] or n_classes["type"] != "numpy":
            raise ModelFileError("It holds a tree that is made in an unusual way.")
        shape = check_array(self._archive, n_classes["file"])
        if type(json.loads(n_features["content"])) is not int or shape != (
            json.loads(n_outputs["content"]),
        ):
            raise ModelFileError("It holds a tree whose numbers of classes do not fit.")

    def _check_file(self, name: str, loader: str) -> None:
        if name in self._files:
            raise ModelFileError(f"Two of its objects share the array {name}.")
        self._files.add(name)
        if loader == "SparseMatrixNode":
            self._bytes_left -= check_sparse(self._archive, name, self._bytes_left)
        else:
            check_array(self._archive, name)

    def _alike(self, ours: Any, theirs: Any) -> bool:
        """Whether two descriptions are the same, except for numbers and names made each time."""
        if isinstance(ours, dict) and isinstance(theirs, dict):
            keys = ours.keys() | theirs.keys()
            # A text there distinguishes a node from a dictionary of the user's that has such a key.
            if isinstance(ours.get("__loader__"), str):
                keys -= {"__id__", "file"}
                names = [str(one.get("file")) for one in (ours, theirs)]
                if names[0] != names[1] and not self._same_contents(*names):
                    return False
            return all(
                key in ours and key in theirs and self._alike(ours[key], theirs[key])
                for key in keys
            )
        if isinstance(ours, list) and isinstance(theirs, list):
            return len(ours) == len(theirs) and all(map(self._alike, ours, theirs))
        return type(ours) is type(theirs) and bool(ours == theirs)

    def _same_contents(self, ours: str, theirs: str) -> bool:
        """Return whether two members are the same; each is read once, however often it is named."""
        for name in (ours, theirs):
            if name not in self._digests:
                self._digests[name] = hashlib.sha256(self._archive.read(name)).digest()
        return self._digests[ours] == self._digests[theirs]
