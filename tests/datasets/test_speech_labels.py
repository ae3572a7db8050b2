import unicodedata

import pytest

from covshift.datasets.speech_recordings import read_label_table

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
