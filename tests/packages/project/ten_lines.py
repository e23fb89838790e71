"""Two workers move a table towards 1."""

import leeway
import numpy as np


def train(worker):
    table = worker.table("weights", shape=3, updater=leeway.SGD(lr=0.5), consistency=leeway.BSP())
    for _ in worker.iterations(20):
        table.push((table.pull() - np.ones(3, dtype=np.float32)) / 2)
    worker.barrier()
    return table.pull()


if __name__ == "__main__":
    for values in leeway.launch(train, servers=2, workers=2):
        np.testing.assert_allclose(values, 1, rtol=1e-4)
