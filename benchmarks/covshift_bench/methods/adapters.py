"""Every adapter of covshift with one model: what somebody gets who names an adapter."""

from functools import partial

from covshift import AdaptedClassifier
from covshift.predictors.fit_and_predict import problem_size
from covshift.registry import find_record, records
from covshift.selection.candidates import named_model
from covshift_bench.method import Method, predict_all, stacked

RANDOM = {"dae", "psf", "psf-unlabeled", "segment-sf", "sf", "standardize-psf", "standardize-sf"}


def fixed_pipeline(task, seed, adapter, model):
    """One adapter of the registry and one model, both by name."""
    classifier = named_model(adapter, model, *task.X_source.shape)
    X, y, sample_domain = stacked(task)
    if adapter in RANDOM:
        n_classes = len(set(task.y_source.tolist()))
        built = find_record(adapter).build(problem_size(X, n_classes, sample_domain))
        classifier = AdaptedClassifier(with_seed(built, seed), classifier.estimator)
    classifier.fit(X, y, sample_domain=sample_domain)
    return predict_all(classifier, task.X_test)


def with_seed(adapter, seed):
    """Return the adapter with this seed in each of its parts that draws at random."""
    names = [name for name in adapter.get_params() if name.endswith("random_state")]
    return adapter.set_params(**dict.fromkeys(names, seed))


def _methods():
    for record in records():
        for model in dict.fromkeys([*record.automatic, "logistic"]):
            name = f"{record.name} + {model}"
            function = partial(fixed_pipeline, adapter=record.name, model=model)
            # The bench of the automatic choice has the others.
            new = model not in record.automatic
            random = record.name in RANDOM or model == "forest"
            yield Method(name, "2", function, random=random, by_default=new)


METHODS = list(_methods())
