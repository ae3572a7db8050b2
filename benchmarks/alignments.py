"""The alignments: time of a fit against its floor, with the peers beside it, and memory.

python benchmarks/alignments.py [--out results.json]

The floor is what a method cannot do without, in the plainest fast NumPy, on source and target
rows that are separate arrays already (`floor`): the covariance matrix of each role (center,
multiply) and the decompositions that make the map of them. For subspace alignment these are the
eigenvectors of both; for CORAL a root of each; for the Monge map a root of one and then one
of the product that stands in its formula. Validation, finiteness and picking rows by domain are
ours. So is the intensity of the shrinkage of CORAL and Monge (``shrinkage="auto"``), one more pass
over the rows; what both take without it is printed.

Medians of 20 rounds, all taking turns, with one BLAS thread: two gain little on matrices so
narrow, and wait for each other where a machine is shared. Memory is that of one fit in a process of
its own; source rows stand before target rows, as `stack_domains` puts them, so that a role's rows
need no copy, and in a second fit roles alternate.
"""

import numpy as np
from measuring import added_megabytes, median_seconds, report
from threadpoolctl import threadpool_limits

from covshift import CorrelationAlignment, LinearMongeAlignment, SubspaceAlignment

D = 50
METHODS = {
    "SubspaceAlignment": SubspaceAlignment(),
    "CorrelationAlignment": CorrelationAlignment(),
    "LinearMongeAlignment": LinearMongeAlignment(),
}
SETUP = """
import numpy as np
from covshift import CorrelationAlignment, LinearMongeAlignment, SubspaceAlignment
rng = np.random.default_rng(0)
X = rng.standard_normal((2 * {n}, {d}))
sample_domain = {domain}
SubspaceAlignment().fit(X[::{n} // 500], sample_domain=np.repeat([0, -1], 500))  # what loads late
"""


def covariance(rows):
    """Covariance, and nothing else."""
    centered = rows - rows.mean(axis=0)
    return centered.T @ centered / len(rows)


def root(C, power=0.5):
    """Power of a symmetric matrix."""
    values, vectors = np.linalg.eigh(C)
    return (vectors * values**power) @ vectors.T


def floor(method, source, target):
    """Parts of the method's map."""
    C_source, C_target = covariance(source), covariance(target)
    if method == "SubspaceAlignment":
        T, U = (np.linalg.eigh(C)[1][:, ::-1][:, : D // 2] for C in (C_source, C_target))
        return T.T @ U
    if method == "CorrelationAlignment":
        return root(C_source, -0.5) @ root(C_target)
    values, vectors = np.linalg.eigh(C_source)
    roots = np.sqrt(values)
    half, inverse = (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T
    return inverse @ root(half @ C_target @ half) @ inverse


def peers():
    """SKADA's alignments, by our names; none where it is not installed."""
    try:
        from skada import CORALAdapter, LinearOTMappingAdapter, SubspaceAlignmentAdapter
    except ImportError:
        print("SKADA is not installed: pip install skada")
        return {}
    return {
        "SubspaceAlignment": SubspaceAlignmentAdapter(n_components=D // 2),
        "CorrelationAlignment": CORALAdapter(),
        "LinearMongeAlignment": LinearOTMappingAdapter(),
    }


def times(n, repetitions):
    """Times the floor, one row for each method from 20,000 rows on; all times are printed."""
    rng = np.random.default_rng(0)
    mixing = np.eye(D) + 0.1 * rng.standard_normal((D, D))
    source, target = rng.standard_normal((n, D)), rng.standard_normal((n, D)) @ mixing + 0.1
    X, sample_domain = np.concatenate([source, target]), np.repeat([0, -1], n)
    functions = {}
    for name, model in METHODS.items():
        functions[name, "floor"] = lambda name=name: floor(name, source, target)
        functions[name, "ours"] = lambda model=model: model.fit(X, sample_domain=sample_domain)
    for name in ("CorrelationAlignment", "LinearMongeAlignment"):
        bare = type(METHODS[name])(shrinkage=None)
        functions[name, "ours, no shrinkage"] = lambda model=bare: model.fit(
            X, sample_domain=sample_domain
        )
    for name, peer in PEERS.items():
        functions[name, "SKADA"] = lambda peer=peer: peer.fit(X, sample_domain=sample_domain)
    functions["all", "our validation"] = lambda: METHODS["SubspaceAlignment"]._validate_rows(X)
    seconds = median_seconds(functions, repetitions)
    for (name, which), value in seconds.items():
        print(f"{n:7,d} rows a role: {name:21s} {which:19s} {1000 * value:8.1f} ms", flush=True)
    if n < 20_000:  # a fit of milliseconds is mostly what scikit-learn does around it
        return
    for name in METHODS:
        ratio = seconds[name, "ours"] / seconds[name, "floor"]
        yield f"{name}, {n:,} + {n:,} rows, d = {D}: times the floor", ratio, "<=", 1.5


def memory():
    """Megabytes of a fit; the largest may need twelve times as many as one with a tenth."""
    for name in METHODS:
        for order, domain in (("in runs", "np.repeat([0, -1], {n})"),
                              ("alternating", "np.tile([0, -1], {n})")):  # fmt: skip
            used = {}
            for n in (2_000, 20_000, 200_000):
                setup = SETUP.format(n=n, d=D, domain=domain.format(n=n))
                used[n] = added_megabytes(setup, f"{name}().fit(X, sample_domain=sample_domain)")
            sizes = ", ".join(f"{value:.1f} MB at {n:,}" for n, value in used.items())
            print(f"{name}, roles {order}: {sizes} rows a role", flush=True)
            # A megabyte is the size of a tile: below it there is nothing to compare.
            ratio = used[200_000] / max(used[20_000], 1)
            yield f"{name}, roles {order}: memory, 200,000 rows over 20,000", ratio, "<=", 12


PEERS = peers()
with threadpool_limits(1):
    rows = [*times(2_000, 20), *times(20_000, 20), *times(200_000, 20), *memory()]
print()
report(rows)
