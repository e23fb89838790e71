"""The plots of the page, as SVG. Drawn by matplotlib, which Debian packages."""
import io
import re

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from driver import work
from report import scale
from report.figures import Figure, Rounds, cpu_s_per_gb, figure, gb_s, ops_s, p50_us

INK = "#010203"  # becomes the page's own colour, light or dark
LOOKS = {  # colour, line
    "leeway.shm": ("#0f766e", "-"),
    "leeway.shm_lent": ("#0f766e", "--"),
    "leeway.ipc": ("#14b8a6", "-"),
    "leeway.tcp": ("#2563eb", "-"),
    "leeway.zmq": ("#93c5fd", "-"),
    "memory": ("#6b7280", ":"),
    "raw.tcp": ("#9ca3af", ":"),
    "raw.tcp_reno": ("#9ca3af", "-."),
    "zmq.tcp": ("#4b5563", "--"),
    "zmq.ipc": ("#9ca3af", "--"),
    "torch.shm": ("#f97316", "-"),
    "torch.tcp": ("#fb923c", "--"),
    "gloo": ("#a855f7", "-"),
    "redis": ("#dc2626", "-"),
    "pslite": ("#ca8a04", "-"),
    "leeway": ("#0f766e", "-"),
    "leeway.plain": ("#14b8a6", "-"),
    "leeway.reduce": ("#0f766e", "-"),
    "mlp.leeway": ("#0f766e", "-"),
    "mlp.leeway_bsp": ("#0f766e", "-"),
    "mlp.leeway_diloco": ("#0f766e", "-"),
}
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "leeway",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.18,
    "grid.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 2,
    "lines.markersize": 4,
}
Titles = dict[str, str]


def _size(size: float, _=None) -> str:
    if size >= 1 << 20:
        return f"{size / (1 << 20):g} MiB"
    return f"{size / (1 << 10):g} KiB" if size >= 1 << 10 else f"{size:g} B"


def _svg(draw, width: float = 7, height: float = 3.8) -> str | None:
    """None if there is nothing to draw."""
    with plt.rc_context(STYLE):
        canvas, axes = plt.subplots(figsize=(width, height), layout="constrained")
        try:
            if not draw(axes):
                return None
            out = io.StringIO()
            canvas.savefig(out, format="svg", transparent=True, metadata={"Date": None})
        finally:
            plt.close(canvas)
    svg = out.getvalue()[out.getvalue().index("<svg") :].replace(INK, "currentColor")
    # Several plots share a page, so their ids have to differ.
    salt = f"{abs(hash(svg)) & 0xFFFFFF:x}"
    svg = re.sub(r'id="([^"]+)"', rf'id="{salt}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{salt}-\1"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{salt}-\1)", svg)


def _line(axes: Axes, subject: str, title: str, points: list[tuple[float, Figure]]) -> bool:
    if not points:
        return False
    colour, line = LOOKS.get(subject, ("#888888", "-"))
    xs = [x for x, _ in points]
    axes.plot(xs, [f.median for _, f in points], line, color=colour, label=title, marker="o")
    axes.fill_between(
        xs, [f.low for _, f in points], [f.high for _, f in points], color=colour, alpha=0.12, lw=0
    )
    return True


def _against_size(axes: Axes, unit: str) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(_size))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylabel(unit)
    if axes.lines:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def throughput(rounds: Rounds, titles: Titles, op: str) -> str | None:
    def draw(axes: Axes) -> bool:
        any_line = False
        for subject, title in titles.items():
            works = [w for w in work.dense() if w.op == op]
            if subject in ("zmq.tcp", "zmq.ipc", "raw.tcp", "raw.tcp_reno"):
                works = work.streams()
            found = [(w.size, figure(rounds, subject, w.name, gb_s)) for w in works]
            any_line |= _line(axes, subject, title, [(x, f) for x, f in found if f is not None])
        copied = figure(rounds, "memory", work.COPY.name, gb_s)
        if copied is not None:
            axes.axhline(copied.median, color=LOOKS["memory"][0], ls=":", label="memcpy, 4 MiB")
        _against_size(axes, "GB/s")
        axes.set_ylim(bottom=0)
        return any_line

    return _svg(draw)


def latency(rounds: Rounds, titles: Titles) -> str | None:
    def draw(axes: Axes) -> bool:
        any_line = False
        for subject, title in titles.items():
            found = [(w.size, figure(rounds, subject, w.name, p50_us)) for w in work.latencies()]
            any_line |= _line(axes, subject, title, [(x, f) for x, f in found if f is not None])
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        _against_size(axes, "median round trip, µs")
        return any_line

    return _svg(draw)


def bars(rounds: Rounds, titles: Titles, works: list[work.Work], value, unit: str) -> str | None:
    """A group of bars for each subject, one bar for each work."""
    labels = {w.name: w.op.replace("sparse_", "") for w in works}
    rows = []
    for subject, title in titles.items():
        found = [(w, figure(rounds, subject, w.name, value)) for w in works]
        rows += [(subject, title, w, f) for w, f in found if f is not None]
    several = len({w.name for _, _, w, _ in rows}) > 1

    def draw(axes: Axes) -> bool:
        names = []
        for y, (subject, title, w, found) in enumerate(rows):
            colour = LOOKS.get(subject, ("#888888", "-"))[0]
            spread = [[found.median - found.low], [found.high - found.median]]
            axes.barh(y, found.median, color=colour, alpha=0.85, height=0.72)
            axes.errorbar(found.median, y, xerr=spread, color=INK, lw=1, capsize=2, alpha=0.6)
            axes.annotate(
                f"{found.median:.3g}", (found.high, y), (5, 0), textcoords="offset points", va="center"
            )
            names.append(f"{title}, {labels[w.name]}" if several else title)
        axes.set_yticks(range(len(rows)), names)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.margins(x=0.12)
        axes.set_xlabel(unit)
        return bool(rows)

    return _svg(draw, height=max(1.4, 0.7 + 0.27 * len(rows)))


def scaling(rounds: Rounds, w: work.Work, value, unit: str) -> str | None:
    """Throughput of all workers together against their number, a line for each thread count."""
    lines: dict[int, list[tuple[float, Figure]]] = {}
    for subject in rounds:
        if not subject.startswith("leeway.tcp."):
            continue
        workers, threads = (int(n) for n in subject.rsplit(".", 1)[1].split("x"))
        found = figure(rounds, subject, w.name, value)
        if found is not None:
            lines.setdefault(threads, []).append((workers, found))

    def draw(axes: Axes) -> bool:
        shades = plt.colormaps["viridis"]
        for i, (threads, points) in enumerate(sorted(lines.items())):
            points.sort(key=lambda point: point[0])
            xs = [x for x, _ in points]
            colour = shades(i / max(1, len(lines)))
            label = f"{threads} data thread{'s' if threads > 1 else ''}"
            axes.plot(xs, [f.median for _, f in points], color=colour, marker="o", label=label)
            axes.fill_between(
                xs, [f.low for _, f in points], [f.high for _, f in points], color=colour, alpha=0.12
            )
            axes.set_xticks(xs)
        axes.set_xlabel("workers")
        axes.set_ylabel(unit)
        axes.set_ylim(bottom=0)
        if lines:
            axes.legend()
        return bool(lines)

    return _svg(draw, width=5)


def all_plots(rounds: Rounds, titles: Titles, clusters: scale.Runs) -> list[tuple[str, str | None]]:
    """Headings and pictures."""
    pushes_and_pulls = [work.PUSH_4M, work.PULL_4M]
    return [
        ("Pushing dense tensors, 8 in flight", throughput(rounds, titles, "push")),
        ("Pulling dense tensors, 8 in flight", throughput(rounds, titles, "pull")),
        ("Round trip, one in flight", latency(rounds, titles)),
        (
            "100 MB, one in flight",
            bars(rounds, titles, [work.PUSH_100M, work.PULL_100M, work.MESSAGE_100M,
                                  work.REDUCE_100M], gb_s, "GB/s"),
        ),
        (
            "64 B, 64 in flight",
            bars(rounds, titles, [work.SMALL_PUSH, work.SMALL_PULL, work.MESSAGES],
                 lambda sample: ops_s(sample) / 1e6, "million operations (messages) a second"),
        ),
        (
            "Sparse: batches of 100,000 keys of 10 million, 16 floats a row",
            bars(rounds, titles, [work.SPARSE_PUSH, work.SPARSE_PULL],
                 lambda sample: gb_s(sample) * 1e3 / work.SPARSE_ROW_BYTES, "million rows a second"),
        ),
        (
            "CPU seconds per GB, 4 MiB",
            bars(rounds, titles, [*pushes_and_pulls, work.streams()[2], work.COPY, work.REDUCE_4M],
                 cpu_s_per_gb, "CPU seconds per GB, all processes (less is better)"),
        ),
        ("Several workers: 4 MiB pushes", scaling(rounds, work.PUSH_4M, gb_s, "GB/s")),
        ("Several workers: 4 MiB pulls", scaling(rounds, work.PULL_4M, gb_s, "GB/s")),
        (
            "Several workers: 64 B pushes",
            scaling(rounds, work.SMALL_PUSH, lambda s: ops_s(s) / 1e6, "million operations a second"),
        ),
        *scale.plots(clusters, _svg, [LOOKS[s][0] for s in ("leeway.tcp", "leeway.shm", "torch.shm")]),
    ]
