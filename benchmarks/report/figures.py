"""From samples to figures: medians with their spread, and ratios taken round by round."""
import statistics
from dataclasses import dataclass
from typing import Callable, Iterable

GB = 1e9


@dataclass(frozen=True)
class Figure:
    median: float
    low: float
    high: float
    rounds: int

    @staticmethod
    def of(values: Iterable[float]) -> "Figure | None":
        values = list(values)
        if not values:
            return None
        return Figure(statistics.median(values), min(values), max(values), len(values))


# The quantities of one sample.
def gb_s(sample: dict) -> float:
    return sample["bytes"] / sample["seconds"] / GB


def ops_s(sample: dict) -> float:
    return sample["operations"] / sample["seconds"]


def p50_us(sample: dict) -> float:
    return sample["p50_us"]


def s_per_op(sample: dict) -> float:
    return sample["seconds"] / sample["operations"]


def cpu_s_per_gb(sample: dict) -> float:
    return sample["cpu_seconds"] / (sample["bytes"] / GB)


Value = Callable[[dict], float]
Rounds = dict[str, dict[str, list[dict | None]]]  # subject, work: one sample a round


def figure(rounds: Rounds, subject: str, work: str, value: Value) -> Figure | None:
    samples = rounds.get(subject, {}).get(work, [])
    return Figure.of(value(sample) for sample in samples if sample is not None)


def best(rounds: Rounds, subject: str, works: Iterable[str], value: Value = gb_s) -> str | None:
    """The work whose median is the highest."""
    found = {work: figure(rounds, subject, work, value) for work in works}
    there = {work: f.median for work, f in found.items() if f is not None}
    return max(there, key=there.get) if there else None


def per_round(rounds: Rounds, subject: str, work: str | None, value: Value) -> list[float | None]:
    samples = rounds.get(subject, {}).get(work, []) if work else []
    return [None if sample is None else value(sample) for sample in samples]


def ratio(above: list[float | None], below: list[float | None]) -> Figure | None:
    """Compares measurements of the same round, so that a slow minute affects both."""
    pairs = zip(above, below)
    return Figure.of(a / b for a, b in pairs if a is not None and b)
