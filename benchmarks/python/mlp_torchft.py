"""torchft: DiLoCo with gloo; each worker is a replica group of one."""
import os
import signal
from datetime import timedelta

import torch
from mlp import LEARNING_RATE, OUTER_LEARNING_RATE, SYNC_EVERY
from torchft import Manager, ProcessGroupGloo
from torchft.coordination import LighthouseServer
from torchft.local_sgd import DiLoCo


def serve(place) -> None:
    lighthouse = LighthouseServer(
        bind=f"127.0.0.1:{place[1]}", min_replicas=1, join_timeout_ms=1000, heartbeat_timeout_ms=1000
    )
    signal.pause()
    lighthouse.shutdown()


def train(rank: int, place, trainer) -> None:
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    os.environ["TORCHFT_LIGHTHOUSE"] = f"http://127.0.0.1:{place[1]}"
    model = trainer.model
    inner = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    outer = torch.optim.SGD(model.parameters(), lr=OUTER_LEARNING_RATE)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=5)),
        load_state_dict=lambda state: None,
        state_dict=dict,
        min_replica_size=1,
        use_async_quorum=False,
        timeout=timedelta(seconds=5),
        rank=0,
        world_size=1,
        store_addr="127.0.0.1",
        store_port=store.port,
        replica_id=f"worker{rank}",
        hostname="127.0.0.1",
    )
    with DiLoCo(manager, [model], inner, outer, sync_every=SYNC_EVERY):
        while True:
            inner.zero_grad()
            trainer.backward()
            inner.step()
            trainer.count()
