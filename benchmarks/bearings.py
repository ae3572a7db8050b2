"""The automatic choice on the bearings of Case Western Reserve, by coefficients of any origin.

    python benchmarks/bearings.py WINDOWS --out runs/bearings [--coefficients without-cwru.json]

WINDOWS is a folder of the files, or a file of windows (`covshift.paper.bearings.protocol`). For
each task across loads, sensors and fault sizes, the outputs of all candidates of
`AutoAdaptedClassifier` on spectra are computed once and kept below --out; the same command resumes.
The vote is then made by the coefficients given: those of the package, or those that
``calibrate.py --without cwru mfpt_bearings --coefficients FILE`` wrote, which no bearing shaped.
Balanced accuracy; intervals (95 %) resample recordings. ``--only N`` computes the outputs of one
task at most and judges by those that are there. ``--pairs`` compares, for each task, the plain
model with the vote, beside what the assessment advises.
``--chosen-features`` replaces spectra, where the source allows it, by a representation that fewer
changes of a machine can move.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from calibrate import make_case, restore
from covshift_bench.methods.automatic import (
    BALANCED,
    N_MEMBERS,
    OBJECTIVES,
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

from covshift import AdaptedClassifier, stack_domains
from covshift.measures import clustered_bootstrap_interval
from covshift.paper.bearings.protocol import LENGTH, RATE, SHIFTS, TASKS, read_windows
from covshift.predictors.objective import ACCURACY, decide_classes
from covshift.selection.choice import choose
from covshift.selection.expectations import vote_probabilities
from covshift.selection.gains import QUANTITIES, coefficients
from covshift.selection.metrics import METRICS
from covshift.selection.vote import vote_weights
from covshift.signals import EnvelopeSpectrum, Spectrum

SEED = 0
HIGHEST = 1000  # Hz, of envelopes: bearings' faults repeat some ten times a turn, three harmonics
MARGIN = 0.05  # of balanced accuracy on the source
CONTROLS = ("none", "standardize", "ranks")
FLOORS = {"loads": 0.95, "sensors": 0.90, "fault sizes": 0.519}  # of the automatic choice
LARGEST_LOSS = 0.05  # of any task, against no adaptation


class Place:
    """The task that a bench is made of, as `calibrate` wants it."""

    def __init__(self, name):
        self.name, self.cluster, self.collection = name, "cwru", "cwru_spectra"


def draw(task, windows, spectra):
    """Return the rows of a task, and the recordings of its target windows.

    The target windows are adapted to, without labels, and scored.
    """
    source, target, labels = task.split(windows)
    drawn = DrawnTask(
        spectra[source], labels[source], np.zeros(source.sum(), dtype=int),
        spectra[target], np.full(target.sum(), -1), spectra[target], labels[target], None,
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


def controls(drawn):
    """Return the predictions of logistic regression after fixed adapters."""
    X, y, sample_domain = stack_domains(drawn.X_source, drawn.y_source, drawn.X_target)
    found = {}
    for name in CONTROLS:
        model = AdaptedClassifier(name, LogisticRegression(max_iter=1000))
        found[name] = model.fit(X, y, sample_domain=sample_domain).predict(drawn.X_test)
    return found


def compute(drawn, path):
    """Write the outputs of all candidates, and the predictions of the controls."""
    codes = np.unique(drawn.y_source, return_inverse=True)[1]
    hidden = drawn.without_target_labels()
    bench = make_bench(hidden, codes, SEED)
    found = combine_candidates(bench, hidden, outputs_on_test(bench, hidden, codes)[0])
    arrays = found["auto"].arrays
    arrays |= {f"control {name}": labels for name, labels in controls(hidden).items()}
    part = path.with_suffix(".part.npz")
    np.savez_compressed(part, **arrays)
    part.rename(path)


def vote(drawn, path, betas):
    """Return the predictions of the vote, by objective and coefficients."""
    bench, tests = restore(drawn, path, SEED)
    P = [None if one is None else bench.calibrated_of(i, one) for i, one in enumerate(tests)]
    classes, found = np.unique(drawn.y_source), {}
    for objective in OBJECTIVES:
        # Features alone are used: the gains of the case, which read labels, are not.
        case = make_case(bench, tests, drawn, Place(path.stem), objective)
        for origin, beta in betas.items():
            gains = case.features @ np.array([beta[objective][name] for name in QUANTITIES])
            gains[[one is None for one in P]] = np.nan
            weights = vote_weights(gains, case.allowed, N_MEMBERS, case.plain)
            mean = vote_probabilities(P, bench, weights, reweighed=objective != BALANCED)
            labels = classes[decide_classes(mean, objective, bench.problem.class_shares)]
            names = {
                bench.candidates[i].name: round(float(weights[i]), 2) for i in weights.nonzero()[0]
            }
            found[f"auto, {objective}, {origin}"] = labels, names
    return found


def package_models(drawn, path):
    """Return predictions of the package's plain model, vote and advice, and the assessment."""
    bench, tests = restore(drawn, path, SEED)
    bench.metric = METRICS[ACCURACY]
    choice = choose(bench, "rehearsals", n_members=N_MEMBERS, objective=ACCURACY, reweighed=True)
    P = [None if one is None else bench.calibrated_of(i, one) for i, one in enumerate(tests)]
    mean = vote_probabilities(P, bench, choice.weights, reweighed=True)
    classes = np.unique(drawn.y_source)
    found = {"plain": classes[P[choice.plain].argmax(axis=1)], "vote": classes[mean.argmax(axis=1)]}
    advised = "plain" if choice.assessment.action == "keep" else "vote"
    return found | {"recommended": found[advised]}, choice.assessment


def tell_pair(name, models, assessment, truth, recordings):
    """Print the plain model and the vote of the package for a task, and what is advised."""
    each = {model: by_recording(models[model], truth, recordings) for model in ("plain", "vote")}
    each["gain"] = {one: each["vote"][one] - each["plain"][one] for one in each["plain"]}
    parts = []
    for model, scores in each.items():
        values = list(scores.values())
        low, high = clustered_bootstrap_interval(values, list(scores), random_state=0)
        parts.append(f"{model} {np.mean(values):.3f} ({low:.3f} to {high:.3f})")
    expected = assessment.vote_gain.value
    print(f"{name}: {', '.join(parts)}; {assessment.action}, expected gain {expected:.3f}")


def by_recording(predicted, truth, recordings):
    """Return the accuracy of each recording, by name."""
    right = predicted == truth
    return {name: float(right[recordings == name].mean()) for name in np.unique(recordings)}


def summarize(results):
    """Print each method on each shift; return whether the floors are kept.

    All recordings of a task have the same number of windows, and all classes the same number of
    recordings: balanced accuracy is the mean over recordings.
    """
    kept = True
    methods = list(next(iter(results.values())))
    for shift in SHIFTS:
        tasks = [task for task in results if task[0] == shift]
        if not tasks:
            continue
        for method in methods:
            scores = [(s, name) for t in tasks for name, s in results[t][method].items()]
            values, names = zip(*scores, strict=True)
            low, high = clustered_bootstrap_interval(values, names, random_state=0)
            each = " ".join(f"{np.mean(list(results[t][method].values())):.3f}" for t in tasks)
            print(
                f"{shift:12} {method:40} {np.mean(values):.3f} ({low:.3f} to {high:.3f}) | {each}"
            )
            if method.startswith(("auto", "recommended")):
                losses = [
                    np.mean(list(results[t]["none"].values()))
                    - np.mean(list(results[t][method].values()))
                    for t in tasks
                ]
                good = np.mean(values) >= FLOORS[shift] and max(losses) <= LARGEST_LOSS
                print(f"{'':12} {'floor kept' if good else 'BELOW THE FLOOR'}: {FLOORS[shift]}, "
                      f"largest loss against none {max(losses):+.3f}")  # fmt: skip
                kept &= good
    return kept


def main():
    """Compute what is missing, vote, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("windows", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder for outputs of candidates")
    parser.add_argument("--coefficients", type=Path, nargs="*", default=[], help="files of others")
    parser.add_argument("--only", type=int, help="compute this task alone")
    parser.add_argument(
        "--chosen-features", action="store_true",
        help="spectra or prewhitened envelopes, by the source of each task",
    )  # fmt: skip
    parser.add_argument("--pairs", action="store_true", help="the plain model against the vote")
    options = parser.parse_args()
    windows = read_windows(options.windows)
    spectra = Spectrum(RATE).fit(windows.X[:1]).transform(windows.X)
    representations = {"envelope": envelopes(windows), "spectrum": spectra}
    options.out.mkdir(parents=True, exist_ok=True)
    betas = {"of the package": coefficients()}
    betas |= {path.stem: json.loads(path.read_text()) for path in options.coefficients}
    results = {}
    for number, task in enumerate(TASKS):
        features, path = "spectrum", options.out / f"task-{number:02d}.npz"
        if options.chosen_features:
            features, scores = choose_features(representations, windows, task)
            each = ", ".join(f"{name} {score:.3f}" for name, score in scores.items())
            print(f"{task.shift}, {task.name}: {features} ({each} on the source)", flush=True)
        if features != "spectrum":
            path = path.with_stem(f"{path.stem}-{features}")
        drawn, recordings = draw(task, windows, representations[features])
        if not path.exists() and options.only in (None, number):
            compute(drawn, path)
        if not path.exists():
            continue
        models, assessment = package_models(drawn, path)
        if options.pairs:
            name = f"{task.shift}, {task.name}"
            tell_pair(name, models, assessment, drawn.y_test, recordings)
            continue
        with np.load(path) as arrays:
            found = {name: arrays[f"control {name}"] for name in CONTROLS}
        if features != "spectrum":  # controls are of spectra
            found = controls(draw(task, windows, spectra)[0])
        if options.chosen_features:
            known = draw(task, windows, representations["envelope"])[0]
            found["none, envelope"] = controls(known)["none"]
        found |= {name: models[name] for name in ("plain", "recommended")}
        for method, (labels, weights) in vote(drawn, path, betas).items():
            found[method] = labels
            print(f"{task.shift}, {task.name}: {method}: {weights}", flush=True)
        results[task.shift, task.name] = {
            method: by_recording(labels, drawn.y_test, recordings)
            for method, labels in found.items()
        }
    if results:
        summarize(results)


if __name__ == "__main__":
    main()
