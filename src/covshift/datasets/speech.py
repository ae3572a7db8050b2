"""A folder of emotional speech -> a table of features, one row for each second."""

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import Bunch

from covshift.base import check_option
from covshift.datasets.collection import find_folder
from covshift.datasets.speech_corpora import CORPORA, OWN_TABLE, Recording, find_recordings
from covshift.datasets.speech_features import (
    FEATURE_NAMES,
    RATE,
    UnusableRecordingError,
    check_backend,
    decode,
    describe_settings,
    require_soundfile,
    sampling_rate,
    segment_features,
)
from covshift.kernels.array_types import FloatArray
from covshift.output_files import prepare_folder, write_whole

# --- Features of many sound files, in parallel, so that a stop at any moment costs little ---
#
# Features are kept on disk, by what they were computed from. An entry's name is the hash of the
# file's contents and of the settings, so it never grows stale: renamed or copied files are found,
# changed ones are not. It holds the hash of its own contents, so that a damaged entry is detected
# and computed again.


WAY_OUT = (
    "choose another folder by cache=... or by the environment variable XDG_CACHE_HOME, or "
    "cache=False to keep none."
)


def _default_cache_folder() -> Path:
    """``$XDG_CACHE_HOME/covshift/speech``, or ``~/.cache/covshift/speech`` if that is unset."""
    above = os.environ.get("XDG_CACHE_HOME")
    if not above:
        try:
            above = str(Path.home() / ".cache")
        except RuntimeError as error:  # a user whom the system does not know, as in containers
            raise OSError(f"No folder to store features in ({error}): {WAY_OUT}") from error
    return Path(above) / "covshift" / "speech"


def _open_cache(cache: Any) -> Path | None:
    """Return the folder of the entries for the parameter ``cache``; None for no cache at all."""
    if cache is False:
        return None
    if cache is not None and not isinstance(cache, str | os.PathLike):
        raise TypeError(f"cache must be a folder, None (the default one) or False, got {cache!r}.")
    folder = _default_cache_folder() if cache is None else Path(cache)
    with _naming(folder):
        prepare_folder(folder)
    return folder


@contextmanager
def _naming(folder: Path) -> Iterator[None]:
    """Say of a failure to write which folder it is, and what to do."""
    try:
        yield
    except OSError as error:
        raise OSError(
            f"Features cannot be stored in {folder} ({error.strerror or error}): {WAY_OUT}"
        ) from error


def _entry_key(contents: bytes, settings: str) -> str:
    """Name of the entry for a file with these contents."""
    return hashlib.sha256(hashlib.sha256(contents).digest() + settings.encode()).hexdigest()


def _read_entry(folder: Path, key: str, n_features: int) -> FloatArray | None:
    """Return the features (n, n_features) of an entry, or None if it is missing or damaged."""
    try:
        contents = (folder / key).read_bytes()
    except OSError:
        return None
    digest, values = contents[:32], contents[32:]
    if hashlib.sha256(values).digest() != digest:
        return None
    return np.frombuffer(values, dtype="<f8").reshape(-1, n_features).astype(np.float64)


def _write_entry(folder: Path, key: str, features: FloatArray) -> None:
    """Keep the features; the entry is written atomically."""
    values = features.astype("<f8").tobytes()
    with _naming(folder):
        write_whole(folder / key, lambda file: file.write(hashlib.sha256(values).digest() + values))


class Extraction(NamedTuple):
    """Result for a file: its features, or the reason why it has none."""

    features: FloatArray
    rate: int = RATE
    reason: str = ""
    new_key: str = ""  # under which the features are still to be kept


def _extract_all(
    paths: Sequence[Path],
    *,
    backend: str,
    bandwidth: str,
    cache: Path | None,
    n_jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> list[Extraction]:
    """Extract each file; new features are kept as they come, so that a stop costs little.

    Only this process writes: two threads with equal files would write the same entry.
    """
    if not paths:
        return []
    settings = describe_settings(backend, bandwidth)
    # One file a batch: a batch is handed over when it is whole.
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    extractions: list[Any] = [None] * len(paths)
    calls = (
        delayed(_extract)(place, path, backend, bandwidth, cache, settings)
        for place, path in enumerate(paths)
    )
    outcomes = parallel(calls)
    try:
        for done, (place, extraction) in enumerate(outcomes, start=1):
            if cache is not None and extraction.new_key:
                _write_entry(cache, extraction.new_key, extraction.features)
            extractions[place] = extraction
            if progress is not None:
                progress(done, len(paths))
    finally:
        with warnings.catch_warnings():
            # After a stop joblib warns of results that are not fetched: this is intended.
            warnings.simplefilter("ignore")
            outcomes.close()
    return extractions


def _extract(
    place: int, path: Path, backend: str, bandwidth: str, cache: Path | None, settings: str
) -> tuple[int, Extraction]:
    """Return the features of one file, from the cache if they are there."""
    nothing = np.empty((0, len(FEATURE_NAMES)))
    try:
        contents = path.read_bytes()
        rate = sampling_rate(contents)
        key = "" if cache is None else _entry_key(contents, settings)
        if cache is not None:
            kept = _read_entry(cache, key, len(FEATURE_NAMES))
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


WHERE = "It is the one in which the corpus was unpacked."


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
    the range over the frames of that second (`covshift.datasets.speech_features` has the formulas).

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
        "opensmile" takes the same statistics from openSMILE's set ``emobase``, which smooths the
        coefficients first: ``pip install "covshift[speech-opensmile]"``. The license of openSMILE
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

    Notes
    -----
    **Cost**: linear in the seconds of sound; one recording for each of ``n_jobs`` is in
    memory. A second time, features come from the cache.

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
    recordings, skipped = find_recordings(find_folder(folder, WHERE), corpus, labels)
    extractions = _extract_all(
        [recording.path for recording in recordings],
        backend=backend,
        bandwidth=bandwidth,
        cache=_open_cache(cache),
        n_jobs=n_jobs,
        progress=progress,
    )
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
            "their upper mel bands are empty. Their features differ from those of other "
            'recordings for that reason alone. Use bandwidth="narrow" to make them comparable.',
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
