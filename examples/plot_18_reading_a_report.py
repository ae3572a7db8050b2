"""
Reading a diagnosis
===================

Six sites measure the same things with offsets of their own, and a seventh has no labels.
`diagnose` takes source rows as the target, and scores every candidate on them.
"""

import matplotlib.pyplot as plt
import numpy as np

from covshift import diagnose, stack_domains

rng = np.random.default_rng(0)


def site(n, offset):
    """Two classes, apart in all three features."""
    y = np.arange(n) % 2
    return offset + rng.normal(size=(n, 3)) + 2 * y[:, None], y


offsets = {"A": 0, "B": 4, "C": -4, "D": 6, "E": -6, "F": 2}
sites = {name: site(80, offset) for name, offset in offsets.items()}
data = stack_domains(sites, target={"G": site(150, 8)[0]})
diagnosis = diagnose(data.X, data.y, sample_domain=data.sample_domain, max_rows=200)
print(diagnosis)

# %%
# The expected scores of the plain and the recommended model with 90 % intervals, and the expected
# gain of the best candidate of each adapter:

scores = {"plain model": diagnosis.assessment.plain}
scores["recommended model"] = diagnosis.assessment.recommended
gains = {row["adapter"]: row["expected gain"] for row in diagnosis.table}
figure, (above, below) = plt.subplots(
    2, 1, figsize=(8, 6), height_ratios=[1, 3], layout="constrained"
)
for place, score in enumerate(scores.values()):
    above.plot([score.low, score.high], [place, place], color="C0", lw=2)
    above.plot(score.value, place, "o", color="C0")
above.set_yticks(range(len(scores)), scores)
above.set_xlabel("expected accuracy")
colors = ["C0" if row["weight"] > 0 else "gray" for row in diagnosis.table]
below.scatter(list(gains.values()), range(len(gains)), c=colors)
below.set_yticks(range(len(gains)), gains)
below.axvline(0, color="lightgrey", lw=1)
below.set_xlabel("expected gain; in blue, those in the recommended model")
plt.show()
