"""Two builds measured in the same rounds: each ratio before and after, and each work."""
import copy

from driver.rounds import Samples
from report.figures import cpu_s_per_gb, ops_s, per_round, ratio

BEFORE = "before:"  # the names of the subjects of the other build begin with it


def samples_before(samples: Samples) -> Samples:
    """The samples with the other build in the place of this one; what has no build, such as memcpy, stays."""
    other = copy.copy(samples)
    other.by_name = dict(samples.by_name)
    names = [name for name in samples.by_name if name.startswith(BEFORE)]
    for name in list(other.by_name):
        if name.startswith("leeway.") or name.startswith("codec."):
            del other.by_name[name]
    for name in names:
        other.by_name[name.removeprefix(BEFORE)] = samples.by_name[name]
    return other


def change(samples: Samples) -> dict:
    """Operations a second after, divided by before, and processor time likewise; round by round."""
    table: dict = {}
    for name, works in samples.by_name.items():
        if not name.startswith(BEFORE):
            continue
        after = name.removeprefix(BEFORE)
        for work in works:
            if work not in samples.by_name.get(after, {}):
                continue
            cell = {}
            for key, value in (("speed", ops_s), ("cpu", cpu_s_per_gb)):
                found = ratio(
                    per_round(samples.by_name, after, work, value), per_round(samples.by_name, name, work, value)
                )
                if found is not None:
                    cell[key] = {"median": found.median, "low": found.low, "high": found.high}
            if cell:
                table.setdefault(after, {})[work] = cell
    return table


def print_changes(result: dict) -> None:
    print(f"\n  {'ratio':46} {'before':>8} {'after':>8}   change")
    for name, after in result["ratios"].items():
        before = result["before"].get(name)
        if before is None or None in (before["value"], after["value"]) or before["value"] == 0:
            continue
        change_percent = 100 * (after["value"] / before["value"] - 1)
        better = -change_percent if after["at_most"] else change_percent
        print(f"  {name:46} {before['value']:8.3g} {after['value']:8.3g}   {change_percent:+.1f} %{'  worse' if better < -5 else ''}")
    print(f"\n  {'after / before':46} {'speed':>22} {'processor time':>22}")
    for subject, works in result["change"].items():
        for work, cell in works.items():
            columns = [
                f"{c['median']:.3f} ({c['low']:.3f}–{c['high']:.3f})" if (c := cell.get(key)) else ""
                for key in ("speed", "cpu")
            ]
            print(f"  {subject + ' ' + work:46} {columns[0]:>22} {columns[1]:>22}")
