#!/usr/bin/env python3
"""Random mutations of the sources, and which of them the simulator and the tests find: a condition
inverted, a statement, an assignment or + 1 left out, < for <=, two arguments exchanged.

Builds a copy of the sources with all mutations in it, each behind a switch (planted.h), and runs
each against fresh seeds of the simulator and then against the tests of its folder. What passes
everything survives: either no promise rests on that line, or no test looks.

Mutations that do not compile are counted and skipped. tests/mutants/harmless.txt has survivors that
break no promise, with the reason.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

import cxx
import edits

FOLDERS = ("checkpoint", "node", "ps", "scheduler", "worker")
HARMLESS = pathlib.Path("tests/mutants/harmless.txt")
ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "|=", "&=", "^=")
# What an operand of a comparison ends at.
LOOSER = ("&&", "||", "?", ":", ",", ";", "<<", "!", *ASSIGNMENTS)
OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
KEYWORDS = {"return", "if", "for", "while", "switch", "case", "default", "break", "continue", "do",
            "else", "using", "const", "constexpr", "auto", "static", "struct", "class", "enum",
            "template", "typename", "goto", "throw", "delete", "new", "unsigned", "public",
            "private", "protected", "friend", "operator", "static_assert", "explicit", "virtual"}
# Left out or changed, these change what is logged or checked in debug builds, and nothing else.
QUIET = re.compile(r"\b(runtime::Log\w+|LEEWAY_\w+|static_cast<void>|assert)\b")
TEST_SECONDS = 300
SEED_SECONDS = 5


@dataclasses.dataclass
class Mutation:
    path: str
    begin: int  # in the source's text
    end: int
    kind: str
    was: str
    now: str  # with SWITCH where the switch stands
    line: int = 0
    number: int = 0

    @property
    def name(self):
        return f"mutation-{self.number}"

    def shown(self):
        was = " ".join(self.was.split())
        return f"{self.path}:{self.line}: {self.kind}: {was}"


def operand(nodes, at, step):
    """The index of the last node of the operand that begins beside `at`."""
    here = at + step
    while 0 <= here + step < len(nodes):
        following = nodes[here + step]
        if cxx.is_operator(following, *LOOSER) or cxx.is_name(following, "return", "co_return"):
            break
        if cxx.is_operator(following, *OTHER) or cxx.is_group(following, "{"):
            break
        here += step
    return here


class Finder:
    """The places of one source where a mutation may be made."""

    def __init__(self, path, source):
        self.path, self.source, self.found = path, source, []
        self.visit(cxx.tree(source).inside, in_function=False)

    def add(self, begin, end, kind, now):
        was = self.source[begin:end]
        if not QUIET.search(was) and "Planted" not in was:
            self.found.append(Mutation(self.path, begin, end, kind, was, now,
                                       self.source.count("\n", 0, begin) + 1))

    def text(self, first, last):
        return self.source[first.begin:last.end]

    def visit(self, nodes, in_function):
        for at, node in enumerate(nodes):
            if node.kind == "group":
                body = node.text == "{" and at > 0 and (
                    cxx.is_group(nodes[at - 1], "(") or
                    cxx.is_name(nodes[at - 1], "const", "else", "override", "noexcept", "do"))
                if body:
                    self.statements(node.inside)
                self.visit(node.inside, in_function or body)
            elif in_function:
                self.look(nodes, at)

    def look(self, nodes, at):
        node = nodes[at]
        following = nodes[at + 1] if at + 1 < len(nodes) else None
        if cxx.is_name(node, "if", "while") and following is not None and cxx.is_group(following, "("):
            if following.inside and not any(cxx.is_operator(one, ";", *ASSIGNMENTS)
                                            for one in following.inside):
                condition = self.text(following.inside[0], following.inside[-1])
                self.add(following.begin, following.end, "condition inverted",
                         f"(static_cast<bool>({condition}) != SWITCH)")
        elif cxx.is_operator(node, "+", "-") and following is not None and at > 0:
            if following.kind == "number" and following.text == "1":
                self.add(following.begin, following.end, f"{node.text} 1 left out",
                         "(SWITCH ? 0 : 1)")
        elif cxx.is_operator(node, *OTHER) and 0 < at < len(nodes) - 1:
            spaced = self.source[node.begin - 1] == " " and self.source[node.end:node.end + 1] in " \n"
            if spaced:
                self.comparison(nodes, at)

    def comparison(self, nodes, at):
        operator = nodes[at].text
        first, last = operand(nodes, at, -1), operand(nodes, at, 1)
        left = self.text(nodes[first], nodes[at - 1])
        right = self.text(nodes[at + 1], nodes[last])
        self.add(nodes[first].begin, nodes[last].end, f"{OTHER[operator]} for {operator}",
                 f"(SWITCH ? {left} {OTHER[operator]} {right} : {left} {operator} {right})")

    def statements(self, nodes):
        at = 0
        while at < len(nodes):
            end = cxx.statement_end(nodes, at)
            inner = at
            # The statement that an if or a loop without braces has.
            while cxx.is_name(nodes[inner], "if", "for", "while", "else") and inner + 2 < end:
                inner += 1 if cxx.is_name(nodes[inner], "else") else 2
            self.statement(nodes[inner:end])
            at = end

    def statement(self, nodes):
        if len(nodes) < 3 or not cxx.is_operator(nodes[-1], ";") or not self.is_expression(nodes[:-1]):
            return
        text = self.text(nodes[0], nodes[-1])
        assigns = any(cxx.is_operator(one, *ASSIGNMENTS, "++", "--") for one in nodes)
        self.add(nodes[0].begin, nodes[-1].end,
                 "assignment left out" if assigns else "statement left out",
                 "{ if (!SWITCH) " + text + " }")
        call = nodes[-2]
        if not assigns and cxx.is_group(call, "("):
            self.exchange(nodes, call)

    def exchange(self, nodes, call):
        """The first two arguments of a call, the other way round."""
        commas = [i for i, one in enumerate(call.inside) if cxx.is_operator(one, ",")]
        if not commas:
            return
        end = commas[1] if len(commas) > 1 else len(call.inside)
        if end == commas[0] + 1:
            return
        first = self.text(call.inside[0], call.inside[commas[0] - 1])
        second = self.text(call.inside[commas[0] + 1], call.inside[end - 1])
        if first == second:
            return
        text = self.text(nodes[0], nodes[-1])
        before = self.source[nodes[0].begin:call.inside[0].begin]
        after = self.source[call.inside[end - 1].end:nodes[-1].end]
        self.add(nodes[0].begin, nodes[-1].end, "arguments exchanged",
                 "{ if (SWITCH) " + f"{before}{second}, {first}{after} else {text}" + " }")

    @staticmethod
    def is_expression(nodes):
        """A call or an assignment, and no declaration: names joined by :: . -> and brackets."""
        at = 0
        while at < len(nodes) and cxx.is_operator(nodes[at], "*", "++", "--"):
            at += 1
        if at == len(nodes) or not cxx.is_name(nodes[at]) or nodes[at].text in KEYWORDS:
            return False
        at += 1
        while at < len(nodes):
            node = nodes[at]
            if cxx.is_operator(node, "::", ".", "->") and at + 1 < len(nodes):
                at += 2
            elif cxx.is_group(node, "(") or cxx.is_group(node, "["):
                at += 1
            else:
                return cxx.is_operator(node, *ASSIGNMENTS, "++", "--")
        return nodes[-1].kind == "group" or cxx.is_operator(nodes[0], "++", "--")


def candidates(folders):
    names = subprocess.run(["git", "ls-files", "--", *(f"{one}/*.cc" for one in folders),
                            *(f"{one}/*.h" for one in folders)],
                           cwd=edits.ROOT, check=True, capture_output=True, text=True).stdout.split()
    found = []
    for name in names:
        if not name.endswith("_test.cc") and "/testing/" not in name:
            found += Finder(name, (edits.ROOT / name).read_text()).found
    return found


def choose(folders, count, seed):
    """Mutations at random places, of random kinds, none within another."""
    chooser = random.Random(seed)
    by_kind = {}
    for one in candidates(folders):
        kind = "comparison" if " for " in one.kind else one.kind.lstrip("+-")
        by_kind.setdefault(kind, []).append(one)
    chosen = []
    while len(chosen) < count and any(by_kind.values()):
        kind = chooser.choice(sorted(kind for kind, some in by_kind.items() if some))
        one = by_kind[kind].pop(chooser.randrange(len(by_kind[kind])))
        if all(one.path != other.path or one.end <= other.begin or other.end <= one.begin
               for other in chosen):
            one.number = len(chosen) + 1
            chosen.append(one)
    return chosen


def mutated(mutations):
    """{path: text of the source with its mutations}."""
    texts = {}
    for one in sorted(mutations, key=lambda one: one.begin, reverse=True):
        text = texts.get(one.path) or (edits.ROOT / one.path).read_text()
        switch = f'::leeway::runtime::Planted<"{one.name}">()'
        texts[one.path] = text[:one.begin] + one.now.replace("SWITCH", switch) + text[one.end:]
    return {path: "#line 1\n" + text for path, text in texts.items()}


def configure(folder):
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    os.environ["CCACHE_SLOPPINESS"] = "pch_defines,time_macros"
    subprocess.run(["cmake", "-S", folder / "sources", "-B", folder, "-G", "Ninja",
                    "-DCMAKE_BUILD_TYPE=Release", "-DLEEWAY_PRECOMPILE=ON", "-DLEEWAY_UNITY=ON",
                    "-DLEEWAY_WERROR=OFF", *launcher], check=True, stdout=subprocess.DEVNULL)


def blamed(output, mutations):
    """The mutations on the lines that the compiler's errors name."""
    errors = [(path, int(line)) for path, line in
              re.findall(r"^(\S+?):(\d+):\d+: (?:fatal )?error: ", output, re.M)]
    return [one for one in mutations
            if any(path.endswith("/" + one.path)
                   and one.line <= line <= one.line + one.was.count("\n")
                   for path, line in errors)]


def build(mutations, folder, targets):
    """Builds all that compile; the others are returned."""
    skipped = []
    while True:
        left = [one for one in mutations if one not in skipped]
        edits.write_copy(folder / "sources", mutated(left), [])
        if not (folder / "build.ninja").is_file():
            configure(folder)
        ended = subprocess.run(["cmake", "--build", folder, "--target", *targets, "--", "-k", "0"],
                               capture_output=True, text=True)
        if ended.returncode == 0:
            return skipped
        output = ended.stdout + ended.stderr
        bad = blamed(output, left)
        if not bad:
            sys.exit("mutate: the copy does not build:\n" + output[-4000:])
        skipped += bad


def passes(command, name, seconds):
    """Whether a program ends well in time with the mutation switched on."""
    environment = dict(os.environ, LEEWAY_MUTANT=name)
    try:
        ended = subprocess.run(["bash", "-c", f"ulimit -S -v 16777216; exec {command}"],
                               env=environment, timeout=seconds, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0


def verdict(one, folder, seeds, start):
    """What finds the mutation; None: nothing."""
    name = one.name if one is not None else "none"
    program = folder / "tests/simulation/leeway-sim"
    for first, some in ((0, seeds // 6), (seeds // 6, seeds - seeds // 6)):
        if not passes(f"{program} --start {start + first} --seeds {some} --jobs 1", name,
                      some * SEED_SECONDS + 30):
            return "seeds"
    tests = [one.path.split("/")[0]] if one is not None else [*FOLDERS]
    for test in tests:
        if not passes(f"ctest --test-dir {folder / test} --timeout 120", name, TEST_SECONDS):
            return f"tests of {test}"
    return None


def harmless():
    """{(path, kind, text): reason}"""
    known = {}
    for line in (edits.ROOT / HARMLESS).read_text().splitlines():
        if line and not line.startswith("#"):
            path, kind, text, reason = line.split(" | ")
            known[path, kind, text] = reason
    return known


def report(results, skipped, out, seconds, options):
    known = harmless()
    rows, survived = [], 0
    for one, by in results:
        reason = known.get((one.path, one.kind, " ".join(one.was.split()))) if by is None else None
        rows.append({"file": one.path, "line": one.line, "kind": one.kind, "text": one.was,
                     "found_by": by, "harmless": reason})
        if by is None:
            survived += reason is None
            print(f"{one.shown()}\n    " + (f"harmless: {reason}" if reason else "SURVIVED"))
    caught = sum(by is not None for _, by in results)
    print(f"{len(results)} mutations: {caught} caught, {survived} survived, "
          f"{len(results) - caught - survived} harmless; {len(skipped)} do not compile; "
          f"{seconds:.0f} s (--seed {options.seed})")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"seed": options.seed, "first_sim_seed": options.start,
                               "seconds": round(seconds), "not_compiled": len(skipped),
                               "mutations": rows}, indent=1) + "\n")
    print(f"all of them are in {out}")


def main():
    parser = argparse.ArgumentParser(prog="./dev mutate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", metavar="FOLDER",
                        help="parts of the sources (default: " + " ".join(FOLDERS) + ")")
    parser.add_argument("--count", type=int, default=60, help="mutations (default: 60)")
    parser.add_argument("--seed", type=int, help="chooses the same mutations again")
    parser.add_argument("--sim-seeds", type=int, default=60, help="seeds of the simulator for each")
    parser.add_argument("--list", action="store_true", help="only list the mutations")
    options = parser.parse_args()
    folders = options.folders or list(FOLDERS)
    for folder in folders:
        if not (edits.ROOT / folder).is_dir():
            sys.exit(f"mutate: there is no folder {folder}")
    if options.count < 1 or options.sim_seeds < 6:
        sys.exit("mutate: --count is at least 1, and --sim-seeds at least 6")
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    options.start = random.Random(~options.seed).randrange(1 << 40)
    begin = time.monotonic()
    mutations = choose([one.rstrip("/") for one in folders], options.count, options.seed)
    if options.list:
        for one in mutations:
            print(one.shown())
        return
    print(f"building {len(mutations)} mutations (--seed {options.seed})", flush=True)
    folder = edits.ROOT / "build/mutate"
    skipped = build(mutations, folder, ["leeway-sim", *(f"{top}/all" for top in FOLDERS)])
    if (by := verdict(None, folder, options.sim_seeds, options.start)) is not None:
        sys.exit(f"mutate: without a mutation the {by} fail")
    left = [one for one in mutations if one not in skipped]
    results = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        pending = {pool.submit(verdict, one, folder, options.sim_seeds, options.start): one
                   for one in left}
        for done in concurrent.futures.as_completed(pending):
            one, by = pending[done], done.result()
            results.append((one, by))
            print(f"[{len(results)}/{len(left)}] {one.shown()}: "
                  + (f"caught by {by}" if by else "passes everything"), flush=True)
    results.sort(key=lambda result: (result[0].path, result[0].line))
    report(results, skipped, edits.ROOT / "out/mutate/mutate.json", time.monotonic() - begin, options)


if __name__ == "__main__":
    main()
