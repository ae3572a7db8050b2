"""
Reviews of other products
=========================

A classifier of opinions learns from reviews of DVDs and is used on books, electronics and
kitchen ware. This page shows recorded data: it draws a table of :doc:`/results/reviews`, which
``covshift reproduce reviews --data DIR --plan default --out runs/reviews`` measured;
`load_amazon_reviews` says where the data come from.
"""

import csv
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

table = Path("..", "docs", "results", "reviews-targets.csv")  # from the folder of this program
rows = list(csv.reader(table.read_text(encoding="utf-8").splitlines()))[1:]
targets = list(dict.fromkeys(row[0] for row in rows))
systems = list(dict.fromkeys(row[1] for row in rows))

figure, axes = plt.subplots(figsize=(8, 3.8))
for place, system in enumerate(systems):
    cells = [row[2].split(" ± ") for row in rows if row[1] == system]
    values, errors = np.array(cells, dtype=float).T
    left = np.arange(len(targets)) + 0.12 * place
    axes.errorbar(left, values, yerr=errors, fmt="o", capsize=3, label=system)
axes.axhline(0.5, color="gray", lw=1)
axes.set_xticks(np.arange(len(targets)) + 0.36, targets)
axes.set(ylabel="UAR, settings chosen on the source", ylim=(0.48, 0.66))
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %%
# Trained on the 50 most common words, as in the paper's supplement. The gray line is chance;
# bars are standard errors over three draws. No adapted system is clearly above the plain SVM,
# and sparse filtering is below it on all three targets.
