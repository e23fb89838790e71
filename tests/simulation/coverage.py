"""Lists the branches of the protocol's code that a run of the simulator did not take.

coverage.py IN.lcov OUT.txt: reads what `llvm-cov export -format=lcov` says of a program, prints a
line for each folder of the protocol, and writes every branch that was never taken to OUT.txt, with
the line of code that it is on. Lines that were not reached at all are listed once, as such.
"""

import collections
import os
import sys

FOLDERS = ("ps", "worker", "scheduler", "node", "checkpoint")


def protocol_file(path):
    """The path below the repository if it is production code of the protocol, else None."""
    # Sources are compiled through build/PRESET/stage/TARGET/FOLDER/...
    parts = os.path.normpath(path).split(os.sep)
    for i, part in enumerate(parts):
        if part in FOLDERS and os.path.exists(os.path.join(*parts[i:])):
            name = os.path.join(*parts[i:])
            tests = name.endswith("_test.cc") or "/testing/" in name or "test_cluster" in name
            return None if tests else name
    return None


def read_branches(lcov):
    """{(file, line): {(block, branch): times taken, or None if the line was not reached}}.

    A template or an inline function is compiled in several places: what one of them takes counts.
    """
    branches = collections.defaultdict(dict)
    name = None
    for record in lcov:
        record = record.rstrip("\n")
        if record.startswith("SF:"):
            name = protocol_file(record[3:])
        elif record.startswith("BRDA:") and name is not None:
            line, block, branch, taken = record[5:].split(",")
            at = branches[(name, int(line))]
            count = None if taken == "-" else int(taken)
            before = at.get((block, branch))
            at[(block, branch)] = count if before is None else before + (count or 0)
    return branches


def main(source, target):
    with open(source, encoding="utf-8") as lcov:
        branches = read_branches(lcov)
    sums = collections.defaultdict(lambda: [0, 0])
    code = {}
    with open(target, "w", encoding="utf-8") as out:
        for (name, line), at in sorted(branches.entries()):
            folder = name.split("/")[0]
            untaken = [key for key, count in at.entries() if not count]
            sums[folder][0] += len(at) - len(untaken)
            sums[folder][1] += len(at)
            if not untaken:
                continue
            if name not in code:
                with open(name, encoding="utf-8") as text:
                    code[name] = text.read().splitlines()
            if all(not count for count in at.values()):
                what = "not reached"
            else:
                # Branches come in pairs: the condition true, then false.
                what = ", ".join(
                    "never %s" % ("true" if int(branch) % 2 == 0 else "false")
                    for _, branch in sorted(untaken)
                )
            out.write("%s:%d: %s: %s\n" % (name, line, what, code[name][line - 1].strip()))
    taken_all, there_all = 0, 0
    for folder in FOLDERS:
        taken, there = sums[folder]
        taken_all, there_all = taken_all + taken, there_all + there
        if there:
            print("%-10s %5d of %5d branches taken (%.1f %%)" % (folder, taken, there, 100 * taken / there))
    print("all        %5d of %5d branches taken (%.1f %%); the others are in %s"
          % (taken_all, there_all, 100 * taken_all / max(1, there_all), target))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
