"""Collections by name, and draws of pairs of domains."""

import numpy as np
import pytest

from covshift.studies.comparison.collections import (
    CollectionError,
    draw_pair,
    halves_of,
    load_collection,
)
from tests.datasets.made_folders import make_review_arrays, make_vowels


@pytest.fixture
def vowels(tmp_path):
    return load_collection("vowels", str(make_vowels(tmp_path / "vowels", n_speakers=6)))


def save_arrays(path, n_rows=40, **changes):
    rng = np.random.RandomState(0)
    arrays = {
        "X": rng.standard_normal((n_rows, 3)),
        "y": np.resize(["a", "b"], n_rows),
        "domain": np.repeat([5, 7], n_rows // 2),
    }
    np.savez(path, **{**arrays, **changes})
    return str(path)


def test_arrays_of_ones_own(tmp_path):
    path = save_arrays(tmp_path / "mine.npz", group=np.repeat(np.arange(8), 5))
    mine = load_collection("mine", path)
    assert mine.domain_names == {0: "5", 1: "7"}
    assert mine.X.shape == (40, 3)
    assert len(set(mine.groups)) == 8
    assert load_collection("other", save_arrays(tmp_path / "b.npz")).groups is None


def test_named_domains_of_ones_own(tmp_path):
    path = save_arrays(tmp_path / "mine.npz", domain=np.repeat(["site b", "site a"], 20))
    mine = load_collection("mine", path)
    assert mine.domain_names == {0: "site a", 1: "site b"}
    assert mine.domain[0] == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.full((40, 3), np.nan)}, "missing or infinite values; fill them in"),
        ({"X": np.ones(40)}, "has X"),
        ({"y": np.ones(3)}, "has X"),
        ({"y": np.ones((40, 2))}, "has X"),
        ({"group": np.ones(41)}, "has X"),
        ({"X": np.ones((40, 0))}, "has X"),
        ({"X": np.full((40, 2), "a")}, r"has X .*must be numbers"),
        ({"y": np.ones((40, 1))}, r"y must be \(40,\), one for each row"),
        ({"domain": np.ones((40, 1))}, r"domain must be \(40,\)"),
        ({"group": np.ones((40, 1))}, r"group must be \(40,\)"),
        ({"y": np.resize([0, 1, np.nan], 40)}, "y has missing values; leave out"),
        ({"y": np.linspace(0, 1, 40)}, "y must be labels of classes"),
        ({"y": np.zeros(40)}, "needs two classes with 3 rows or more; 5, 7 have fewer"),
        ({"y": np.resize([0, 0, 0, 1], 40), "domain": np.arange(40) // 36}, "; 1 has fewer"),
        ({"domain": np.zeros(40)}, "holds one domain only"),
        ({"X": np.array([[None]] * 40)}, "does not hold X, y and domain"),
    ],
)
def test_arrays_that_will_not_do(changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load_collection("mine", save_arrays(tmp_path / "mine.npz", **changes))


def test_names_as_bytes(tmp_path):
    path = tmp_path / "mine.npz"
    domain = np.repeat([b"here", b"there"], 20)
    np.savez(path, X=np.ones((40, 2)), y=np.resize([b"no", b"yes"], 40), domain=domain)
    collection = load_collection("mine", str(path))
    assert list(collection.domain_names.values()) == ["here", "there"]
    assert set(collection.y) == {"no", "yes"}


def test_a_domain_without_rows_is_none(tmp_path):
    path = make_vowels(tmp_path) / "h95.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith(("b,", "g,"))))
    names = load_collection("vowels", str(tmp_path)).domain_names
    assert list(names.values()) == ["men", "women"]


def test_files_that_will_not_do(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_collection("mine", str(tmp_path / "nothing.npz"))
    (tmp_path / "text.npz").write_text("X")
    with pytest.raises(CollectionError, match="does not hold X, y and domain"):
        load_collection("mine", str(tmp_path / "text.npz"))
    np.save(tmp_path / "one.npy", np.eye(3))
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    (tmp_path / "empty.npz").touch()
    for name in ("one", "empty"):
        with pytest.raises(CollectionError, match="does not hold X, y and domain"):
            load_collection("mine", str(tmp_path / f"{name}.npz"))
    with pytest.raises(CollectionError, match=r"Unknown collection 'mine'\. Choose from: reviews"):
        load_collection("mine", str(tmp_path))


def test_halves_share_no_row_and_no_speaker(vowels):
    for seed in range(5):
        first, second = halves_of(vowels, "women", seed)
        assert len(first) == len(second) == 9
        assert set(vowels.groups[first]).isdisjoint(vowels.groups[second])
        assert set(vowels.domain[[*first, *second]]) == {vowels.number_of("women")}
    assert not np.array_equal(halves_of(vowels, "women", 0)[0], halves_of(vowels, "women", 1)[0])


def test_draws_of_one_side_do_not_depend_on_the_other(vowels):
    one, other = (draw_pair(vowels, "men", target, 3) for target in ("women", "boys"))
    np.testing.assert_array_equal(one.data.X_source, other.data.X_source)
    one, other = (draw_pair(vowels, source, "girls", 3) for source in ("men", "boys"))
    np.testing.assert_array_equal(one.data.X_target, other.data.X_target)
    np.testing.assert_array_equal(one.data.X_test, other.data.X_test)


def test_larger_domains_are_drawn_from(vowels):
    draw = draw_pair(vowels, "men", "women", 0, max_rows=4)
    assert [len(part) for part in draw.data] == [4] * 5
    assert len(draw.source_groups) == 4


def test_no_draw_reads_a_label(vowels):
    hidden = vowels._replace(y=np.full(len(vowels.y), "?"))
    for one, other in zip(
        draw_pair(vowels, "men", "women", 0).data, draw_pair(hidden, "men", "women", 0).data,
        strict=True,
    ):  # fmt: skip
        if one.dtype.kind == "f":
            np.testing.assert_array_equal(one, other)


def test_fingerprints_tell_data_apart(vowels, tmp_path):
    prints = {vowels.fingerprint}
    prints.add(vowels._replace(X=vowels.X + 1).fingerprint)
    prints.add(vowels._replace(y=vowels.y[::-1]).fingerprint)
    prints.add(vowels._replace(domain=vowels.domain[::-1].copy()).fingerprint)
    prints.add(vowels._replace(groups=None).fingerprint)
    reviews = load_collection("reviews", str(make_review_arrays(tmp_path)))
    prints.add(reviews.fingerprint)
    assert len(prints) == 6
    assert vowels._replace(X=vowels.X.copy()).fingerprint in prints
