"""Small odd files, each with what should be understood."""

import pytest
from odd_files import ODD_FILES, plain, read_ours


def test_there_are_enough():
    assert len(ODD_FILES) >= 60
    assert len({file.what for file in ODD_FILES}) == len(ODD_FILES)


@pytest.mark.parametrize("file", ODD_FILES, ids=lambda file: file.what)
def test_it_is_understood(file, tmp_path):
    frame, _ = read_ours(file, tmp_path / "table.csv")
    for name, values in file.columns.items():
        assert plain(frame[name]) == values
