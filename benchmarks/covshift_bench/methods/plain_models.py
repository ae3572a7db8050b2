"""Models that do not adapt."""

from functools import partial

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from covshift_bench.method import Method, predict_all

MODELS = {
    "plain logistic": partial(LogisticRegression, max_iter=1000),
    "plain SVC": SVC,
    "plain nearest neighbors": partial(KNeighborsClassifier, n_neighbors=15),
}


def plain_model(task, seed, model):
    """Fit one model on the standardized source."""
    pipeline = make_pipeline(StandardScaler(), MODELS[model]())
    return predict_all(pipeline.fit(task.X_source, task.y_source), task.X_test)


def boosted_trees(task, seed):
    """Fit gradient boosting with its defaults on the source."""
    model = HistGradientBoostingClassifier(random_state=seed)
    return predict_all(model.fit(task.X_source, task.y_source), task.X_test)


METHODS = [
    *(Method(name, "1", partial(plain_model, model=name)) for name in MODELS),
    # Its defaults draw nothing at random at these numbers of rows.
    Method("plain boosted trees", "1", boosted_trees),
]
