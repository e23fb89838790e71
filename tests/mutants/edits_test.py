#!/usr/bin/env python3
"""edits.py on good and bad edits, in folders made for the purpose."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = "int Two(int a) {\n  if (a < 1) return 0;\n  return a;\n}\nint a;\nint a;\n"
GOOD = """# Of everything.

bug zero-taken
what: zero is taken
promise: numbers are counted
test: a_test Two
@ a/b.cc
-  if (a < 1) return 0;
+  if (a < 1 && !runtime::Planted<"zero-taken">()) return 0;
"""


class EditsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "root"
        self.put("a/b.cc", SOURCE)
        self.put("a/other.cc", "int b;\n")
        self.put("tests/mutants/edits.py", (HERE / "edits.py").read_text())
        self.put("tests/mutants/edits/all.edits", GOOD)
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)

    def put(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def run_it(self, *arguments):
        return subprocess.run([sys.executable, "tests/mutants/edits.py", *arguments], cwd=self.root,
                              capture_output=True, text=True)

    def expect_refused(self, edits, *texts, lines=1):
        self.put("tests/mutants/edits/all.edits", edits)
        ended = self.run_it("check")
        self.assertEqual(ended.returncode, 1)
        self.assertEqual(ended.stderr.count("\n"), lines, ended.stderr)
        for text in texts:
            self.assertIn(text, ended.stderr)

    def test_a_copy_has_the_bugs_and_all_other_files(self):
        copy = self.root.parent / "copy"
        for _ in range(2):
            self.assertEqual(self.run_it("apply", str(copy)).returncode, 0)
        text = (copy / "a/b.cc").read_text()
        self.assertTrue(text.startswith(f'#include "{copy}/tests/mutants/planted.h"\n#line 1\nint Two'))
        self.assertIn('  if (a < 1 && !runtime::Planted<"zero-taken">()) return 0;\n', text)
        self.assertEqual((copy / "a/other.cc").read_text(), "int b;\n")
        self.assertIn('{.name = "zero-taken", .file = "a/b.cc", .what = "zero is taken"',
                      (copy / "tests/mutants/known_bugs.inc").read_text())

    def test_a_file_that_stays_the_same_is_not_written_again_and_one_that_has_gone_goes(self):
        copy = self.root.parent / "copy"
        self.run_it("apply", str(copy))
        before = (copy / "a/b.cc").stat().st_mtime_ns
        (self.root / "a/other.cc").unlink()
        self.assertEqual(self.run_it("apply", str(copy)).returncode, 0)
        self.assertEqual((copy / "a/b.cc").stat().st_mtime_ns, before)
        self.assertFalse((copy / "a/other.cc").exists())

    def test_a_text_that_is_gone_is_named_with_the_nearest(self):
        self.put("a/b.cc", SOURCE.replace("a < 1", "a < 2"))
        self.expect_refused(GOOD, "tests/mutants/edits/all.edits:7: 'zero-taken'", "a/b.cc",
                            "line 2: '  if (a < 2) return 0;'")

    def test_a_text_that_occurs_twice_is_named_with_its_lines(self):
        self.expect_refused(GOOD.replace("-  if (a < 1) return 0;", "-int a;"),
                            "all.edits:7: 'zero-taken'", "occurs 2 times in a/b.cc, at lines 5, 6")

    def test_other_mistakes_are_one_line_each(self):
        self.expect_refused(GOOD.replace("@ a/b.cc", "@ a/c.cc"), "there is no file a/c.cc")
        self.expect_refused(GOOD + "why: so\n", "'why: so' is not understood")
        self.expect_refused(GOOD.replace("what: zero is taken\n", ""), "has no line 'what: '")
        self.expect_refused(GOOD + GOOD.split("\n@")[0].replace("# Of everything.", "")
                            + "\nwith: zero-taken\n", "there is another 'zero-taken'")
        self.expect_refused(GOOD + "\nbug lost\nwhat: a\npromise: b\n", "no edit of 'lost' plants 'lost'")
        self.expect_refused(GOOD.replace('runtime::Planted<"zero-taken">()', "false"),
                            "no edit of 'zero-taken' plants 'zero-taken'")
        self.expect_refused(GOOD.replace('Planted<"zero', 'Planted<"one'),
                            "no bug is named 'one-taken'", lines=2)
        self.expect_refused("oops\n" + GOOD, "all.edits:1: no bug has begun")


if __name__ == "__main__":
    unittest.main()
