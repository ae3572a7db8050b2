"""Emotional speech corpora as data: who speaks in a file, and with which emotion.

The valence of each emotion is that of the paper's table, whose "joy" is "happiness" here, so that
an emotion has the same name in all corpora. VAM has no emotions but an evaluation of valence
between -1 and 1. RAVDESS is not in the paper.

How far the naming schemes are certain:

========== ====================================== ============================================
corpus     file                                   known from
========== ====================================== ============================================
emodb      ``03a01Fa.wav``                        the corpus
ravdess    ``03-01-06-01-02-01-12.wav``           the corpus
vam        ``Sprecher01/Satz01001.wav`` beside    the description shipped with it; that each
           ``Satz01001.ewe``                      sentence has its own evaluation file beside
                                                  it is our reading
enterface  ``subject 1/anger/sentence 1/``        programs that read it; the sound is taken
           ``s1_an_1.wav``                        out of the AVI files under their names
des        ``KLA_GLAD_1.wav``: speaker, emotion   second hand, **not certain**; words of both
           in Danish or English, text             languages are understood
========== ====================================== ============================================

Where names differ from these, a table of labels takes their place
(`covshift.datasets.speech_corpora`).

References
----------
F. Burkhardt et al., "A database of German emotional speech", Interspeech 2005 (EMODB).
I. S. Engberg, A. V. Hansen, "Documentation of the Danish emotional speech database", 1996 (DES).
M. Grimm, K. Kroschel, S. Narayanan, "The Vera am Mittag German audio-visual emotional speech
database", ICME 2008 (VAM).
O. Martin et al., "The eNTERFACE'05 audio-visual emotion database", ICDEW 2006.
S. R. Livingstone, F. A. Russo, "The Ryerson audio-visual database of emotional speech and song",
PLOS ONE 13, 2018 (RAVDESS).
"""

import csv
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from covshift.datasets.speech_features import AUDIO_SUFFIXES


class Label(NamedTuple):
    """Facts about a recording, from a file name or a row of a table."""

    speaker: str
    emotion: str  # an emotion's name; for VAM the valence as it is written


class UnknownNameError(ValueError):
    """A file's name does not say who speaks and how; the message says why."""


@dataclass(frozen=True)
class SpeechCorpus:
    """How one corpus is read.

    Attributes
    ----------
    title : str
        Its full name.
    read_name : callable
        Folder of the corpus, and path of a file relative to it -> `Label`; raises
        `UnknownNameError`.
    valences : mapping from str to str, or None
        "positive" or "negative" for each emotion; None: the sign of the emotion, a number.
    """

    title: str
    read_name: Callable[[Path, Path], Label]
    valences: Mapping[str, str] | None

    def valence(self, emotion: str) -> str:
        """Return "positive" or "negative".

        Raises
        ------
        UnknownNameError
            If the emotion is a number that has no sign, or none where one is wanted.
        ValueError
            If it is not an emotion of this corpus.
        """
        if self.valences is None:
            return _sign(emotion)
        if emotion not in self.valences:
            known = ", ".join(sorted(self.valences))
            raise ValueError(f"{emotion!r} is not an emotion of {self.title}, which has {known}.")
        return self.valences[emotion]


def _sign(valence: str) -> str:
    try:
        number = float(valence)
    except ValueError:
        number = float("nan")
    if not -1 <= number <= 1:
        raise UnknownNameError(f"valence must be a number from -1 to 1, got {valence!r}")
    if number == 0:
        raise UnknownNameError("valence 0 is neither positive nor negative")
    return "positive" if number > 0 else "negative"


def _valences(positive: str, negative: str) -> dict[str, str]:
    return dict.fromkeys(positive.split(), "positive") | dict.fromkeys(negative.split(), "negative")


EMODB_LETTERS = {
    "W": "anger",  # Wut (or Ärger)
    "L": "boredom",  # Langeweile
    "E": "disgust",  # Ekel
    "A": "fear",  # Angst
    "F": "happiness",  # Freude
    "T": "sadness",  # Trauer
    "N": "neutral",
}


def _read_emodb_name(folder: Path, path: Path) -> Label:
    """``03a01Fa``: speaker 03, text a01, emotion F, version a."""
    match = re.fullmatch(r"(\d\d)[AB]\d\d([WLEAFTN])[A-Z]?", path.stem.upper())
    if match is None:
        raise UnknownNameError("the name is not like 03a01Fa")
    return Label(match[1], EMODB_LETTERS[match[2]])


RAVDESS_NUMBERS = dict(
    zip(
        [f"{number:02d}" for number in range(1, 9)],
        ["neutral", "calm", "happiness", "sadness", "anger", "fear", "disgust", "surprise"],
        strict=True,
    )
)


def _read_ravdess_name(folder: Path, path: Path) -> Label:
    """``03-01-EM-IN-ST-RE-AC``: audio only, speech, emotion, intensity, text, take, actor."""
    match = re.fullmatch(r"(\d\d)-(\d\d)-(0[1-8])-\d\d-\d\d-\d\d-(\d\d)", path.stem)
    if match is None:
        raise UnknownNameError("the name is not like 03-01-06-01-02-01-12")
    if match[1] != "03" or match[2] != "01":
        raise UnknownNameError("not a recording of speech alone (03-01-...)")
    return Label(match[4], RAVDESS_NUMBERS[match[3]])


ENTERFACE_CODES = {
    "an": "anger",
    "di": "disgust",
    "fe": "fear",
    "ha": "happiness",
    "sa": "sadness",
    "su": "surprise",
}


def _read_enterface_name(folder: Path, path: Path) -> Label:
    """``s1_an_1``: subject 1, anger, sentence 1; a folder ``subject 1`` above it counts for more.

    Some files carry another subject's number, or half of their own, in the right folder. Speakers
    are named by two digits.
    """
    match = re.fullmatch(r"s_?(\d+)_(an|di|fe|ha|sa|su)_(\d+)", path.stem.lower())
    if match is None:
        raise UnknownNameError("the name is not like s1_an_1")
    folders = [re.fullmatch(r"subject[ _-]?(\d+)", part.lower()) for part in path.parts]
    subject = next((folder[1] for folder in reversed(folders) if folder), match[1])
    return Label(f"{int(subject):02d}", ENTERFACE_CODES[match[2]])


DES_WORDS = {
    "neutral": "neutral neut neu",
    "surprise": "overrasket overraskelse overrask surprise surprised sur",
    "happiness": "glad glaede glæde happiness happy hap",
    "sadness": "trist ked sorg sadness sad",
    "anger": "vred vrede anger angry ang",
}
_DES_EMOTIONS = {word: emotion for emotion, words in DES_WORDS.items() for word in words.split()}


def _read_des_name(folder: Path, path: Path) -> Label:
    """``KLA_GLAD_1``: speaker, emotion in Danish or English, text."""
    speaker, *rest = re.split(r"[ _-]+", path.stem)
    if not re.fullmatch(r"[A-Za-z]{2,3}", speaker) or not rest:
        raise UnknownNameError("the name is not like KLA_GLAD_1")
    emotion = _DES_EMOTIONS.get(rest[0].lower())
    if emotion is None:
        raise UnknownNameError(f"{rest[0]!r} is not an emotion of DES")
    return Label(speaker.upper(), emotion)


def _read_vam_name(folder: Path, path: Path) -> Label:
    """``Satz01001``: speaker 01, sentence 001; ``Satz01001.ewe`` begins with the valence."""
    match = re.fullmatch(r"satz(\d\d)(\d\d\d)", path.stem.lower())
    if match is None:
        raise UnknownNameError("the name is not like Satz01001")
    for evaluation in (folder / path.with_suffix(suffix) for suffix in (".ewe", ".EWE")):
        if evaluation.is_file():
            numbers = evaluation.read_text(encoding="latin-1").split()
            return Label(match[1], numbers[0] if numbers else "")
    raise UnknownNameError(f"no evaluation {path.stem}.ewe beside it")


CORPORA = {
    "emodb": SpeechCorpus(
        "Berlin Database of Emotional Speech (EMODB)",
        _read_emodb_name,
        _valences("happiness neutral", "anger boredom disgust fear sadness"),
    ),
    "des": SpeechCorpus(
        "Danish Emotional Speech (DES)",
        _read_des_name,
        _valences("happiness neutral surprise", "anger sadness"),
    ),
    "vam": SpeechCorpus("Vera am Mittag (VAM)", _read_vam_name, None),
    "enterface": SpeechCorpus(
        "eNTERFACE'05 Audio-Visual Emotion Database",
        _read_enterface_name,
        _valences("happiness surprise", "anger disgust fear sadness"),
    ),
    "ravdess": SpeechCorpus(
        "Ryerson Audio-Visual Database of Emotional Speech and Song (RAVDESS), speech",
        _read_ravdess_name,
        _valences("neutral calm happiness surprise", "anger disgust fear sadness"),
    ),
}


# --- The recordings in a folder: who speaks in each, how, and which files are none ---


OWN_TABLE = "table"  # instead of a corpus: labels are used unchanged
COLUMNS = ("file", "speaker", "label")
MAX_NAMES = 5  # names in a message


def read_label_table(table: Path, files: Iterable[str]) -> dict[str, Label]:
    """Read who speaks in which file of a corpus, and how.

    Parameters
    ----------
    table : Path
        CSV file in UTF-8 with a header and a row for each recording. Further columns are ignored.
    files : iterable of str
        The recordings there are, relative to the folder of the corpus, with slashes.

    Returns
    -------
    dict from str to Label
        Of the files in the table, under the names given in ``files``.

    Raises
    ------
    ValueError
        If columns, speakers or labels are missing, a file is named twice, or is not there.
    """
    # Systems differ in how they store accented letters, and in their separators.
    known = {_plain(file): file for file in files}
    labels: dict[str, Label] = {}
    unknown = []
    for line, row in _rows(table):
        name, speaker, label = row
        if not all(row):
            raise ValueError(f"{table}, line {line}: file, speaker and label must all be given.")
        file = known.get(_plain(name))
        if file is None:
            unknown.append(name)
        elif file in labels:
            raise ValueError(f"{table}, line {line}: {name!r} has a row already; leave one.")
        else:
            labels[file] = Label(speaker, label)
    if unknown:
        more = f" and {len(unknown) - MAX_NAMES} more" if len(unknown) > MAX_NAMES else ""
        raise ValueError(
            f"{table} names WAV or FLAC files that are not in the folder: "
            f"{', '.join(map(repr, unknown[:MAX_NAMES]))}{more}. Names are relative to the folder."
        )
    return labels


def _rows(table: Path) -> Iterable[tuple[int, tuple[str, str, str]]]:
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            header = [name.strip() for name in reader.fieldnames or []]
            reader.fieldnames = header
            missing = [column for column in COLUMNS if column not in header]
            if missing:
                raise ValueError(
                    f"{table} has no column {', '.join(missing)}: its first line must name the "
                    f"columns file, speaker and label, separated by commas; it names "
                    f"{', '.join(header) or 'nothing'}."
                )
            for row in reader:
                values = [(row[column] or "").strip() for column in COLUMNS]
                yield reader.line_num, (values[0], values[1], values[2])
    except UnicodeDecodeError as error:
        raise ValueError(f"{table} is not text in UTF-8: save it as CSV in UTF-8.") from error
    except csv.Error as error:
        raise ValueError(f"{table} cannot be read as CSV: {error}.") from error


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name.replace("\\", "/").removeprefix("./"))


class Recording(NamedTuple):
    """A file that is to be read."""

    file: str  # relative to the folder, with slashes
    path: Path
    speaker: str
    emotion: str
    target: str


def find_recordings(
    folder: Path, corpus: str, labels: Any
) -> tuple[list[Recording], list[tuple[str, str]]]:
    """Return a corpus's recordings whose speaker and target are known, and other sound files."""
    paths = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.suffix.lower() in AUDIO_SUFFIXES
        and _is_file(path)
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }
    table = None if labels is None else read_label_table(_check_table(labels), paths)
    recordings, skipped = [], []
    seen: dict[tuple[str, str], str] = {}
    for file, path in sorted(paths.items()):
        try:
            label = _label(folder, file, corpus, table)
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


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except PermissionError:  # the folder can only be listed; reading reports the error
        return True


def _check_table(labels: Any) -> Path:
    if not isinstance(labels, str | os.PathLike):
        raise TypeError(f"labels must be the path of a CSV file, got {labels!r}.")
    table = Path(labels)
    if not table.is_file():
        raise FileNotFoundError(
            f"The file {table} does not exist; labels= names the table of labels."
        )
    return table


def _label(folder: Path, file: str, corpus: str, table: dict[str, Label] | None) -> Label:
    if table is None:
        return CORPORA[corpus].read_name(folder, Path(file))
    if file not in table:
        raise UnknownNameError("not in the table of labels")
    return table[file]
