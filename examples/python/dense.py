"""Least squares by several workers: a dense table, gradients by NumPy.

python dense.py --workers 4
"""

import argparse

import leeway
import numpy as np


def train(worker, steps):
    random = np.random.default_rng(worker.rank)  # each worker has data of its own
    truth = np.arange(32, dtype=np.float32)
    w = worker.table("w", shape=32, updater=leeway.SGD(lr=0.1), aggregate="mean")  # BSP
    for _ in worker.iterations(steps):
        x = random.standard_normal((64, 32), dtype=np.float32)
        error = x @ (w.pull() - truth)
        w.push(x.T @ error / len(x))
    return float(np.abs(w.pull() - truth).max())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args()
    errors = leeway.launch(train, given.steps, workers=given.workers)
    print(f"largest error {max(errors):.1e}")
