"""The report as a page: one HTML file that needs no other."""
from html import escape

STYLE = """
:root { color-scheme: light dark; --ink: #16202a; --dim: #62707d; --paper: #fbfcfd; --card: #fff;
  --line: #dfe5ea; --good: #0f766e; --bad: #c2410c; --bar: #2563eb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ee; --dim: #93a1ae; --paper: #11161b;
  --card: #171e25; --line: #2a343e; --good: #2dd4bf; --bad: #fb923c; --bar: #60a5fa; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 2rem 1.2rem 4rem; }
h1 { margin: 0; font-size: 1.7rem; } h2 { margin: 2.4rem 0 .8rem; font-size: 1.15rem; }
h3 { margin: 0 0 .4rem; font-size: .95rem; }
p.dim, .dim { color: var(--dim); font-size: .88rem; }
.warn { border-left: 3px solid var(--bad); padding: .3rem .8rem; color: var(--bad); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--dim); font-size: .82rem; }
td, th { padding: .28rem .7rem .28rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n { text-align: right; white-space: nowrap; } code { font-size: .86rem; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
.track { position: relative; width: 150px; height: 8px; margin-top: .5rem; border-radius: 4px;
  background: var(--line); } .track i { position: absolute; inset: 0 auto 0 0; border-radius: 4px; }
.track b { position: absolute; top: -3px; bottom: -3px; left: 66.6%; width: 2px;
  background: var(--ink); }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 540px), 1fr));
  gap: 1rem; } figure { margin: 0; padding: 1rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 10px; } svg { width: 100%; height: auto; }
"""


def _number(value: float) -> str:
    return f"{value:.3g}"


def _track(entry: dict) -> str:
    """The ratio as a bar; the target is at two thirds of the width."""
    if entry["target"] is None or entry["value"] is None:
        return ""
    share = entry["value"] / entry["target"]
    width = min(100.0, 66.6 * (share if share > 0 else 0))
    colour = "var(--good)" if entry["met"] else "var(--bad)"
    return f'<div class="track"><i style="width:{width:.1f}%;background:{colour}"></i><b></b></div>'


def _ratio_row(name: str, entry: dict, rounds: int) -> str:
    target = ""
    if entry["target"] is not None:
        target = ("≤ " if entry["at_most"] else "≥ ") + _number(entry["target"])
    if entry["value"] is None:
        value, spread = '<span class="dim">not measured</span>', f'<span class="dim">{escape(entry["why"])}</span>'
    else:
        word = {True: "good", False: "bad", None: ""}[entry["met"]]
        value = f'<span class="{word}">{_number(entry["value"])}</span>'
        spread = f'{_number(entry["low"])} – {_number(entry["high"])}'
        if entry["rounds"] and entry["rounds"] < rounds:
            spread += f"<br><span class='bad'>{entry['rounds']} of {rounds} rounds</span>"
    return (
        f"<tr><td><code>{escape(name)}</code><br><span class='dim'>{escape(entry['means'])}</span></td>"
        f"<td class='n'>{value}</td><td class='n'>{spread}</td><td class='n'>{target}</td>"
        f"<td>{_track(entry)}</td></tr>"
    )


def _machine(result: dict) -> str:
    machine, options = result["machine"], result["options"]
    changed = " with uncommitted changes" if machine["uncommitted_changes"] else ""
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory']}, Linux {machine['kernel']}",
        f"commit {machine['commit']}{changed}, {machine['date']}",
        packages + (f", ps-lite {machine['pslite']}" if machine["pslite"] else ""),
        f"TCP's congestion control here is {machine['congestion_control']}: that is what raw TCP, ZeroMQ and the peers "
        "use; Leeway asks for reno, and raw TCP is measured with reno as well",
        f"medians of {options['rounds']} rounds of {options['seconds']:g} s each (the first round, not "
        "counted, warms up), all subjects by turns; shaded and whiskers: smallest to largest. GB is 10⁹ bytes.",
    ]
    return "<br>".join(escape(line) for line in lines if line)


def _warning(result: dict) -> str:
    # The load by the benchmark itself shows in later rounds.
    load = result["loads"][0] if result["loads"] else 0
    if load < 0.75 * result["machine"]["cores"]:
        return ""
    return (
        f'<p class="warn">The machine was busy with something else (load {load:.1f} before the first '
        "round): ratios may still be of use, absolute figures are not.</p>"
    )


def _notes(result: dict) -> str:
    notes = [f"{escape(name)} is missing: {escape(why)}" for name, why in result["missing"].items()]
    notes += [
        f"{escape(f['subject'])} failed at {escape(f['work'])}: {escape(f['why'])}"
        for f in result["failures"]
    ]
    seen = "".join(f"<li>{escape(note)}</li>" for note in result.get("notes", []))
    seen = f"<h2>Observed</h2><ul>{seen}</ul>" if seen else ""
    return seen + "<h2>Not measured</h2><ul>" + "".join(f"<li>{n}</li>" for n in notes) + "</ul>" if notes else seen


def page(result: dict, plots: list[tuple[str, str | None]]) -> str:
    rounds = result["options"]["rounds"]
    rows = "".join(_ratio_row(name, entry, rounds) for name, entry in result["ratios"].items())
    figures = "".join(
        f"<figure><h3>{escape(heading)}</h3>{svg}</figure>" for heading, svg in plots if svg is not None
    )
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Leeway: benchmark</title><style>{STYLE}</style>
<main><h1>Leeway beside its peers</h1><p class="dim">{_machine(result)}</p>{_warning(result)}
<h2>Ratios</h2><table><tr><th>name<th>median<th>spread<th>target<th></tr>{rows}</table>
<h2>Figures</h2><div class="plots">{figures}</div>{_notes(result)}</main></html>
"""
