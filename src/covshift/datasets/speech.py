"""A folder of emotional speech -> a table of features, one row for each second."""

import os
import warnings
from collections import Counter
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from covshift.base import check_option
from covshift.datasets.audio_files import require_soundfile
from covshift.datasets.collection import find_folder
from covshift.datasets.speech_corpora import CORPORA
from covshift.datasets.speech_extraction import Extraction, extract_all, open_cache
from covshift.datasets.speech_features import FEATURE_NAMES, RATE, check_backend, describe_settings
from covshift.datasets.speech_recordings import OWN_TABLE, Recording, find_recordings

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
    extractions = extract_all(
        [recording.path for recording in recordings],
        backend=backend,
        bandwidth=bandwidth,
        cache=open_cache(cache),
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
