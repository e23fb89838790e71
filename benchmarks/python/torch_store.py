"""TorchStore: a storage volume of this machine; put for push (it stores and does not add), get for pull."""
import asyncio
import sys

import peer

try:
    import torch
    import torchstore
except ImportError as why:
    peer.not_there(f"torchstore is not there: {why}")


async def run(op: str, size: int, in_flight: int, seconds: float) -> dict:
    tensors = [torch.full((max(1, size // 4),), 1e-3) for _ in range(in_flight)]
    for slot, tensor in enumerate(tensors):
        await torchstore.put(f"{size} {slot}", tensor)
    latencies: list[float] = []
    operation = 0
    watch = peer.Stopwatch()
    begun = watch.seconds()
    while begun < seconds:
        if op == "push" or (op == "rtt" and operation % 2 == 0):
            await asyncio.gather(*(torchstore.put(f"{size} {slot}", tensor) for slot, tensor in enumerate(tensors)))
        else:
            await asyncio.gather(*(torchstore.get(f"{size} {slot}") for slot in range(in_flight)))
        operation += in_flight
        ended = watch.seconds()
        latencies.append(ended - begun)
        begun = ended
    return watch.result(operation, size, latencies if in_flight == 1 else [])


def main() -> None:
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(torchstore.initialize())
    except Exception as why:  # it needs what this machine has not
        peer.not_there(f"torchstore does not start: {why}")
    peer.serve(lambda *command: loop.run_until_complete(run(*command)))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
