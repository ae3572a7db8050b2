"""
A diagnosis that asks for labels
================================

With one source domain, rows cannot tell whether a pattern goes on in the target. `diagnose`
says so, and names the target rows whose labels would tell most.
"""

import matplotlib.pyplot as plt
import numpy as np

from covshift import diagnose, stack_domains
from covshift.datasets import make_periodic_shift

data = make_periodic_shift(random_state=0)
X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
diagnosis = diagnose(X, y, sample_domain=sample_domain)
print(diagnosis.verdict.kind, "- still possible:", ", ".join(diagnosis.surviving))

# %%
# Somebody looks at twenty rows. Here the rule is known: labels repeat along the first feature.

rows = diagnosis.rows_to_label(20)
labels = (np.sin(X[rows, 0]) > 0).astype(int)
updated = diagnosis.update(rows, labels)
print(updated.verdict.kind, "- leading:", updated.leading)

figure, axes = plt.subplots(figsize=(8, 3))
axes.scatter(*data.X_source.T, c="C0", s=8, alpha=0.5, label="source")
axes.scatter(*data.X_target.T, c="C1", s=8, alpha=0.5, label="target")
axes.scatter(*X[rows].T, facecolors="none", edgecolors="black", s=60, label="asked for")
axes.legend(ncols=3, loc="upper center")
axes.set_ylim(-2.2, 2.8)
plt.show()

# %%
# The model that the labels speak for, on rows that nobody labelled:

before = diagnosis.recommended.fit(X, y, sample_domain=sample_domain)
after = updated.recommended.fit(X, y, sample_domain=sample_domain)
for name, model in (("before", before), ("after twenty labels", after)):
    print(f"{name}: {model.score(data.X_test, data.y_test):.2f}")
