"""DiLoCo: four workers train for `--steps` steps each between exchanges; one is killed and one joins.

    python torch_diloco.py --undisturbed
    python torch_diloco.py

Outer gradients travel in 4 bits with error feedback, and the model in two fragments (Streaming DiLoCo). Each
worker is a process of its own, since one of them is to be killed.
"""

import argparse
import os
import signal
import subprocess
import sys

import leeway
import leeway.torch
import torch
from leeway.launcher import command


def data(rows, seed):
    """A teacher's answers: what the model is to learn."""
    generator = torch.Generator().manual_seed(seed)
    teacher = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    fixed = torch.Generator().manual_seed(0)
    for parameter in teacher.parameters():
        with torch.no_grad():
            parameter.copy_(torch.randn(parameter.shape, generator=fixed) / parameter.shape[-1] ** 0.5)
    x = torch.randn(rows, 32, generator=generator)
    with torch.no_grad():
        return x, teacher(x) + 0.3 * torch.randn(rows, 1, generator=generator)


def work(given):
    torch.set_num_threads(1)
    if given.joins:
        input()
    with leeway.connect() as w:
        if given.joins:
            print("joined", flush=True)
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.Tanh(), torch.nn.Linear(128, 1))
        diloco = leeway.torch.DiLoCo(model, worker=w, steps=given.steps, codec="fp4", fragments=2)
        inner = torch.optim.AdamW(model.parameters(), lr=0.003)
        x, y = data(8192, seed=1 + w.rank)  # each worker has data of its own
        generator = torch.Generator().manual_seed(w.rank)
        while diloco.rounds < given.rounds:
            rows = torch.randint(len(x), (64,), generator=generator)
            inner.zero_grad()
            ((model(x[rows]) - y[rows]) ** 2).mean().backward()
            inner.step()
            before = diloco.rounds
            diloco.step()
            if w.rank == 0 and diloco.rounds != before:
                print(f"round {diloco.rounds}", flush=True)
                if diloco.rounds == given.pause_at:
                    input()  # these rounds are over before a process has begun
        diloco.finish()
        if w.rank == 0:
            x, y = data(20000, seed=10**6)
            with torch.no_grad():
                print(f"loss {float(((model(x) - y) ** 2).mean()):.5f}", flush=True)


def cluster(given):
    port = 20000 + os.getpid() % 10000
    environment = {**os.environ, "LEEWAY_SCHEDULER": f"127.0.0.1:{port}", "LEEWAY_NUM_SERVERS": "1",
                   "LEEWAY_NUM_WORKERS": str(given.workers), "LEEWAY_LOG": "error",
                   "LEEWAY_FAILURE_TIMEOUT_MS": "1000", "LEEWAY_HEARTBEAT_INTERVAL_MS": "200"}  # fmt: skip
    own = [sys.executable, __file__, "--worker", "--steps", str(given.steps), "--rounds", str(given.rounds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    kill_at, join_at = (0, 0) if given.undisturbed else (given.rounds // 3, given.rounds // 2)

    running = []

    def start(arguments, settings, **options):
        running.append(subprocess.Popen(arguments, env={**environment, **settings}, **options))
        return running[-1]

    def tell(process):
        process.stdin.write("\n")
        process.stdin.flush()

    try:
        for role in ("scheduler", "server"):
            start([command(), role], {})
        first = start([*own, "--pause-at", str(join_at)], {"LEEWAY_RANK": "0"}, **pipes)
        others = [start(own, {"LEEWAY_RANK": str(rank)}) for rank in range(1, given.workers)]
        if join_at:
            others.append(start([*own, "--joins"], {"LEEWAY_ELASTIC": "1"}, **pipes))
        for line in first.stdout:
            print(line, end="", flush=True)
            if line == f"round {kill_at}\n":
                print(f"worker {given.workers - 1} is killed", flush=True)
                others[-2].send_signal(signal.SIGKILL)
            if line == f"round {join_at}\n":
                tell(others[-1])
                print(f"a worker has {others[-1].stdout.readline()}", end="", flush=True)
                tell(first)
        statuses = [one.wait() for one in [first, *others]]
        return 0 if set(statuses) <= {0, -signal.SIGKILL} else 1
    finally:
        for process in running:
            process.kill()
            process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--undisturbed", action="store_true")
    parser.add_argument("--worker", action="store_true", help="be one of the workers")
    parser.add_argument("--joins", action="store_true", help="of a worker: join once there is a line to read")
    parser.add_argument(
        "--pause-at", type=int, default=0, help="of a worker: the round after which it reads a line"
    )
    given = parser.parse_args()
    if given.worker:
        work(given)
    else:
        sys.exit(cluster(given))
