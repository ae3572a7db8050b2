"""Every weight estimator, for the tests that all of them must pass: those of the registry."""

from covshift import KMMWeights
from tests.estimators import registered

WEIGHTS = [*registered("weights"), KMMWeights(n_landmarks=100, random_state=0)]
