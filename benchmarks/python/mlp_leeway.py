"""Leeway: a table with the parameters; a step pushes the gradient and pulls what comes after it."""
import signal

import leeway
import torch
from cluster import Cluster
from mlp import LEARNING_RATE, WORKERS

CONSISTENCY = leeway.ASP()


def serve(place) -> None:
    cluster = Cluster(WORKERS, place[1])
    signal.pause()
    del cluster


def connect(place) -> leeway.Worker:
    return leeway.connect(scheduler=f"127.0.0.1:{place[1]}", num_servers=1, num_workers=WORKERS, log="error")


def train(rank: int, place, trainer, consistency=None) -> None:
    worker = connect(place)
    elements = sum(parameter.numel() for parameter in trainer.model.parameters())
    parameters, gradients = trainer.flat(
        *(torch.from_numpy(worker.allocate(elements)) for _ in range(2))
    )
    table = worker.table(
        "mlp", shape=elements, updater=leeway.SGD(lr=LEARNING_RATE),
        consistency=consistency or CONSISTENCY, initializer="uniform:-0.05,0.05,seed=1",
        aggregate="mean" if consistency else None,
    )  # fmt: skip
    table.pull(parameters)
    while True:
        gradients.zero_()
        trainer.backward()
        step = table.push_pull(gradients, parameters)
        worker.clock()
        step.wait()
        trainer.count()
