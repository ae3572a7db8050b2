"""The engine's passes over blocks of rows as compiled C, where the package was built with it.

The C sources beside this file are built into one library when covshift is installed on a machine
with a C compiler (``hatch_build.py``); it needs nothing of Python's or NumPy's. Without it NumPy
does the same: `filter_passes` has both, and NumPy's are the reference. The environment variable
COVSHIFT_KERNELS chooses: "numpy", or "compiled" for an error where there is no library.

Compiled are values and slopes of the activations with their squares by class; the second and
third pass of the joint loss; its one pass for the soft absolute value; and, where calling NumPy
would cost more than its work, whole minimizations of filters of few weights and the training of
auto-encoders of few weights.
"""

import ctypes
import hashlib
import os
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from covshift.kernels.activations_and_norms import ACTIVATIONS, Activation
from covshift.kernels.array_types import FloatArray, IntArray

FOLDER = Path(__file__).parent
SQUASHINGS = ("sigmoid", "tanh", "linear")  # as in autoencoders.c
LIBRARY = "_filters.so"  # by this name on every system: nothing looks for it but `library`
TILE = 256  # as in filters.c
N_POINTERS = {"activate": 4, "collect": 7, "descend": 7, "soft_pass": 6, "train": 9}
# Products in a call of `minimize_small`: some tens of milliseconds, after which Ctrl-C is noticed.
CALL_WORK = 2**28
GOES_ON = 2  # what it returns where there is more to do

_int, _double, _pointer = ctypes.c_int32, ctypes.c_double, ctypes.c_void_p


# Structures of the C sources, field by field in the same order: a field that is missing here would
# shift all that follow it, which nothing checks.
class _Block(ctypes.Structure):
    _fields_ = [
        *((name, _int) for name in ("n_problems", "n_filters", "n_rows", "n_classes")),
        *((name, _int) for name in ("activation", "codes_step")),
        *((name, _double) for name in ("epsilon", "norm_epsilon")),
        ("codes", _pointer),
    ]


class _Factors(ctypes.Structure):
    _fields_ = [(name, _pointer) for name in ("inverse", "upstream", "sums")]


class _Limits(ctypes.Structure):
    _fields_ = [
        *((name, _int) for name in ("max_iter", "max_evaluations")),
        *((name, _double) for name in ("tol", "precision", "sufficient_decrease")),
        *((name, _double) for name in ("curvature", "nearest", "farthest")),
    ]


class _Training(ctypes.Structure):
    _fields_ = [
        *((name, _int) for name in ("n_networks", "n_features", "n_codes", "n_rows")),
        *((name, _int) for name in ("batch_size", "activation", "decoder", "tied", "adam")),
        *((name, _double) for name in ("momentum", "decay", "epsilon")),
        *((name, ctypes.c_int64) for name in ("n_steps", "stride")),
    ]


class _Search(ctypes.Structure):
    _fields_ = [
        *((name, _double) for name in ("f_start", "d_start", "step", "low", "f_low", "d_low")),
        *((name, _double) for name in ("high", "f_high", "d_high")),
        ("evaluations", _int),
    ]


class _Course(ctypes.Structure):
    _fields_ = [("search", _Search), ("f", _double), ("known", _int), ("begun", _int)]


class _Progress(ctypes.Structure):
    _fields_ = [("course", _Course), ("problem", _int)]


@cache
def library() -> dict[Any, Any] | None:
    """The compiled C functions by name and size of a number; None where not to be used."""
    wanted = os.environ.get("COVSHIFT_KERNELS", "")
    if wanted not in ("", "auto", "compiled", "numpy"):
        raise ValueError(f"COVSHIFT_KERNELS must be auto, compiled or numpy, got {wanted!r}.")
    if wanted == "numpy":
        return None
    path = FOLDER / LIBRARY
    try:
        loaded = ctypes.CDLL(str(path))
        loaded.built_from.restype = ctypes.c_char_p
        # A library built from other sources may take other arguments and would write outside of
        # arrays. So the sources carry a digest, which is compared before anything is called.
        digest = loaded.built_from().decode()
    except (OSError, AttributeError) as error:
        if wanted == "compiled":
            raise ImportError(
                f"COVSHIFT_KERNELS=compiled, but {path} is not there or cannot be loaded: install "
                "covshift again on a machine with a C compiler, or leave the variable out."
            ) from error
        return None
    if digest != digest_of_sources(FOLDER):
        warnings.warn(
            f"{path} was built from other sources and is not used: install covshift again. "
            "Until then NumPy does its work, more slowly.",
            stacklevel=2,
        )
        return None
    functions: dict[Any, Any] = {
        name: getattr(loaded, name) for name in ("minimize_small", "small_room")
    }
    for name, n_pointers in N_POINTERS.items():
        for precision, itemsize in (("float", 4), ("double", 8)):
            functions[name, itemsize] = function = getattr(loaded, f"{name}_{precision}")
            function.argtypes, function.restype = [_pointer] * n_pointers, None
    # Types are declared, since ctypes would hand on addresses as C's int and cut them to 32 bits.
    long = ctypes.c_int64
    loaded.minimize_small.argtypes = [
        _pointer, _int, _pointer, long, *[_pointer] * 4, long, *[_pointer] * 5, long,
        *[_pointer] * 2,
    ]  # fmt: skip
    loaded.small_room.argtypes, loaded.small_room.restype = [_pointer, _int], long
    return functions


def digest_of_sources(folder: Path) -> str:
    """Return a digest that differs between versions of the compiled C sources."""
    digest = hashlib.sha256()
    for source in sorted(folder.glob("*.[ch]")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def describe(
    shape: tuple[int, ...],
    codes: IntArray,
    n_classes: int,
    activation: Activation,
    epsilon: float,
    norm_epsilon: float,
) -> Any:
    """A block (K, L, b) for compiled C, and what is computed of it.

    ``codes``, (b,) or (K, b), ascend and have 32 bits.
    """
    K, L, b = shape
    # Numbers from one problem's codes to the next: none where all problems share them.
    step = b if codes.ndim == 2 else 0
    kind = ACTIVATIONS.index(activation)
    return _Block(K, L, b, n_classes, kind, step, epsilon, norm_epsilon, _address(codes))


def activate(block: Any, H: FloatArray, slopes: FloatArray, sums: FloatArray) -> None:
    """Call compiled C: overwrite H (K, L, b) with F, and slopes; add F^2 to ``sums``."""
    function = _function("activate", H)
    function(ctypes.byref(block), _address(H), _address(slopes), _address(sums))


def collect(
    block: Any, inverse: FloatArray, upstream: FloatArray, F: FloatArray, U: FloatArray,
    V: FloatArray, losses: FloatArray, sums: FloatArray,
) -> None:  # fmt: skip
    """Call the second pass in compiled C: set U, V (K, b); add to ``losses``, ``sums`` (K, L)."""
    factors = _Factors(_address(inverse), _address(upstream), None)
    addresses = [_address(array) for array in (F, U, V, losses, sums)]
    function = _function("collect", F)
    function(ctypes.byref(block), ctypes.byref(factors), *addresses)


def descend(
    block: Any, inverse: FloatArray, upstream: FloatArray, sums: FloatArray, F: FloatArray,
    slopes: FloatArray, U: FloatArray, V: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Call the third pass of the joint loss in compiled C: the gradient of H, into ``out``.

    The gradient is (K, L, b).
    """
    factors = _Factors(_address(inverse), _address(upstream), _address(sums))
    addresses = [_address(array) for array in (F, slopes, U, V, out)]
    function = _function("descend", F)
    function(ctypes.byref(block), ctypes.byref(factors), *addresses)


def soft_pass(
    block: Any, inverse: FloatArray, upstream: FloatArray, H: FloatArray, losses: FloatArray,
    sums: FloatArray,
) -> None:  # fmt: skip
    """Call the one pass of the soft absolute value in compiled C: H becomes its gradient."""
    factors = _Factors(_address(inverse), _address(upstream), None)
    # A tile of columns is worked on at a time, in a buffer that stays in the cache.
    space = np.empty((H.shape[1], TILE), H.dtype)
    addresses = [_address(array) for array in (H, space, losses, sums)]
    function = _function("soft_pass", H)
    function(ctypes.byref(block), ctypes.byref(factors), *addresses)


class Minimization(NamedTuple):
    """The course of minimizations of K problems.

    Attributes
    ----------
    W : (K, L, m) the last iterates.
    losses, gradient_norms : (K, max_iter + 1), of which the first ``lengths`` (K,) are set.
    converged : (K,).
    """

    W: FloatArray
    losses: FloatArray
    gradient_norms: FloatArray
    lengths: IntArray
    converged: IntArray


def minimize_small(
    block: Any,
    columns: FloatArray,
    upstream: FloatArray,
    alpha: FloatArray,
    l1: FloatArray,
    W: FloatArray,
    limits: dict[str, float],
    should_stop: Callable[[], bool],
) -> Minimization:
    """Minimize the joint loss of K problems, one after the other, in compiled C.

    Parameters
    ----------
    block : all rows, see `describe`.
    columns : (m, n) or (K, m, n), the rows' features.
    upstream : (K, C + 1, L); ``alpha``, ``l1`` : (K,), weights of the penalties.
    limits : those of the solver, by name.
    should_stop : asked about ten times per second whether to give up; paths then end early.

    Raises
    ------
    FloatingPointError
        If the loss or its gradient is not finite at a start.
    """
    K, L, m = W.shape
    size = (K, int(limits["max_iter"]) + 1)
    result = Minimization(
        W.copy(), np.empty(size), np.empty(size), np.zeros(K, np.int32), np.zeros(K, np.int32)
    )
    functions, own_limits, progress = library() or {}, _Limits(**limits), _Progress()
    room = np.empty(functions["small_room"](ctypes.byref(block), m))
    # An activation costs as much as some twenty products.
    n_evaluations = max(1, CALL_WORK // (L * block.n_rows * (m + 20)))
    step = columns[0].size if columns.ndim == 3 else 0
    addresses = [_address(array) for array in (upstream, alpha, l1)]
    status = GOES_ON
    while status == GOES_ON:  # Python looks for signals between two calls
        if should_stop():
            # The C code then ends each path at the iterate it has, as if its iterations were used
            # up.
            own_limits.max_iter = 0
        status = functions["minimize_small"](
            ctypes.byref(block), m, _address(columns), step, *addresses,
            ctypes.byref(own_limits), size[1], *(_address(array) for array in result),
            n_evaluations, ctypes.byref(progress), _address(room),
        )  # fmt: skip
    if status == 1:
        raise FloatingPointError("the loss or its gradient is not finite at the start")
    return result


def train_networks(
    shape: tuple[int, int, int],
    activations: tuple[str, str],
    tied: bool,
    steps: dict[str, float],
    noisy: FloatArray,
    clean: FloatArray,
    arrays: tuple[FloatArray, ...],
    losses: FloatArray,
) -> None:
    """Train K auto-encoders in compiled C: a step for each batch of rows.

    Parameters
    ----------
    shape : rows of a batch, features m, codes L; ``activations``: those of encoder and decoder.
    steps : "adam", "momentum", "decay", "epsilon" and "n_steps", those taken before.
    noisy, clean : (K, m + 1, n), the last row ones, and (K, m, n), parts of longer rows perhaps.
    arrays : rates (K,), parameters, first and second sums of gradients (K, P); all but the
        rates are overwritten.
    losses : (K,) sums of squared errors are added.
    """
    (batch_size, m, L), (K, _, n) = shape, clean.shape
    kinds = map(SQUASHINGS.index, activations)
    training = _Training(
        K, m, L, n, min(batch_size, n), *kinds, tied,
        stride=clean.strides[1] // clean.itemsize, **steps,
    )  # fmt: skip
    # C allocates nothing: all memory comes from NumPy, which frees it whatever happens.
    room = np.empty(arrays[1].shape[1] + (L + m + 1) * training.batch_size, clean.dtype)
    inputs = [array.ctypes.data for array in (noisy, clean)]
    addresses = [_address(array) for array in (*arrays, losses, room)]
    _function("train", clean)(ctypes.byref(training), *inputs, *addresses)


def _function(name: str, array: FloatArray) -> Any:
    """Return the compiled function of that name, in the precision of an array."""
    return (library() or {})[name, array.dtype.itemsize]


def _address(array: Any) -> int:
    """Where the numbers of a contiguous array are."""
    try:  # a quarter of the time of the other way
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except TypeError:
        if not array.flags.c_contiguous:
            raise
        address: int = array.ctypes.data  # it may only be read
        return address
