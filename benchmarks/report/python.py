"""Leeway's Python package beside its peers: ratios, and a table of all figures."""
from driver import work
from driver.python import IMPORT, MLP, REDUCES, SPARSE, TENSORS, TRANSFERS, works
from driver.rounds import Samples
from driver.work import Work
from report.figures import Figure, figure, gb_s, ops_s, p50_us, per_round, ratio, s_per_op
from report.ratios import Ratio

SPARSE_ROW_BYTES = 8 + 4 * 64  # a key and its row: python/rows.py


def us_per_op(sample: dict) -> float:
    return 1e6 * s_per_op(sample)


def million_rows_s(sample: dict) -> float:
    return sample["bytes"] / SPARSE_ROW_BYTES / sample["seconds"] / 1e6


def unit(w: Work):
    """The quantity of a work, and its unit."""
    if w == work.RTT or w == work.REDUCE_64:
        return p50_us, "µs"
    if w == work.SMALL_PUSH:
        return us_per_op, "µs an operation"
    if w == IMPORT:
        return s_per_op, "s"
    if w in MLP:
        return ops_s, "steps/s"
    return (million_rows_s, "million rows/s") if w in SPARSE else (gb_s, "GB/s")


def _faster(ours: str, theirs: str, w: Work):
    """How many times as fast: of a median time, or else of operations a second."""
    value = (lambda sample: 1 / p50_us(sample)) if w in (work.RTT, work.REDUCE_64) else ops_s
    return lambda r: ratio(per_round(r, ours, w.name, value), per_round(r, theirs, w.name, value))


def _against(ours: str, theirs: str, works_: list[Work], target: float | None, means: str = "") -> list[Ratio]:
    return [
        Ratio(f"{w.name}_{ours}_vs_{theirs}", target, _faster(ours, theirs, w), means=means or "times as fast as the peer")
        for w in works_
    ]


def _added_us(rounds) -> Figure | None:
    pairs = zip(
        *(per_round(rounds, name, work.SMALL_PUSH.name, us_per_op) for name in ("leeway.plain", "cpp")), strict=False
    )
    return Figure.of(python - cpp for python, cpp in pairs if None not in (python, cpp))


def _slower(ours: str, theirs: str):
    return lambda r: ratio(*(per_round(r, name, work.PUSH_100M.name, s_per_op) for name in (ours, theirs)))


MAPPED = "ray.get of an object of this machine maps memory: nothing is transferred, and there is no promise"
RATIOS = [
    Ratio("python_push_100mb_vs_cpp_lent", 1.1, _slower("leeway", "cpp.lent"), True, "time; allocated arrays"),
    Ratio("python_push_100mb_vs_cpp", 1.1, _slower("leeway.plain", "cpp"), True, "time; NumPy arrays"),
    Ratio("python_push_64_added_us", 5, _added_us, True, "µs that Python adds to a push of 64 B, 64 in flight"),
    Ratio("python_import_s", 0.1, lambda r: figure(r, "leeway", IMPORT.name, s_per_op), True, "import leeway, without torch"),
    *(
        entry
        for peer in ("torch.shm", "torch.tcp", "ray")
        for entry in [
            *_against("leeway", peer, [work.RTT], 5),
            *_against("leeway", peer, TENSORS, 2),
            *_against("leeway", peer, SPARSE, 1),
        ]
    ),
    *_against("leeway", "ray.store", [work.PUSH_4M, work.PUSH_100M], 2),
    *_against("leeway", "ray.store", [work.RTT, work.PULL_4M, work.PULL_100M], None, MAPPED),
    *_against("leeway", "torchstore", [work.RTT], 5),
    *_against("leeway", "torchstore", TENSORS, 2),
    *_against("leeway.reduce", "gloo", REDUCES, 1),
    *(
        entry
        for peer in ("flight.unix", "flight.tcp")
        for entry in [*_against("leeway", peer, [work.RTT], 5), *_against("leeway", peer, TRANSFERS, 4)]
    ),
    *(
        entry
        for ours, theirs in [("leeway", "rpc"), ("leeway", "ray"), ("leeway_bsp", "gloo"), ("leeway_diloco", "torchft")]
        for entry in _against(f"mlp.{ours}", f"mlp.{theirs}", MLP, 1)
    ),
]


def why_missing(samples: Samples, name: str) -> str:
    theirs = name.rpartition("_vs_")[2]
    if theirs in samples.missing:
        return samples.missing[theirs]
    killed = MLP[2].name
    if name.startswith(killed) and any(samples.by_name.get(theirs, {}).get(killed, [])):
        return "the peer's workers made no step"
    return "its measurements were left out or failed"


def notes(samples: Samples) -> list[str]:
    """What happened when a worker was killed, in the last round."""
    found = []
    for subject, works_ in samples.by_name.items():
        for sample in reversed(works_.get(MLP[2].name, [])):
            if sample and "note" in sample:
                found.append(f"{subject}, a worker killed: {sample['note']}")
                break
    return found


def table(result: dict, samples: Samples, titles: dict[str, str]) -> str:
    """All figures, the best first, as Markdown."""
    machine = result["machine"]
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}, commit {machine['commit']}.",
        ", ".join(f"{name} {version}" for name, version in machine["packages"].items()) + ".",
        f"Medians of {result['options']['rounds']} rounds; in brackets the smallest and the largest.",
        "",
        "| work | unit | figures |",
        "|---|---|---|",
    ]
    for w in works():
        value, text = unit(w)
        found = {name: figure(samples.by_name, name, w.name, value) for name in titles}
        there = sorted(
            ((f, name) for name, f in found.items() if f), key=lambda pair: pair[0].median, reverse="/s" in text
        )
        if there:
            cells = "; ".join(f"{titles[name]} {f.median:.3g} ({f.low:.3g}–{f.high:.3g})" for f, name in there)
            lines.append(f"| {w.name} | {text} | {cells} |")
    lines += ["", *(f"- {note}" for note in result["notes"])]
    lines += [f"- {titles.get(name, name)} is missing: {why}" for name, why in samples.missing.items()]
    return "\n".join(lines) + "\n"


def plots(samples: Samples, titles: dict[str, str]) -> list[tuple[str, str | None]]:
    from report.plots import bars  # matplotlib takes a second to load

    groups = [
        ("Round trip of 64 B", [work.RTT]),
        ("Tensors", TENSORS),
        ("All-reduce of two processes", REDUCES[1:]),
        ("Sparse: 10,000 rows of 64 floats", SPARSE),
        ("Arrays there and back", TRANSFERS),
        ("Training with four workers", MLP),
    ]
    return [(heading, bars(samples.by_name, titles, group, *unit(group[0]))) for heading, group in groups]
