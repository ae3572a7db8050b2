"""Rules that the loaders of users' folders share."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from covshift.datasets.collection import damaged_data, find_file, find_folder, make_collection

WHERE = "It is at example.org."


def test_a_folder_that_is_there(tmp_path):
    assert find_folder(str(tmp_path), WHERE) == tmp_path


def test_no_folder_says_where_to_get_it(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError, match=r"does not exist: .* at example\.org"):
        find_folder(tmp_path / "absent", WHERE)
    with pytest.raises(NotADirectoryError, match=r"is a file: .* at example\.org"):
        find_folder(tmp_path / "file", WHERE)
    with pytest.raises(TypeError, match="folder must be a path, got 3"):
        find_folder(3, WHERE)


def test_no_file_says_which_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file a\.csv\. It is at example\.org"):
        find_file(tmp_path, "a.csv", WHERE)
    (tmp_path / "a.csv").touch()
    assert find_file(tmp_path, "a.csv", WHERE) == tmp_path / "a.csv"


def test_a_damaged_file_is_named(tmp_path):
    assert str(damaged_data(tmp_path, "has no rows")).startswith(f"{tmp_path} has no rows: ")


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_domains_are_numbered_in_their_order(kind):
    found = make_collection(
        kind([[1.0], [2.0], [3.0]]),
        ["x", "y", "x"],
        ["b", "a", "b"],
        ["a", "b"],
        feature_names=["height"],
        description="Made up.",
        speaker=[1, 2, 3],
    )
    assert_array_equal(found.domain, [1, 0, 1])
    assert found.domain_names == {0: "a", 1: "b"}
    assert sparse.issparse(found.data) == (kind is not np.array)
    assert (found.feature_names, found.speaker) == (["height"], [1, 2, 3])
