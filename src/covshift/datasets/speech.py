"""A folder of emotional speech -> a table of features, one row for each second."""

import os
import warnings
from collections import Counter
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import Bunch

from covshift.base import check_option
from covshift.datasets.audio_files import (
    AUDIO_SUFFIXES,
    UnusableRecordingError,
    decode,
    require_soundfile,
    sampling_rate,
)
from covshift.datasets.speech_cache import entry_key, open_cache, read_entry, write_entry
from covshift.datasets.speech_corpora import CORPORA, Label, UnknownNameError
from covshift.datasets.speech_features import (
    FEATURE_NAMES,
    RATE,
    check_backend,
    describe_settings,
    segment_features,
)
from covshift.datasets.speech_labels import read_label_table
from covshift.kernels.arrays import FloatArray

OWN_TABLE = "table"


class Recording(NamedTuple):
    """A file that is to be read."""

    file: str  # relative to the folder, with slashes
    path: Path
    speaker: str
    emotion: str
    target: str


class Extraction(NamedTuple):
    """What became of a file: its features, or the reason why there are none."""

    features: FloatArray
    rate: int = RATE
    reason: str = ""
    new_key: str = ""  # under which the features are still to be kept


def load_speech_corpus(
    folder: str | os.PathLike[str],
    corpus: str,
    *,
    labels: str | os.PathLike[str] | None = None,
    backend: str = "scipy",
    bandwidth: str = "wide",
    cache: Any = None,
    n_jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Bunch:
    r"""Read a corpus of emotional speech as features of whole seconds, each speaker a domain.

    Every whole second of a recording is a row: 12 mel-frequency cepstral coefficients
    :math:`c_1, \dots, c_{12}` and their slopes, and of each the mean, the standard deviation and
    the range over the frames of that second (`covshift.kernels.mfcc` has the formulas).

    Parameters
    ----------
    folder : path
        Where the corpus lies. WAV and FLAC files in it and below it are read, of any rate and
        number of channels; names that begin with a dot are left out.
    corpus : {"emodb", "des", "vam", "enterface", "ravdess", "table"}
        How file names tell speaker and emotion (`covshift.datasets.speech_corpora`); "table" for
        any other folder, with ``labels``.
    labels : path, default=None
        CSV file with the columns ``file`` (relative to ``folder``), ``speaker`` and ``label``,
        which takes the place of file names. The label is an emotion of the corpus
        ("happiness"), for "vam" the valence between -1 and 1, for "table" whatever is to be
        predicted.
    backend : {"scipy", "opensmile"}, default="scipy"
        "opensmile" takes the same statistics from openSMILE's set `emobase`, which smooths the
        coefficients first: ``pip install "covshift[speech-opensmile]"``. The licence of openSMILE
        allows research and private use, **not commercial use**.
    bandwidth : {"wide", "narrow"}, default="wide"
        Mel bands up to 8 kHz, or up to 3.8 kHz. Rates below 16 kHz hold no sound above half of
        their rate: beside wider recordings their features are comparable only with "narrow".
    cache : path, None or False, default=None
        Folder in which features are kept, by the contents of the file they come from. None:
        ``$XDG_CACHE_HOME/covshift/speech``, or ``~/.cache/covshift/speech``. False: nowhere.
    n_jobs : int or None, default=None
        Files read at the same time, as in joblib. The result does not depend on it.
    progress : callable, default=None
        Called as ``progress(done, total)`` after each file.

    Returns
    -------
    Bunch
        ``data``
            (n, 72) float64; silence is a row of zeros.
        ``target``
            "positive" or "negative" valence; with "table" the label.
        ``emotion``
            The emotion, for "vam" the valence as written, with "table" the label.
        ``domain``
            0, 1, ...: the speaker. All are sources; make one a target by a negative number.
        ``domain_names``
            Number -> speaker.
        ``recording``
            File of each row, relative to ``folder``; rows are sorted by it and by time.
        ``feature_names``
            ``mfcc1_mean``, ``mfcc1_std``, ``mfcc1_range``, ..., ``delta_mfcc12_range``.
        ``skipped``
            (file, reason) of each sound file that gave no row.
        ``DESCR``
            What was read, in words.

    References
    ----------
    F. M. Zennaro, K. Chen, "On the use of sparse filtering for covariate shift adaptation",
    Appendix D.2.

    Examples
    --------
    >>> import tempfile, numpy as np, soundfile
    >>> from pathlib import Path
    >>> from covshift.datasets import load_speech_corpus
    >>> folder = Path(tempfile.mkdtemp())
    >>> noise = np.random.default_rng(0).normal(scale=0.1, size=40_000)
    >>> soundfile.write(folder / "03a01Fa.wav", noise, 16_000)  # speaker 03, happiness, 2.5 s
    >>> soundfile.write(folder / "08a01Wa.wav", noise, 16_000)  # speaker 08, anger
    >>> speech = load_speech_corpus(folder, "emodb", cache=False)
    >>> speech.data.shape, speech.target.tolist()
    ((4, 72), ['positive', 'positive', 'negative', 'negative'])
    >>> speech.domain.tolist(), speech.domain_names
    ([0, 0, 1, 1], {0: '03', 1: '08'})
    """
    check_option("corpus", corpus, (*CORPORA, OWN_TABLE))
    if corpus == OWN_TABLE and labels is None:
        raise ValueError(
            'corpus="table" needs labels=..., a CSV file with the columns file, speaker, label.'
        )
    check_backend(backend, bandwidth)
    _check_jobs(n_jobs, progress)
    require_soundfile()
    recordings, skipped = _find_recordings(_check_folder(folder), corpus, labels)
    extractions = _extract_all(recordings, backend, bandwidth, open_cache(cache), n_jobs, progress)
    used = []
    for recording, extraction in zip(recordings, extractions, strict=True):
        if extraction.reason:
            skipped.append((recording.file, extraction.reason))
        else:
            used.append((recording, extraction))
    skipped.sort()
    if not used:
        raise ValueError(_nothing_usable(folder, corpus, skipped))
    if bandwidth == "wide":
        _warn_of_low_rates([extraction.rate for _, extraction in used])
    return _assemble(used, skipped, corpus, describe_settings(backend, bandwidth))


def _check_jobs(n_jobs: Any, progress: Any) -> None:
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral)):
        raise TypeError(f"n_jobs must be a whole number or None, got {n_jobs!r}.")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: 1 is one process, -1 one for each processor.")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be callable as progress(done, total), got {progress!r}.")


def _check_folder(folder: Any) -> Path:
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"folder must be a path, got {folder!r}.")
    path = Path(folder)
    if not path.exists():
        raise FileNotFoundError(
            f"There is no folder {path}: give the one in which the corpus was unpacked."
        )
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is a file: give the folder that holds the recordings.")
    return path


def _find_recordings(
    folder: Path, corpus: str, labels: Any
) -> tuple[list[Recording], list[tuple[str, str]]]:
    """Recordings whose speaker and target are known, by name, and the other sound files."""
    paths = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.suffix.lower() in AUDIO_SUFFIXES
        and path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }
    table = None if labels is None else read_label_table(_check_table(labels), paths)
    recordings, skipped = [], []
    seen: dict[tuple[str, str], str] = {}
    for file, path in sorted(paths.items()):
        try:
            label = _label(file, path, corpus, table)
            target = (
                label.emotion if corpus == OWN_TABLE else CORPORA[corpus].valence(label.emotion)
            )
            if table is None:
                # Corpora are often unpacked twice, or kept as WAV and as FLAC.
                first = seen.setdefault((label.speaker, path.stem.lower()), file)
                if first != file:
                    raise UnknownNameError(f"the same recording as {first}, by its name")
        except UnknownNameError as reason:
            skipped.append((file, str(reason)))
        else:
            recordings.append(Recording(file, path, *label, target))
    return recordings, skipped


def _check_table(labels: Any) -> Path:
    if not isinstance(labels, str | os.PathLike):
        raise TypeError(f"labels must be the path of a CSV file, got {labels!r}.")
    table = Path(labels)
    if not table.is_file():
        raise FileNotFoundError(f"There is no file {table}, which labels should name.")
    return table


def _label(file: str, path: Path, corpus: str, table: dict[str, Label] | None) -> Label:
    if table is None:
        return CORPORA[corpus].read_name(path)
    if file not in table:
        raise UnknownNameError("not in the table of labels")
    return table[file]


def _extract_all(
    recordings: list[Recording],
    backend: str,
    bandwidth: str,
    cache: Path | None,
    n_jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> list[Extraction]:
    """Extract each file; new features are kept as they come, so that a stop costs little.

    Only this process writes: two threads with equal files would write the same entry.
    """
    settings = describe_settings(backend, bandwidth)
    # One file a batch: a batch is handed over when it is whole.
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    extractions: list[Any] = [None] * len(recordings)
    calls = (
        delayed(_extract)(place, recording.path, backend, bandwidth, cache, settings)
        for place, recording in enumerate(recordings)
    )
    for done, (place, extraction) in enumerate(parallel(calls), start=1):
        if cache is not None and extraction.new_key:
            write_entry(cache, extraction.new_key, extraction.features)
        extractions[place] = extraction
        if progress is not None:
            progress(done, len(recordings))
    return extractions


def _extract(
    place: int, path: Path, backend: str, bandwidth: str, cache: Path | None, settings: str
) -> tuple[int, Extraction]:
    """Features of one file, from the cache if they are there."""
    nothing = np.empty((0, len(FEATURE_NAMES)))
    try:
        contents = path.read_bytes()
        rate = sampling_rate(contents)
        key = "" if cache is None else entry_key(contents, settings)
        if cache is not None:
            kept = read_entry(cache, key, len(FEATURE_NAMES))
            if kept is not None:
                return place, Extraction(kept, rate)
        signal, rate = decode(contents)
        if len(signal) < rate:
            return place, Extraction(nothing, rate, "shorter than one second")
        features = segment_features(signal, rate, backend=backend, bandwidth=bandwidth)
    except UnusableRecordingError as error:
        return place, Extraction(nothing, reason=str(error))
    except OSError as error:
        return place, Extraction(nothing, reason=f"cannot be read ({error.strerror})")
    return place, Extraction(features, rate, new_key=key)


def _nothing_usable(folder: Any, corpus: str, skipped: list[tuple[str, str]]) -> str:
    if not skipped:
        return f"{folder} holds no WAV or FLAC file: give the folder with the recordings."
    examples = "; ".join(f"{file}: {reason}" for file, reason in skipped[:3])
    return (
        f"None of the {len(skipped)} WAV and FLAC files in {folder} can be used as {corpus!r} "
        f"({examples}). Check folder and corpus, or say by labels=... who speaks in which file."
    )


def _warn_of_low_rates(rates: list[int]) -> None:
    n_low = sum(rate < RATE for rate in rates)
    if n_low:
        warnings.warn(
            f"{n_low} of {len(rates)} recordings have fewer than {RATE} samples per second, so "
            "their upper mel bands are empty, and their features differ from those of other "
            'recordings for that reason alone: bandwidth="narrow" makes them comparable.',
            UserWarning,
            stacklevel=3,
        )


def _assemble(
    used: list[tuple[Recording, Extraction]],
    skipped: list[tuple[str, str]],
    corpus: str,
    settings: str,
) -> Bunch:
    n_rows = [len(extraction.features) for _, extraction in used]

    def of_each_row(values: list[Any]) -> Any:
        return np.repeat(np.array(values), n_rows)

    speakers = sorted({recording.speaker for recording, _ in used})
    target = of_each_row([recording.target for recording, _ in used])
    title = "A folder with a table of labels" if corpus == OWN_TABLE else CORPORA[corpus].title
    counts = ", ".join(f"{n} {name}" for name, n in sorted(Counter(target.tolist()).items()))
    return Bunch(
        data=np.concatenate([extraction.features for _, extraction in used]),
        target=target,
        emotion=of_each_row([recording.emotion for recording, _ in used]),
        domain=of_each_row([speakers.index(recording.speaker) for recording, _ in used]),
        domain_names=dict(enumerate(speakers)),
        recording=of_each_row([recording.file for recording, _ in used]),
        feature_names=list(FEATURE_NAMES),
        skipped=skipped,
        DESCR=(
            f"{title}: {len(target)} seconds ({counts}) of {len(speakers)} speakers in {len(used)} "
            f"recordings; {len(skipped)} files skipped. 72 features: mean, standard deviation and "
            f"range of 12 MFCCs and of their slopes. Computed with {settings}."
        ),
    )
