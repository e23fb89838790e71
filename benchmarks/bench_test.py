"""Tests of bench.py: wrong options, and processes and files that must not be left behind."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parent / "bench.py"

# Takes the place of a program that measures. At the command of the given number it sends Ctrl-C.
PROGRAM = """#!/usr/bin/python3
import os, signal, sys, time
print('{"ready": true}', flush=True)
for number, line in enumerate(sys.stdin, 1):
    if number == BREAK_OFF:
        os.kill(os.getppid(), signal.SIGINT)
        continue
    print('{"bytes": %d, "operations": 1, "seconds": 1, "cpu_seconds": 1}' % (number * 10**9), flush=True)
"""


class BenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "temporary").mkdir()

    def bench(self, *options: str, **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, str(BENCH), "--programs", str(self.folder / "none"), *options],
            cwd=self.folder,
            env=os.environ | {"TMPDIR": str(self.folder / "temporary")} | environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def test_wrong_options_are_refused_by_name(self):
        (self.folder / "file").touch()
        for options, said in [
            (["--subjects", "["], "--subjects"),
            (["--works", "("], "--works"),
            (["--rounds", "0"], "--rounds"),
            (["--rounds", "-1"], "--rounds"),
            (["--seconds", "nan"], "--seconds"),
            (["--seconds", "-1"], "--seconds"),
            (["--out", "file"], "--out"),
            (["--out", "/proc/nowhere"], "--out"),
            (["--only", "scale", "--works", "rtt"], "--only scale"),
            (["--against", "nowhere"], "--against nowhere"),
            (["--subjects", "nobody"], "nothing of that kind"),
            (["--works", "nothing"], "nothing of that kind"),
        ]:
            with self.subTest(options=options):
                run = self.bench(*options)
                self.assertNotEqual(run.returncode, 0)
                self.assertIn(said, run.stderr)
                self.assertNotIn("Traceback", run.stderr)
        self.assertFalse((self.folder / "out/bench/ratios.json").exists())

    def test_the_report_says_why_something_is_missing(self):
        run = self.bench("--rounds", "1", "--seconds", "0.01", "--subjects", "pslite|memory",
                         "--works", "sparse|copy", PSLITE_DIR=str(self.folder))
        self.assertEqual(run.returncode, 0, run.stderr)
        result = json.loads((self.folder / "out/bench/bench.json").read_text())
        self.assertIn("there is no libps.a", result["missing"]["pslite"])
        self.assertIn("there is no libps.a", result["ratios"]["sparse_push_vs_pslite"]["why"])
        self.assertIn("No such file", result["missing"]["memory"])
        page = (self.folder / "out/bench/report.html").read_text()
        self.assertIn("there is no libps.a", page)
        self.assertEqual(list((self.folder / "temporary").iterdir()), [])

    def test_check_fails_if_what_is_built_here_is_not_there(self):
        for options, status in [((), 0), (("--check",), 1)]:
            run = self.bench("--rounds", "1", "--seconds", "0.01", "--subjects", "memory", *options)
            self.assertEqual(run.returncode, status, run.stderr)
        self.assertIn("memory could not be measured", run.stderr)

    def program(self, break_off: int, name: str = "none/leeway_bench_raw", text: str = PROGRAM) -> None:
        program = self.folder / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text.replace("BREAK_OFF", str(break_off)))
        program.chmod(0o755)

    def test_two_builds_are_compared_in_the_same_rounds(self):
        order = self.folder / "order"
        note = f"    open('{order}', 'a').write(sys.argv[0].split('/')[-2] + ' ')\n    if number == BREAK_OFF"
        program = PROGRAM.replace("    if number == BREAK_OFF", note)
        twice_as_fast = program.replace('"seconds": 1,', '"seconds": 0.5,')
        self.program(break_off=0, name="none/leeway_bench_cluster", text=twice_as_fast)
        self.program(break_off=0, name="other/leeway_bench_cluster", text=program)
        self.program(break_off=0)
        run = self.bench("--rounds", "2", "--seconds", "0.01", "--against", str(self.folder / "other"),
                         "--subjects", "leeway.tcp$|memory|zmq.tcp", "--works", "push_4m_x8|stream_4m")
        self.assertEqual(run.returncode, 0, run.stderr)
        result = json.loads((self.folder / "out/bench/bench.json").read_text())
        self.assertAlmostEqual(result["change"]["leeway.tcp"]["push_4m_x8"]["speed"]["median"], 2)
        self.assertAlmostEqual(result["change"]["leeway.tcp"]["push_4m_x8"]["cpu"]["median"], 1)
        # Each round starts the programs anew: each sample is of the first command.
        samples = result["samples"]["leeway.tcp"]["push_4m_x8"]
        self.assertEqual([sample["bytes"] for sample in samples], [10**9, 10**9])
        # A round to warm up and two that count; every other one the other way round.
        self.assertEqual(order.read_text().split(), ["other", "none", "none", "other", "other", "none"])
        name = "dense_4m_push_tcp_vs_raw_zmq"
        self.assertAlmostEqual(result["ratios"][name]["value"] / result["before"][name]["value"], 2)
        self.assertIn(name, run.stdout)

    def test_complete_rounds_are_kept_where_it_is_broken_off(self):
        self.program(break_off=8)  # of two works: one round to warm up, two that count, half of another
        run = self.bench("--seconds", "0.01", "--subjects", "memory", "--works", "copy")
        self.assertEqual(run.returncode, 1)
        self.assertIn("2 of 5 rounds", run.stderr)
        result = json.loads((self.folder / "out/bench/bench.json").read_text())
        self.assertEqual(result["options"]["rounds"], 2)
        works = result["samples"]["memory"]
        self.assertEqual(len(works), 2)
        for rounds in works.values():
            self.assertEqual(len(rounds), 2)
        self.assertEqual(list((self.folder / "temporary").iterdir()), [])

    def test_nothing_is_written_where_no_round_is_complete(self):
        self.program(break_off=4)
        run = self.bench("--seconds", "0.01", "--subjects", "memory", "--works", "copy")
        self.assertEqual(run.returncode, 1)
        self.assertIn("nothing is written", run.stderr)
        self.assertFalse((self.folder / "out/bench/bench.json").exists())


if __name__ == "__main__":
    unittest.main()
