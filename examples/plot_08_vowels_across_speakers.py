"""
Vowels of men, women, boys and girls
====================================

Vocal tracts differ in length, so formants of the same vowel do. This page shows recorded data:
it draws a table of :doc:`/results/collections`, which ``covshift compare --data vowels=DIR
--trials 3 --out runs/compare`` measured over all twelve ordered pairs of the four groups;
`load_vowels` says where the data come from.
"""

import csv
from pathlib import Path

import matplotlib.pyplot as plt

# From the folder of this program.
table = Path("..", "docs", "results", "collections-vowels-systems.csv")
rows = list(csv.reader(table.read_text(encoding="utf-8").splitlines()))
measured = {}
for name, _, difference, interval, *_ in rows[1:]:
    if interval and name != "best without adapting":
        low, high = (float(end) for end in interval.split(" to "))
        measured[name] = float(difference.split()[0]), low, high

figure, axes = plt.subplots(figsize=(7.5, 4.4))
for place, (value, low, high) in enumerate(reversed(measured.values())):
    color = "C0" if low > 0 else "C1" if high < 0 else "gray"
    axes.plot([low, high], [place, place], color=color, lw=2)
    axes.plot(value, place, "o", color=color)
axes.set_yticks(range(len(measured)), reversed(measured))
axes.axvline(0, color="gray", lw=1)
axes.set_xlabel("balanced accuracy gained over no adaptation, 95 % interval over pairs")
plt.show()
print("no adaptation:", rows[1][1])

# %%
# A vocal tract that is longer multiplies all formants: each feature of each group has a
# location and scale of its own, and whatever undoes just that pays. Weights and new
# representations assume something else, and here most of them harm.
