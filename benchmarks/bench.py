#!/usr/bin/python3
"""Measures Leeway beside the machine's limits and its peers, all in one run: ./dev bench."""
import argparse
import math
import os
import re
import signal
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from driver import machine, python, scale, subjects, work
from driver.subject import Subject
from driver.rounds import Plan, Rounds, Samples
from report import python as python_report
from report import scale as scale_report
from report.before import BEFORE, change, print_changes, samples_before
from report.result import all_plots, medians, print_ratios, ratios, write

QUICK = {"rounds": 2, "seconds": 0.15}
FULL = {"rounds": 5, "seconds": 0.5}
AGAINST = {"rounds": 6, "seconds": 0.5}  # an even number: each build comes first in half of them


def pattern(text: str) -> re.Pattern:
    try:
        return re.compile(text)
    except re.error as why:
        raise argparse.ArgumentTypeError(f"'{text}' is no regular expression: {why}") from why


def positive(number):
    def parse(text: str):
        value = number(text)
        if not (value > 0 and math.isfinite(value)):
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return value

    parse.__name__ = number.__name__  # "invalid int value"
    return parse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two short rounds of the work that the ratios need")
    parser.add_argument("--rounds", type=positive(int), metavar="N", help="number of rounds that count (5; quick: 2; --against: 6)")
    parser.add_argument("--seconds", type=positive(float), metavar="S", help="seconds of a measurement (0.5; quick: 0.15)")
    parser.add_argument("--subjects", type=pattern, default="", metavar="RE", help="only subjects whose names match, e.g. 'leeway|zmq'")
    parser.add_argument("--works", type=pattern, default="", metavar="RE", help="only work whose name matches, e.g. 'push_4m|rtt'")
    parser.add_argument("--no-peers", action="store_true", help="leave out the peers, software other than Leeway")
    parser.add_argument("--no-scaling", action="store_true", help="leave out measurements with several workers")
    parser.add_argument(
        "--only",
        choices=["scale", "priority", "compression", "python"],
        help="only simulated clusters of growing size, training steps with and without priorities, the gain and cost of codecs, or the Python package beside its peers (installs them in out/python-peers)",
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="DIR",
        help="measure the programs of another build, e.g. of the commit before, in the same rounds, and print how each ratio has changed; without peers and simulated clusters",
    )
    parser.add_argument("--no-scale", action="store_true", help="leave out simulated clusters")
    parser.add_argument("--list", action="store_true", help="list all subjects and works")
    parser.add_argument("--check", action="store_true", help="exit with an error if a measurement failed, or a program that is built here is missing")
    parser.add_argument("--programs", type=Path, default=Path("build/release/benchmarks"), help=argparse.SUPPRESS)
    parser.add_argument("--simulator", type=Path, default=Path("build/release/tests/simulation/leeway-scale"), help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), metavar="DIR")
    options = parser.parse_args()
    if options.against and not options.against.is_dir():
        parser.error(f"--against {options.against}: there is no such folder; name build/release/benchmarks of another checkout")
    if options.only == "scale" and (options.subjects.pattern or options.works.pattern):
        parser.error("--only scale has no subjects and works: leave out --subjects and --works")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=options.out).close()  # an error now instead of after all measurements
    except OSError as why:
        parser.error(f"--out {options.out}: {why.strerror}")
    return options


def built(programs: Path) -> list[Subject]:
    """Leeway's own subjects, of the build in that folder."""
    kinds = [subjects.leeway, subjects.codecs, subjects.shaped, subjects.shaped_codecs, subjects.shaped_checksums]
    return [subject for of in kinds for subject in of(programs)]


def before(found: list[Subject]) -> list[Subject]:
    for subject in found:
        subject.name, subject.title = BEFORE + subject.name, subject.title + " (before)"
    return found


def chosen_subjects(options: argparse.Namespace) -> list:
    if options.only == "python":
        missing = {} if options.list else python.install()
        return [
            s
            for s in python.subjects(options.programs, missing)
            if options.subjects.search(s.name) and not (options.no_peers and "peer" in s.kind)
        ]
    if options.only:
        of = {"priority": subjects.shaped, "compression": subjects.compression}.get(options.only)
        return [s for s in of(options.programs) if options.subjects.search(s.name)] if of else []
    found = subjects.raw(options.programs) + built(options.programs)
    if options.against:
        found += before(built(options.against))
    elif not options.no_peers:
        found += subjects.pslite(options.programs, options.out) + subjects.peers()
    if not (options.no_scaling or options.quick or options.against):
        found += subjects.scaling(options.programs)
    return [s for s in found if options.subjects.search(s.name.removeprefix(BEFORE))]


def chosen_sizes(options: argparse.Namespace) -> list[tuple[int, int]]:
    """Simulated clusters are left out if certain subjects or works are asked for."""
    if options.no_scale or options.against or options.subjects.pattern or options.works.pattern or options.only in ("priority", "compression", "python"):
        return []
    return scale.QUICK if options.quick else scale.SIZES


def chosen_works(options: argparse.Namespace) -> list[work.Work]:
    every = python.works() if options.only == "python" else work.all_works()
    works = [w for w in every if options.works.search(w.name)]
    return [w for w in works if work.essential(w) or options.works.pattern or not options.quick]


def check(found: list, samples: Samples, clusters: dict) -> None:
    """Peers may be missing; programs that are built here may not."""
    own = [s.name for s in found if s.kind in ("raw", "leeway", "scaling") and s.name in samples.missing]
    if own:
        sys.exit(f"bench: {', '.join(own)} could not be measured, see above")
    if samples.failures or not (samples.by_name or clusters):
        sys.exit("bench: something failed, see above")


def measure(options: argparse.Namespace) -> None:
    defaults = QUICK if options.quick else AGAINST if options.against else python.ROUNDS if options.only == "python" else FULL
    plan = Plan(
        works=chosen_works(options),
        rounds=options.rounds or defaults["rounds"],
        seconds=options.seconds or defaults["seconds"],
        compare=options.against is not None,
    )
    found = chosen_subjects(options)
    if options.list:
        for subject in found:
            names = " ".join(w.name for w in plan.works if w in subject.works)
            print(f"{subject.name:16} {subject.title}\n{'':16} {names}")
        return
    sizes = chosen_sizes(options)
    if not sizes and not any(w in s.works for s in found for w in plan.works):
        sys.exit("bench: there is nothing of that kind to measure; --list says what there is")
    samples = Rounds(found, plan).run()
    clusters = scale.run(options.simulator, [] if samples.broken_off else sizes, samples)
    result = {
        "machine": machine.describe(),
        "options": {"rounds": samples.rounds, "seconds": plan.seconds},
        "loads": samples.loads,
        "ratios": ratios(samples) | scale_report.entries(clusters, "it was left out or failed"),
        "missing": samples.missing,
        "failures": samples.failures,
        "medians": medians(samples),
        "samples": samples.by_name,
        "scale": clusters,
    }
    if options.against:
        result["before"] = ratios(samples_before(samples))
        result["change"] = change(samples)
    titles = {s.name: s.title for s in found if s.kind != "scaling"}
    if options.only == "python":
        result["ratios"] = ratios(samples, python_report.RATIOS, python_report.why_missing)
        result["machine"]["packages"] = python.versions()
        result["notes"] = python_report.notes(samples)
        (options.out / "python.md").write_text(python_report.table(result, samples, titles), encoding="utf-8")
        write(result, options.out, lambda: python_report.plots(samples, titles))
    else:
        write(result, options.out, lambda: all_plots(result, titles, samples))
    print_ratios(result["ratios"], samples.rounds)
    if options.against:
        print_changes(result)
    print(f"bench: {options.out}/report.html, bench.json, ratios.json")
    if samples.broken_off:
        sys.exit(f"bench: broken off; what was complete is written, {samples.rounds} of {plan.rounds} rounds")
    if options.check:
        check(found, samples, clusters)


def main() -> None:
    options = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that started programs end
    # Killed programs leave the folders of their sockets behind, which are removed with this one.
    with tempfile.TemporaryDirectory(prefix="leeway-bench-") as folder:
        os.environ["TMPDIR"] = folder
        try:
            measure(options)
        except KeyboardInterrupt:
            sys.exit("bench: broken off, nothing is written")


if __name__ == "__main__":
    main()
