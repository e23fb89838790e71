"""Ray: an actor that adds received arrays (actor), or the object store by itself (store).

usage: ray_server.py actor | store

Arrays of both go through the object store, which is shared memory: a large argument is put there once, and
what ray.get returns lies there, read-only. The store by itself neither adds nor transfers: ray.get of an
object that this machine has is a mapping of memory.
"""
import os
import sys

import peer
import ray_settings
from keeping import keep
from rows import BATCHES, DIM, KEY_SPACE, ROW_BYTES, batches

try:
    import numpy as np
    import ray
except ImportError as why:
    peer.not_there(f"ray is not there: {why}")


class Server:
    def __init__(self):
        self.tensors: dict = {}
        self.rows = np.zeros((KEY_SPACE, DIM), np.float32)

    def process(self) -> int:
        return os.getpid()

    def push(self, key, values) -> None:
        if key in self.tensors:
            self.tensors[key] += values
        else:
            self.tensors[key] = values.copy()

    def pull(self, key):
        return self.tensors[key]

    def push_rows(self, keys, values) -> None:
        self.rows[keys] += values  # the keys are unique

    def pull_rows(self, keys):
        return self.rows[keys]


class Client:
    def __init__(self, store: bool):
        ray.init(num_cpus=2, **ray_settings.HEAD, **ray_settings.QUIET)
        self.server = ray.remote(Server).remote()
        self.process = ray.get(self.server.process.remote())
        self.store = store
        self.keys = batches(np)
        self.values = np.full((len(self.keys[0]), DIM), 1e-3, np.float32)

    def measure(self, op: str, size: int, in_flight: int, seconds: float) -> dict:
        if op.startswith("sparse"):
            return keep(self.sparse(op), len(self.keys[0]) * ROW_BYTES, 1, seconds, self.process)
        tensors = [np.full(max(1, size // 4), 1e-3, np.float32) for _ in range(in_flight)]
        starter = self.stored(op, tensors) if self.store else self.served(op, tensors)
        return keep(starter, size, in_flight, seconds, self.process)

    def served(self, op: str, tensors: list):
        keys = [(len(tensor), slot) for slot, tensor in enumerate(tensors)]
        ray.get([self.server.push.remote(key, tensor) for key, tensor in zip(keys, tensors, strict=True)])

        def start(operation: int, slot: int):
            if op == "push" or (op == "rtt" and operation % 2 == 0):
                reference = self.server.push.remote(keys[slot], tensors[slot])
            else:
                reference = self.server.pull.remote(keys[slot])
            return lambda: ray.get(reference)

        return start

    def stored(self, op: str, tensors: list):
        kept = [ray.put(tensor) for tensor in tensors]

        def start(operation: int, slot: int):
            if op == "push" or (op == "rtt" and operation % 2 == 0):
                kept[slot] = ray.put(tensors[slot])
                return lambda: None
            ray.get(kept[slot])
            return lambda: None

        return start

    def sparse(self, op: str):
        def start(operation: int, slot: int):
            batch = self.keys[operation % BATCHES]
            if op == "sparse_push":
                reference = self.server.push_rows.remote(batch, self.values)
            else:
                reference = self.server.pull_rows.remote(batch)
            return lambda: ray.get(reference)

        return start


def main() -> None:
    client = Client(store=sys.argv[1] == "store")
    peer.serve(client.measure)
    ray.shutdown()


if __name__ == "__main__":
    main()
