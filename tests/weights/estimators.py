"""Every weight estimator, for the tests that all of them must pass."""

from covshift import ClassifierWeights, KLIEPWeights, KMMWeights, RuLSIFWeights, ULSIFWeights
from tests.estimators import skeleton

WEIGHTS = [
    ULSIFWeights(random_state=0),
    RuLSIFWeights(random_state=0),
    KLIEPWeights(random_state=0),
    KMMWeights(),
    KMMWeights(n_landmarks=100, random_state=0),
    ClassifierWeights(random_state=0),
    skeleton("GaussianWeights", globals())(),
]
