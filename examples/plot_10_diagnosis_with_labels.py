"""
A diagnosis that asks for labels
================================

With one source domain, and a target elsewhere, rows cannot show whether a pattern continues in the
target. `diagnose` says so, and gives wide intervals. Labels of target rows, drawn at random, narrow
them.
"""

import matplotlib.pyplot as plt
import numpy as np

from covshift import diagnose, stack_domains
from covshift.datasets import make_periodic_shift

data = make_periodic_shift(random_state=0)
X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
diagnosis = diagnose(X, y, sample_domain=sample_domain, max_rows=200)
print(diagnosis)

# %%
# Somebody looks at eighty rows. Here the rule is known: labels repeat along the first feature.

rows = diagnosis.rows_to_label(80)
labels = (np.sin(X[rows, 0]) > 0).astype(int)
updated = diagnosis.update(rows, labels)
print(updated)

figure, axes = plt.subplots(figsize=(8, 3))
for place, one in enumerate((updated, diagnosis)):
    for offset, color, score in (
        (0.1, "C0", one.assessment.plain),
        (-0.1, "C1", one.assessment.recommended),
    ):
        axes.plot([score.low, score.high], [place + offset] * 2, color=color, lw=2)
        axes.plot(score.value, place + offset, "o", color=color)
axes.set_yticks([0, 1], ["80 labels", "no labels"])
axes.set_ylim(-0.5, 1.5)
axes.set_xlabel("expected accuracy: plain model (blue), recommended model (orange)")
plt.show()

# %%
# The recommended models, the second one fitted with the labels, on other rows:

label_mask = sample_domain >= 0
before = diagnosis.recommended.fit(X, y, sample_domain=sample_domain)
y[rows], label_mask[rows] = labels, True
after = updated.recommended.fit(X, y, sample_domain=sample_domain, label_mask=label_mask)
for name, model in (("no labels", before), ("80 labels", after)):
    print(f"{name}: {model.score(data.X_test, data.y_test):.2f}")
