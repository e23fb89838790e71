"""Leeway as an all-reduce of two processes: both push a tensor in BSP, and pull the sum of the two."""
import os
import sys

import peer
from cluster import Cluster

try:
    import leeway
    import numpy as np
except ImportError as why:
    peer.not_there(f"the package leeway is not there: {why}")


class Member:
    def __init__(self, worker: "leeway.Worker"):
        self.worker = worker
        self.tensors: dict = {}

    def reduce(self, size: int, count: int, rounds: int, now=lambda: 0.0) -> list[float]:
        """Adds up `count` tensors at a time, and returns the seconds of each time."""
        key = (size, count)
        elements = max(1, size // 4)
        if key not in self.tensors:
            self.tensors[key] = [
                (self.worker.table(f"{key} {i}", shape=elements), self.worker.allocate(elements), np.zeros(elements, "float32"))
                for i in range(count)
            ]
        latencies, begun = [], now()
        for _ in range(rounds):
            tickets = [table.push_pull(values, out) for table, values, out in self.tensors[key]]
            self.worker.clock()
            leeway.wait(tickets)
            ended = now()
            latencies.append(ended - begun)
            begun = ended
        return latencies


def follow(cluster: Cluster, orders) -> None:
    """The other process takes part in what it is told, a line each."""
    member = Member(cluster.connect())
    for line in orders:
        member.reduce(*map(int, line.split()))


def measure(member: Member, orders, other: int, server: int, size: int, in_flight: int, seconds: float) -> dict:
    def run(rounds: int) -> dict:
        orders.write(f"{size} {in_flight} {rounds}\n")
        orders.flush()
        watch = peer.Stopwatch(other, server)
        latencies = member.reduce(size, in_flight, rounds, watch.seconds)
        return watch.result(rounds * in_flight, size, latencies if in_flight == 1 else [])

    run(1)
    trial = run(2)
    return run(max(1, int(seconds * 2 / trial["seconds"])))


def main() -> None:
    cluster = Cluster(workers=2)
    reader, writer = os.pipe()
    other = os.fork()
    if other == 0:
        peer.die_with_parent()
        os.close(writer)
        os.dup2(2, 1)
        follow(cluster, os.fdopen(reader))
        return
    orders = os.fdopen(writer, "w")
    member = Member(cluster.connect())
    peer.serve(lambda op, size, in_flight, seconds: measure(member, orders, other, cluster.server, size, in_flight, seconds))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
