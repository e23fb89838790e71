"""The loop of a measurement: a number of operations is kept under way until the time is over."""
from collections.abc import Callable

import peer


def keep(start: Callable, size: int, in_flight: int, seconds: float, *processes: int) -> dict:
    """start(operation, slot) begins an operation on tensor `slot`, and returns the function that waits for it."""
    for slot in range(in_flight):
        start(slot, slot)()
    waits: list = [None] * in_flight
    latencies: list[float] = []
    look = in_flight if size < 4096 else 1  # operations between readings of the clock
    operation = 0
    watch = peer.Stopwatch(*processes)
    begun = watch.seconds()
    while not operation or operation % look or watch.seconds() < seconds:
        slot = operation % in_flight
        if in_flight == 1:
            start(operation, slot)()
            ended = watch.seconds()
            latencies.append(ended - begun)
            begun = ended
        else:
            if waits[slot] is not None:
                waits[slot]()
            waits[slot] = start(operation, slot)
        operation += 1
    for wait in waits:
        if wait is not None:
            wait()
    return watch.result(operation, size, latencies)
