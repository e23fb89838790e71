"""The promises about large clusters, and their growth with size, from driver/scale.py."""

LARGEST = "1000x100"
Runs = dict[str, dict]

PROMISES = [  # name, key, at most, means
    (f"sim_{LARGEST}_step_vs_ideal", "step_vs_ideal", 1.2,
     "a BSP step on virtual time; what compute, the fullest network card and latency take at least"),
    (f"sim_{LARGEST}_scheduler_messages_per_node_s", "scheduler_messages_per_node_s", 5.0,
     "received and sent by the scheduler, each node and second of training"),
]


def entries(runs: Runs, why_missing: str) -> dict[str, dict]:
    """As for every other ratio. A simulation has no spread: the same seed gives the same figures."""
    found = {}
    for name, key, target, means in PROMISES:
        value = runs[LARGEST][key] if LARGEST in runs else None
        found[name] = {
            "value": value,
            "low": value,
            "high": value,
            "rounds": None,
            "target": target,
            "at_most": True,
            "met": None if value is None else value <= target,
            "means": means,
            "why": "" if value is not None else why_missing,
        }
    return found


LINES = [  # heading, unit, [(label, value of a run)]
    ("Simulated clusters: time per step", "times the ideal", [
        ("mean", lambda r: r["step_vs_ideal"]),
        ("slowest", lambda r: r["slowest_step_s"] / r["ideal_step_s"]),
        ("bytes on the fullest card, against payload", lambda r: r["bytes_vs_payload"]),
    ]),
    ("Simulated clusters: the scheduler", "messages", [
        ("training, each node and second", lambda r: r["scheduler_messages_per_node_s"]),
        ("joining, each node", lambda r: r["scheduler_joining"]["messages_per_node"]),
        ("leaving, each node", lambda r: r["scheduler_leaving"]["messages_per_node"]),
    ]),
    ("Simulated clusters: memory", "MB each node", [
        ("connected", lambda r: r["idle_bytes_per_node"] / 1e6),
        ("at most", lambda r: r["peak_bytes_per_node"] / 1e6),
    ]),
    ("Simulated clusters: real time", "milliseconds a node and step", [
        ("all nodes in one process", lambda r: 1e3 * r["real_seconds"]["training"]
         / r["steps"] / (r["workers"] + r["servers"])),
    ]),
]


def plots(runs: Runs, svg, colours: list[str]) -> list[tuple[str, str | None]]:
    """Headings and pictures; `svg` makes a picture by a function that draws on axes."""
    ordered = sorted(runs.values(), key=lambda run: run["workers"] + run["servers"])

    def picture(unit: str, lines) -> str | None:
        def draw(axes) -> bool:
            xs = [run["workers"] + run["servers"] for run in ordered]
            for colour, (label, value) in zip(colours, lines):
                axes.plot(xs, [value(run) for run in ordered], color=colour, label=label, marker="o")
            axes.set_xscale("log")
            axes.set_xticks(xs, [f"{run['workers']}×{run['servers']}" for run in ordered])
            axes.minorticks_off()
            axes.set_xlabel("workers × servers")
            axes.set_ylabel(unit)
            axes.set_ylim(bottom=0)
            axes.legend()
            return bool(ordered)

        return svg(draw)

    return [(heading, picture(unit, lines)) for heading, unit, lines in LINES]
