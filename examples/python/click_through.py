"""A sparse click-through model: logistic regression with FTRL-Proximal (McMahan et al., KDD 2013).

    python click_through.py --workers 2

Each impression has one value of each of some categories (user, advertisement, site, ...); a feature is a
category with a value, and its key the hash of both. The table has a weight for each feature that was seen:
nobody says how many there are. L1 keeps the weights of rare features at 0. The data are made here, from
weights that are known, so the AUC has a bound that is known as well.
"""

import argparse

import leeway
import numpy as np

CATEGORIES = (20000, 5000, 1000, 200, 24)  # values of each


def weights_of(keys):
    """The true weight of a feature: a number from its key alone."""
    mixed = keys * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    return ((mixed & np.uint64(0xFFFF)).astype(np.float64) / 0xFFFF - 0.5) * 2.4


def impressions(random, rows):
    """Keys [rows, categories], few of which are common, and clicks [rows]."""
    columns = []
    for category, values in enumerate(CATEGORIES):
        chosen = (values * random.random(rows) ** 3).astype(np.uint64)
        columns.append(
            (np.uint64(category) << np.uint64(56)) | (chosen * np.uint64(0x2545F4914F6CDD1D) >> np.uint64(8))
        )
    keys = np.stack(columns, axis=1)
    chance = 1 / (1 + np.exp(1.5 - weights_of(keys).sum(axis=1)))
    return keys, (random.random(rows) < chance), chance


def auc(scores, clicks):
    """The chance that an impression with a click scores higher than one without."""
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    positive = clicks.sum()
    return float(
        (ranks[clicks].sum() - positive * (positive + 1) / 2) / (positive * (len(clicks) - positive))
    )


def predict(table, keys):
    rows, places = np.unique(keys, return_inverse=True)
    logits = table.pull(rows)[:, 0][places.reshape(keys.shape)].sum(axis=1)
    return rows, places, 1 / (1 + np.exp(-logits))


def train(worker, steps, batch):
    table = worker.table(
        "features", dim=1, updater=leeway.FTRL(lr=0.2, l1=0.5, l2=1.0), consistency=leeway.SSP(2)
    )
    random = np.random.default_rng(worker.rank)
    for _ in worker.iterations(steps):
        keys, clicks, _ = impressions(random, batch)
        rows, places, chance = predict(table, keys)
        each = np.repeat(chance - clicks, keys.shape[1])
        gradient = np.bincount(places.ravel(), weights=each, minlength=len(rows))
        table.push(rows, gradient.astype(np.float32)[:, None])
    worker.barrier()
    keys, clicks, chance = impressions(np.random.default_rng(2**32), 20000)
    _, _, seen = predict(table, keys)
    result = auc(seen, clicks), auc(chance, clicks)
    worker.barrier()
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=1000)
    given = parser.parse_args()
    found, best = leeway.launch(train, given.steps, given.batch, workers=given.workers, servers=2)[0]
    print(f"AUC {found:.4f}; with the true weights it is {best:.4f}")
