"""Model files: written, read, and what models must be freed of for that."""

import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import sklearn
from sklearn.base import BaseEstimator
from sklearn.neighbors import BallTree, KDTree
from sklearn.neighbors._base import NeighborsBase
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import check_is_fitted

from covshift.output_files import write_whole
from covshift.persistence.archive import (
    CARD,
    MAX_UNPACKED_BYTES,
    SCHEMA,
    ModelFileError,
    UntrustedTypesError,
    check_members,
    read_archive,
    unpack,
)
from covshift.persistence.boosted_models import (
    StoredModel,
    library_versions,
    pack_boosted,
    unpack_boosted,
)
from covshift.persistence.card_and_seal import check_key, check_seal, make_document, read_document
from covshift.persistence.content_checks import check_contents, parts_of
from covshift.persistence.schema_audit import TRUSTED, SchemaAudit, follow_moves
from covshift.registry import plugin_records

# Modules whose functions act on the system. No message says how to trust them.
HARMFUL_MODULES = frozenset(
    (
        "_posixsubprocess", "asyncio", "builtins", "cloudpickle", "code", "codeop", "ctypes",
        "dill", "ftplib", "http", "importlib", "io", "joblib", "marshal", "multiprocessing", "nt",
        "os", "pathlib", "pickle", "pkgutil", "platform", "posix", "pty", "requests", "runpy",
        "shelve", "shutil", "signal", "smtplib", "socket", "subprocess", "sys", "tempfile",
        "threading", "timeit", "types", "urllib", "webbrowser",
    )
)  # fmt: skip
LONGEST_MESSAGE = 4000  # a file can hold many types that have to be named, or one long name


class ModelVersionWarning(UserWarning):
    """A model file was written by another version of scikit-learn."""


def save(
    model: Any,
    path: str | PathLike[str],
    *,
    card: Mapping[str, Any] | None = None,
    key: bytes | None = None,
) -> None:
    """Write a fitted model to a file that holds no code; needs the extra ``models``.

    Parameters
    ----------
    model : estimator
        A fitted estimator of covshift or scikit-learn, or a pipeline of them. Classifiers of
        LightGBM and XGBoost may be among its parts.
    path : str or path
        File to write, by custom ``*.skops``. It is written atomically; an old one is replaced.
    card : dict, default=None
        Facts about the model to keep: data, diagnosis, metrics, as texts, numbers, lists and
        dictionaries. Class, features, classes, domains, versions and date are filled in.
    key : bytes, default=None
        Secret to sign the file with (HMAC-SHA-256), for files that others could change. `load` with
        the same key reads this file and no other. Every file has a digest, which tells damage
        but not forgery.

    Raises
    ------
    TypeError
        If a part of the model cannot be written so that it would come back the same.

    See Also
    --------
    load : Reads the model.
    covshift.persistence.read_card : Reads the card alone.

    Notes
    -----
    **Cost**: time and memory of the order of the arrays in the model.

    Examples
    --------
    >>> import os, tempfile
    >>> from covshift import AdaptedClassifier, DomainStandardScaler, load, save, stack_domains
    >>> from covshift.datasets import make_smooth_shift
    >>> data = make_smooth_shift(random_state=0)
    >>> X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    >>> model = AdaptedClassifier(DomainStandardScaler()).fit(X, y, sample_domain=sample_domain)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.skops")
    ...     save(model, path, card={"made by": "the docs"})
    ...     loaded = load(path)
    >>> bool((loaded.predict(data.X_test) == model.predict(data.X_test)).all())
    True
    """
    skops = import_skops()
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"save takes a fitted estimator, got {type(model).__name__}.")
    check_is_fitted(model)
    if key is not None:
        check_key(key)
    versions = {"skops": skops.__version__, **library_versions(model)}
    make_document(model, card, {})  # tells what is wrong with a card before anything is written
    try:
        packed = pack_boosted(_without_trees(_without_cycles(model)))
        # The archive of skops gets one more member, the card, which names the digest of each other
        # member: no member can be exchanged unnoticed.
        content = io.BytesIO(skops.io.dumps(packed, compression=ZIP_DEFLATED))
        with ZipFile(content) as archive:
            unpacked, digests = unpack(archive)
        document = make_document(model, card, digests, key, **versions)
        with ZipFile(content, "a", ZIP_DEFLATED) as archive:
            archive.writestr(CARD, document)
        # A file that load would refuse is not written.
        with ZipFile(content) as archive:
            size = sum(member.file_size for member in archive.infolist())
            check_members(archive, size)
        with ZipFile(unpacked) as archive:
            SchemaAudit(archive, 2 * size).check()
    except Exception as error:  # whatever a part of the model, of any type, makes of it
        reason = _one_line(error)
        if "Tensor" in reason:
            reason = "it holds tensors. Save covshift.to_numpy(model)."
        raise TypeError(f"{type(model).__name__} cannot be saved: {reason}") from error
    write_whole(Path(path), lambda file: file.write(content.getbuffer()))


def load(
    path: str | PathLike[str],
    *,
    trusted: Sequence[str | type] = (),
    max_bytes: int = MAX_UNPACKED_BYTES,
    key: bytes | None = None,
) -> Any:
    """Read a model written by `save`; needs the extra ``models``.

    Parameters
    ----------
    path : str or path
        File written by `save`.
    trusted : list of str or type, default=()
        Types beyond those of covshift and scikit-learn that may be made, each by its name
        ("package.module.Type"): your own estimators, say. Name only what you know: making a type
        runs its code. The error that refuses a file names the types that it holds.
    max_bytes : int, default=2 GiB
        Largest size of the file, and of its contents decompressed.
    key : bytes, default=None
        Secret that the file must be signed with by `save`. A file without a signature, or with
        another, is refused before any of it is interpreted. None: a signature is ignored.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    covshift.persistence.ModelFileError
        If the file is damaged, hostile, of a newer format, or holds types that are not trusted.
        Nothing has run then.

    Warns
    -----
    covshift.persistence.ModelVersionWarning
        If the file was written by another version of scikit-learn.

    Notes
    -----
    **Cost**: time and memory of the order of the file and of the arrays that it unpacks to;
    declared sizes are checked before.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from covshift import AdaptedClassifier, DomainStandardScaler, load, save, stack_domains
    >>> from covshift.datasets import make_smooth_shift
    >>> data = make_smooth_shift(random_state=0)
    >>> X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    >>> model = AdaptedClassifier(DomainStandardScaler()).fit(X, y, sample_domain=sample_domain)
    >>> path = Path(tempfile.mkdtemp()) / "model.skops"
    >>> save(model, path)
    >>> bool((load(path).predict(data.X_test) == model.predict(data.X_test)).all())
    True
    """
    skops = import_skops()
    if isinstance(trusted, str | bool):
        raise TypeError("trusted must be a list of names or types.")
    names = [one if isinstance(one, str) else f"{one.__module__}.{one.__name__}" for one in trusted]
    if key is not None:
        check_key(key)
    with _one_error(path):
        content, card = _open(Path(path), max_bytes)
        with ZipFile(content) as archive:
            unpacked, digests = unpack(archive)
            # First the seal, then the description, then the objects: each step trusts only what the
            # steps before it have checked.
            check_seal(archive.read(CARD), digests, key)
        with ZipFile(unpacked) as archive:
            SchemaAudit(archive, max_bytes).check()
        # The audit has seen the description as it was written; only then old names are replaced, by
        # names of ours.
        model = _build(skops, follow_moves(unpacked), [*TRUSTED, *names])
        if not isinstance(model, BaseEstimator | StoredModel):
            raise ModelFileError(f"It holds a {type(model).__name__}, which is not a model.")
        check_contents(model, names)
        model = unpack_boosted(model)
        _build_trees(model)
        written_by = _versions(card).get("scikit-learn", "an unknown version")
    if written_by != sklearn.__version__:
        warnings.warn(
            f"{path} was written with scikit-learn {written_by!s:.50} and is read with "
            f"{sklearn.__version__}, which may predict differently, or not at all. Compare some "
            "predictions, or fit again.",
            ModelVersionWarning,
            stacklevel=2,
        )
    return model


def read_card(path: str | PathLike[str], *, max_bytes: int = MAX_UNPACKED_BYTES) -> dict[str, Any]:
    """Read a model file's card alone; needs no extra, and builds no model.

    Parameters
    ----------
    path : str or path
        File written by `save`.
    max_bytes : int, default=2 GiB
        As in `load`.

    Returns
    -------
    dict
        The entries given to `save`, and ``class_name``, ``model`` (as it prints), ``n_features``,
        ``feature_names``, ``classes``, ``domains``, ``domain_names``, ``software`` and ``date``.

    Notes
    -----
    **Cost**: the file is read into memory; its arrays are not unpacked.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from covshift import AdaptedClassifier, DomainStandardScaler, save, stack_domains
    >>> from covshift.datasets import make_smooth_shift
    >>> from covshift.persistence import read_card
    >>> data = make_smooth_shift(random_state=0)
    >>> X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    >>> model = AdaptedClassifier(DomainStandardScaler()).fit(X, y, sample_domain=sample_domain)
    >>> path = Path(tempfile.mkdtemp()) / "model.skops"
    >>> save(model, path, card={"trained on": "made-up rows"})
    >>> card = read_card(path)
    >>> card["trained on"], card["classes"]
    ('made-up rows', [0, 1])
    """
    with _one_error(path):
        _, card = _open(Path(path), max_bytes)
    return card


def _open(path: Path, max_bytes: int) -> tuple[io.BytesIO, dict[str, Any]]:
    """Return the contents of a file whose members are checked, and its card."""
    content = read_archive(path, max_bytes)
    with ZipFile(content) as archive:
        check_members(archive, max_bytes)
        missing = {CARD, SCHEMA} - set(archive.namelist())
        if missing:
            raise ModelFileError(f"It has no {missing.pop()}: save did not write it.")
        return content, read_document(archive.read(CARD))


def _build(skops: Any, content: io.BytesIO, trusted: list[str]) -> Any:
    from skops.io.exceptions import UntrustedTypesFoundException  # an extra

    try:
        return skops.io.load(content, trusted=trusted)
    except UntrustedTypesFoundException:
        # skops names the first type that it meets; the user should see all of them at once.
        names = _untrusted_in(skops, content.getvalue(), trusted)
    raise UntrustedTypesError(
        explain_untrusted(names, f"load(path, trusted={names})", "`trusted`"), names
    )


def untrusted_types(path: str | PathLike[str]) -> list[str]:
    """Return the types in a model file of ours that `load` does not trust by itself."""
    return _untrusted_in(import_skops(), Path(path).read_bytes(), TRUSTED)


def _untrusted_in(skops: Any, content: bytes, trusted: Sequence[str]) -> list[str]:
    return sorted(set(skops.io.get_untrusted_types(data=content)) - set(trusted))


def explain_untrusted(names: Sequence[str], trust: str, where: str) -> str:
    """Say which types in a model file are not trusted, and how to trust them.

    ``trust`` is what to write, which is shown for types of installed plug-ins only: a line to copy
    must not come from the file. ``where`` says where to name other types.
    """
    plugins = {record.path.replace(":", "."): record.name for record in plugin_records()}
    if set(names) <= set(plugins):
        adapters = ", ".join(dict.fromkeys(repr(plugins[name]) for name in names))
        return (
            f"It holds types of the installed plug-in adapter {adapters}, which covshift does not "
            f"trust by itself. If you trust its author: {trust}."
        )
    harmful = [name for name in names if name.partition(".")[0] in HARMFUL_MODULES]
    if harmful:
        return (
            f"It holds {', '.join(harmful)}, which can run programs or change files and which no "
            "model needs. Do not use this file."
        )
    return (
        f"It holds types or functions that covshift does not know: {', '.join(names)}. Building "
        "them runs their code. If you know all of them and trust its author, name them "
        f"in {where}."
    )


def _versions(card: Mapping[str, Any]) -> Mapping[str, Any]:
    software = card.get("software")
    return software if isinstance(software, dict) else {}


@contextmanager
def _one_error(path: Any) -> Iterator[None]:
    """Raise whatever a file makes go wrong as one error, in one line, that names the file."""
    try:
        yield
    except UntrustedTypesError as error:
        told = f"Cannot read the model {path}: {_one_line(error)}"
        raise UntrustedTypesError(told, error.types) from None
    except ModelFileError as error:
        raise ModelFileError(f"Cannot read the model {path}: {_one_line(error)}") from None
    except Exception as error:  # the file decides what goes wrong: any error is its fault
        # The file system's own message names the file and is clearer than ours.
        if isinstance(error, OSError) and error.filename is not None:
            raise  # no such file, no permission
        if not is_model_file(path):
            raise ModelFileError(
                f"Cannot read the model {path}: it is not a model file; covshift.save and "
                "covshift adapt write them."
            ) from error
        raise ModelFileError(
            f"Cannot read the model {path}: it is damaged, or save did not write it "
            f"({type(error).__name__}: {_one_line(error)})"
        ) from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:LONGEST_MESSAGE]


def is_model_file(path: str | PathLike[str]) -> bool:
    """Return whether a file looks like one that `save` wrote, damaged or not.

    Workbooks and zipped tables are archives as well, without a card or schema.
    """
    try:
        with Path(path).open("rb") as file:
            if file.read(4) != b"PK\x03\x04":
                return False
        with ZipFile(path) as archive:
            return not {CARD, SCHEMA}.isdisjoint(archive.namelist())
    except OSError:
        return False  # `load` reports the error
    except (BadZipFile, NotImplementedError, ValueError):
        return True  # cut off or damaged; `load` says so


def import_skops() -> Any:
    """Import skops, which model files are read and written with, or say which extra is missing."""
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            'Saved models need skops, which is not installed: pip install "covshift[models]"'
        ) from error
    return skops


# --- What a file does without: references in circles, and search trees ---
#
# Search trees of nearest-neighbor models are not written to files, but built again from the rows:
# compiled code follows the numbers inside of such a tree without a look at bounds, so a tree from a
# file could not be trusted. The model keeps the rows that it was built from, and the same rows give
# the same tree and the same predictions.


TREES = {"kd_tree": KDTree, "ball_tree": BallTree}


def _without_cycles(model: Any) -> Any:
    """Return the model, or a copy whose requests for metadata do not point back at their owners.

    A file is a tree. Since scikit-learn 1.8 an estimator whose ``set_fit_request`` was called holds
    requests that hold the estimator; the name of its class serves as well, as it did before.
    """
    if not any(isinstance(part, MetadataRequest) for part in parts_of(model)):
        return model
    model = deepcopy(model)
    requests = [part for part in parts_of(model) if isinstance(part, MetadataRequest)]
    for request in requests:
        for part in (request, *vars(request).values()):
            owner = getattr(part, "owner", None)
            if owner is not None and not isinstance(owner, str):
                part.owner = type(owner).__name__
    return model


def _without_trees(model: Any) -> Any:
    """Return the model, or a copy of it whose nearest-neighbor parts have no search tree."""
    if not _with_trees(model):
        return model
    model = deepcopy(model)
    for part in _with_trees(model):
        part._tree = None
    return model


def _build_trees(model: Any) -> None:
    """Give nearest-neighbor parts of a loaded model their search trees back, in place."""
    for part in parts_of(model):
        if isinstance(part, NeighborsBase) and getattr(part, "_fit_method", None) in TREES:
            part._tree = TREES[part._fit_method](
                part._fit_X, part.leaf_size, metric=part.effective_metric_,
                **part.effective_metric_params_,
            )  # fmt: skip


def _with_trees(model: Any) -> list[Any]:
    return [
        part
        for part in parts_of(model)
        if isinstance(part, NeighborsBase) and getattr(part, "_tree", None) is not None
    ]
