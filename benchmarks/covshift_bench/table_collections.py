"""How a table becomes a collection: what the lists of `fresh` and `held_out` have in common.

- The label is a column of classes, or a number cut at fixed values or at quantiles of all rows.
  Classes with fewer than 100 rows are dropped.
- Domains are the values of a column, or blocks of an ordered one with about as many rows each.
- Features are all other columns but those named in ``without``: identifiers, other forms of the
  label, what is known only after it, and what defines the domain. Text becomes 0/1 columns; text
  with more than 30 values is dropped, as are columns that never vary.
- At most 2,000 rows of a domain are drawn, classes in proportion (seed 0).

The files have the format of the real collections; `covshift-bench tasks` makes tasks of them.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

MAX_ROWS = 2000  # of a domain
MAX_LEVELS = 30  # of a text column
MIN_OF_CLASS = 100  # rows


class Table(NamedTuple):
    """How a table becomes a collection.

    ``label`` is the name of a column; ``cuts`` are the values that it is cut at, and a number of
    ``quantiles`` cuts it into as many classes of equal size. ``domain`` is the name of a column;
    with ``blocks`` its order is cut into that number of domains. ``prepare`` adds columns first.
    """

    name: str
    source: tuple  # of the package's (package, table) names; several are put below each other
    label: str
    domain: str
    kind: str
    cuts: tuple = ()
    quantiles: int = 0
    blocks: int = 0
    ordered: bool = False
    unit: str = ""
    without: tuple = ()
    prepare: Callable | None = None


def build_collection(table, frame):
    """Return the arrays of a collection's file.

    Parameters
    ----------
    table : Table
        What is what.
    frame : DataFrame
        The rows.

    Returns
    -------
    dict
        Arrays in the format of the real collections.
    """
    if table.prepare is not None:
        frame = table.prepare(frame)
    frame = frame[frame[table.label].notna() & frame[table.domain].notna()]
    label, class_names = _label(frame[table.label], table)
    counts = label.value_counts()
    frame = frame[label.isin(counts.index[counts >= MIN_OF_CLASS]).to_numpy()]
    label = label.loc[frame.index]
    kept = [name for name in class_names if counts.get(name, 0) >= MIN_OF_CLASS]
    y = np.array([kept.index(name) for name in label])
    domain, domain_names = _domains(frame[table.domain], table)
    rows = _draw(domain, y)
    dropped = {table.label, table.domain, table.unit, "rownames", *table.without}
    features = _features(frame.iloc[rows].drop(columns=list(dropped & set(frame.columns))))
    arrays = {
        "X": features.to_numpy(dtype=np.float32),
        "y": y[rows].astype(np.int8),
        "domain": domain[rows].astype(np.int16),
        "feature_names": np.array(json.dumps(list(features.columns))),
        "class_names": np.array(json.dumps([str(name) for name in kept])),
        "domain_names": np.array(json.dumps(domain_names)),
        "kind": np.array(table.kind),
        "ordered": np.array(json.dumps(table.ordered)),
    }
    if table.unit:
        unit = frame[table.unit].iloc[rows]
        arrays["group"] = np.unique(unit.astype(str), return_inverse=True)[1].astype(np.int32)
    return arrays


def _label(values, table):
    """The class of each row, and all classes in order."""
    if table.quantiles:
        cuts = values.quantile(np.arange(1, table.quantiles) / table.quantiles).to_numpy()
    else:
        cuts = np.array(table.cuts)
    if len(cuts) == 0:
        return values, sorted(values.unique())
    names = [f"below {cuts[0]:.6g}", *(f"{cut:.6g} or more" for cut in cuts)]
    codes = np.searchsorted(cuts, values.to_numpy(dtype=float), side="right")
    return pd.Series(np.array(names)[codes], index=values.index), names


def _domains(values, table):
    """The number of each row's domain, and the names of the domains."""
    if not table.blocks:
        names, numbers = np.unique(values.to_numpy(), return_inverse=True)
        return numbers.ravel(), [str(name) for name in names]
    ranks = values.rank(method="min").to_numpy() - 1
    blocks = (ranks * table.blocks // len(values)).astype(int)
    numbers = np.unique(blocks, return_inverse=True)[1].ravel()
    parts = [values.to_numpy()[numbers == number] for number in range(numbers.max() + 1)]
    return numbers, [f"{part.min()} to {part.max()}" for part in parts]


def _draw(domain, y):
    """Numbers of at most `MAX_ROWS` rows of each domain, classes in proportion, in their order."""
    rng = np.random.default_rng(0)
    drawn = []
    for number in np.unique(domain):
        inside = np.flatnonzero(domain == number)
        share = min(1.0, MAX_ROWS / len(inside))
        for code in np.unique(y[inside]):
            rows = inside[y[inside] == code]
            drawn.append(rng.permutation(rows)[: max(1, int(share * len(rows)))])
    return np.sort(np.concatenate(drawn))


def _features(frame):
    """Numbers as they are, text as 0/1 columns; without what has many values or only one."""
    columns = {}
    for name in frame.columns:
        values = frame[name]
        if values.dtype.kind in "iufb":
            columns[str(name)] = values.astype(np.float32)
            continue
        levels = sorted(values.dropna().astype(str).unique())
        if len(levels) > MAX_LEVELS:
            continue
        for level in levels[1:] if len(levels) == 2 else levels:
            columns[f"{name}={level}"] = (values.astype(str) == level).astype(np.float32)
    features = pd.DataFrame(columns, index=frame.index)
    return features.loc[:, features.nunique() > 1]


def write_collections(tables, read, folder, progress=print):
    """Write a file for each table into a folder.

    Parameters
    ----------
    tables : list of Table
        What is what.
    read : callable
        Returns the frame of each entry of a table's ``source``.
    folder : path
        Where to write.
    progress : callable
        Called with a line about each collection.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        parts = [read(*source) for source in table.source]
        arrays = build_collection(table, pd.concat(parts, ignore_index=True))
        with (folder / f"{table.name}.npz").open("wb") as file:
            np.savez_compressed(file, **arrays)
        n_rows, n_features = arrays["X"].shape
        n_domains = len(np.unique(arrays["domain"]))
        n_classes = len(np.unique(arrays["y"]))
        progress(
            f"{table.name}: {n_rows} rows, {n_features} features, {n_classes} classes, "
            f"{n_domains} domains"
        )
