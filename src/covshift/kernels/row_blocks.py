"""Rows cut into blocks that stay in the cache, and the products of filters with them.

Filters of K problems are evaluated together: W is (K, L, m) and the activations of a block of
b rows are (K, L, b), rows last, so that a sum over rows or over filters is a product that BLAS
does at the speed of memory. The problems share their rows, (n, m), or have their own, (K, n, m).

Why blocks: an evaluation goes over the activations several times (square, sum, multiply). Over all
rows at once, each of these steps would fetch them from memory; of a block they are still in the
cache. A *block* is some consecutive rows, a *lane* is the run of blocks that one thread goes
through, and *room* is a part of a buffer that is made once and used in every evaluation.

Blocks are dealt to lanes in consecutive runs. A lane sums in the order of its
blocks, and lanes are added up in their order; both depend on the shapes alone. Lanes may
therefore run in any number of threads and give the same result to the last bit.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from covshift.kernels.array_types import FloatArray, IntArray, Rows

# The activations of a block: about the second-level cache of current cores. Shorter blocks
# would leave more of it to the four arrays that a pass touches, and more calls per row.
BLOCK_BYTES = 2**20
# Below this, calling NumPy costs more than its work on the block.
MIN_BLOCK_ROWS = 32
# More lanes than most machines have cores to spare, and few enough gradients to add up.
LANES = 8
# Activations and slopes of all blocks are kept between the passes up to this size; above it
# every pass computes them again.
KEPT_BYTES = 2**28


@dataclass(frozen=True)
class Block:
    """Some of the rows, with room for their activations.

    Attributes
    ----------
    rows : (b, m), dense or sparse, or (K, b, m).
    present : (p,) classes that occur in the block, in ascending order; C stands for rows
        without a label.
    columns : the same, as what picks them from an axis over the classes.
    classes : (p, b) or (K, p, b) indicators of the class of each row.
    codes : (b,) or (K, b) the class of each row.
    factors : buffer for the factors of the rows, (K, 2 p + 3, b) in all. Arrays of this size
        that were made again in every pass would cost more than what is done with them.
    kept : two buffers, in which activations and slopes (K, L, b) last from one pass to the
        next; None where they would be too large.
    """

    rows: Rows
    present: IntArray
    columns: slice | IntArray
    classes: FloatArray
    codes: IntArray
    factors: FloatArray
    kept: FloatArray | None


@dataclass(frozen=True)
class Lane:
    """A run of blocks that one thread goes through."""

    number: int
    blocks: list[Block]


@dataclass(frozen=True)
class BlockedRows:
    """All rows, and the buffers that threads take to work in and give back."""

    lanes: list[Lane]
    n_rows: int
    block_entries: int
    dtype: Any
    spare: deque[FloatArray] = field(default_factory=deque)

    @contextmanager
    def scratch(self) -> Iterator[FloatArray]:
        """Four buffers, each of the size of a block's activations."""
        try:
            buffers = self.spare.pop()
        except IndexError:
            buffers = np.empty((4, self.block_entries), self.dtype)
        yield buffers
        self.spare.append(buffers)


# How lanes are run: the built-in map, or that of a pool of threads.
Run: TypeAlias = Callable[[Callable[[Lane], Any], list[Lane]], Iterable[Any]]


def sort_by_class(X: Rows, codes: IntArray) -> tuple[Rows, IntArray]:
    """Sort rows (n, m) or (K, n, m) and their codes by class, before they are cut into blocks.

    Most blocks then hold rows of one class, and few need a column for more.
    """
    if codes.ndim == 1 and (codes[1:] >= codes[:-1]).all():  # differences of unsigned ones wrap
        return X, codes
    order = np.argsort(codes, axis=-1, kind="stable")
    if codes.ndim == 1:
        return X[order], codes[order]
    X = np.broadcast_to(X, (len(codes), *X.shape[-2:]))
    return np.take_along_axis(X, order[..., None], axis=1), np.take_along_axis(codes, order, axis=1)


def cut_into_blocks(
    X: Rows, codes: IntArray, n_problems: int, n_filters: int, *, passes: int
) -> BlockedRows:
    """Cut rows (n, m) or (K, n, m) into blocks, for K problems of L filters.

    ``codes`` (n,) or (K, n) are their classes, the largest one for rows without a label.
    """
    n_rows, n_features = X.shape[-2:]
    row_entries = n_problems * n_filters
    row_bytes = row_entries * X.dtype.itemsize
    # Width is by memory, lanes by number: neither looks at how many cores there are, so that the
    # order of sums, and with it the last bit, is the same on every machine.
    width = block_width(row_bytes, n_features)
    bounds = _cut_evenly(codes, width)
    n_blocks = len(bounds) - 1
    keep = passes > 1 and blocks_are_kept(row_bytes, n_rows)
    lanes = []
    runs = np.array_split(np.arange(n_blocks), min(LANES, n_blocks))
    for number, run in enumerate(runs):
        blocks = []
        for index in run:
            part = slice(bounds[index], bounds[index + 1])
            size = row_entries * (part.stop - part.start)
            kept = np.empty((2, size), X.dtype) if keep else None
            rows = X[part] if X.ndim == 2 else np.ascontiguousarray(X[:, part])
            block = make_block(rows, codes[..., part], n_problems, X.dtype)
            blocks.append(replace(block, kept=kept))
        lanes.append(Lane(number, blocks))
    return BlockedRows(lanes, n_rows, int(np.diff(bounds).max()) * row_entries, X.dtype)


def block_width(row_bytes: int, n_features: int) -> int:
    """Return the rows of a block, given the bytes of a row's activations."""
    # Each block adds to the gradient, which costs as much as a product over few rows.
    return max(MIN_BLOCK_ROWS, BLOCK_BYTES // row_bytes, n_features)


def blocks_are_kept(row_bytes: int, n_rows: int) -> bool:
    """Return whether the blocks' activations and slopes are few enough to be kept."""
    return 2 * row_bytes * n_rows <= KEPT_BYTES


def make_block(
    rows: Rows, codes: IntArray, n_problems: int, dtype: Any, factors: FloatArray | None = None
) -> Block:
    """Return a block of these rows, whose activations are not kept.

    ``factors`` is used again if it is large enough.
    """
    # One row of zeros and ones for each class that occurs: sums by class are then products with it.
    # Most blocks hold one class (see `sort_by_class`), so that p is 1.
    present = np.unique(codes)
    classes = (codes[..., None, :] == present[:, None]).astype(dtype)
    size = (2 * len(present) + 3) * n_problems * classes.shape[-1]
    if factors is None or len(factors) < size:
        factors = np.empty(size, dtype)
    first, last = int(present[0]), int(present[-1])
    in_a_row = last - first + 1 == len(present)  # then a slice, which copies nothing
    columns = slice(first, last + 1) if in_a_row else present
    codes = np.ascontiguousarray(codes, np.int32)
    return Block(rows, present, columns, classes, codes, factors, kept=None)


def _cut_evenly(codes: IntArray, width: int) -> IntArray:
    """Bounds of blocks of about ``width`` rows, at those of the classes where these are large."""
    n_rows = codes.shape[-1]
    ends = np.array([0, n_rows])
    if codes.ndim == 1:
        classes = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1, [n_rows]])
        if (len(classes) - 1) * width <= 4 * n_rows:  # else most blocks would be tiny
            ends = classes
    bounds = [
        np.linspace(start, stop, max(1, round((stop - start) / width)) + 1).astype(int)
        for start, stop in pairwise(ends)
    ]
    return np.unique(np.concatenate(bounds))


def blocks_of_problems(rows: BlockedRows, which: Any) -> BlockedRows:
    """Return the blocks of rows of some of the problems, where these have their own."""
    block = rows.lanes[0].blocks[0]
    if block.rows.ndim == block.classes.ndim == 2:
        return rows

    def pick(block: Block) -> Block:
        own_rows, own_classes = block.rows.ndim == 3, block.classes.ndim == 3
        return replace(
            block,
            rows=block.rows[which] if own_rows else block.rows,
            classes=block.classes[which] if own_classes else block.classes,
            codes=block.codes[which] if own_classes else block.codes,
        )

    lanes = [replace(lane, blocks=[pick(block) for block in lane.blocks]) for lane in rows.lanes]
    return replace(rows, lanes=lanes)


def room(buffer: FloatArray, *shape: int) -> FloatArray:
    """Return the beginning of a block's buffer as a contiguous array of that shape."""
    return buffer[: prod(shape)].reshape(shape)


def rooms(buffer: FloatArray, *shapes: tuple[int, ...]) -> list[FloatArray]:
    """Return the parts of a block's buffer, one after the other, as arrays of these shapes."""
    parts, start = [], 0
    for shape in shapes:
        parts.append(buffer[start : start + prod(shape)].reshape(shape))
        start += prod(shape)
    return parts


def project(W: FloatArray, rows: Rows, out: FloatArray) -> FloatArray:
    """Multiply a row block of b rows by filters W (K, L, m): W X', into ``out`` (K, L, b)."""
    if rows.ndim == 3:
        return np.matmul(W, rows.swapaxes(-1, -2), out=out)
    flat = W.reshape(-1, W.shape[-1])
    if sparse.issparse(rows):
        out.reshape(len(flat), -1)[...] = (rows @ flat.T).T
    else:
        np.matmul(flat, rows.T, out=out.reshape(len(flat), -1))
    return out


def project_back(dH: FloatArray, rows: Rows) -> FloatArray:
    """Multiply a row block by gradients dH (K, L, b): the gradient with respect to W."""
    if rows.ndim == 3:
        gradient: FloatArray = np.matmul(dH, rows)
        return gradient
    flat = dH.reshape(-1, dH.shape[-1])
    product: FloatArray = (rows.T @ flat.T).T if sparse.issparse(rows) else flat @ rows
    return product.reshape(*dH.shape[:2], -1)


# --- Consecutive rows of an array that may be too large to copy ---


def view_rows(X: Rows, start: int, stop: int, dtype: Any = None) -> Rows:
    """Return the block of rows from ``start`` to ``stop``, contiguous and of that type.

    A copy only where needed.
    """
    if not sparse.issparse(X):
        return np.ascontiguousarray(X[start:stop], dtype)
    stop = min(stop, X.shape[0])
    low, high = int(X.indptr[start]), int(X.indptr[stop])
    data = X.data[low:high] if dtype is None else X.data[low:high].astype(dtype, copy=False)
    parts = (data, X.indices[low:high], X.indptr[start : stop + 1] - low)
    return type(X)(parts, shape=(stop - start, X.shape[1]))
