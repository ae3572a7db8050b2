"""Whether source domains differ from each other as far as the target does from them."""

from types import SimpleNamespace

import numpy as np
import pytest

from covshift.diagnosis.decidability import MIN_RATIO, MIN_SHIFT, judge_decidability
from covshift.selection.problem import Problem


def judge(step, target, n_domains=3):
    """Three domains, each ``step`` away from the next; the target lies at ``target``."""
    rng = np.random.RandomState(0)
    rows = rng.standard_normal((300, 1))
    rows = (rows - rows.mean()) / rows.std()
    X = np.concatenate([rows + step * d for d in range(3)])
    domain, codes = np.repeat(np.arange(3), 300), np.tile([0, 1], 450)
    problem = Problem(X, codes, domain, rows + target, np.full(300, -1), 2)
    return judge_decidability(problem, n_domains, SimpleNamespace(possible=False))


@pytest.mark.parametrize(
    ("step", "target", "by_domains", "alike"),
    [
        (2.0, 3.0, True, True),
        (0.1, 0.1, False, True),  # all are alike, and nothing is to be seen between them
        (0.1, 4.0, False, False),
        (1.0, 40.0, False, False),  # domains differ, the target far more
    ],
)
def test_by_domains_and_domains_like_the_target(step, target, by_domains, alike):
    found = judge(step, target)
    assert found.by_domains == by_domains
    assert found.domains_like_target == alike
    assert alike == (found.domain_shift >= MIN_RATIO * found.target_shift)
    assert found.by_domains == (alike and found.domain_shift >= MIN_SHIFT)


def test_one_domain_that_can_play_is_too_few():
    found = judge(2.0, 3.0, n_domains=1)
    assert not found.domains_like_target
    assert not found.decidable
