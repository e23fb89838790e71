"""Tests that each house rule fails on a repository that breaks it, and on no other."""

import os
import subprocess
import tempfile
import unittest

import house


SAYS = "// A thing that is here for a test.\n"


class HouseTest(unittest.TestCase):
    def violations(self, files):
        with tempfile.TemporaryDirectory() as root:
            subprocess.run(["git", "init", "-q", root], check=True)
            for name, text in files.items():
                path = os.path.join(root, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(text if isinstance(text, bytes) else text.encode())
            return house.violations(root)

    def test_a_clean_repository_passes(self):
        self.assertEqual(self.violations({
            "ps/a.h": SAYS + "#include \"ps/b.h\"\n", "ps/b.h": SAYS, "docs/x.md": "x\n"}), [])

    def test_every_file_is_read(self):
        self.assertEqual(self.violations({"ps/ü.cc": "\n" * 501}), [
            "ps/ü.cc: 501 lines, 500 at most; it holds two ideas"])
        self.assertIn("ps/a.cc: it is not UTF-8", self.violations({"ps/a.cc": b"// \xff\n"})[0])
        for name in ("ps/a.cpp", "ps/a.hpp", "ps/a.inc"):
            self.assertIn(f"{name}: sources end in", self.violations({name: "\n"})[0])
        self.assertEqual(self.violations({"compress/fuzz/corpus/a": b"\xff\0", "a.png": b"\xff"}), [])

    def test_a_folder_has_20_production_files_at_most(self):
        files = {f"ps/f{i}.cc": "\n" for i in range(20)}
        files |= {f"ps/f{i}_test.cc": "\n" for i in range(20)}
        files |= {f"ps/testing/f{i}.h": SAYS for i in range(30)}
        self.assertEqual(self.violations(files), [])
        files["ps/one_more.h"] = SAYS
        self.assertIn("ps: 21 production files", self.violations(files)[0])

    def test_a_production_file_has_500_lines_at_most(self):
        files = {"ps/a.cc": "\n" * 500, "ps/a_test.cc": "\n" * 900}
        self.assertEqual(self.violations(files), [])
        for more in ("\n", "x"):  # a last line without an end is a line
            found = self.violations(files | {"ps/a.cc": files["ps/a.cc"] + more})
            self.assertIn("ps/a.cc: 501 lines", found[0])

    def test_a_test_is_named_by_its_subject(self):
        text = "TEST(A, WhateverComes) {}\nTEST_P(A,\n       WhatIsWrongIsSaid) {}\nTEST_F(A, Whole) {}\n"
        self.assertEqual(self.violations({"ps/a_test.cc": text}), [
            "ps/a_test.cc:2: 'WhatIsWrongIsSaid': a test is named by its subject, not by Who or What"])

    def test_a_document_has_100_columns_at_most(self):
        table = "| a |\n|---|\n| " + "x" * 200 + " |\n"
        self.assertEqual(self.violations({"docs/x.md": "x" * 100 + "\n\n" + table}), [])
        self.assertIn("README.md:2: 101 columns", self.violations({"README.md": "\n" + "x" * 101})[0])
        for text in ("| " + "x" * 101, "```\n" + table + "```\n"):
            self.assertIn("columns, 100 at most", self.violations({"docs/x.md": text})[0])

    def test_tables_have_a_row_of_names_and_one_of_dashes(self):
        table = "| a | b |\n|---|:--|\n| `x|y` | \\| |\n"
        self.assertEqual(self.violations({"docs/x.md": table + "\n" + table}), [])
        for text in ("| a | b |\n| c | d |\n", "| a | b | |---|---| | c | d |\n", table + "| c |\n"):
            self.assertIn("docs/x.md:", self.violations({"docs/x.md": text})[0])

    def test_a_header_opens_with_a_comment_that_says_something(self):
        for text in (SAYS, "// kOne tells how many there are.\n", "// Two lines\n// are one sentence.\n"):
            self.assertEqual(self.violations({"van/a.h": text + "#ifndef A\n"}), [], text)
        for text in ("", "//\n", "//\n" + SAYS, "///\n", "// ------------\n", "\n" + SAYS, "// a.h\n",
                     "// bytes received\n", "// of the things that it has.\n", "// NOLINT(all the rules)\n",
                     "// Copyright 2026 by all of us.\n", "// SPDX-License-Identifier: MIT\n",
                     "// Licensed under the Apache License.\n// You may not use this file except\n",
                     "// clang-format off, for this is a table.\n", "// TODO: say what it is.\n"):
            found = self.violations({"van/a.h": text + "#ifndef A\n"})
            self.assertEqual(len(found), 1, text)
            self.assertIn("van/a.h:1:", found[0])

    def test_includes_are_paths_from_the_root(self):
        self.assertEqual(self.violations({
            "include/leeway/a.h": SAYS, "van/b.h": SAYS,
            "van/a.cc": "#include <vector>\n#include \"leeway/a.h\"\n#include \"generated.h\"\n"}), [])
        for included in ("b.h", "../van/b.h"):
            found = self.violations({"van/b.h": SAYS, "van/a.cc": f"\n#include \"{included}\"\n"})
            self.assertEqual(found, [
                f"van/a.cc:2: '{included}' is not a path from the root; say van/b.h"])

    def test_no_header_includes_itself_by_others(self):
        found = self.violations({"ps/a.h": SAYS + "#include \"ps/b.h\"\n",
                                 "ps/b.h": SAYS + "#include \"van/c.h\"\n",
                                 "van/c.h": SAYS + "#include \"ps/a.h\"\n"})
        self.assertEqual(len(found), 1)
        self.assertIn("ps/a.h:2: includes itself: ps/a.h -> ps/b.h -> van/c.h -> ps/a.h", found[0])
        for to_b, to_a in (("#include \"leeway/b.h\"", "#include \"leeway/a.h\""),
                           ("#include <leeway/b.h>", "#include <leeway/a.h>"),
                           ("  #  include \"leeway/b.h\"", "#include\"leeway/a.h\"")):
            found = self.violations({"include/leeway/a.h": SAYS + to_b + "\n",
                                     "include/leeway/b.h": SAYS + to_a + "\n"})
            self.assertEqual(len(found), 1, to_b)

    def test_a_target_names_the_targets_whose_headers_it_includes(self):
        files = {"a/CMakeLists.txt": "leeway_library(a SOURCES a.cc)\n", "a/a.h": SAYS,
                 "b/CMakeLists.txt": "leeway_library(b\n  SOURCES b.cc  # one (1) file\n  DEPENDS a api)\n",
                 "b/b.h": SAYS, "b/deep/b.h": SAYS, "include/leeway/x.h": SAYS,
                 "b/b.cc": "#include \"a/a.h\"\n#include \"b/deep/b.h\"\n#include \"leeway/x.h\"\n",
                 "CMakeLists.txt": "leeway_rooms(both a b)\n",
                 "c/CMakeLists.txt": "leeway_library(c SOURCES c.cc DEPENDS both)\n",
                 "c/c.cc": "#include \"a/a.h\"\n#include \"b/b.h\"\n",
                 "d/CMakeLists.txt": "leeway_library(d SOURCES d.cc DEPENDS b)\n"}
        self.assertEqual(self.violations(files), [])
        for name in ("d/d.h", "d/deep/d.cc"):
            found = self.violations(files | {name: SAYS + "#include \"b/b.h\"\n#include \"a/a.h\"\n"})
            self.assertEqual(found, [f"{name}:3: d does not name a in DEPENDS, but includes a/a.h"])

    def test_retired_words_do_not_come_back(self):
        words = ("# word | instead | folders\n[Ee]rrands? | scheduler request\n[Ll]ane | queue | worker/\n"
                 "[Hh]eld ?[Pp]ulls? | pending pull\n(?<![A-Za-z])Ahead | send pacer\n")
        files = {"tests/lint/retired_words.txt": words}
        self.assertEqual(self.violations(files | {
            "van/a.cc": "// A lane. Errandless, terrand, held. Pulls, kAhead, ERRANDLESS.\n"}), [])
        for name, text in (("ps/a.cc", "class Errand;\n"), ("docs/x.md", "an errand\n"),
                           ("worker/a_test.cc", "TEST(Lane, X)\n"), ("ps/b.cc", "errand_count\n"),
                           ("tests/x.cc", "errands_\n"), ("tests/y.cc", "ErrandTest\n"),
                           ("ps/c.cc", "kErrandMax\n"), ("ps/d.cc", "NewErrands()\n"),
                           ("ps/e.cc", "LEEWAY_ERRANDS_MAX\n"), ("deploy/x.env", "# errands\n"),
                           (".ci/run", "errands\n"), ("x.json", "{\"errand\": 1}\n"),
                           ("ps/f.cc", "held_pulls\n"), ("docs/y.md", "a held\npull\n"),
                           ("ps/g.cc", "  // a held\n  // pull\n"), ("ps/errand.cc", "\n"),
                           ("docs/held-pulls.md", "\n"), ("errands/x.txt", "\n")):
            self.assertEqual(len(self.violations(files | {name: text})), 1, name)
        self.assertEqual(self.violations(files | {"ps/a.cc": "\n// A held\n// pull.\n"}), [
            "ps/a.cc:2: 'held // pull' is retired; say pending pull"])

    def test_a_document_names_no_path_that_is_not_there(self):
        files = {"ps/shard/shard.h": SAYS, "docs/y.md": "# The part: `one`\n", "ps/a_test.cc": ""}
        for text in ("`ps/shard/shard.h`, `ps/shard/`, `ps`, `shard/shard.h` and `shard.h`",
                     "[a page](y.md), [a part](y.md#the-part-one), [a file](../ps/a_test.cc), `y.md`",
                     "`docs/*.md`, `ps/NAME.h`, `ps/NAME_test.cc`, `out/x.h.log`, `DIR/a.h`, `make/believe`",
                     "[elsewhere](https://example.org/ps/b.h#part), [below](#part)\n\n## Part",
                     "```\nps/b.h `ps/b.h`\n```\n",
                     "```mermaid\na[ps/shard/shard.h] --> b[and/or]\n```\n"):
            self.assertEqual(self.violations(files | {"docs/x.md": text + "\n"}), [], text)
        for text in ("`ps/b.h`", "`ps/table/`", "`b.h`", "`shard/b.h`", "`b.md`", "[b](b.md)",
                     "[y](y.md#part)", "[below](#part)",
                     "[b](../ps/b.h)", "`ps/*.fbs`", "```mermaid\na[ps/b.h]\n```\n"):
            found = self.violations(files | {"docs/x.md": "A page.\n" + text + "\n"})
            self.assertEqual(len(found), 1, text)
            self.assertIn("there is no", found[0])

    def test_a_document_names_no_constant_and_no_setting_that_is_not_there(self):
        files = {"ps/a.cc": "int kRowsMax; // \"LEEWAY_VAN_BYTES\"\n"}
        self.assertEqual(self.violations(files | {
            "docs/x.md": "`kRowsMax`, `Rows::kRowsMax`, LEEWAY_VAN_BYTES, `LEEWAY_VAN_*`, kilo\n"}), [])
        for text in ("`kRowMax`", "`Rows::kRows`", "LEEWAY_VAN_BYTE", "LEEWAY_VAN", "`LEEWAY_VEN_*`"):
            self.assertEqual(len(self.violations(files | {"docs/x.md": text})), 1, text)


if __name__ == "__main__":
    unittest.main()
