"""House rules that no compiler checks: size of folders and files, words, headers, includes, docs.

house.py ROOT: prints one line for each violation, "FILE[:LINE]: what is wrong and what to do", and
exits with 1 if there is any. Production code is every .h and .cc that is not a test, is not in a
folder `testing`, and does not lie under tests/, benchmarks/ or examples/. Only text files that git
tracks, or would, are read.
"""

import collections
import functools
import os
import re
import subprocess
import sys

FOLDER_FILES_MAX = 20
FILE_LINES_MAX = 500
DOC_COLUMNS_MAX = 100

CODE = (".h", ".cc")
# Other endings of C++ files, which the rules below would not read.
OTHER_CODE = (".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp", ".cu")
NOT_PRODUCTION = ("tests/", "benchmarks/", "examples/")
# The list of retired words, which contains them.
RETIRED_WORDS = "tests/lint/retired_words.txt"
MAY_NAME_RETIRED_WORDS = (RETIRED_WORDS, "tests/lint/house_test.py", "docs/glossary.md")


class House:
    """The files of a repository and their texts."""

    def __init__(self, root):
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True, capture_output=True).stdout.decode().split("\0")
        self.texts = {}
        self.unreadable = []
        self.paths = set()  # of all files, and of the folders that they are in
        for name in listed:
            path = os.path.join(root, name)
            if name and os.path.isfile(path) and not os.path.islink(path):
                parts = name.split("/")
                self.paths.update("/".join(parts[:end]) for end in range(1, len(parts) + 1))
                if "corpus" not in parts:  # inputs of fuzzers
                    self._read(name, path)

    def _read(self, name, path):
        with open(path, "rb") as file:
            content = file.read()
        try:
            self.texts[name] = content.decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError:
            if name.endswith(CODE + (".md",)):
                self.unreadable.append(name)

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

    @functools.cached_property
    def includes(self):
        """{file: [(line, path as written, the file of the repository that it names)]}."""
        pattern = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.M)
        found = {}
        for name in self.code():
            text = self.texts[name]
            found[name] = []
            for match in pattern.finditer(text):
                beside = os.path.normpath(os.path.join(os.path.dirname(name), match.group(1)))
                for path in (match.group(1), "include/" + match.group(1), beside):
                    if path in self.texts:
                        found[name].append((line_of(text, match.start()), match.group(1), path))
                        break
        return found


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def outside_fences(text):
    """[(number, line)] of a document without its fenced blocks."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def unreadable_files(house):
    for name in house.unreadable:
        yield f"{name}: it is not UTF-8"
    for name in house.texts:
        in_c = name.endswith(".c") and not name.startswith("examples/")
        if name.endswith(OTHER_CODE) or in_c:
            yield f"{name}: sources end in .cc and headers in .h"


def large_folders(house):
    folders = collections.Counter(os.path.dirname(name) for name in house.production())
    for folder, files in sorted(folders.items()):
        if files > FOLDER_FILES_MAX:
            yield f"{folder}: {files} production files, {FOLDER_FILES_MAX} at most; split it"


def long_files(house):
    for name in house.production():
        text = house.texts[name]
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines > FILE_LINES_MAX:
            yield f"{name}: {lines} lines, {FILE_LINES_MAX} at most; it holds two ideas"


def test_names(house):
    """A test's name says a subject and what it does."""
    begins = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*\w+,\s*((?:Who|What)[A-Z]\w*)", re.M)
    for name in house.code():
        for match in begins.finditer(house.texts[name]):
            yield (f"{name}:{line_of(house.texts[name], match.start())}: '{match.group(1)}': a test is "
                   "named by its subject, not by Who or What")


def wide_docs(house):
    for name in house.docs():
        # A row of a table cannot be wrapped.
        rows = set(number for number, line in outside_fences(house.texts[name]) if is_row(line))
        for number, line in enumerate(house.texts[name].split("\n"), 1):
            if len(line) > DOC_COLUMNS_MAX and number not in rows:
                yield f"{name}:{number}: {len(line)} columns, {DOC_COLUMNS_MAX} at most"


def is_row(line):
    return re.fullmatch(r"\s*\|.*\|\s*", line) is not None


def cells(line):
    return len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", line))) - 1


def broken_tables(house):
    """A table is a row of names, a row of dashes, and rows of as many cells."""
    for name in house.docs():
        before, width = None, 0  # the number of the row before, and the cells of its table
        for number, line in outside_fences(house.texts[name]):
            if not is_row(line):
                continue
            if before != number - 1:
                width = cells(line)
                lines = house.texts[name].split("\n")
                if not re.fullmatch(r"\s*\|(\s*:?-+:?\s*\|)+\s*", (lines + [""])[number]):
                    yield f"{name}:{number}: a table's first row, without a row of dashes below it"
            elif cells(line) != width:
                yield f"{name}:{number}: {cells(line)} cells in a table of {width}"
            before = number


# Begins a comment that says nothing about the thing.
NOT_ABOUT = re.compile(r"\(c\)|©|Copyright|SPDX|Licen[cs]e|clang-|NOLINT|IWYU|TODO|FIXME")


def says_what(text):
    """True if a header's first paragraph is a sentence about what the header has."""
    paragraph = []
    for line in text.split("\n"):
        said = line[2:].strip(" /*-=") if line.startswith("//") else ""
        if not said:
            break
        paragraph.append(said)
    sentence = " ".join(paragraph)
    words = sentence.split()
    return (len(words) >= 4 and re.fullmatch(r"[a-z]+", words[0]) is None
            and NOT_ABOUT.match(sentence) is None)


def headers_without_comment(house):
    for name in house.code():
        if name.endswith(".h") and not says_what(house.texts[name]):
            yield f"{name}:1: a header opens with a comment, a sentence that says what the thing is"


def relative_includes(house):
    for name, included in house.includes.items():
        for number, written, path in included:
            if written not in (path, path.removeprefix("include/")):
                yield f"{name}:{number}: '{written}' is not a path from the root; say {path}"


def include_cycles(house):
    headers = set(name for name in house.code() if name.endswith(".h"))
    includes = {name: [path for _, _, path in house.includes[name] if path in headers]
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
                    after = (cycle + [following])[1]
                    line = next(line for line, _, to in house.includes[following] if to == after)
                    yield f"{following}:{line}: includes itself: " + " -> ".join(cycle + [following])
            elif following not in done:
                stack.append((following, iter(includes[following])))
                path.append(following)


def targets(house):
    """({folder: its libraries}, {library, or name of several: what it names}) by CMakeLists.txt."""
    libraries, named = {"include": {"api"}}, {"api": set()}
    for name, text in house.texts.items():
        if os.path.basename(name) != "CMakeLists.txt":
            continue
        text = re.sub(r"#.*", "", text)
        for target, arguments in re.findall(r"leeway_library\(\s*(\w+)([^)]*)\)", text):
            libraries.setdefault(os.path.dirname(name), set()).add(target)
            named[target] = set(arguments.partition("DEPENDS")[2].split())
        for target, arguments in re.findall(r"leeway_rooms\(\s*(\w+)([^)]*)\)", text):
            named[target] = set(arguments.split())
    rooms = set(named) - set().union(*libraries.values())
    for target in named:
        while named[target] & rooms:
            room = (named[target] & rooms).pop()
            named[target] = named[target] - {room} | named[room]
    return libraries, named


def unnamed_targets(house):
    """Production code includes headers of targets that its own target names, and of no others. (The
    build lets a target see also what those name.)"""
    libraries, named = targets(house)

    def owners(path):
        folder = os.path.dirname(path)
        while folder and folder not in libraries:
            folder = os.path.dirname(folder)
        return libraries.get(folder, set())

    for name in house.production():
        mine = owners(name) if "fuzz" not in name.split("/") else set()
        seen = mine.union(*(named[target] for target in mine))
        for number, written, path in house.includes[name]:
            if mine and owners(path) and not owners(path) & seen:
                yield (f"{name}:{number}: {' or '.join(sorted(mine))} does not name "
                       f"{' or '.join(sorted(owners(path)))} in DEPENDS, but includes {written}")


# Between two words of a term: in prose, also at the end of a line; in a name; in a file's name.
BETWEEN_WORDS = r"(?:[ _-]|[ \t]*\n[ \t]*(?://+|#+)?[ \t]*)"


def read_retired_words(text):
    """[(regular expression, replacement, folders in which it is retired)]."""
    words = []
    for line in text.split("\n"):
        if line.strip() and not line.startswith("#"):
            word, instead, *folders = [part.strip() for part in line.split(" | ")]
            word = word.replace(" ", BETWEEN_WORDS)
            words.append((re.compile("(?:" + word + ")(?![a-z])"), instead,
                          tuple(folders[0].split()) if folders else ()))
    return words


def begins_word(text, offset):
    before = text[offset - 1] if offset > 0 else " "
    return not before.isalpha() or (before.islower() and text[offset].isupper())


def without_capitals(text):
    """The text with names in capitals (LEEWAY_NAME) in small letters."""
    return re.sub(r"(?<![A-Za-z])[A-Z]{2}[A-Z0-9_]*(?![a-z])", lambda name: name.group().lower(), text)


def retired_words(house):
    words = read_retired_words(house.texts.get(RETIRED_WORDS, ""))
    for name, text in sorted(house.texts.items()):
        if name in MAY_NAME_RETIRED_WORDS:
            continue
        searched = without_capitals(text)
        for pattern, instead, folders in words:
            if folders and not name.startswith(folders):
                continue
            for match in pattern.finditer(searched):
                if not begins_word(searched, match.start()):
                    continue
                found = " ".join(text[match.start():match.end()].split())
                yield f"{name}:{line_of(text, match.start())}: '{found}' is retired; say {instead}"
    for path in sorted(house.paths):
        for pattern, instead, folders in words:
            match = pattern.search(os.path.basename(path))
            if (match and begins_word(os.path.basename(path), match.start())
                    and (not folders or path.startswith(folders))):
                yield f"{path}: '{match.group()}' in its name is retired; say {instead}"


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


def parts_of(house, name):
    """The names by which links refer to the headings of a document."""
    headings = [line.lstrip("#").strip().lower()
                for _, line in outside_fences(house.texts.get(name, "")) if line.startswith("#")]
    return set(re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings)


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
                if re.match(r"[a-z]+:", path):
                    continue
                file, _, part = path.partition("#")
                file = os.path.normpath(os.path.join(os.path.dirname(name), file)) if file else name
                known = file in house.paths and (not part or part in parts_of(house, file))
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
                group = word + "_*" in line  # LEEWAY_NAME_*: all that begin so
                if word not in there and not (
                        group and any(other.startswith(word + "_") for other in there)):
                    yield f"{name}:{number}: the code has no {word}"


RULES = (unreadable_files, large_folders, long_files, test_names, wide_docs, broken_tables,
         headers_without_comment, relative_includes, include_cycles, unnamed_targets, retired_words,
         missing_paths, missing_names)


def violations(root):
    house = House(root)
    return [violation for rule in RULES for violation in rule(house)]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    found = violations(root)
    if not os.path.isfile(os.path.join(root, RETIRED_WORDS)):
        found.append(f"{RETIRED_WORDS}: there is no such list in {root}")
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
