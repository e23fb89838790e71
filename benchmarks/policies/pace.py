"""The pace of consistencies side by side: real processes, one worker slower than the others.

    ./dev bench --policies

Two measurements, each of clusters on this machine whose workers sleep instead of computing:
steps a second with eight workers, of which one takes four times as long, by consistency, in turns;
and the staleness of pushes with thirty workers of one speed (with n-softsync its mean is about n:
Zhang et al., IJCAI 2016, section 3.2). Prints tables and writes out/policies.json.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys


def run(args, mode, workers, step_ms, slow_factor):
    """Runs one cluster. Returns the steps of its workers by rank, and the staleness of pushes."""
    status = os.path.join(args.out, "status.json")
    env = dict(os.environ, LEEWAY_BENCH_STATUS=f"{args.leeway} status --json > {status}")
    command = [args.leeway, "launch", "-s", "2", "-w", str(workers), "--", args.worker, mode,
               str(args.seconds), str(step_ms), str(workers - 1), str(slow_factor)]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    steps = {int(m[1]): int(m[2])
             for m in re.finditer(r"rank (\d+) steps (\d+)", ended.stdout)}
    if ended.returncode != 0 or len(steps) != workers:
        sys.exit(f"{' '.join(command)} failed:\n{ended.stdout}{ended.stderr}")
    staleness = {}
    with open(status, encoding="utf-8") as file:
        threads = [thread for server in json.load(file).get("servers", [])
                   for thread in server.get("threads", [])]
    for thread in threads:
        for table in thread.get("tables", []):
            for tau, count in table.get("push_staleness", {}).items():
                tau = int(tau.rstrip("+"))
                staleness[tau] = staleness.get(tau, 0) + count
    return steps, staleness


def pace(args):
    """Median steps a second of the workers that are not slow, by consistency."""
    paces = {mode: [] for mode in args.modes.split(";")}
    for _ in range(args.rounds):
        for mode in paces:
            steps, _ = run(args, mode, 8, args.step_ms, 4)
            del steps[7]
            paces[mode].append(statistics.mean(steps.values()) / args.seconds)
    medians = {mode: statistics.median(values) for mode, values in paces.items()}
    print(f"\n8 workers, {args.step_ms} ms a step, one {4 * args.step_ms} ms; "
          "steps a second of each of the others")
    for mode, value in medians.items():
        print(f"  {mode:24} {value:7.1f}  {value / medians['bsp']:5.2f} x bsp  "
              f"{value / medians['asp']:5.2f} x asp")
    return medians


def staleness(args):
    """The mean staleness of pushes with n-softsync, by n."""
    means = {}
    print("\n30 workers of one speed: the mean staleness of pushes, in updates")
    for n in (1, 2, 5, 10, 15, 30):
        # A weight, so that staleness is counted.
        _, counts = run(args, f"softsync:{n},weight=table:1", 30, 4 * args.step_ms, 1)
        total = sum(counts.values())
        means[n] = sum(tau * count for tau, count in counts.items()) / max(1, total)
        print(f"  softsync:{n:<4} {means[n]:6.2f}  {means[n] / n:5.2f} x n  ({total} pushes)")
    return means


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default="build/release", help="the build folder")
    parser.add_argument("--modes", default="bsp;backup:7/8;backup:7/8,drop;dssp:1-8;psp:3/2;"
                        "softsync:8;fedbuff:8;ssp:3;asp", help="separated by ';', with bsp and asp")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--step-ms", type=float, default=40)
    parser.add_argument("--out", default="out")
    args = parser.parse_args()
    args.leeway = os.path.abspath(os.path.join(args.programs, "tools/leeway"))
    args.worker = os.path.abspath(os.path.join(args.programs, "benchmarks/leeway_bench_policies"))
    args.out = os.path.abspath(args.out)
    os.makedirs(args.out, exist_ok=True)
    result = {"pace": pace(args), "staleness": staleness(args)}
    with open(os.path.join(args.out, "policies.json"), "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
