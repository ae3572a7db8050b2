"""The weight estimators: time side by side with the peers, rank correlation, memory.

python benchmarks/weights.py [--out results.json]

Source rows are N(0, I) in 50 dimensions and target rows are shifted by .5 in two of them, so that
the true ratio is known. Peers are densratio, SKADA and ADAPT; one that is not installed is left
out. All use the same candidates and as many kernels; sigma is .5, 1 and 2 times the median of the
distances.

Times are medians: of 20 rounds where one takes under a second, of 3 to 5 where it takes seconds.
densratio at 20,000 + 20,000 rows takes a minute and gigabytes: it has one run, and as many of ours
right after it. KMM is exact at 2,000 rows and has 500 landmarks at 20,000 and 200,000. Memory is
that of one fit in a process of its own.
"""

import contextlib
import io
import os
import time
import warnings

import numpy as np
from measuring import added_megabytes, median_seconds, report
from scipy.stats import spearmanr

from covshift import ClassifierWeights, KLIEPWeights, KMMWeights, RuLSIFWeights, ULSIFWeights
from covshift.measures import median_bandwidth

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # read by TensorFlow, which ADAPT loads
warnings.filterwarnings("ignore")  # the peers' are many, and of no use here

D = 50
MULTIPLES = (0.5, 1.0, 2.0)
LAMBDAS = (0.01, 0.1, 1.0)
MADE = """
import numpy as np
from covshift import ClassifierWeights, KLIEPWeights, KMMWeights, RuLSIFWeights, ULSIFWeights

def make_rows(n, d={d}, seed=0):
    rng = np.random.default_rng(seed)
    shift = np.r_[0.5, 0.5, np.zeros(d - 2)]
    source, target = rng.standard_normal((n, d)), rng.standard_normal((n, d)) + shift
    return source, target, np.exp(source @ shift - shift @ shift / 2)
"""
exec(MADE.format(d=D))


def ours(sigmas):
    """Our estimators, with the candidates that the peers get too."""
    return {
        "ULSIFWeights": ULSIFWeights(sigmas=sigmas, lambdas=LAMBDAS, random_state=0),
        "RuLSIFWeights": RuLSIFWeights(sigmas=sigmas, lambdas=LAMBDAS, random_state=0),
        "KLIEPWeights": KLIEPWeights(sigmas=sigmas, random_state=0),
        "KMMWeights": KMMWeights(bandwidth=sigmas[1], random_state=0),
        "ClassifierWeights": ClassifierWeights(random_state=0),
    }


def gammas(sigmas):
    """The peers' way to say sigma."""
    return [float(1 / (2 * sigma**2)) for sigma in sigmas]


def densratio_ulsif(source, target, sigmas):
    """Weights by densratio, or None."""
    try:
        from densratio import densratio
    except ImportError:
        print("densratio is not installed: pip install densratio")
        return None
    return lambda: densratio(
        target, source, sigma_range=list(sigmas), lambda_range=list(LAMBDAS), kernel_num=100,
        verbose=False,
    ).compute_density_ratio(source)  # fmt: skip


def skada_peers(source, target, sigmas):
    """Weights by SKADA's KLIEP and KMM."""
    try:
        from skada import KLIEPReweightAdapter, KMMReweightAdapter
    except ImportError:
        print("SKADA is not installed: pip install skada")
        return {}
    X, sample_domain = np.concatenate([source, target]), np.repeat([1, -1], len(source))

    def weigh(make):
        adapter = make().fit(X, sample_domain=sample_domain)
        return adapter.compute_weights(X, sample_domain=sample_domain)[: len(source)]

    # It overwrites its list of gammas: each fit gets its own.
    return {
        "SKADA KLIEP": lambda: weigh(
            lambda: KLIEPReweightAdapter(gamma=gammas(sigmas), cv=5, n_centers=100, random_state=0)
        ),
        "SKADA KMM": lambda: weigh(lambda: KMMReweightAdapter(gamma=gammas(sigmas)[1])),
    }


def adapt_peers(source, target, sigmas):
    """Weights by ADAPT's uLSIF, KLIEP and KMM."""
    try:
        from adapt.instance_based import KLIEP, KMM, ULSIF
    except ImportError:
        print("ADAPT is not installed: pip install adapt (it brings TensorFlow)")
        return {}
    same = {"kernel": "rbf", "verbose": 0, "random_state": 0}

    def weigh(model):
        with contextlib.redirect_stdout(io.StringIO()):
            return model.fit_weights(source, target)

    return {
        "ADAPT uLSIF": lambda: weigh(ULSIF(gamma=gammas(sigmas), lambdas=list(LAMBDAS), **same)),
        "ADAPT KLIEP": lambda: weigh(KLIEP(gamma=gammas(sigmas), cv=5, **same)),
        "ADAPT KMM": lambda: weigh(KMM(gamma=gammas(sigmas)[1], **same)),
    }


def fitting(source, target, sigmas):
    """Our estimators as functions of nothing."""
    X, sample_domain = np.concatenate([source, target]), np.repeat([0, -1], len(source))
    return {
        name: lambda model=model: model.fit(X, sample_domain=sample_domain).weights_
        for name, model in ours(sigmas).items()
    }


def take_turns(functions, ratio, repetitions):
    """Median seconds of each, printed with its rank correlation with the true ratio."""
    seconds = median_seconds(functions, repetitions)
    for name, function in functions.items():
        correlation = spearmanr(np.ravel(function()), ratio).statistic
        print(
            f"  {name:18s} {seconds[name]:8.3f} s   rank correlation {correlation:6.3f}", flush=True
        )
    return seconds


def small():
    """2,000 + 2,000 rows: everything that is installed."""
    source, target, ratio = make_rows(2_000)  # noqa: F821 (defined by the code in MADE)
    sigmas = np.multiply(MULTIPLES, median_bandwidth(source, target))
    functions = fitting(source, target, sigmas)
    print("2,000 + 2,000 rows")
    take_turns(
        {name: functions[name] for name in ("ULSIFWeights", "RuLSIFWeights", "KLIEPWeights")},
        ratio, 20,
    )  # fmt: skip
    slow = {name: functions[name] for name in ("KMMWeights", "ClassifierWeights")}
    if (densratio := densratio_ulsif(source, target, sigmas)) is not None:
        slow["densratio uLSIF"] = densratio
    slow |= skada_peers(source, target, sigmas) | adapt_peers(source, target, sigmas)
    seconds = take_turns(slow, ratio, 3)
    if "SKADA KMM" in seconds:
        faster = seconds["SKADA KMM"] / seconds["KMMWeights"]
        yield "KMM, exact, 2,000 + 2,000: times faster than SKADA's", faster, ">=", 1


def large():
    """20,000 + 20,000 rows."""
    source, target, ratio = make_rows(20_000)  # noqa: F821
    sigmas = np.multiply(MULTIPLES, median_bandwidth(source, target))
    functions = fitting(source, target, sigmas)
    print("20,000 + 20,000 rows")
    if (densratio := densratio_ulsif(source, target, sigmas)) is not None:
        start = time.perf_counter()
        weights = densratio()
        theirs = time.perf_counter() - start
        correlation = spearmanr(np.ravel(weights), ratio).statistic
        print(
            f"  densratio uLSIF    {theirs:8.3f} s   rank correlation {correlation:6.3f} (one run)"
        )
        seconds = median_seconds({"ours": functions["ULSIFWeights"]}, 5)["ours"]
        faster = theirs / seconds
        yield "uLSIF, 9 candidates, 20,000 + 20,000: times faster than densratio", faster, ">=", 20
    skada = skada_peers(source, target, sigmas)
    skada.pop("SKADA KMM", None)  # gigabytes, and longer than anyone waits
    seconds = take_turns(functions | skada, ratio, 3)
    if "SKADA KLIEP" in seconds:
        share = seconds["KLIEPWeights"] / seconds["SKADA KLIEP"]
        yield "KLIEP, 3 sigmas, 5 folds, 20,000 + 20,000: times SKADA's time", share, "<=", 1.5


def memory():
    """Megabytes of a fit at three sizes."""
    bounds = {"ULSIFWeights": 300, "KMMWeights": 500}
    for name in ours((1.0, 1.0, 1.0)):
        used = {}
        for n in (2_000, 20_000, 200_000):
            setup = MADE.format(d=D) + (
                f"model = {ours(tuple(5.0 * m for m in (1, 2, 4)))[name]!r}\n"
                # what is loaded late does not count
                "X, domain = np.concatenate(make_rows(200)[:2]), np.repeat([0, -1], 200)\n"
                "model.fit(X, sample_domain=domain)\n"
                f"source, target, _ = make_rows({n})\n"
                f"X, domain = np.concatenate([source, target]), np.repeat([0, -1], {n})\n"
                "del source, target"
            )
            used[n] = added_megabytes(setup, "model.fit(X, sample_domain=domain)")
        sizes = ", ".join(f"{value:.0f} MB at {n:,}" for n, value in used.items())
        print(f"{name}: {sizes} rows a role", flush=True)
        if name in bounds:
            what = f"{name}, 20,000 + 20,000 rows: MB added"
            yield what, used[20_000], "<=", bounds[name]
        ratio = used[200_000] / used[20_000]
        yield f"{name}: memory, 200,000 rows over 20,000", ratio, "<=", 12


rows = [row for section in (small, large, memory) for row in section()]
print()
report(rows)
