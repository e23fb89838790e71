"""What a user may say that is wrong, and what must not be left behind."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parent / "bench.py"


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


if __name__ == "__main__":
    unittest.main()
