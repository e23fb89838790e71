"""Ray: an actor as parameter server, as in Ray's example of an asynchronous one."""
import os
import signal
import time

import numpy as np
import torch
from mlp import LEARNING_RATE, WORKERS
from ray_settings import HEAD, QUIET

import ray  # isort: skip

HERE = QUIET | {"namespace": "mlp"}


class ParameterServer:
    def __init__(self, parameters):
        self._parameters = np.array(parameters)

    def step(self, gradients):
        self._parameters -= LEARNING_RATE * gradients
        return self._parameters


def serve(place) -> None:
    folder, _ = place
    context = ray.init(num_cpus=WORKERS + 1, **HEAD, **HERE)
    (folder / "address.new").write_text(context.address_info["address"])
    os.rename(folder / "address.new", folder / "address")
    signal.pause()


def train(rank: int, place, trainer) -> None:
    address = place[0] / "address"
    while not address.exists():
        time.sleep(0.01)
    ray.init(address=address.read_text(), **HERE)
    parameters, gradients = trainer.flat()
    server = ray.remote(ParameterServer).options(name="server", get_if_exists=True).remote(parameters.numpy())
    while True:
        gradients.zero_()
        trainer.backward()
        parameters.copy_(torch.from_numpy(ray.get(server.step.remote(gradients.numpy())).copy()))
        trainer.count()
