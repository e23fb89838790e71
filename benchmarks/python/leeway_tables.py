"""Leeway's Python package: a worker, a server and a scheduler.

usage: leeway_tables.py lent | plain

lent: arrays of Worker.allocate, which servers of this machine read where they lie. plain: NumPy's own.
"""
import subprocess
import sys

import peer
from cluster import Cluster
from keeping import keep
from rows import BATCHES, DIM, ROW_BYTES, batches

try:
    import leeway
    import numpy as np
except ImportError as why:
    peer.not_there(f"the package leeway is not there: {why}")

IMPORT = "import time; t = time.perf_counter(); import leeway; print(time.perf_counter() - t)"


class Tables:
    def __init__(self, lent: bool):
        self.cluster = Cluster(workers=1)
        self.worker = self.cluster.connect()
        self.lent = lent
        self.tensors: dict = {}
        self.rows = None

    def array(self, shape, dtype):
        array = self.worker.allocate(shape, dtype) if self.lent else np.empty(shape, dtype)
        array[...] = 1e-3
        return array

    def dense(self, shape, dtype: str, count: int, updater: str) -> list:
        """Tables, each with an array to push and another to pull into."""
        key = (shape, dtype, count)
        if key not in self.tensors:
            self.tensors[key] = [
                (
                    self.worker.table(
                        f"{key} {i}", shape=shape, dtype=dtype, updater=updater, consistency=leeway.ASP()
                    ),
                    self.array(shape, dtype),
                    np.zeros(shape, dtype),
                )
                for i in range(count)
            ]
        return self.tensors[key]

    def measure(self, op: str, size: int, in_flight: int, seconds: float) -> dict:
        if op == "import":
            return imported()
        if op.startswith("sparse"):
            return self.sparse(op, seconds)
        if op.startswith("transfer"):
            _, dtype, edge = op.split(":")
            tensors = self.dense((int(edge), int(edge)), dtype, 1, "assign")
            size = 2 * tensors[0][1].nbytes
        else:
            tensors = self.dense(max(1, size // 4), "float32", in_flight, "add")

        return keep(starter(op, tensors), size, in_flight, seconds, self.cluster.server)

    def sparse(self, op: str, seconds: float) -> dict:
        if self.rows is None:
            table = self.worker.table("rows", dim=DIM, consistency=leeway.ASP())
            keys = batches(np)
            self.rows = table, keys, self.array((len(keys[0]), DIM), "float32"), np.zeros((len(keys[0]), DIM), "float32")
        table, keys, values, out = self.rows

        def start(operation: int, slot: int):
            batch = keys[operation % BATCHES]
            return (table.push(batch, values) if op == "sparse_push" else table.pull_async(batch, out)).wait

        return keep(start, len(keys[0]) * ROW_BYTES, 1, seconds, self.cluster.server)


def starter(op: str, tensors: list):
    """What begins an operation: as little code of ours as there can be, since it counts."""

    def push(operation: int, slot: int):
        table, values, _ = tensors[slot]
        return table.push(values).wait

    def pull(operation: int, slot: int):
        table, _, out = tensors[slot]
        return table.pull_async(out).wait

    def transfer(operation: int, slot: int):
        push(operation, slot)()
        return pull(operation, slot)

    def by_turns(operation: int, slot: int):
        return (pull if operation % 2 else push)(operation, slot)

    if op.startswith("transfer"):
        return transfer
    return {"push": push, "pull": pull, "rtt": by_turns}[op]


def imported() -> dict:
    """The seconds of `import leeway` in a new interpreter."""
    said = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True).stdout
    return {"operations": 1, "bytes": 0, "seconds": float(said), "cpu_seconds": 0}


if __name__ == "__main__":
    peer.serve(Tables(lent=sys.argv[1] == "lent").measure)
