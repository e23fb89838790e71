"""DiLoCo by Leeway: SGD of each worker, and the mean of what they have moved in every SYNC_EVERY steps."""
import leeway
import torch
from mlp import LEARNING_RATE, OUTER_LEARNING_RATE, SYNC_EVERY
from mlp_leeway import connect, serve  # noqa: F401


def train(rank: int, place, trainer) -> None:
    worker = connect(place)
    elements = sum(parameter.numel() for parameter in trainer.model.parameters())
    outer, moved = (torch.from_numpy(worker.allocate(elements)) for _ in range(2))
    parameters, gradients = trainer.flat()
    table = worker.table(
        "mlp", shape=elements, updater=leeway.SGD(lr=OUTER_LEARNING_RATE), aggregate="mean",
        initializer="uniform:-0.05,0.05,seed=1",
    )  # fmt: skip
    table.pull(outer)
    while True:
        parameters.copy_(outer)
        for _ in range(SYNC_EVERY):
            gradients.zero_()
            trainer.backward()
            parameters.sub_(gradients, alpha=LEARNING_RATE)
            trainer.count()
        torch.sub(outer, parameters, out=moved)
        step = table.push_pull(moved, outer)
        worker.clock()
        step.wait()
