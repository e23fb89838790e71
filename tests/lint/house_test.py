"""Tests that each house rule fails on a repository that breaks it, and on no other."""

import os
import subprocess
import tempfile
import unittest

import house


class HouseTest(unittest.TestCase):
    def violations(self, files):
        with tempfile.TemporaryDirectory() as root:
            subprocess.run(["git", "init", "-q", root], check=True)
            for name, text in files.items():
                path = os.path.join(root, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            return house.violations(root)

    def test_a_clean_repository_passes(self):
        self.assertEqual(self.violations({
            "ps/a.h": "// A.\n#include \"ps/b.h\"\n", "ps/b.h": "// B.\n", "docs/x.md": "x\n"}), [])

    def test_a_folder_has_20_production_files_at_most(self):
        files = {f"ps/f{i}.cc": "\n" for i in range(20)}
        files |= {f"ps/f{i}_test.cc": "\n" for i in range(20)}
        files |= {f"ps/testing/f{i}.h": "// T.\n" for i in range(30)}
        self.assertEqual(self.violations(files), [])
        files["ps/one_more.h"] = "// One more.\n"
        self.assertIn("ps: 21 production files", self.violations(files)[0])

    def test_a_production_file_has_500_lines_at_most(self):
        files = {"ps/a.cc": "\n" * 500, "ps/a_test.cc": "\n" * 900}
        self.assertEqual(self.violations(files), [])
        files["ps/a.cc"] += "\n"
        self.assertIn("ps/a.cc: 501 lines", self.violations(files)[0])

    def test_a_document_has_100_columns_at_most(self):
        self.assertEqual(self.violations({"docs/x.md": "x" * 100 + "\n| " + "x" * 200 + " |\n"}), [])
        self.assertIn("README.md:2: 101 columns", self.violations({"README.md": "\n" + "x" * 101})[0])

    def test_a_header_opens_with_a_comment(self):
        self.assertIn("van/a.h:1:", self.violations({"van/a.h": "#ifndef A\n"})[0])

    def test_no_header_includes_itself_by_others(self):
        found = self.violations({"ps/a.h": "// A.\n#include \"ps/b.h\"\n",
                                 "ps/b.h": "// B.\n#include \"ps/c.h\"\n",
                                 "ps/c.h": "// C.\n#include \"ps/a.h\"\n"})
        self.assertEqual(len(found), 1)
        self.assertIn("ps/a.h -> ps/b.h -> ps/c.h -> ps/a.h", found[0])

    def test_retired_words_do_not_come_back(self):
        words = "# word | instead | folders\n[Ee]rrands? | scheduler request\n[Ll]ane | queue | worker/\n"
        files = {"tests/lint/retired_words.txt": words}
        self.assertEqual(self.violations(files | {"van/a.cc": "// A lane. Errandless, terrand.\n"}), [])
        for name, text in (("ps/a.cc", "class Errand;\n"), ("docs/x.md", "an errand\n"),
                           ("worker/a_test.cc", "TEST(Lane, X)\n"), ("ps/b.cc", "errand_count\n"),
                           ("tests/x.cc", "errands_\n"), ("tests/y.cc", "ErrandTest\n")):
            self.assertEqual(len(self.violations(files | {name: text})), 1, name)

    def test_a_document_names_no_path_that_is_not_there(self):
        files = {"ps/shard/shard.h": "// S.\n", "docs/y.md": "", "ps/a_test.cc": ""}
        for text in ("`ps/shard/shard.h`, `ps/shard/`, `ps`, `shard/shard.h` and `shard.h`",
                     "[a page](y.md), [a part](y.md#part), [a file](../ps/a_test.cc), `y.md`",
                     "`docs/*.md`, `ps/NAME.h`, `ps/NAME_test.cc`, `out/x.h.log`, `DIR/a.h`, `make/believe`",
                     "[elsewhere](https://example.org/ps/b.h), [below](#part)",
                     "```\nps/b.h `ps/b.h`\n```\n",
                     "```mermaid\na[ps/shard/shard.h] --> b[and/or]\n```\n"):
            self.assertEqual(self.violations(files | {"docs/x.md": text + "\n"}), [], text)
        for text in ("`ps/b.h`", "`ps/table/`", "`b.h`", "`shard/b.h`", "`b.md`", "[b](b.md)",
                     "[b](../ps/b.h)", "`ps/*.fbs`", "```mermaid\na[ps/b.h]\n```\n"):
            found = self.violations(files | {"docs/x.md": "A page.\n" + text + "\n"})
            self.assertEqual(len(found), 1, text)
            self.assertIn("there is no", found[0])

    def test_a_document_names_no_constant_and_no_setting_that_is_not_there(self):
        files = {"ps/a.cc": "int kRowsMax; // \"LEEWAY_VAN_BYTES\"\n"}
        self.assertEqual(self.violations(files | {
            "docs/x.md": "`kRowsMax`, `Rows::kRowsMax`, LEEWAY_VAN_BYTES, `LEEWAY_VAN_*`, kilo\n"}), [])
        for text in ("`kRowMax`", "`Rows::kRows`", "LEEWAY_VAN_BYTE", "`LEEWAY_VEN_*`"):
            self.assertEqual(len(self.violations(files | {"docs/x.md": text})), 1, text)


if __name__ == "__main__":
    unittest.main()
