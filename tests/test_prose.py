"""The check of texts finds what it lists, in every kind of text, and nothing is left to find."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SPEC = importlib.util.spec_from_file_location("check_prose", ROOT / "docs" / "check_prose.py")
check_prose = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_prose)

PROGRAM = '''"""Nobody reads this."""


def act(x):
    """Return x, as is.

    Examples
    --------
    >>> "nobody is here"
    """
    # A comment that runs over
    # two lines can be told by its end.
    if x < 0:
        raise ValueError(f"The value {x} is no count of rows.")
    return "a key " + "that befell nobody"
'''
PAGE = """# Nobody

A list:

- `nobody` is code.
- Rows [told apart](nobody.md) by sight.

```python
nobody = "as it stands"
```

| nobody | told apart |
|---|---|
"""


@pytest.mark.parametrize(
    "sentence",
    [
        "It is no adapter.",
        "There is no such page.",
        "Nobody knows.",
        "This shows what it is worth.",
        "Rows as they stand.",
        "Ignored, whatever it holds.",
        "The rows can be told apart.",
        "Errors are found out.",
        "Use so many rows.",
        "All but for one.",
        "The same command goes on from here.",
        "What helped on these data is the scaling.",
        "That rows moved is shown by a test.",
        "It tells old rows from new ones.",
        "There are too few rows to tell.",
        "Weights are learnt from rows.",
        "The kernel is computed anew.",
        "It runs in vain.",
        "Such candidates have no say.",
        "Intervals are of 95 %.",
        "Only these were looked at.",
        "The gain over the plain one.",
        "Change of MMD in per cent.",
        "Code 4 wins over 3.",
        "It is damaged or no whole file.",
        "All columns but those that vary.",
        "A method that covshift has not.",
        "The paper's figures, beside ours.",
    ],
)
def test_listed_constructions_are_found(sentence):
    assert check_prose.find_faults(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "It is no longer used.",
        "A is no better than B.",
        "B is no larger.",
        "There is no shift.",
        "What moved?",
        "What to do next.",
        "That is the default.",
        "There are so many that it fails.",
        "Not rows, but columns.",
        "It tells the user what to do.",
        "The page tells how to read it.",
        "Rows are of one kind.",
        "It has not moved.",
        "A random forest wins.",
    ],
)
def test_plain_sentences_pass(sentence):
    assert check_prose.find_faults(sentence) == []


def test_each_kind_of_text_is_read(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "page.md").write_text(PAGE)
    texts = [*check_prose.texts_of_program(tmp_path / "program.py")]
    texts += check_prose.texts_of_page(tmp_path / "page.md")
    found = [
        (text.kind, text.line, words)
        for text in texts
        for sentence in text.sentences
        for words, _ in check_prose.find_faults(sentence)
    ]
    assert ("docstrings", 1, "Nobody") in found
    assert ("comments", 11, "can be told") in found
    assert ("errors", 14, "is no") in found
    assert ("other strings", 15, "nobody") in found
    assert ("docs", 5, "told apart") in found
    assert not [one for one in found if one[0] == "docs" and one[2] != "told apart"]
    assert len([one for one in found if one[0] == "docstrings"]) == 1  # not the example


def test_the_command_names_places_and_measures(tmp_path, capsys):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "program.py").write_text(PROGRAM)
    assert check_prose.main([str(tmp_path)]) == 1
    assert "src/program.py:1: 'Nobody'; write" in capsys.readouterr().out
    assert check_prose.main([str(tmp_path), "--figures"]) == 0
    assert "| docstrings | 2 |" in capsys.readouterr().out


def test_no_text_has_a_listed_construction(capsys):
    assert check_prose.main([]) == 0, capsys.readouterr().out
