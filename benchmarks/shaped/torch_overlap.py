"""Steps of DistributedOptimizer over a link of a chosen speed, with overlap and without.

    PYTHONPATH=build/release/python python3 benchmarks/shaped/torch_overlap.py [--rate 1gbit] [--codec none]

A worker and a server, each in a network namespace of its own, with a link between them as leeway_bench_shaped
has it (shaped/link.h): needs root, iproute2, veth and sch_tbf. The model is a chain of equal linear layers, and
the batch such that a step computes for about as long as its gradients travel. Both ways take turns.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

HERE, THERE = "198.51.100.1", "198.51.100.2"


def train(given):
    import torch

    import leeway
    import leeway.torch

    torch.set_num_threads(1)
    models, batch = {}, given.batch
    with leeway.connect() as w:
        for overlap in (False, True):
            torch.manual_seed(0)
            model = torch.nn.Sequential(*[torch.nn.Linear(given.width, given.width) for _ in range(given.layers)])
            models[overlap] = model, leeway.torch.DistributedOptimizer(
                model, worker=w, updater=leeway.SGD(1e-4), consistency=leeway.ASP(), codec=given.codec,
                overlap=overlap, name=f"model {overlap}",
            )  # fmt: skip

        def steps(overlap, count):
            model, optimizer = models[overlap]
            x = torch.randn(batch, given.width)
            start = time.monotonic()
            for _ in range(count):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
            optimizer.synchronize()
            return (time.monotonic() - start) / count

        alone = time.monotonic()
        models[False][0](torch.randn(batch, given.width)).square().mean().backward()
        alone = time.monotonic() - alone
        times = {False: [], True: []}
        for turn in range(given.turns + 1):
            for overlap in times:
                taken = steps(overlap, given.steps)
                if turn > 0:
                    times[overlap].append(taken)
    without, overlapped = (statistics.median(times[overlap]) for overlap in (False, True))
    megabytes = given.layers * given.width * (given.width + 1) * 4 / 1e6
    print(
        f"{megabytes:.0f} MB at {given.rate}, codec {given.codec}: computing {1000 * alone:.0f} ms, a step "
        f"{1000 * without:.0f} ms without overlap, {1000 * overlapped:.0f} ms with it: {without / overlapped:.2f} x"
    )


def main(given):
    from leeway.launcher import command

    ends = [subprocess.Popen(["unshare", "-n", "sleep", "infinity"]) for _ in range(2)]
    running = list(ends)
    try:
        own = os.readlink("/proc/self/ns/net")
        while any(os.readlink(f"/proc/{end.pid}/ns/net") == own for end in ends):
            time.sleep(0.01)
        near, far = (["nsenter", f"--net=/proc/{end.pid}/ns/net"] for end in ends)
        subprocess.run(
            [*near, *f"ip link add near type veth peer name far netns {ends[1].pid}".split()], check=True
        )
        for inside, device, address in ((near, "near", HERE), (far, "far", THERE)):
            for line in (
                "ip link set lo up", f"ip addr add {address}/24 dev {device}", f"ip link set {device} up",
                f"tc qdisc add dev {device} root tbf rate {given.rate} burst 256kb latency 5ms",
            ):  # fmt: skip
                subprocess.run([*inside, *line.split()], check=True)
        environment = {**os.environ, "LEEWAY_SCHEDULER": f"{THERE}:9000", "LEEWAY_NUM_SERVERS": "1",
                       "LEEWAY_NUM_WORKERS": "1", "LEEWAY_LOG": "warning"}  # fmt: skip
        for role in ("scheduler", "server"):
            running.append(
                subprocess.Popen([*far, command(), role], env={**environment, "LEEWAY_HOST": THERE})
            )
        return subprocess.run(
            [*near, sys.executable, __file__, "--worker", *sys.argv[1:]],
            env={**environment, "LEEWAY_HOST": HERE},
        ).returncode
    finally:
        for process in reversed(running):
            process.kill()
            process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--codec", default="none")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--worker", action="store_true")
    given = parser.parse_args()
    sys.exit(train(given) if given.worker else main(given))
