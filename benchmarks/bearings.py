r"""The automatic choice on the bearings of Case Western Reserve: all tables of its results page.

    python benchmarks/bearings.py WINDOWS --out runs/bearings [--coefficients without.json]
        [--expectations without-expectations.json]

WINDOWS is a folder of the files, or a file of windows (`covshift.paper.bearings.protocol`). For
each task across loads, sensors and fault sizes, the outputs of all candidates of
`AutoAdaptedClassifier` are computed once and kept below --out, on spectra and where a rule asks for
it on envelopes, or with loads as domains; the same command resumes. The choice is then made by the
coefficients of the package, and by those of files that no bearing shaped:

    python benchmarks/calibrate.py DATA runs/results.jsonl --without cwru mfpt_bearings \
        --coefficients without.json
    python benchmarks/assessment.py DATA runs/results.jsonl --without cwru mfpt_bearings \
        --expectations without-expectations.json

The tables of ``docs/results/bearings.md`` are printed and written to ``--out/tables.md``: the
choice, each pair with what the assessment says of it, and rules that choose features or keep the
plain model without labels. Balanced accuracy; intervals (95 %) resample recordings. ``--only N``
uses one task.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np
from calibrate import restore
from covshift_bench.methods.automatic import (
    BALANCED,
    N_MEMBERS,
    combine_candidates,
    make_bench,
    outputs_on_test,
)
from covshift_bench.tasks import DrawnTask
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from covshift import AdaptedClassifier, DomainQuantileTransformer, stack_domains
from covshift.measures import clustered_bootstrap_interval
from covshift.paper.bearings.protocol import LENGTH, RATE, SHIFTS, TASKS, read_windows
from covshift.predictors.objectives import ACCURACY, METRICS, decide_classes
from covshift.selection import expected_gains, expected_scores
from covshift.selection.assessment import MIN_DOMAINS, Assessment
from covshift.selection.choice import choose
from covshift.selection.expected_scores import vote_probabilities
from covshift.signals import EnvelopeSpectrum, Spectrum

SEED = 0
HIGHEST = 1000  # Hz, of envelopes: bearings' faults repeat some ten times a turn, three harmonics
MARGIN = 0.05  # of balanced accuracy on the source
SHARED = 0.5  # least share of the target's spread along directions of the source
CONTROLS = ("none", "standardize", "ranks")
FLOORS = {"loads": 0.95, "sensors": 0.90, "fault sizes": 0.519}  # of the automatic choice
LARGEST_LOSS = 0.05  # of any task, against no adaptation
PACKAGE = "of the package"
# Ways to choose that need no labels of the target; the tables show them in this order.
RULES = (
    "automatic choice", "features chosen by the source", "loads as domains",
    "loads as domains, unless undeterminable", "shared directions",
)  # fmt: skip
HINDSIGHT = "in hindsight: chosen features, else unless undeterminable"


class Judged(NamedTuple):
    """Predictions of the target windows, and the assessment that advises."""

    plain: np.ndarray
    vote: np.ndarray
    assessment: Assessment

    @property
    def recommended(self):
        """Predictions of the model that is advised."""
        return self.plain if self.assessment.action == "keep" else self.vote


def draw(task, windows, features, *, loads_apart=False):
    """Return the rows of a task, and the recordings of its target windows.

    The target windows are adapted to, without labels, and scored. With ``loads_apart`` each load of
    either side is a domain of its own.
    """
    source, target, labels = task.split(windows)
    before = np.unique(windows.load[source], return_inverse=True)[1]
    after = np.unique(windows.load[target], return_inverse=True)[1]
    drawn = DrawnTask(
        features[source], labels[source], before if loads_apart else np.zeros_like(before),
        features[target], -1 - after if loads_apart else np.full_like(after, -1),
        features[target], labels[target], None,
    )  # fmt: skip
    return drawn, windows.recording[target]


def envelopes(windows):
    """Return spectra of prewhitened envelopes, which gain, resonance and path do not change."""
    envelope = EnvelopeSpectrum(RATE, prewhiten=True).fit(windows.X[:1])
    return envelope.transform(windows.X)[:, : HIGHEST * LENGTH // RATE]


def source_folds(windows, source, labels):
    """Return a fold of each source window: recordings, or fifths of them if classes have one."""
    recording = windows.recording[source]
    own = {one: np.unique(recording[labels[source] == one]) for one in np.unique(labels[source])}
    if all(len(names) > 1 for names in own.values()):
        pairs = zip(labels[source], recording, strict=True)
        return np.array([np.searchsorted(own[label], name) for label, name in pairs])
    folds = np.empty(len(recording), dtype=int)
    for name in np.unique(recording):
        rows = np.flatnonzero(recording == name)
        folds[rows] = np.arange(len(rows)) * 5 // len(rows)
    return folds


def choose_features(representations, windows, task):
    """Return the first representation that distinguishes the classes of the source well enough.

    ``representations`` are ordered: the one that fewer changes of a machine can move comes first.
    It is used unless cross-validation on the source says that it knows less about the classes than
    another one, by more than `MARGIN`.
    """
    source, _, labels = task.split(windows)
    folds = source_folds(windows, source, labels)
    scores = {}
    for name, X in representations.items():
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        predicted = cross_val_predict(model, X[source], labels[source], cv=PredefinedSplit(folds))
        scores[name] = balanced_accuracy_score(labels[source], predicted)
    return next(one for one in scores if scores[one] >= max(scores.values()) - MARGIN), scores


def shared_directions(drawn):
    """Return how much of the target's spread lies along directions of the source.

    Of ranks within either side, which no gain at any frequency changes: the variance of the target
    along the first principal directions of the source, one fewer than classes, as a share of that
    along the target's own.
    """
    X, _, sample_domain = stack_domains(drawn.X_source, drawn.y_source, drawn.X_target)
    ranks = DomainQuantileTransformer().fit(X, sample_domain=sample_domain)
    k = len(np.unique(drawn.y_source)) - 1
    spreads, directions = [], []
    for side in (sample_domain >= 0, sample_domain < 0):
        Z = ranks.transform(X[side], sample_domain=sample_domain[side], allow_source=True)
        spreads.append(np.cov(Z, rowvar=False))
        directions.append(np.linalg.eigh(spreads[-1])[1][:, -k:])
    along = [np.trace(V.T @ spreads[1] @ V) for V in directions]
    return float(along[0] / along[1])


def controls(drawn):
    """Return the predictions of logistic regression after fixed adapters."""
    X, y, sample_domain = stack_domains(drawn.X_source, drawn.y_source, drawn.X_target)
    found = {}
    for name in CONTROLS:
        model = AdaptedClassifier(name, LogisticRegression(max_iter=1000))
        found[name] = model.fit(X, y, sample_domain=sample_domain).predict(drawn.X_test)
    return found


def compute(drawn, path):
    """Write the outputs of all candidates."""
    codes = np.unique(drawn.y_source, return_inverse=True)[1]
    hidden = drawn.without_target_labels()
    bench = make_bench(hidden, codes, SEED)
    tests = outputs_on_test(bench, hidden, codes, test_domain=hidden.target_domain)[0]
    part = path.with_suffix(".part.npz")
    np.savez_compressed(part, **combine_candidates(bench, hidden, tests)["auto"].arrays)
    part.rename(path)


def judge(drawn, path, files=None, objective=ACCURACY):
    """Return what is chosen by the coefficients of the package, or by those of other files."""
    hidden = drawn.without_target_labels()
    bench, tests = restore(hidden, path, SEED)
    bench.metric = METRICS[objective]
    beta, expected = files or (
        expected_gains.gain_coefficients(),
        expected_scores.score_coefficients(),
    )
    balanced = objective == BALANCED
    with (
        mock.patch.object(expected_gains, "gain_coefficients", return_value=beta),
        mock.patch.object(expected_scores, "score_coefficients", return_value=expected),
    ):
        choice = choose(
            bench, "rehearsals", n_members=N_MEMBERS, objective=objective, reweighed=not balanced
        )
    P = [None if one is None else bench.calibrated_of(i, one) for i, one in enumerate(tests)]
    mean = vote_probabilities(P, bench, choice.weights, reweighed=not balanced)
    classes = np.unique(drawn.y_source)
    labels = [decide_classes(one, objective, bench.problem.class_shares)
              for one in (P[choice.plain], mean)]  # fmt: skip
    return Judged(*(classes[one] for one in labels), choice.assessment)


def by_rules(judged, features, shared):
    """Return the predictions of each of `RULES` from those with each kind of features.

    ``judged`` has "spectrum", the chosen ``features``, and "loads" where loads are domains.
    """
    spectrum = judged["spectrum"]
    apart = judged.get("loads", spectrum)
    can_tell = apart.assessment.determinability
    unknown = can_tell.n_domains >= MIN_DOMAINS and not can_tell.determinable
    found = (
        spectrum.recommended, judged[features].recommended, apart.recommended,
        apart.plain if unknown else apart.recommended,
        spectrum.recommended if shared >= SHARED else spectrum.plain,
    )  # fmt: skip
    return dict(zip(RULES, found, strict=True))


def by_recording(predicted, truth, recordings):
    """Return the accuracy of each recording, by name."""
    right = predicted == truth
    return {name: float(right[recordings == name].mean()) for name in np.unique(recordings)}


def interval(scores):
    """Return the mean of pairs (recording, score) with its 95 % interval, as text."""
    names, values = zip(*scores, strict=True)
    low, high = clustered_bootstrap_interval(values, names, random_state=0)
    return f"{np.mean(values):.3f} ({low:.3f} to {high:.3f})"


def mean_of(scores):
    """Return the mean over the recordings of a task."""
    return float(np.mean(list(scores.values())))


def summarize(results):
    """Return a table of methods by shifts, and by rule whether the floors are kept.

    All recordings of a task have the same number of windows, and all classes the same number of
    recordings: balanced accuracy is the mean over recordings.
    """
    shifts = [one for one in SHIFTS if any(task[0] == one for task in results)]
    lines = [
        f"| | {' | '.join(f'{one} (floor {FLOORS[one]:g})' for one in shifts)} "
        "| least gain of a pair over none | floors |",
        f"|---|{'---:|' * (len(shifts) + 1)}---|",
    ]
    kept = {}
    for method in next(iter(results.values())):
        cells, good, least = [], True, {}
        for shift in shifts:
            tasks = [task for task in results if task[0] == shift]
            cells.append(interval([one for t in tasks for one in results[t][method].items()]))
            scores = [mean_of(results[task][method]) for task in tasks]
            good &= np.mean(scores) >= FLOORS[shift]
        for task, of_methods in results.items():
            least[" ".join(task)] = mean_of(of_methods[method]) - mean_of(of_methods["none"])
        worst = min(least, key=least.get)
        kept[method] = bool(good and least[worst] >= -LARGEST_LOSS)
        lines.append(
            f"| {method} | {' | '.join(cells)} | {least[worst]:+.3f} ({worst}) | "
            f"{'kept' if kept[method] else 'missed'} |"
        )
    return lines, kept


def pair_line(name, judged, truth, recordings):
    """Return a line of the table of pairs: scores, and what the assessment says of them."""
    plain, vote, used = (
        by_recording(one, truth, recordings)
        for one in (judged.plain, judged.vote, judged.recommended)
    )
    found, gain = judged.assessment, {one: vote[one] - plain[one] for one in plain}
    cells = [
        name, f"{mean_of(plain):.3f}", f"{mean_of(vote):.3f}", interval(gain.items()),
        f"{found.action}, {found.confidence}",
        stated(found.vote_gain, mean_of(gain)),
        stated(found.plain, mean_of(plain)),
        stated(found.recommended, mean_of(used)),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def stated(estimate, truth):
    """Return an estimate with its interval, and whether this holds the truth."""
    holds = estimate.low <= truth <= estimate.high
    return (
        f"{estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f}), "
        f"{'holds' if holds else 'fails'}"
    )


PAIRS = (
    "| pair | plain model | vote | gain | advice, confidence | expected gain of the vote "
    "| expected, plain model | expected, recommended |",
    "|---|---:|---:|---:|---|---|---|---|",
)


def tables_of(origin, tasks, windows, representations, folder, files):
    """Return the lines of all tables by one origin of coefficients."""
    results, pairs = {}, {name: list(PAIRS) for name in ("spectrum", "loads")}
    chosen = ["| pair | on the source: envelopes | spectra | features | shared directions | "
              "overlap | overlap, loads as domains | shift between loads, of the target |",
              "|---|---:|---:|---|---:|---:|---:|---:|"]  # fmt: skip
    for number, task in tasks:
        features, scores = choose_features(representations, windows, task)
        judged, balanced = {}, None
        for name in dict.fromkeys(("spectrum", features, "loads")):
            if name == "loads" and task.shift != "fault sizes":  # a single load on each side
                continue
            of = representations[name if name in representations else "spectrum"]
            drawn, recordings = draw(task, windows, of, loads_apart=name == "loads")
            path = folder / f"task-{number:02d}{'' if name == 'spectrum' else f'-{name}'}.npz"
            if not path.exists():
                compute(drawn, path)
            judged[name] = judge(drawn, path, files)
            if name == "spectrum":
                spectra, balanced = drawn, judge(drawn, path, files, BALANCED)
            if name in pairs:
                pairs[name].append(pair_line(task.name, judged[name], spectra.y_test, recordings))
        shared = shared_directions(spectra)
        apart = judged.get("loads", judged["spectrum"]).assessment.determinability
        chosen.append(
            f"| {task.name} | {scores['envelope']:.3f} | {scores['spectrum']:.3f} | {features} | "
            f"{shared:.2f} | {judged['spectrum'].assessment.determinability.overlap:.2f} | "
            f"{apart.overlap:.2f} | {apart.domain_shift:.2f}, {apart.target_shift:.2f} |"
        )
        envelope = draw(task, windows, representations["envelope"])[0]
        found = controls(spectra) | {
            "none, envelopes": controls(envelope)["none"],
            "plain model": judged["spectrum"].plain,
            "vote": judged["spectrum"].vote,
            "vote, chosen features": judged[features].vote,
            "automatic choice, balanced accuracy": balanced.recommended,
        }
        rules = by_rules(judged, features, shared)
        # Two of the rules were put together after their figures had been seen: not a rule to keep.
        rules[HINDSIGHT] = rules[RULES[1 if features == "envelope" else 3]]
        found |= rules
        results[task.shift, task.name] = {
            method: by_recording(labels, spectra.y_test, recordings)
            for method, labels in found.items()
        }
    lines = [f"## Coefficients {origin}", "", *summarize(results)[0]]
    for heading, table in (
        ("What the rules see", chosen), ("Each pair by method", scores_of(results)),
        ("Each pair", pairs["spectrum"]), ("Each pair, loads as domains", pairs["loads"]),
    ):  # fmt: skip
        lines += ["", f"### {heading}", "", *table]
    return lines


def scores_of(results):
    """Return a table of methods by pairs."""
    names = [name for _, name in results]
    lines = [f"| | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    for method in next(iter(results.values())):
        cells = [f"{mean_of(of_methods[method]):.3f}" for of_methods in results.values()]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


def main():
    """Compute what is missing, choose, write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("windows", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder for outputs and tables")
    parser.add_argument("--coefficients", type=Path, help="of the vote, by calibrate.py")
    parser.add_argument("--expectations", type=Path, help="of the assessment, by assessment.py")
    parser.add_argument("--only", type=int, help="use this task alone")
    options = parser.parse_args()
    windows = read_windows(options.windows)
    spectra = Spectrum(RATE).fit(windows.X[:1]).transform(windows.X)
    representations = {"envelope": envelopes(windows), "spectrum": spectra}
    options.out.mkdir(parents=True, exist_ok=True)
    tasks = [one for one in enumerate(TASKS) if options.only in (None, one[0])]
    origins = {PACKAGE: None}
    given = (options.coefficients, options.expectations)
    if any(given):
        texts = [None if one is None else json.loads(one.read_text()) for one in given]
        own = expected_gains.gain_coefficients(), expected_scores.score_coefficients()
        origins[f"of {', '.join(one.name for one in given if one)}"] = [
            shipped if one is None else one for one, shipped in zip(texts, own, strict=True)
        ]
    lines = []
    for origin, files in origins.items():
        lines += [*tables_of(origin, tasks, windows, representations, options.out, files), ""]
    text = "\n".join(lines)
    print(text)
    (options.out / "tables.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
