import numpy as np
import pytest

from covshift.domains import (
    SOME_SOURCE,
    SOME_TARGET,
    locate_units,
    pooling_units,
)

#                   0  1  2  3   4   5   6   7
DOMAIN = np.array([0, 0, 3, 0, -1, -1, -2, -1])


def as_lists(units):
    return {unit: rows.tolist() for unit, rows in units.items()}


@pytest.mark.parametrize("min_domain_size", [1, 100])
def test_joint_and_role_pool_whatever_the_size(min_domain_size):
    joint = pooling_units(DOMAIN, "joint", min_domain_size)
    assert as_lists(joint) == {"all": list(range(8))}
    role = pooling_units(DOMAIN, "role", min_domain_size)
    assert as_lists(role) == {"source": [0, 1, 2, 3], "target": [4, 5, 6, 7]}
    assert list(role) == ["source", "target"]


@pytest.mark.parametrize(
    ("min_domain_size", "own"),
    [(1, {0, 3, -1, -2}), (2, {0, -1}), (3, {0, -1}), (4, set())],
)
def test_small_domains_are_served_by_their_role(min_domain_size, own):
    rows = {-2: [6], -1: [4, 5, 7], 0: [0, 1, 3], 3: [2]}
    units = pooling_units(DOMAIN, "domain", min_domain_size)
    expected = {domain: rows[domain] for domain in rows if domain in own}
    assert as_lists(units) == expected | {"source": [0, 1, 2, 3], "target": [4, 5, 6, 7]}
    assert list(units) == [*expected, "source", "target"]
    located = locate_units(list(units), DOMAIN)
    names = [list(units)[position] for position in located]
    assert names == [
        domain if domain in own else ("source" if domain >= 0 else "target")
        for domain in DOMAIN.tolist()
    ]


@pytest.mark.parametrize(
    ("pooling", "names"),
    [("role", ["source"]), ("domain", [0, 3, "source"]), ("joint", ["all"])],
)
def test_without_target_rows_there_is_no_target_unit(pooling, names):
    assert list(pooling_units(np.array([3, 0, 3]), pooling, 1)) == names


def test_rows_are_located_at_their_own_unit_else_at_their_role():
    units = [-2, -1, 0, 3, "source", "target"]
    domain = np.array([3, -1, 0, -2, 9, -9, SOME_SOURCE, SOME_TARGET, 3])
    located = locate_units(units, domain)
    assert located.dtype == np.int64
    assert located.tolist() == [3, 1, 2, 0, 4, 5, 4, 5, 3]


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        (["source", "target"], [0, 0, 1, 1]),
        (["all"], [0, 0, 0, 0]),
        (["source"], [0, 0, 0, 0]),
        ([0, 3, "source"], [0, 2, 2, 2]),  # fitted without a target: the source serves
        (["source", "target", -1], [0, 0, 2, 1]),
    ],
)
def test_units_of_the_other_poolings(units, expected):
    domain = np.array([0, SOME_SOURCE, -1, SOME_TARGET])
    assert locate_units(units, domain).tolist() == expected


@pytest.mark.parametrize("pooling", ["role", "domain", "joint"])
@pytest.mark.parametrize("min_domain_size", [1, 3, 100])
def test_every_fitted_row_belongs_to_the_unit_it_is_located_at(pooling, min_domain_size):
    units = pooling_units(DOMAIN, pooling, min_domain_size)
    rows = list(units.values())
    for row, position in enumerate(locate_units(list(units), DOMAIN)):
        assert row in rows[position]


def test_no_rows():
    assert locate_units(["source", "target"], np.array([], dtype=np.int64)).tolist() == []
