"""Parts shared by the loaders of users' folders: finding files, and the Bunch they return."""

import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

# NumPy raises many errors for bytes that are not a .npz file, or a damaged one.
UNREADABLE_ARRAYS = (
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def find_folder(folder: str | os.PathLike[str], where_to_get: str) -> Path:
    """Return the folder of a collection, or say where to get what belongs in it.

    Raises
    ------
    FileNotFoundError
        If the folder, or a file that belongs in it, is not there.
    NotADirectoryError
        If it is a file.
    ValueError
        If a file is damaged or does not hold what it should. The message names it.

    Notes
    -----
    **Cost**: linear in the size of the files, in time and memory.
    """
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"folder must be a path, got {folder!r}.")
    path = Path(folder)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: give the data's folder. {where_to_get}")
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is a file: give the data's folder. {where_to_get}")
    return path


def find_file(folder: Path, name: str, where_to_get: str) -> Path:
    """Return a file of a collection that is there, or say which is missing."""
    path = folder / name
    if not path.is_file():
        raise FileNotFoundError(f"{folder} has no file {name}. {where_to_get}")
    return path


def damaged_data(path: Path, problem: str) -> ValueError:
    """Return the error for a data set whose file does not hold what it should."""
    return ValueError(f"{path} {problem}: the file is damaged or another one; fetch it again.")


def make_collection(
    data: Any,
    target: Any,
    row_domains: Any,
    domain_order: Sequence[str],
    *,
    feature_names: Sequence[str],
    description: str,
    **more: Any,
) -> Bunch:
    """Gather the rows of several domains.

    Parameters
    ----------
    data : array or sparse matrix of shape (n_samples, n_features)
        Rows.
    target : array-like of shape (n_samples,)
        Labels.
    row_domains : array-like of str of shape (n_samples,)
        Name of the domain of each row.
    domain_order : sequence of str
        Names of the domains; their positions become the integers.
    feature_names : sequence of str
        Names of the columns.
    description : str
        Where the data come from, and under which terms.
    **more
        Further entries, such as the speaker of each row.

    Returns
    -------
    Bunch
        With ``data, target, domain, domain_names, feature_names, DESCR`` and what more there is.
    """
    numbers: Mapping[str, int] = {name: number for number, name in enumerate(domain_order)}
    return Bunch(
        data=data if sparse.issparse(data) else np.asarray(data),
        target=np.asarray(target),
        domain=np.array([numbers[str(name)] for name in row_domains], dtype=np.int64),
        domain_names={number: name for name, number in numbers.items()},
        feature_names=[str(name) for name in feature_names],
        DESCR=description,
        **more,
    )
