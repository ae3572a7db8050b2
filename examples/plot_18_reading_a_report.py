"""
What a diagnosis has seen
=========================

Six sites measure the same things with offsets of their own, and a seventh has no labels.
`diagnose` lets each of the six play the seventh, and tries a remedy for each hypothesis.
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
diagnosis = diagnose(data.X, data.y, sample_domain=data.sample_domain)
print(diagnosis)

# %%
# The gains of the remedies over no adaptation, with intervals over sites and rows:

kind = "source domains"
rows = [row for row in diagnosis.table if row[f"gain: {kind}"] is not None]
figure, axes = plt.subplots(figsize=(8, 3.6))
for place, row in enumerate(reversed(rows)):
    low, high = row[f"interval: {kind}"]
    colour = "C0" if row["leads"] else "grey" if row["survives"] else "C1"
    axes.plot([low, high], [place, place], color=colour, lw=2)
    axes.plot(row[f"gain: {kind}"], place, "o", color=colour)
fates = ["leads" if r["leads"] else "survives" if r["survives"] else "refuted" for r in rows]
names = [f"{row['hypothesis']} ({fate})" for row, fate in zip(rows, fates, strict=True)]
axes.set_yticks(range(len(rows)), reversed(names))
axes.axvline(0, color="lightgrey", lw=1)
axes.set_xlabel("balanced accuracy gained where a source domain plays the target")
plt.show()
