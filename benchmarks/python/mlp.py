"""The work `mlp`: four workers train a small network on Fashion-MNIST; their steps are counted.

usage: mlp.py SYSTEM

SYSTEM is a module mlp_SYSTEM beside this file: serve(place) runs what the workers need, until it is killed,
and train(rank, place, trainer) a worker. They are processes of their own, forked anew for each measurement
from one that has loaded the libraries and the data and has used neither:

    mlp:even    all at one speed
    mlp:slow    worker 3 takes four times as long for a step
    mlp:killed  worker 3 is killed (SIGKILL); steps of the others, from then on
"""
import functools
import gzip
import importlib
import mmap
import multiprocessing
import os
import signal
import struct
import sys
import tempfile
import time
from pathlib import Path

import peer

DATA = Path("/usr/share/datasets/fashion-mnist")
WORKERS, BATCH, LEARNING_RATE = 4, 64, 0.1
SYNC_EVERY, OUTER_LEARNING_RATE = 10, 0.7  # of DiLoCo
SLOW, SLOW_FACTOR = WORKERS - 1, 4  # the slow worker, which is also the one that is killed
KILLED_S = 5.0  # for which the others are watched
WATCHED_S = 3.0  # at least
WARM_STEPS, START_S = 20, 50
POLL_S = 0.01


class Counters:
    """Steps of each worker, in a file that all processes map."""

    def __init__(self, path: Path):
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 8 * WORKERS)

    def add(self, rank: int) -> None:
        self._memory[8 * rank : 8 * rank + 8] = struct.pack("q", self.of()[rank] + 1)

    def of(self) -> tuple[int, ...]:
        return struct.unpack(f"{WORKERS}q", self._memory[:])


@functools.cache
def data():
    """Images and labels."""
    import numpy
    import torch

    with gzip.open(DATA / "train-images-idx3-ubyte.gz") as file:
        images = numpy.frombuffer(file.read(), numpy.uint8, offset=16).reshape(-1, 784)
    with gzip.open(DATA / "train-labels-idx1-ubyte.gz") as file:
        labels = numpy.frombuffer(file.read(), numpy.uint8, offset=8)
    return torch.from_numpy(images / numpy.float32(255)), torch.from_numpy(labels.astype("int64"))


class Trainer:
    """A worker's network and data. Parameters and gradients lie in one array each."""

    def __init__(self, rank: int, counters: Counters, slow: bool):
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(1)
        self.rank, self._counters, self._slow = rank, counters, slow
        self._images, self._labels = (array[rank::WORKERS] for array in data())
        self.model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
        self._loss = torch.nn.CrossEntropyLoss()
        self._batch = 0

    def flat(self, parameters=None, gradients=None):
        """Lays the parameters and gradients into these tensors, or new ones, and returns the two."""
        import torch

        kept = torch.nn.utils.parameters_to_vector(self.model.parameters()).detach()
        parameters = kept.clone() if parameters is None else parameters.copy_(kept)
        gradients = torch.zeros_like(parameters) if gradients is None else gradients
        begin = 0
        for parameter in self.model.parameters():
            end = begin + parameter.numel()
            parameter.data = parameters[begin:end].view_as(parameter)
            parameter.grad = gradients[begin:end].view_as(parameter)
            begin = end
        return parameters, gradients

    def backward(self, model=None) -> None:
        """Adds the gradients of the next batch to those in place."""
        begun = time.perf_counter()
        at = self._batch * BATCH % (len(self._labels) - BATCH)
        self._batch += 1
        output = (model or self.model)(self._images[at : at + BATCH])
        self._loss(output, self._labels[at : at + BATCH]).backward()
        if self._slow:
            time.sleep((SLOW_FACTOR - 1) * (time.perf_counter() - begun))

    def count(self) -> None:
        self._counters.add(self.rank)


class Run:
    """The processes of one measurement."""

    def __init__(self, system: str, slow: bool, folder: str):
        self.folder = Path(folder)
        (self.folder / "steps").write_bytes(bytes(8 * WORKERS))
        self.counters = Counters(self.folder / "steps")
        place = self.folder, peer.free_port()
        module = importlib.import_module(f"mlp_{system}")
        self.server = self._start("server", module.serve, place)
        self.workers = [
            self._start(f"worker-{rank}", self._train, module, rank, place, slow and rank == SLOW)
            for rank in range(WORKERS)
        ]

    def _train(self, module, rank: int, place, slow: bool) -> None:
        module.train(rank, place, Trainer(rank, self.counters, slow))

    def _start(self, name: str, run, *arguments) -> multiprocessing.Process:
        def part() -> None:
            peer.die_with_parent()
            with open(self.folder / name, "wb") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            run(*arguments)

        process = multiprocessing.get_context("fork").Process(target=part)
        process.start()
        return process

    def wait_until_warm(self) -> None:
        end = time.monotonic() + START_S
        while min(self.counters.of()) < WARM_STEPS:
            for rank, worker in enumerate(self.workers):
                if not worker.is_alive():
                    raise RuntimeError(f"worker {rank} has ended: {self.said(rank)}")
            if time.monotonic() > end:
                raise RuntimeError(f"not all workers train after {START_S} s: {self.counters.of()} steps")
            time.sleep(POLL_S)

    def said(self, rank: int) -> str:
        lines = (self.folder / f"worker-{rank}").read_text(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else ""

    def watch(self, seconds: float, ranks: range) -> dict:
        """Steps of these workers within that time, and the longest time in which none of them made one."""
        begun = moved = time.perf_counter()
        before = last = sum(self.counters.of()[rank] for rank in ranks)
        pause = 0.0
        while (now := time.perf_counter()) < begun + seconds:
            if (steps := sum(self.counters.of()[rank] for rank in ranks)) != last:
                last, moved = steps, now
            pause = max(pause, now - moved)
            time.sleep(POLL_S)
        return {"operations": last - before, "bytes": 0, "seconds": now - begun, "cpu_seconds": 0, "pause_s": pause}

    def after_kill(self) -> dict:
        self.workers[SLOW].kill()
        others = range(SLOW)
        found = self.watch(KILLED_S, others)
        ended = [rank for rank in others if not self.workers[rank].is_alive()]
        if ended:
            found["note"] = f"{len(ended)} of {len(others)} others end: {self.said(ended[0])}"
        elif found["pause_s"] > KILLED_S / 2:
            found["note"] = f"the others hang, for {found['pause_s']:.1f} s of {KILLED_S:g} s"
        else:
            found["note"] = f"the others go on; none made a step for at most {found['pause_s']:.2f} s"
        return found

    def stop(self) -> None:
        for process in self.workers:
            process.kill()
        self.server.terminate()
        self.server.join(5)
        self.server.kill()
        for process in [self.server, *self.workers]:
            process.join()


def measure(system: str, op: str, size: int, in_flight: int, seconds: float) -> dict:
    case = op.removeprefix("mlp:")
    with tempfile.TemporaryDirectory() as folder:
        run = Run(system, case == "slow", folder)
        try:
            run.wait_until_warm()
            return run.after_kill() if case == "killed" else run.watch(max(seconds, WATCHED_S), range(WORKERS))
        finally:
            run.stop()


def main() -> None:
    system = sys.argv[1]
    if not DATA.exists():
        peer.not_there("Debian's dataset-fashion-mnist is not there")
    try:
        importlib.import_module(f"mlp_{system}")
        data()
    except ImportError as why:
        peer.not_there(str(why))
    peer.serve(lambda *command: measure(system, *command))


if __name__ == "__main__":
    main()
