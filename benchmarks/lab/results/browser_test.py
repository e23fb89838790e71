#!/usr/bin/env python3
"""Opens a report of the lab in headless Chromium: browser_test.py REPORT.html SCREENSHOTS.

All plots must have data, without network, in light and dark, on a screen and on a phone. Screenshots
stay in the folder SCREENSHOTS. Ends with 77 if there is no Chromium.
"""
import html.parser
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
PLOTS_MIN = 6  # score and loss curves, staleness, time, time to the target, the timeline


class Page(html.parser.HTMLParser):
    """What the page says of itself, and its parts."""

    def __init__(self):
        super().__init__()
        self.body, self.canvases, self.rows = {}, 0, 0

    def handle_starttag(self, tag, attributes):
        if tag == "body":
            self.body = dict(attributes)
        self.canvases += tag == "canvas"
        self.rows += tag == "tr"


def chromium(program, report, *options):
    with tempfile.TemporaryDirectory() as profile:
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                   f"--user-data-dir={profile}", "--host-resolver-rules=MAP * ~NOTFOUND",
                   "--virtual-time-budget=20000", *options, report.absolute().as_uri()]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=100).stdout


def look(program, report, screenshots, name, size, dark):
    options = [f"--window-size={size[0]},{size[1]}"]
    if dark:
        options.append("--blink-settings=preferredColorScheme=0")
    page = Page()
    page.feed(chromium(program, report, *options, "--dump-dom"))
    said = page.body
    mistakes = []
    if int(said.get("data-ready", 0)) != page.canvases or page.canvases < PLOTS_MIN:
        mistakes.append(f"{said.get('data-ready')} of {page.canvases} plots are drawn")
    if said.get("data-empty") != "":
        mistakes.append(f"plots without data: {said.get('data-empty')}")
    if said.get("data-overflow") != "0":
        mistakes.append(f"it is {said.get('data-overflow')} pixels wider than the window")
    if said.get("data-dark") != str(dark).lower():
        mistakes.append(f"dark is {said.get('data-dark')}")
    if page.rows < 4:
        mistakes.append(f"its tables have {page.rows} rows")
    picture = screenshots / f"{name}.png"
    picture.unlink(missing_ok=True)
    chromium(program, report, *options, f"--screenshot={picture.absolute()}")
    if not picture.exists() or picture.stat().st_size < 20_000:
        mistakes.append(f"{picture} shows nothing")
    for mistake in mistakes:
        print(f"{report} ({name}): {mistake}")
    return not mistakes


def main():
    report, screenshots = map(pathlib.Path, sys.argv[1:])
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        print("there is no Chromium: install chromium-headless-shell")
        sys.exit(SKIPPED)
    screenshots.mkdir(parents=True, exist_ok=True)
    views = [("screen", (1280, 2400), False), ("dark", (1280, 2400), True), ("phone", (390, 4800), False)]
    if not all([look(program, report, screenshots, *view) for view in views]):
        sys.exit(1)


main()
