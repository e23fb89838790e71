"""Redis: its server, and redis-benchmark as its client; SET for push, GET for pull.

The server is a process of the benchmark (no service is started or used), which keeps nothing on
disk. Debian's redis-tools has it as redis-check-rdb: the program decides by its name what it does.
"""
import csv
import os
import resource
import shutil
import socket
import subprocess
import sys
import time

import peer

SERVER = shutil.which("redis-server") or shutil.which("redis-check-rdb")
CLIENT = shutil.which("redis-benchmark")


def start_server(port: int) -> subprocess.Popen:
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(
        ["redis-server", *options],
        executable=SERVER,
        stdout=subprocess.DEVNULL,
        preexec_fn=peer.die_with_parent,
    )
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return server
        except OSError:
            time.sleep(0.05)
    peer.not_there("redis-server does not answer")
    return server


def client(port: int, command: str, size: int, in_flight: int, requests: int) -> tuple[float, float]:
    """Requests a second, and the median latency in µs."""
    said = subprocess.run(
        [CLIENT, "-p", str(port), "-c", "1", "-P", str(in_flight), "-n", str(requests)]
        + ["-d", str(size), "-t", command, "--csv"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    row = next(csv.DictReader(said.splitlines()))
    return float(row["rps"]), 1000 * float(row["p50_latency_ms"])


def measure(port: int, server: int, op: str, size: int, in_flight: int, seconds: float) -> dict:
    command = "get" if op == "pull" else "set"
    client(port, "set", size, 1, 1)
    trial = max(in_flight, min(2000, (64 << 20) // size))
    rate, _ = client(port, command, size, in_flight, trial)
    requests = max(in_flight, int(rate * seconds))
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = peer.cpu_seconds(server) + own.ru_utime + own.ru_stime
    rate, p50_us = client(port, command, size, in_flight, requests)
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = {
        "operations": requests,
        "bytes": requests * size,
        "seconds": requests / rate,
        "cpu_seconds": peer.cpu_seconds(server) + own.ru_utime + own.ru_stime - cpu,
    }
    if in_flight == 1:
        result["p50_us"] = p50_us
    return result


def main() -> None:
    if SERVER is None or CLIENT is None:
        peer.not_there("redis-tools is not there")
    port = peer.free_port()
    server = start_server(port)
    peer.serve(lambda *command: measure(port, server.pid, *command))
    server.kill()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
