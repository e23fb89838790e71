"""House rules that no compiler checks: size of folders and files, words, headers, include cycles.

house.py ROOT: prints one line for each violation, "FILE[:LINE]: what is wrong and what to do", and
exits with 1 if there is any. Production code is every .h and .cc that is not a test, is not in a
folder `testing`, and does not lie under tests/, benchmarks/ or examples/. Only files that git
tracks, or would, are read.
"""

import collections
import os
import re
import subprocess
import sys

FOLDER_FILES_MAX = 20
FILE_LINES_MAX = 500
DOC_COLUMNS_MAX = 100

CODE = (".h", ".cc")
NOT_PRODUCTION = ("tests/", "benchmarks/", "examples/")
# The list of retired words, which contains them.
RETIRED_WORDS = "tests/lint/retired_words.txt"
MAY_NAME_RETIRED_WORDS = (RETIRED_WORDS, "tests/lint/house_test.py", "docs/glossary.md")


class House:
    """The files of a repository and their texts."""

    def __init__(self, root):
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
            check=True, capture_output=True, text=True).stdout.split("\n")
        self.texts = {}
        self.paths = set()  # of all files, and of the folders that they are in
        for name in listed:
            path = os.path.join(root, name)
            if name and os.path.isfile(path) and not os.path.islink(path):
                parts = name.split("/")
                self.paths.update("/".join(parts[:end]) for end in range(1, len(parts) + 1))
                if name.endswith(CODE + (".md", ".txt", ".py", ".sh", ".fbs", ".cmake")) or name == "dev":
                    with open(path, encoding="utf-8") as file:
                        self.texts[name] = file.read()

    def code(self):
        return [name for name in self.texts if name.endswith(CODE)]

    def production(self):
        return [name for name in self.code()
                if not name.startswith(NOT_PRODUCTION)
                and not name.endswith("_test.cc")
                and "testing" not in name.split("/")[:-1]
                and "testdata" not in name.split("/")]

    def docs(self):
        return [name for name in self.texts if name.endswith(".md")]


def large_folders(house):
    folders = collections.Counter(os.path.dirname(name) for name in house.production())
    for folder, files in sorted(folders.items()):
        if files > FOLDER_FILES_MAX:
            yield f"{folder}: {files} production files, {FOLDER_FILES_MAX} at most; split it"


def long_files(house):
    for name in house.production():
        lines = house.texts[name].count("\n")
        if lines > FILE_LINES_MAX:
            yield f"{name}: {lines} lines, {FILE_LINES_MAX} at most; it holds two ideas"


def wide_docs(house):
    for name in house.docs():
        for number, line in enumerate(house.texts[name].split("\n"), 1):
            # A row of a table cannot be wrapped.
            if len(line) > DOC_COLUMNS_MAX and not line.lstrip().startswith("|"):
                yield f"{name}:{number}: {len(line)} columns, {DOC_COLUMNS_MAX} at most"


def headers_without_comment(house):
    for name in house.code():
        if name.endswith(".h") and not house.texts[name].startswith("//"):
            yield f"{name}:1: a header opens with a comment that says what the thing is"


def include_cycles(house):
    headers = set(name for name in house.code() if name.endswith(".h"))
    includes = {name: [included
                       for included in re.findall(r'^#include "([^"]+)"', house.texts[name], re.M)
                       if included in headers]
                for name in headers}
    done, told = set(), set()
    for start in sorted(headers):
        stack = [(start, iter(includes[start]))]
        path = [start]
        while stack:
            name, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                done.add(name)
                stack.pop()
                path.pop()
            elif following in path:
                cycle = path[path.index(following):]
                if frozenset(cycle) not in told:
                    told.add(frozenset(cycle))
                    yield f"{following}: includes itself: " + " -> ".join(cycle + [following])
            elif following not in done:
                stack.append((following, iter(includes[following])))
                path.append(following)


def read_retired_words(text):
    """[(regular expression, replacement, folders in which it is retired)]."""
    words = []
    for line in text.split("\n"):
        if line.strip() and not line.startswith("#"):
            word, instead, *folders = [part.strip() for part in line.split(" | ")]
            words.append((re.compile(r"(?<![A-Za-z])(?:" + word + r")(?![a-z])"), instead,
                          tuple(folders[0].split()) if folders else ()))
    return words


def retired_words(house):
    words = read_retired_words(house.texts.get(RETIRED_WORDS, ""))
    for name, text in sorted(house.texts.items()):
        if name in MAY_NAME_RETIRED_WORDS:
            continue
        for pattern, instead, folders in words:
            if folders and not name.startswith(folders):
                continue
            for match in pattern.finditer(text):
                number = text.count("\n", 0, match.start()) + 1
                yield f"{name}:{number}: '{match.group()}' is retired; say {instead}"


def named_paths(text):
    """[(line, path, whether it is a link)] of all paths in a document: links, and paths in backticks
    and in pictures. Fenced blocks other than pictures are programs
    and commands."""
    found = []
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fence = line.strip()[3:].strip() if fence is None else None
        elif fence == "mermaid":
            found += [(number, path, False)
                      for path in re.findall(r"(?<![\w./-])[\w.-]+(?:/[\w.*-]+)+/?", line)]
        elif fence is None:
            found += [(number, path, False) for path in re.findall(r"`([\w./*-]+)`", line)]
            found += [(number, path, True) for path in re.findall(r"\]\(([^)\s]+)\)", line)]
    return found


def missing_paths(house):
    """Files and folders that a document names exist in the repository. A path begins with a folder of
    the root, or is the end of a path; a name in capitals (`NAME.h`) stands for any."""
    roots = set(path for path in house.paths if "/" not in path)
    tails = set(tail for path in house.paths
                for tail in ("/".join(path.split("/")[start:]) for start in range(path.count("/") + 1)))
    folded = "\n".join(sorted(house.paths))
    for name in house.docs():
        for number, path, link in named_paths(house.texts[name]):
            if link:
                if re.match(r"[a-z]+:|#", path):
                    continue
                known = os.path.normpath(
                    os.path.join(os.path.dirname(name), path.split("#")[0])) in house.paths
            elif re.search(r"(?<![A-Za-z])(?!README|CONTRIBUTING|LICENSE)[A-Z]{2,}(?![a-z])", path):
                continue
            elif "*" in path:
                pattern = "^" + re.escape(path.rstrip("/")).replace(r"\*", "[^/\n]*") + "$"
                known = path.split("/")[0] not in roots or re.search(pattern, folded, re.M)
            elif "/" in path.rstrip("/") and path.split("/")[0] in roots:
                known = path.rstrip("/") in house.paths
            elif path.endswith((".h", ".fbs", ".md")) or ("/" in path and path.endswith(CODE)):
                known = path in tails
            else:
                continue
            if not known:
                yield f"{name}:{number}: there is no {path}"


def missing_names(house):
    """Names of constants (`kName`) and settings (LEEWAY_NAME) in documents exist in the code."""
    name_of = re.compile(r"(?<![A-Za-z0-9_])(k[A-Z][A-Za-z0-9]+|LEEWAY_[A-Z0-9_]*[A-Z0-9])"
                         r"(?=_\*|(?![A-Za-z0-9_]))")
    there = set()
    for name, text in house.texts.items():
        if not name.endswith(".md"):
            there.update(name_of.findall(text))
    for name in house.docs():
        for number, line in enumerate(house.texts[name].split("\n"), 1):
            for word in name_of.findall(line):
                if word not in there and not any(other.startswith(word + "_") for other in there):
                    yield f"{name}:{number}: the code has no {word}"


RULES = (large_folders, long_files, wide_docs, headers_without_comment, include_cycles,
         retired_words, missing_paths, missing_names)


def violations(root):
    house = House(root)
    return [violation for rule in RULES for violation in rule(house)]


def main():
    found = violations(sys.argv[1] if len(sys.argv) > 1 else ".")
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
