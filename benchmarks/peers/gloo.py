"""gloo: two processes that add up their tensors, so that both get the sum."""
import os

import peer

try:
    import torch
    import torch.distributed as dist
except ImportError as why:
    peer.not_there(f"python3-torch is not there: {why}")

STOP = 0  # as a number of operations: the end


def join(rank: int, port: int) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2
    )


def reduce(tensors: list, operations: int, latencies: list[float], now) -> None:
    """Keeps as many operations under way as there are tensors."""
    works = [None] * len(tensors)
    begun = now()
    for operation in range(operations):
        slot = operation % len(tensors)
        if works[slot] is not None:
            works[slot].wait()
        works[slot] = dist.all_reduce(tensors[slot], async_op=True)
        if len(tensors) == 1:
            works[slot].wait()
            ended = now()
            latencies.append(ended - begun)
            begun = ended
    for work in works:
        if work is not None:
            work.wait()


def make(size: int, in_flight: int) -> list:
    return [torch.zeros(max(1, size // 4)) for _ in range(in_flight)]


def follow() -> None:
    """The other process takes part in as many operations as it is told."""
    order = torch.zeros(3, dtype=torch.int64)
    while True:
        dist.broadcast(order, 0)
        size, in_flight, operations = order.tolist()
        if operations == STOP:
            return
        reduce(make(size, in_flight), operations, [], lambda: 0)


def measure(other: int, op: str, size: int, in_flight: int, seconds: float) -> dict:
    if op != "all_reduce":
        return {"error": f"gloo knows no {op}"}
    tensors = make(size, in_flight)

    def run(operations: int) -> dict:
        dist.broadcast(torch.tensor([size, in_flight, operations]), 0)
        latencies: list[float] = []
        watch = peer.Stopwatch(other)
        reduce(tensors, operations, latencies, watch.seconds)
        return watch.result(operations, size, latencies)

    trial = run(2 * in_flight)
    rate = trial["operations"] / trial["seconds"]
    return run(max(in_flight, int(rate * seconds)))


def main() -> None:
    port = peer.free_port()
    other = os.fork()
    if other == 0:
        peer.die_with_parent()
        join(1, port)
        follow()
        return
    join(0, port)
    peer.serve(lambda *command: measure(other, *command))
    os._exit(0)


if __name__ == "__main__":
    main()
