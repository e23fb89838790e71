#!/usr/bin/env python3
"""Known bugs of tests/mutants/edits/, kept apart from the sources.

  edits.py check             every text to be replaced occurs exactly once in the sources
  edits.py apply FOLDER      writes a copy of the sources with all known bugs, each behind a switch
                             (tests/mutants/planted.h), and the list of them for leeway-mutants

A file of edits has one paragraph for each bug:

  bug NAME
  what: the wrong behaviour
  promise: the promise that it breaks
  test: PROGRAM FILTER       what finds it; absent: seeds do. Or seeds_too, over_rdma, harmless: WHY
  with: NAME                 where it shares an edit with another bug, which has the edit
  @ PATH                     an edit: lines of the source, and what stands there instead
  -lines as they are
  +lines with runtime::Planted<"NAME">()

At least one edit of a bug asks whether it is switched on; others may add what that one needs.
Lines that begin with # are comments.
"""

import dataclasses
import difflib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EDITS = pathlib.Path("tests/mutants/edits")
HEADER = pathlib.Path("tests/mutants/planted.h")
LIST = pathlib.Path("tests/mutants/known_bugs.inc")
PLANTED = re.compile(r'Planted<"([^"]+)">')
TEXTS = ("what", "promise", "test", "harmless", "with")
FLAGS = ("seeds_too", "over_rdma")


@dataclasses.dataclass
class Edit:
    path: str
    place: str  # in the file of edits, and the bug's name
    old: list = dataclasses.field(default_factory=list)
    new: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Bug:
    name: str
    place: str
    fields: dict = dataclasses.field(default_factory=dict)
    edits: list = dataclasses.field(default_factory=list)


def parse(path, wrong):
    bugs = []
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        place = f"{path}:{number}"
        key, _, value = line.partition(": ")
        if not line or line.startswith("#"):
            continue
        if line.startswith("bug "):
            bugs.append(Bug(line[4:], place))
        elif not bugs:
            wrong.append(f"{place}: no bug has begun")
        elif line.startswith("@ "):
            bugs[-1].edits.append(Edit(line[2:], f"{place}: '{bugs[-1].name}'"))
        elif line[0] in "+-" and bugs[-1].edits:
            (bugs[-1].edits[-1].old if line[0] == "-" else bugs[-1].edits[-1].new).append(line[1:])
        elif key in TEXTS or line in FLAGS:
            bugs[-1].fields[key] = value
        else:
            wrong.append(f"{place}: '{line}' is not understood")
    return bugs


def check_names(bugs, wrong):
    """Each bug is there once, says what it breaks, and is in an edit of its own or of another."""
    names = {}
    for bug in bugs:
        if bug.name in names:
            wrong.append(f"{bug.place}: there is another '{bug.name}', at {names[bug.name].place}")
        names[bug.name] = bug
        for field in ("what", "promise"):
            if field not in bug.fields and (field == "what" or "harmless" not in bug.fields):
                wrong.append(f"{bug.place}: '{bug.name}' has no line '{field}: '")
    planted = {}
    for bug in bugs:
        for edit in bug.edits:
            found = PLANTED.findall("\n".join(edit.new))
            for name in found:
                planted.setdefault(name, set()).add(bug.name)
                if name not in names:
                    wrong.append(f"{edit.place}: no bug is named '{name}'")
    for bug in bugs:
        by = bug.fields.get("with", bug.name)
        if by not in planted.get(bug.name, ()):
            wrong.append(f"{bug.place}: no edit of '{by}' plants '{bug.name}'")


def nearest(lines, old):
    """Where the file is most like the text that is not there."""
    best = max(range(max(1, len(lines) - len(old) + 1)),
               key=lambda i: difflib.SequenceMatcher(
                   None, "\n".join(lines[i:i + len(old)]), "\n".join(old), False).quick_ratio())
    return best, lines[best:best + len(old)]


def find(edit, lines, wrong):
    """The index of the line that the edit begins at."""
    if not edit.old:
        wrong.append(f"{edit.place}: the edit replaces nothing")
        return None
    size = len(edit.old)
    found = [i for i in range(len(lines) - size + 1) if lines[i:i + size] == edit.old]
    if len(found) == 1:
        return found[0]
    text = "\\n".join(edit.old)
    if found:
        at = ", ".join(str(i + 1) for i in found)
        wrong.append(f"{edit.place}: '{text}' occurs {len(found)} times in {edit.path}, at lines {at}")
    else:
        line, like = nearest(lines, edit.old)
        wrong.append(f"{edit.place}: '{text}' is gone from {edit.path}; the nearest is at line "
                     f"{line + 1}: '" + "\\n".join(like) + "'")
    return None


def applied(path, edits, wrong):
    """The text of a source with its edits; the header is to be named in front of it."""
    if not (ROOT / path).is_file():
        wrong.extend(f"{edit.place}: there is no file {path}" for edit in edits)
        return ""
    lines = (ROOT / path).read_text().split("\n")
    places = [(find(edit, lines, wrong), edit) for edit in edits]
    places = sorted((p for p in places if p[0] is not None), key=lambda p: p[0])
    for (first, one), (second, other) in zip(places, places[1:]):
        if first + len(one.old) > second:
            wrong.append(f"{other.place}: the edit overlaps the one at {one.place}")
    for begin, edit in reversed(places):
        lines[begin:begin + len(edit.old)] = edit.new
    return "#line 1\n" + "\n".join(lines)


def load():
    """(bugs, {path: text with the edits}, what is wrong)."""
    wrong, bugs, by_path = [], [], {}
    for path in sorted((ROOT / EDITS).glob("*.edits")):
        bugs += parse(path.relative_to(ROOT), wrong)
    check_names(bugs, wrong)
    for bug in bugs:
        for edit in bug.edits:
            by_path.setdefault(edit.path, []).append(edit)
    return bugs, {path: applied(path, edits, wrong) for path, edits in by_path.items()}, wrong


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def listed(bugs):
    """The initializers of leeway-mutants' catalogue."""
    edits = {bug.name: bug.edits for bug in bugs}
    lines = []
    for bug in bugs:
        own = bug.edits or edits[bug.fields["with"]]
        fields = [f".name = {quoted(bug.name)}", f".file = {quoted(own[0].path)}"]
        for key in ("what", "promise", "test", *FLAGS, "harmless"):
            if key in bug.fields:
                value = "true" if key in FLAGS else quoted(bug.fields[key])
                fields.append(f".{key} = {value}")
        lines.append("{" + ", ".join(fields) + "},\n")
    return "".join(lines)


def write(path, data):
    """Leaves a file that has this content alone, so that it is not compiled again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_bytes() != data:
        path.write_bytes(data)


def write_copy(folder, texts, bugs):
    """A copy of the sources, where `texts` replace some of them, with the list of the bugs."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                           check=True, capture_output=True, text=True).stdout.split("\0")
    data = {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}
    # By its whole name: no library may include headers of tests.
    include = f'#include "{folder.resolve() / HEADER}"\n'
    data.update({name: (include + text).encode() for name, text in texts.items()})
    if bugs:
        data[str(LIST)] = listed(bugs).encode()
    for name, content in data.items():
        write(folder / name, content)
        if (ROOT / name).is_file():
            (folder / name).chmod((ROOT / name).stat().st_mode)
    for path in folder.rglob("*"):
        if path.is_file() and str(path.relative_to(folder)) not in data:
            path.unlink()


def main():
    if sys.argv[1:2] not in (["check"], ["apply"]) or len(sys.argv) != 2 + (sys.argv[1] == "apply"):
        sys.exit(__doc__)
    bugs, texts, wrong = load()
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        sys.exit(1)
    if sys.argv[1] == "apply":
        write_copy(pathlib.Path(sys.argv[2]), texts, bugs)
    else:
        print(f"{len(bugs)} known bugs apply to {len(texts)} files")


if __name__ == "__main__":
    main()
