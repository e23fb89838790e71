"""The result of the measurements: ratios and medians, in files and on the screen."""
import json
import sys
from pathlib import Path

from driver.rounds import Samples
from report.figures import cpu_s_per_gb, figure, gb_s, ops_s, p50_us
from report.page import page
from report.ratios import RATIOS, Ratio


def why_missing(samples: Samples, name: str) -> str:
    """The most likely reason why a ratio is missing."""
    about = {"pslite": "pslite", "pslite_flat": "pslite", "torch_tcp": "torch.tcp", "torch_shm": "torch.shm", "redis": "redis"}
    for part, subject in about.items():
        if name.endswith(part) or f"_{part}_" in name:
            if subject in samples.by_name:
                break
            if subject in samples.missing:
                return samples.missing[subject]
            return "PSLITE_DIR names no ps-lite" if subject == "pslite" else "left out"
    if "_shm_" in name and "leeway.shm" in samples.missing:
        return samples.missing["leeway.shm"]
    if name.startswith("codec_") and (codec := f"codec.{name.split('_')[1]}") in samples.missing:
        return samples.missing[codec]
    if name.startswith("priority_") and "leeway.shaped" in samples.missing:
        return samples.missing["leeway.shaped"]
    if name in ("crc_cost_4m_push_tcp", "crc_cost_4m_pull_tcp") and "leeway.shaped_10g" in samples.missing:
        return samples.missing["leeway.shaped_10g"]
    if name.startswith("shaped_step_") and "leeway.shaped_100m" in samples.missing:
        return samples.missing["leeway.shaped_100m"]
    return "its measurements were left out or failed"


def ratios(samples: Samples, promised: list[Ratio] = RATIOS, why=why_missing) -> dict[str, dict]:
    entries = {}
    for ratio in promised:
        found = ratio.of(samples.by_name)
        entries[ratio.name] = {
            "value": found and found.median,
            "low": found and found.low,
            "high": found and found.high,
            "rounds": found and found.rounds,
            "target": ratio.target,
            "at_most": ratio.at_most,
            "met": found and ratio.meets(found),
            "means": ratio.means,
            "why": "" if found else why(samples, ratio.name),
        }
    return entries


def medians(samples: Samples) -> dict:
    values = {"gb_s": gb_s, "ops_s": ops_s, "cpu_s_per_gb": cpu_s_per_gb, "p50_us": p50_us}
    table: dict = {}
    for subject, works in samples.by_name.items():
        for name, rounds in works.items():
            cell = table.setdefault(subject, {}).setdefault(name, {})
            for key, value in values.items():
                if key == "p50_us" and not any(s and key in s for s in rounds):
                    continue
                if key in ("gb_s", "cpu_s_per_gb") and not all(s["bytes"] for s in rounds if s):
                    continue  # steps and seconds have no bytes
                found = figure(samples.by_name, subject, name, value)
                if found is not None:
                    cell[key] = {"median": found.median, "low": found.low, "high": found.high}
    return table


def print_ratios(entries: dict[str, dict], rounds: int) -> None:
    for name, entry in entries.items():
        sign = "≤" if entry["at_most"] else "≥"
        target = "" if entry["target"] is None else f"{sign} {entry['target']:g}"
        if entry["value"] is None:
            print(f"  – {name:44} {'':8} {target:8} {entry['why']}")
            continue
        mark = {True: "✓", False: "✗", None: " "}[entry["met"]]
        spread = f"{entry['low']:.3g} – {entry['high']:.3g}"
        if entry["rounds"] and entry["rounds"] < rounds:
            spread += f"   only {entry['rounds']} of {rounds} rounds"
        print(f"  {mark} {name:44} {entry['value']:<8.3g} {target:8} {spread}")


def all_plots(result: dict, titles: dict[str, str], samples: Samples) -> list[tuple[str, str | None]]:
    from report.plots import all_plots  # matplotlib takes a second to load

    return all_plots(samples.by_name, titles, result["scale"])


def write(result: dict, out: Path, draw) -> None:
    """draw() returns headings and pictures."""
    (out / "bench.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    flat = {name: entry["value"] for name, entry in result["ratios"].items()}
    (out / "ratios.json").write_text(json.dumps(flat, indent=1) + "\n", encoding="utf-8")
    try:
        plots = draw()
    except ImportError as why:
        print(f"bench: the report has no plots, python3-matplotlib is not there ({why})", file=sys.stderr)
        plots = []
    (out / "report.html").write_text(page(result, plots), encoding="utf-8")
