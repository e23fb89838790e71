"""gloo: DistributedDataParallel, which reduces gradients while the others are computed."""
import signal

import torch
import torch.distributed as dist
from mlp import LEARNING_RATE, WORKERS
from torch.nn.parallel import DistributedDataParallel


def serve(place) -> None:
    signal.pause()


def train(rank: int, place, trainer) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{place[1]}", rank=rank, world_size=WORKERS)
    model = DistributedDataParallel(trainer.model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    while True:
        optimizer.zero_grad(set_to_none=False)
        trainer.backward(model)
        optimizer.step()
        trainer.count()
