"""Rounds: each round measures every work, and for it every subject, so that drift affects all alike."""
import os
import sys
import time
from dataclasses import dataclass, field

from driver.subject import Failure, NotThere, Subject
from driver.work import Work

FAILURES_MAX = 3  # of one subject in a row; then it is left out


@dataclass
class Plan:
    works: list[Work]
    rounds: int  # that count, after one to warm up
    seconds: float  # of one measurement
    # Two builds are compared: each round starts all programs anew, since where memory lies differs from
    # start to start, and every other round takes them the other way round, since the second of two is
    # measured on a warmer machine.
    compare: bool = False


@dataclass
class Samples:
    """by_name[subject][work] is one measurement a round; None where it failed."""

    by_name: dict[str, dict[str, list[dict | None]]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)  # subject: reason
    failures: list[dict] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)  # of the machine, before each round
    rounds: int = 0  # complete ones, which count
    broken_off: bool = False

    def add(self, subject: Subject, work: Work, sample: dict | None) -> None:
        self.by_name.setdefault(subject.name, {}).setdefault(work.name, []).append(sample)

    def keep_complete_rounds(self) -> None:
        """Removes an incomplete round, which would compare subjects with other subjects' earlier rounds."""
        for works in self.by_name.values():
            for found in works.values():
                del found[self.rounds :]


class Progress:
    def __init__(self, steps: int):
        self._steps, self._done, self._start = steps, 0, time.monotonic()

    def step(self, label: str) -> None:
        self._done += 1
        if not sys.stderr.isatty():
            return
        passed = time.monotonic() - self._start
        left = passed / self._done * (self._steps - self._done)
        bar = "█" * int(24 * self._done / self._steps)
        print(f"\r  {bar:24} {left:4.0f} s left  {label[:50]:50}", end="", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        print(("\r\033[K" if sys.stderr.isatty() else "") + text, file=sys.stderr, flush=True)


class Rounds:
    def __init__(self, subjects: list[Subject], plan: Plan):
        self._subjects, self._plan = subjects, plan
        self._failed_in_a_row = dict.fromkeys((s.name for s in subjects), 0)
        self.samples = Samples()
        steps = sum(work in s.works for work in plan.works for s in subjects)
        self._progress = Progress(max(1, steps * (plan.rounds + 1)))

    def run(self) -> Samples:
        """An interruption ends it early, if there is a complete round by then: complete rounds are kept."""
        try:
            for number in range(self._plan.rounds + 1):
                self.samples.loads.append(os.getloadavg()[0])
                name = f"round {number} of {self._plan.rounds}" if number else "warming up"
                self._progress.say(f"bench: {name}")
                back = self._plan.compare and number % 2 == 0
                subjects = self._subjects[::-1] if back else self._subjects
                for work in self._plan.works:
                    for subject in subjects:
                        if work in subject.works:
                            self._measure(subject, work, counts=number > 0)
                for subject in self._subjects:
                    # "scaling": many processes, so one subject at a time.
                    if self._plan.compare or subject.kind == "scaling":
                        subject.stop()
                self.samples.rounds = number
        except KeyboardInterrupt:
            if self.samples.rounds == 0:
                raise
            self.samples.broken_off = True
            self.samples.keep_complete_rounds()
        finally:
            for subject in self._subjects:
                subject.stop()
        self._progress.say("")
        return self.samples

    def _measure(self, subject: Subject, work: Work, counts: bool) -> None:
        self._progress.step(f"{subject.title}: {work.name}")
        if subject.name in self.samples.missing:
            return
        sample = None
        try:
            sample = subject.measure(work, self._plan.seconds)
            self._failed_in_a_row[subject.name] = 0
        except NotThere as why:
            self._leave_out(subject, str(why))
        except Failure as why:
            self._failed_in_a_row[subject.name] += 1
            self.samples.failures.append(
                {"subject": subject.name, "work": work.name, "why": str(why)}
            )
            self._progress.say(f"bench: {subject.title}, {work.name}: {why}")
            if self._failed_in_a_row[subject.name] >= FAILURES_MAX:
                self._leave_out(subject, f"it failed {FAILURES_MAX} times in a row, last: {why}")
        if counts and subject.name not in self.samples.missing:
            self.samples.add(subject, work, sample)

    def _leave_out(self, subject: Subject, why: str) -> None:
        self.samples.missing[subject.name] = why
        self._progress.say(f"bench: {subject.title} is left out: {why}")
