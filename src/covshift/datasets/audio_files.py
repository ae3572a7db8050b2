"""Sound files -> one channel of samples; what cannot be used is named, not guessed at."""

import io

import numpy as np

from covshift.kernels.arrays import FloatArray

AUDIO_SUFFIXES = (".flac", ".wav")
LOWEST_RATE = 8000  # rate of telephones; lower rates lose the speech

LARGEST_SAMPLE = 1e30  # times full scale; files of floats may hold any, and spectra are squared


class UnusableRecordingError(ValueError):
    """A recording cannot be used; the message says why in a few words."""


def require_soundfile() -> None:
    """Raise, before any work, if the package that reads sound files is missing."""
    try:
        import soundfile  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Reading sound files needs soundfile, which is not installed: "
            'pip install "covshift[speech]"'
        ) from error


def sampling_rate(contents: bytes) -> int:
    """Return the samples per second that the head of a file promises."""
    import soundfile  # an extra

    if not contents:
        raise UnusableRecordingError("the file is empty")
    try:
        rate = int(soundfile.info(io.BytesIO(contents)).samplerate)
    except soundfile.SoundFileError as error:
        raise UnusableRecordingError(f"not a readable sound file ({_cause(error)})") from error
    if rate < LOWEST_RATE:
        raise UnusableRecordingError(
            f"{rate} samples per second, and at least {LOWEST_RATE} are needed"
        )
    return rate


def decode(contents: bytes) -> tuple[FloatArray, int]:
    """Return samples (n,) of a WAV or FLAC file, full scale being one, and their rate per second.

    Channels are averaged. A WAV file that was cut off is read as far as it goes; a FLAC file
    says of every block whether it is whole, and is refused.

    Raises
    ------
    UnusableRecordingError
        If it is empty, not a sound file, damaged, or contains samples that are not finite.
    """
    import soundfile  # an extra

    sampling_rate(contents)
    try:
        channels, rate = soundfile.read(io.BytesIO(contents), dtype="float64", always_2d=True)
    except soundfile.SoundFileError as error:
        raise UnusableRecordingError(f"damaged or cut off ({_cause(error)})") from error
    except (MemoryError, ValueError) as error:  # FLAC files that were streamed have no length
        raise UnusableRecordingError(
            "its header does not state a valid length: convert it to WAV"
        ) from error
    if not (np.abs(channels) < LARGEST_SAMPLE).all():
        raise UnusableRecordingError(
            f"holds samples that are not numbers below {LARGEST_SAMPLE:.0e}"
        )
    return channels.mean(axis=1), rate


def _cause(error: Exception) -> str:
    """Return the reason that the decoder gives, without the memory address of what it read."""
    return str(getattr(error, "error_string", error)).rstrip(".")
