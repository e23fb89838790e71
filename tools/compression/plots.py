"""The plots of `leeway compression`: RESULTS.json FOLDER. Prints the paths of what it has drawn."""
import json
import os
import sys

try:
    import matplotlib
except ImportError as why:
    sys.exit(f"python3-matplotlib is not there ({why})")

matplotlib.use("svg")
import matplotlib.pyplot as plt

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "leeway",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.18,
    "legend.frameon": False,
    "legend.fontsize": 9,
}


def point(axes, result: dict, key: str, colour) -> None:
    """Filled: with error feedback, or nothing to feed back. Hollow: what is dropped is gone."""
    hollow = result["error_feedback"] == "off" and result["codec"] not in ("none", "zstd", "sparse")
    axes.errorbar(
        result[key],
        100 * result["accuracy_mean"],
        yerr=100 * result["accuracy_sd"],
        fmt="o",
        color=colour,
        markerfacecolor="white" if hollow else colour,
        capsize=2,
        lw=1,
        label=result["codec"] if result["codec"] == "none" else f"{result['codec']}, {result['error_feedback']}",
    )


def draw(results: list[dict], key: str, label: str, log: bool, path: str) -> None:
    modes = list(dict.fromkeys(result["mode"] for result in results))
    codecs = list(dict.fromkeys(result["codec"] for result in results))
    shades = plt.colormaps["tab20"]
    colours = {codec: shades(i % shades.N) for i, codec in enumerate(codecs)}
    with plt.rc_context(STYLE):
        canvas, panels = plt.subplots(
            1, len(modes), figsize=(2 + 5 * len(modes), 5), layout="constrained", sharey=True, squeeze=False
        )
        for axes, mode in zip(panels[0], modes):
            for result in results:
                if result["mode"] == mode:
                    point(axes, result, key, colours[result["codec"]])
            axes.set_title(mode)
            axes.set_xlabel(label)
            if log:
                axes.set_xscale("log")
        panels[0][0].set_ylabel("test accuracy, %")
        panels[0][-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        canvas.savefig(path, format="svg", metadata={"Date": None})
        plt.close(canvas)
    print(path)


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        results = json.load(file)
    folder = sys.argv[2]
    draw(results, "bytes_per_step", "bytes pushed and pulled in a step, all workers", True,
         os.path.join(folder, "accuracy_bytes.svg"))
    draw(results, "seconds_mean", "training time, s", False, os.path.join(folder, "accuracy_time.svg"))


main()
