"""The common part of the peers' programs: the commands of harness/serve_commands.h, in Python."""
import ctypes
import json
import os
import signal
import socket
import sys
import time
from typing import Callable

NOT_THERE = 3


def not_there(why: str) -> None:
    print(why, file=sys.stderr)
    sys.exit(NOT_THERE)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def die_with_parent() -> None:
    """Called in a child process, which is then killed when its parent ends in any way."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def cpu_seconds(process: int) -> float:
    """User and system time of another process so far (clock_getcpuclockid)."""
    return time.clock_gettime((~process << 3) | 2)


class Stopwatch:
    def __init__(self, *others: int):
        self._others = others
        self._cpu = self._cpu_sum()
        self._start = time.perf_counter()

    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def result(self, operations: int, size: int, latencies: list[float]) -> dict:
        seconds = self.seconds()
        result = {
            "operations": operations,
            "bytes": operations * size,
            "seconds": seconds,
            "cpu_seconds": self._cpu_sum() - self._cpu,
        }
        if latencies:
            latencies.sort()
            result["p50_us"] = 1e6 * latencies[len(latencies) // 2]
            result["p99_us"] = 1e6 * latencies[int(0.99 * (len(latencies) - 1))]
        return result

    def _cpu_sum(self) -> float:
        return time.process_time() + sum(cpu_seconds(other) for other in self._others)


def serve(measure: Callable[[str, int, int, float], dict]) -> None:
    """Answers commands until the input ends. What libraries print goes to the standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(result: dict) -> None:
        answers.write(json.dumps(result) + "\n")
        answers.flush()

    answer({"ready": True})
    for line in sys.stdin:
        op, size, in_flight, seconds = line.split()
        try:
            answer(measure(op, int(size), int(in_flight), float(seconds)))
        except Exception as why:  # any error: the other commands are still measured
            answer({"error": f"{type(why).__name__}: {why}"})
