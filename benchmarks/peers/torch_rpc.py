"""torch.distributed.rpc: a server process that adds received tensors and rows, and a client.

usage: torch_rpc.py shm | tcp
"""
import functools
import os
import sys

import peer

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "python"))
import rows

try:
    import torch
    from torch.distributed import rpc
except ImportError as why:
    peer.not_there(f"python3-torch is not there: {why}")

TRANSPORTS = {"shm": ["shm", "uv"], "tcp": ["uv"]}
CHANNELS = {"shm": ["cma", "mpt_uv", "basic"], "tcp": ["mpt_uv", "basic"]}

store: dict[tuple[int, int], "torch.Tensor"] = {}


def push(key: tuple[int, int], values: "torch.Tensor") -> None:
    if key in store:
        store[key].add_(values)
    else:
        store[key] = values.clone()


def pull(key: tuple[int, int]) -> "torch.Tensor":
    return store[key]


def push_rows(keys: "torch.Tensor", values: "torch.Tensor") -> None:
    embedding().index_add_(0, keys, values)


def pull_rows(keys: "torch.Tensor") -> "torch.Tensor":
    return embedding()[keys]


@functools.cache
def embedding() -> "torch.Tensor":
    return torch.zeros(rows.KEY_SPACE, rows.DIM)


def join(name: str, rank: int, port: int, transport: str) -> None:
    options = rpc.TensorPipeRpcBackendOptions(
        init_method=f"tcp://127.0.0.1:{port}",
        _transports=TRANSPORTS[transport],
        _channels=CHANNELS[transport],
    )
    rpc.init_rpc(name, rank=rank, world_size=2, rpc_backend_options=options)


def sparse(op: str, seconds: float, server: int) -> dict:
    import numpy

    from keeping import keep

    batches = [torch.from_numpy(keys) for keys in rows.batches(numpy)]
    values = torch.full((rows.KEYS, rows.DIM), 1e-3)

    def begin(operation: int, slot: int):
        keys = batches[operation % rows.BATCHES]
        if op == "sparse_push":
            return rpc.rpc_async("server", push_rows, args=(keys, values)).wait
        return rpc.rpc_async("server", pull_rows, args=(keys,)).wait

    return keep(begin, rows.KEYS * rows.ROW_BYTES, 1, seconds, server)


def start(op: str, operation: int, key: tuple[int, int], values: "torch.Tensor"):
    if op == "push" or (op == "rtt" and operation % 2 == 0):
        return rpc.rpc_async("server", push, args=(key, values))
    return rpc.rpc_async("server", pull, args=(key,))


def run(watch: peer.Stopwatch, op: str, size: int, in_flight: int, seconds: float) -> dict:
    tensors = [torch.full((max(1, size // 4),), 1e-3) for _ in range(in_flight)]
    for i, tensor in enumerate(tensors):
        rpc.rpc_sync("server", push, args=((size, i), tensor))
    futures = [None] * in_flight
    latencies: list[float] = []
    operation = 0
    watch = watch()
    begun = watch.seconds()
    while not operation or begun < seconds:
        slot = operation % in_flight
        if futures[slot] is not None:
            futures[slot].wait()
        futures[slot] = start(op, operation, (size, slot), tensors[slot])
        operation += 1
        if in_flight == 1:
            futures[slot].wait()
            futures[slot] = None
        ended = watch.seconds()
        if in_flight == 1:
            latencies.append(ended - begun)
        begun = ended
    for future in futures:
        if future is not None:
            future.wait()
    return watch.result(operation, size, latencies)


def main() -> None:
    transport = sys.argv[1]
    port = peer.free_port()
    server = os.fork()
    if server == 0:
        peer.die_with_parent()
        os.dup2(2, 1)
        join("server", 0, port, transport)
        rpc.shutdown()
        return
    join("client", 1, port, transport)

    def measure(op: str, size: int, in_flight: int, seconds: float) -> dict:
        if op.startswith("sparse"):
            return sparse(op, seconds, server)
        return run(lambda: peer.Stopwatch(server), op, size, in_flight, seconds)

    peer.serve(measure)
    os._exit(0)  # the server ends with it; an orderly end would only take longer


if __name__ == "__main__":
    main()
