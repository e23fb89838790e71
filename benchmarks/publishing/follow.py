"""A trainer publishes versions of a model, of which few elements change, and readers follow.

    PYTHONPATH=build/release/python python3 benchmarks/publishing/follow.py --mib 256 --readers 8

Prints, of all versions but the first: how long a push and a publication took the trainer, and from its begin
until each reader had the version; how long the reader's arrays were being changed, beside a copy of as many bytes
as that fetch brought; and the bytes of a version, as a share of the model.
"""

import argparse
import statistics
import time

import leeway
import numpy as np

SHARE = 0.01  # of the elements: each changes by one step of its last bit


def train(worker, tables, elements, versions):
    generator = np.random.default_rng(1)
    state = {f"t{i}": generator.normal(0, 0.02, elements).astype(np.float16) for i in range(tables)}
    begun = []
    for _ in range(versions):
        begun.append(time.monotonic())
        leeway.publish(state, "policy", worker=worker)
        begun.append(time.monotonic())
        for values in state.values():
            bits = values.view(np.uint16)
            changed = generator.integers(0, elements, int(elements * SHARE))
            bits[changed] += 1
        worker.barrier("applied")
    return begun


def follow(worker, versions):
    while True:
        try:
            policy = leeway.subscribe("policy", worker=worker)
            break
        except leeway.NotFound:
            time.sleep(0.01)
    applied = []
    for _ in range(versions):
        before = policy.stats()["bytes_received"]
        policy.wait_newer(timeout=300)
        begin = time.monotonic()
        policy.fetch(timeout=0, copy=False)
        end = time.monotonic()
        applied.append((end, end - begin, policy.stats()["bytes_received"] - before))
        worker.barrier("applied")
    return applied, policy.digest


def run(worker, tables, elements, versions):
    if worker.rank == 0:
        return train(worker, tables, elements, versions)
    return follow(worker, versions)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mib", type=int, default=256, help="of the model")
    parser.add_argument("--tables", type=int, default=30)
    parser.add_argument("--readers", type=int, default=2)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--versions", type=int, default=6)
    args = parser.parse_args()
    elements = args.mib * (1 << 20) // args.tables // 2
    model = elements * args.tables * 2
    results = leeway.launch(
        run, args.tables, elements, args.versions, servers=args.servers, workers=1 + args.readers
    )
    begun, readers = results[0], results[1:]
    assert len({digest for _, digest in readers}) == 1, "the readers' copies differ"
    push_and_publish, until_applied, pause, share = [], [], [], []
    for version in range(1, args.versions):
        start = begun[2 * version]
        push_and_publish.append(begun[2 * version + 1] - start)
        for applied, _ in readers:
            end, paused, received = applied[version]
            until_applied.append(end - start)
            pause.append(paused)
            share.append(received / model)
    copied = np.empty(model, np.uint8)
    begin = time.monotonic()
    copied[:] = 1
    memset = time.monotonic() - begin
    for name, values in (
        ("push and publish, s", push_and_publish),
        ("until applied, s", until_applied),
        ("arrays change for, s", pause),
        ("received, share of the model", share),
    ):
        print(f"{name:32} {statistics.median(values):.4f}  (most {max(values):.4f})")
    print(f"{'the whole model written once, s':32} {memset:.4f}")


if __name__ == "__main__":
    main()
