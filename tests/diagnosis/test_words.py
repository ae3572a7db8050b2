"""What is said of advice, and of what is nearly advised."""

from types import SimpleNamespace

import numpy as np

from covshift.diagnosis.expectation import refuse
from covshift.diagnosis.verdict import Verdict
from covshift.diagnosis.words import say_expected, say_unsure, say_verdict


def diagnosed(kind, agreement):
    """As much of a diagnosis as is put into words here; standardising leads."""
    verdict = Verdict(kind, "source domains", 2, [2], 0.2, (0.1, 0.3), True, agreement)
    return SimpleNamespace(
        verdict=verdict,
        surviving=["shift and scale"],
        share_changed=0.4,
        expectations=[],
        objective="accuracy",
    )


def test_advice_says_that_it_does_not_hinge_on_single_domains():
    said = " ".join(say_verdict(diagnosed("adapt", 0.968)))
    assert "does not hinge on single source domains" in said
    assert "agreement 0.97" in said
    assert "hinge" not in " ".join(say_verdict(diagnosed("adapt", np.nan)))


def test_what_hinges_on_single_domains_is_said_to():
    (said,) = say_unsure(diagnosed("no adaptation", 0.312))
    assert "shift and scale" in said
    assert "hinges on single source domains" in said
    assert "agreement 0.31" in said
    (said,) = say_unsure(diagnosed("no adaptation", np.nan))
    assert "hinges" not in said


def test_it_is_said_where_no_accuracy_is_that_the_model_does_not_carry_over():
    found = diagnosed("adapt", np.nan)
    (said,) = say_expected(found)
    assert said.endswith("cannot be told without labels.")
    evidence = {"own_balanced_accuracy": 0.91, "mean_balanced_accuracy": 0.524}
    found.expectations = [refuse("domains", ["not carried over"], evidence)]
    (said,) = say_expected(found)
    assert "hardly carries over" in said
    assert "0.91" in said
    assert "0.52" in said
