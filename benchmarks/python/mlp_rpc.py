"""torch.distributed.rpc: a parameter server, as in PyTorch's tutorial: an object behind an RRef."""
import threading

import torch
from mlp import LEARNING_RATE, WORKERS
from torch.distributed import rpc


class ParameterServer:
    def __init__(self, parameters: torch.Tensor):
        self._parameters = parameters
        self._lock = threading.Lock()

    def step(self, gradients: torch.Tensor) -> torch.Tensor:
        with self._lock:
            self._parameters.sub_(gradients, alpha=LEARNING_RATE)
            return self._parameters.clone()


def join(name: str, rank: int, place) -> None:
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{place[1]}", num_worker_threads=WORKERS)
    rpc.init_rpc(name, rank=rank, world_size=WORKERS + 1, rpc_backend_options=options)


_server: list[ParameterServer] = []
_made = threading.Lock()


def server_of(parameters: torch.Tensor) -> ParameterServer:
    """The one server; the first worker's parameters are where it begins."""
    with _made:
        if not _server:
            _server.append(ParameterServer(parameters))
        return _server[0]


def serve(place) -> None:
    join("server", WORKERS, place)
    threading.Event().wait()


def train(rank: int, place, trainer) -> None:
    join(f"worker{rank}", rank, place)
    parameters, gradients = trainer.flat()
    server = rpc.remote("server", server_of, args=(parameters,)).rpc_sync
    while True:
        gradients.zero_()
        trainer.backward()
        parameters.copy_(server().step(gradients))
        trainer.count()
