"""The protocol of the speech study: who is tested, what trains, how rows are normalized.

A trial draws a speaker of the tested corpus and deals the speaker's recordings into a target half,
whose rows serve to adapt, and a test half. A recording's segments are never parted: they are
alike. What trains is, of the two kinds of trials,

- "corpus": all speakers of the other corpora,
- "speaker": the other speakers of the same corpus.

Every training speaker is a source domain and the tested speaker the target. Rows are standardized
by speaker, the test half with the statistics of the target half. The smaller class of the training
rows is then filled up by drawing with repetition. Labels of the tested speaker are read for one
thing only: halves whose test half lacks a class cannot be scored, and are drawn again.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GroupKFold

from covshift.adapters import DomainStandardScaler
from covshift.domains import stack_domains
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.output_files import write_whole
from covshift.paper.grid_systems import TrainingRows
from covshift.paper.speech.printed import ONLY_TRAINS

LEAVE_OUT = ("corpus", "speaker")
MAX_DRAWS = 1000  # draws of halves before a corpus counts as impossible to test


class SpeechTable(NamedTuple):
    """Segments of one corpus: features, valence, speaker and recording of each."""

    X: FloatArray
    y: Any
    speaker: Any
    recording: Any


class Halves(NamedTuple):
    """Which rows of the tested corpus are the target half and the test half."""

    speaker: str
    target: IntArray
    test: IntArray


class DrawnTrial(NamedTuple):
    """The rows of a trial, without a label of the tested speaker."""

    halves: Halves
    training: TrainingRows
    X_test: FloatArray
    start: int  # seed of all that the systems draw


def corpora_to_test(corpora: Sequence[str]) -> list[str]:
    """Return the corpora of speech whose speakers the protocol tests."""
    return [corpus for corpus in corpora if corpus not in ONLY_TRAINS]


def draw_halves(table: SpeechTable, corpus: str, rng: np.random.RandomState) -> Halves:
    """Draw, by the protocol, a speaker, and deal the speaker's recordings into two halves.

    Until the test half has both classes; an odd recording goes to the test half.
    """
    speakers = np.unique(table.speaker)
    for _ in range(MAX_DRAWS):
        speaker = speakers[rng.randint(len(speakers))]
        rows = np.flatnonzero(table.speaker == speaker)
        recordings = rng.permutation(np.unique(table.recording[rows]))
        of_target = np.isin(table.recording[rows], recordings[: len(recordings) // 2])
        target, test = rows[of_target], rows[~of_target]
        if len(target) and len(np.unique(table.y[test])) > 1:
            return Halves(str(speaker), target, test)
    raise ValueError(
        f"Every half of a speaker's recordings in {corpus} lacks a class: use it to train, not to "
        "test."
    )


def check_corpora(tables: Mapping[str, SpeechTable], leave_out: str, seed: int) -> None:
    """Raise, before any trial, if the protocol cannot test speakers of a corpus at all.

    Raises
    ------
    ValueError
        If no half of theirs has both classes, or no speaker is left to train on, or one class only.
    """
    for corpus in corpora_to_test(list(tables)):
        tested = draw_halves(tables[corpus], corpus, np.random.RandomState(seed)).speaker
        source = source_speakers(tables, corpus, leave_out, without=tested)
        if not source:
            raise ValueError(
                f"{corpus} has a single speaker, and no speaker is left to train on: give a folder "
                "with more speakers, or a second corpus with --leave-out corpus."
            )
        classes = np.unique(np.concatenate([y for _, y in source.values()]))
        if len(classes) < 2:
            raise ValueError(
                f"The training recordings for {corpus} are all {classes[0]}: give recordings of "
                "both classes."
            )


def draw_trial(
    tables: Mapping[str, SpeechTable], corpus: str, leave_out: str, seed: int
) -> DrawnTrial:
    """Draw one trial of the protocol: the same of a seed, whatever system is measured on it."""
    rng = np.random.RandomState(seed)
    table = tables[corpus]
    halves = draw_halves(table, corpus, rng)
    source = source_speakers(tables, corpus, leave_out, without=halves.speaker)
    training, X_test = _normalized_rows(
        source, {halves.speaker: table.X[halves.target]}, table.X[halves.test]
    )
    training = _balance_classes(training, rng)
    return DrawnTrial(halves, training, X_test, int(rng.randint(2**31 - 1)))


def source_speakers(
    tables: Mapping[str, SpeechTable], corpus: str, leave_out: str, *, without: str | None
) -> dict[str, tuple[FloatArray, Any]]:
    """Return rows and labels of each speaker that trains, by protocol, when a corpus is tested.

    ``without`` is the tested speaker, who matters for trials of speakers only.
    """
    if leave_out == "speaker":
        used = {corpus: tables[corpus]}
    else:
        used = {name: table for name, table in tables.items() if name != corpus}
    return {
        f"{name} {speaker}": (table.X[rows], table.y[rows])
        for name, table in used.items()
        for speaker in np.unique(table.speaker)
        if leave_out != "speaker" or str(speaker) != without
        for rows in [np.flatnonzero(table.speaker == speaker)]
    }


def _normalized_rows(
    source: Mapping[str, tuple[FloatArray, Any]],
    target: Mapping[str, FloatArray],
    X_test: FloatArray | None = None,
) -> tuple[TrainingRows, Any]:
    """Stack and standardize by speaker; test rows with the statistics of the first target."""
    X, y, sample_domain = stack_domains(source, target=target)
    scaler = DomainStandardScaler(pooling="domain").fit(X, sample_domain=sample_domain)
    training = TrainingRows(scaler.transform(X, sample_domain=sample_domain), y, sample_domain)
    return training, None if X_test is None else scaler.transform(X_test, sample_domain=-1)


def _balance_classes(training: TrainingRows, rng: np.random.RandomState) -> TrainingRows:
    """Fill up every class of the source rows to the largest one, drawing with repetition."""
    source = training.sample_domain >= 0
    classes, counts = np.unique(training.y[source], return_counts=True)
    added = [
        rng.choice(np.flatnonzero(source & (training.y == label)), counts.max() - count)
        for label, count in zip(classes, counts, strict=True)
    ]
    rows = np.concatenate([np.arange(len(source)), *added])
    return TrainingRows(*(part[rows] for part in training))


class Fold(NamedTuple):
    """Source speakers, some taken as the target: their rows to adapt to, and their labels."""

    training: TrainingRows
    y_held_out: Any  # labels of the target rows of ``training``, in their order
    start: int


def source_fold(
    source: Mapping[str, tuple[FloatArray, Any]], fold: int, n_folds: int, seed: int
) -> Fold:
    """Return a fold of the protocol by speaker: those held out are the target, without labels."""
    rng = np.random.RandomState(seed)
    names = list(source)
    speaker = np.repeat(np.arange(len(names)), [len(source[name][1]) for name in names])
    splits = GroupKFold(n_folds).split(speaker, groups=speaker)
    held_out = set(np.unique(speaker[list(splits)[fold][1]]))
    kept = {name: source[name] for i, name in enumerate(names) if i not in held_out}
    played = {name: source[name] for i, name in enumerate(names) if i in held_out}
    training, _ = _normalized_rows(kept, {name: X for name, (X, _) in played.items()})
    training = _balance_classes(training, rng)
    y_held_out = np.concatenate([y for _, y in played.values()])
    return Fold(training, y_held_out, int(rng.randint(2**31 - 1)))


def file_of(folder: Path, digest: str) -> Path:
    """Return where the protocol's tables of a digest lie: those of another run lie elsewhere."""
    return folder / f"features-{digest}.npz"


def table_of(bunch: Any) -> SpeechTable:
    """Return a corpus of `covshift.datasets.load_speech_corpus` as a table of the protocol."""
    names = np.array([bunch.domain_names[number] for number in sorted(bunch.domain_names)])
    numbers = np.array(sorted(bunch.domain_names))
    speaker = names[np.searchsorted(numbers, bunch.domain)]
    return SpeechTable(bunch.data, bunch.target, speaker, np.asarray(bunch.recording, dtype=str))


def digest_of(tables: Mapping[str, SpeechTable]) -> str:
    """Hash everything in the protocol's tables: results of other data have another digest."""
    digest = hashlib.sha256()
    for corpus in sorted(tables):
        for name, part in tables[corpus]._asdict().items():
            # Texts by their contents: the width of a text array does not matter.
            text = part.dtype.kind == "U"
            contents = "\n".join(part).encode() if text else np.ascontiguousarray(part).tobytes()
            digest.update(f"{corpus}/{name} {part.shape} {len(contents)}\n".encode() + contents)
    return digest.hexdigest()[:16]


def save_tables(tables: Mapping[str, SpeechTable], folder: Path) -> None:
    """Write the protocol's tables where `load_tables` finds them."""
    arrays: dict[str, Any] = {
        f"{corpus}/{name}": part
        for corpus, table in tables.items()
        for name, part in table._asdict().items()
    }
    write_whole(file_of(folder, digest_of(tables)), lambda file: np.savez(file, **arrays))


@lru_cache(maxsize=1)
def load_tables(folder: str, digest: str) -> dict[str, SpeechTable]:
    """Read the protocol's tables, once in each process; check that they are those meant."""
    path = file_of(Path(folder), digest)
    with np.load(path) as arrays:
        corpora = dict.fromkeys(name.partition("/")[0] for name in arrays.files)
        tables = {
            corpus: SpeechTable(*(arrays[f"{corpus}/{name}"] for name in SpeechTable._fields))
            for corpus in corpora
        }
    if digest_of(tables) != digest:
        raise ValueError(
            f"{path} does not hold what its name says: remove it, and run the same command again."
        )
    return tables
