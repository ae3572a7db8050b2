"""
Many sites, each with statistics of its own
===========================================

With ``pooling="role"`` all sources share one set of statistics and all targets another; with
``pooling="domain"`` each site has its own, unless it has fewer than ``min_domain_size`` rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from covshift import AdaptedClassifier, DomainStandardScaler, stack_domains

rng = np.random.default_rng(0)


def site(n, offset):
    """Two classes about the site's own middle."""
    y = np.arange(n) % 2
    return offset + rng.normal(size=(n, 2)) + 3.0 * y[:, None] - 1.5, y


offsets = {name: rng.normal(0, 4, 2) for name in "ABCDEFGH"}
sources = {name: site(80, offsets[name]) for name in "ABCDE"}
targets = {name: site(80, offsets[name]) for name in "FGH"}
data = stack_domains(sources, target={name: X for name, (X, _) in targets.items()})
y_targets = np.concatenate([y for _, y in targets.values()])
is_target = data.sample_domain < 0

figure, panels = plt.subplots(1, 3, figsize=(10, 3.8))
adapters = (None, DomainStandardScaler(), DomainStandardScaler(pooling="domain"))
for adapter, axes in zip(adapters, panels, strict=True):
    model = AdaptedClassifier(adapter).fit(data.X, data.y, sample_domain=data.sample_domain)
    X_new, domain = data.X[is_target], data.sample_domain[is_target]
    score = model.score(X_new, y_targets, sample_domain=domain)
    Z = (
        data.X
        if adapter is None
        else model.adapter_.transform(data.X, sample_domain=data.sample_domain)
    )
    axes.scatter(*Z[~is_target].T, c="C0", s=6, label="sources A to E")
    axes.scatter(*Z[is_target].T, c="C1", s=6, label="targets F, G, H")
    name = "no adaptation" if adapter is None else f'pooling="{adapter.pooling}"'
    axes.set_title(f"{name}: {score:.2f}")
figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()
