"""Denoising auto-encoders of the paper's synthetic size, one and ten, against loops in torch.

python benchmarks/autoencoder.py [--out results.json]

750 rows of 2 features, one unit, sigmoid, mini-batches of 50, noise of standard deviation .1:
an excerpt of 200 of the 10,000 epochs. torch, if it is installed, does the same in a plain
loop, with the number of threads at which that loop is fastest, in the faster of both precisions,
and keeps no loss curve. Ten of its loops, one after the other, take ten times as long as one.
"""

import warnings

import numpy as np
from measuring import median_seconds, report
from sklearn.exceptions import ConvergenceWarning

from covshift import DenoisingAutoencoder
from covshift.adapters.denoising_autoencoder import fit_stacked

EPOCHS, BATCH_SIZE, NOISE, RATE, N_STACKED = 200, 50, 0.1, 0.001, 10
X = np.random.RandomState(0).uniform(size=(750, 2))
warnings.simplefilter("ignore", ConvergenceWarning)  # an excerpt


def autoencoders(solver, n):
    """Ours, not fitted."""
    return [
        DenoisingAutoencoder(
            1,
            solver=solver,
            momentum=0.0,
            learning_rate=RATE,
            noise_level=NOISE,
            batch_size=BATCH_SIZE,
            max_epochs=EPOCHS,
            random_state=seed,
        )
        for seed in range(n)
    ]


def torch_loop(solver, dtype):
    """Fit one auto-encoder as one would in torch."""
    samples = torch.tensor(X, dtype=dtype)
    encoder, decoder = torch.nn.Linear(2, 1, dtype=dtype), torch.nn.Linear(1, 2, dtype=dtype)
    parameters = [*encoder.parameters(), *decoder.parameters()]
    optimizer = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[solver](parameters, lr=RATE)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(samples)).split(BATCH_SIZE):
            clean = samples[rows]
            noisy = clean + NOISE * torch.randn_like(clean)
            output = torch.sigmoid(decoder(torch.sigmoid(encoder(noisy))))
            loss = torch.nn.functional.mse_loss(output, clean)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def fastest_threads(solver):
    """Number of threads, one or two, at which torch's loop is faster."""

    def with_threads(n):
        torch.set_num_threads(n)
        torch_loop(solver, torch.float64)

    seconds = median_seconds({n: lambda n=n: with_threads(n) for n in (1, 2)}, repetitions=3)
    return min(seconds, key=seconds.get)


try:
    import torch
except ImportError:
    torch = None
    print("torch is not installed: only our own times are shown.")

rows = []
for solver in ("adam", "sgd"):
    functions = {
        "one": lambda solver=solver: fit_stacked(autoencoders(solver, 1), [X]),
        f"{N_STACKED} stacked": lambda solver=solver: fit_stacked(
            autoencoders(solver, N_STACKED), [X] * N_STACKED
        ),
    }
    if torch is not None:
        threads = fastest_threads(solver)
        torch.set_num_threads(threads)
        functions[f"torch, {threads} thread(s)"] = lambda solver=solver: torch_loop(
            solver, torch.float64
        )
        functions["torch, single precision"] = lambda solver=solver: torch_loop(
            solver, torch.float32
        )
    seconds = median_seconds(functions, repetitions=5)
    for name, value in seconds.items():
        per_step = 1e6 * value / EPOCHS / -(-len(X) // BATCH_SIZE)
        print(f"{solver:5s} {name:25s} {1000 * value:8.1f} ms  {per_step:7.1f} µs per step")
    if torch is not None:
        ours, stacked, *loops = seconds.values()
        what = f"{solver}, {EPOCHS} epochs of 750 rows: times faster than torch"
        rows += [
            (f"{what}, one fit", min(loops) / ours, ">=", 3),
            (f"{what}, {N_STACKED} fits", N_STACKED * min(loops) / stacked, ">=", 15),
        ]
report(rows)
