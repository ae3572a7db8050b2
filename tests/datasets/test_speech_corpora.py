import unicodedata
from pathlib import Path

import pytest

from covshift.datasets.speech_corpora import CORPORA, Label, UnknownNameError, read_label_table

# File below the folder of the corpus, speaker, emotion, valence.
NAMES = [
    ("emodb", "wav/03a01Fa.wav", "03", "happiness", "positive"),
    ("emodb", "03a01Nc.flac", "03", "neutral", "positive"),
    ("emodb", "16b10Wb.WAV", "16", "anger", "negative"),
    ("emodb", "08a07La.wav", "08", "boredom", "negative"),
    ("emodb", "09a05Ea.wav", "09", "disgust", "negative"),
    ("emodb", "10b03Aa.wav", "10", "fear", "negative"),
    ("emodb", "11b09Td.wav", "11", "sadness", "negative"),
    ("emodb", "11b09T.wav", "11", "sadness", "negative"),
    ("emodb", "03A01FA.WAV", "03", "happiness", "positive"),
    ("emodb", "03a01aa.wav", "03", "fear", "negative"),
    ("ravdess", "Actor_12/03-01-01-01-02-01-12.wav", "12", "neutral", "positive"),
    ("ravdess", "03-01-02-02-01-01-01.wav", "01", "calm", "positive"),
    ("ravdess", "03-01-03-02-01-01-02.wav", "02", "happiness", "positive"),
    ("ravdess", "03-01-04-02-01-01-03.wav", "03", "sadness", "negative"),
    ("ravdess", "03-01-05-02-01-01-04.wav", "04", "anger", "negative"),
    ("ravdess", "03-01-06-02-01-01-05.wav", "05", "fear", "negative"),
    ("ravdess", "03-01-07-02-01-01-06.wav", "06", "disgust", "negative"),
    ("ravdess", "03-01-08-02-01-01-24.wav", "24", "surprise", "positive"),
    ("enterface", "subject 1/anger/sentence 1/s1_an_1.wav", "01", "anger", "negative"),
    ("enterface", "s44_di_5.wav", "44", "disgust", "negative"),
    ("enterface", "fear/S2_FE_3.WAV", "02", "fear", "negative"),
    ("enterface", "subject 10/happiness/sentence 5/s10_ha_5.wav", "10", "happiness", "positive"),
    ("enterface", "Subject-11/sadness/s11_sa_2.wav", "11", "sadness", "negative"),
    # Files with another number than their folder's are that folder's.
    ("enterface", "subject 11/surprise/sentence 3/s16_su_3.wav", "11", "surprise", "positive"),
    ("enterface", "subject 23/surprise/sentence 3/s_3_su_3.wav", "23", "surprise", "positive"),
    ("des", "KLA_GLAD_1.wav", "KLA", "happiness", "positive"),
    ("des", "dhc_neutral_ja.wav", "DHC", "neutral", "positive"),
    ("des", "HO-overrasket-s1.wav", "HO", "surprise", "positive"),
    ("des", "JZB vred p2.wav", "JZB", "anger", "negative"),
    ("des", "JZB_sad_p2.wav", "JZB", "sadness", "negative"),
]


@pytest.mark.parametrize(("corpus", "file", "speaker", "emotion", "valence"), NAMES)
def test_names(corpus, file, speaker, emotion, valence):
    assert CORPORA[corpus].read_name(Path("/subject 99/data"), Path(file)) == (speaker, emotion)
    assert CORPORA[corpus].valence(emotion) == valence


@pytest.mark.parametrize(
    ("corpus", "file", "reason"),
    [
        ("emodb", "03a01Xa.wav", "not like 03a01Fa"),
        ("emodb", "03-01-06-01-02-01-12.wav", "not like 03a01Fa"),
        ("ravdess", "03-01-09-01-02-01-12.wav", "not like 03-01-06"),
        ("ravdess", "03-02-06-01-02-01-12.wav", "not a recording of speech alone"),  # a song
        ("ravdess", "01-01-06-01-02-01-12.wav", "not a recording of speech alone"),  # of a video
        ("enterface", "s1_xx_1.wav", "not like s1_an_1"),
        ("des", "KLA.wav", "not like KLA_GLAD_1"),
        ("des", "KLA_bored_1.wav", "'bored' is not an emotion of DES"),
        ("vam", "03a01Fa.wav", "not like Satz01001"),
        ("vam", "Satz01001.wav", r"no evaluation Satz01001\.ewe beside it"),
    ],
)
def test_other_names_say_why(corpus, file, reason):
    with pytest.raises(UnknownNameError, match=reason):
        CORPORA[corpus].read_name(Path("/subject 99/data"), Path(file))


@pytest.mark.parametrize(
    ("contents", "valence"),
    [("0.25 -0.1 0.3\n", "positive"), ("-2.5e-01\t0.5\t0.1\n", "negative"), (" 1.0\n", "positive")],
)
def test_vam_is_judged_by_the_sign_of_its_evaluation(tmp_path, contents, valence):
    (tmp_path / "Satz12003.ewe").write_text(contents)
    label = CORPORA["vam"].read_name(tmp_path, Path("Satz12003.wav"))
    assert label == Label("12", contents.split()[0])
    assert CORPORA["vam"].valence(label.emotion) == valence


@pytest.mark.parametrize(
    ("valence", "reason"),
    [
        ("0", "neither positive nor negative"),
        ("-0.0", "neither positive nor negative"),
        ("", "must be a number from -1 to 1, got ''"),
        ("nan", "must be a number"),
        ("0,25", "must be a number"),
        ("1.5", "must be a number from -1 to 1"),
        ("happy", "must be a number"),
    ],
)
def test_valences_without_a_sign(valence, reason):
    with pytest.raises(UnknownNameError, match=reason):
        CORPORA["vam"].valence(valence)


def test_unknown_emotions_list_the_known():
    with pytest.raises(ValueError, match=r"'joy' is not an emotion of .*anger.*happiness") as error:
        CORPORA["emodb"].valence("joy")
    assert not isinstance(error.value, UnknownNameError)  # a mistake in a table, not in a file


def test_the_paper_s_table_of_valences():
    """Positive emotions; "joy" is "happiness"."""
    positive = {
        name: {emotion for emotion, valence in corpus.valences.items() if valence == "positive"}
        for name, corpus in CORPORA.items()
        if corpus.valences is not None
    }
    assert positive == {
        "emodb": {"happiness", "neutral"},
        "des": {"happiness", "neutral", "surprise"},
        "enterface": {"happiness", "surprise"},
        "ravdess": {"neutral", "calm", "happiness", "surprise"},
    }
    n_emotions = {name: len(corpus.valences or ()) for name, corpus in CORPORA.items()}
    assert n_emotions == {"emodb": 7, "des": 5, "vam": 0, "enterface": 6, "ravdess": 8}


FILES = ["a.wav", "deep/b c.flac", "deep/æø.WAV"]


def table(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "labels.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_rows(tmp_path):
    text = 'file,age,label,speaker\na.wav,31,happy,Ann\n"deep/b c.flac",32, sad ,Bo\n'
    labels = read_label_table(table(tmp_path, text), FILES)
    assert labels == {"a.wav": ("Ann", "happy"), "deep/b c.flac": ("Bo", "sad")}


def test_spaces_after_the_commas(tmp_path):
    text = "file, speaker, label\na.wav, Ann, happy\n"
    assert read_label_table(table(tmp_path, text), FILES) == {"a.wav": ("Ann", "happy")}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("separator", ["/", "\\"])
def test_spellings_of_one_name(tmp_path, encoding, form, separator):
    """Spreadsheets and systems differ in marks, accents and separators."""
    files = ["deep/café.wav"]
    name = unicodedata.normalize(form, f"deep{separator}café.wav")
    text = f"file,speaker,label\r\n./{name},Zoë,glad\r\n"
    assert read_label_table(table(tmp_path, text, encoding), files) == {files[0]: ("Zoë", "glad")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column file, speaker, label.*names nothing"),
        ("file,label\na.wav,x\n", "no column speaker: .*names file, label"),
        ("file;speaker;label\na.wav;A;x\n", "separated by commas"),
        ("file,speaker,label\na.wav,A,\n", "line 2: file, speaker and label must all be given"),
        ("file,speaker,label\na.wav,A\n", "line 2: file, speaker and label must all be given"),
        ("file,speaker,label\na.wav,A,x\n./a.wav,B,y\n", r"line 3: './a.wav' has a row already"),
        ("file,speaker,label\nno.wav,A,x\n../a.wav,A,x\n", r"not in the folder: 'no.wav', '../a"),
        ("file,speaker,label\n" + "".join(f"{i}.wav,A,x\n" for i in range(9)), "and 4 more"),
    ],
)
def test_mistakes_are_named(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_label_table(table(tmp_path, text), FILES)


def test_other_encodings_are_named(tmp_path):
    path = table(tmp_path, "file,speaker,label\na.wav,Zoë,x\n", encoding="latin-1")
    with pytest.raises(ValueError, match="UTF-8"):
        read_label_table(path, FILES)
    path = table(tmp_path, "file,speaker,label\na.wav,Zoë,x\n", encoding="utf-16")
    with pytest.raises(ValueError, match="UTF-8"):
        read_label_table(path, FILES)
