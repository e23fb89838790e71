"""Compares the C interface with the one that was promised.

    c_abi_test.py COMPILER HEADER MAP PROMISED [--write]

A program built with leeway/c.h runs with later libraries: what PROMISED has (a declaration a line, with
the values of enumerators and the fields of structures) must be in HEADER unchanged, and each function
in the MAP of symbols. A structure may grow at its end. --write adds what is new to PROMISED.
"""
import re
import subprocess
import sys


def declarations(compiler, header):
    """Each declaration of the header in one line, without comments."""
    text = subprocess.run([compiler, "-E", "-P", "-x", "c", header], capture_output=True, text=True, check=True).stdout
    flat = " ".join(text.split())
    found, start, depth = [], 0, 0
    for at, character in enumerate(flat):
        depth += (character == "{") - (character == "}")
        if character == ";" and depth == 0:
            found.append(flat[start : at + 1].strip())
            start = at + 1
    return [one for one in found if "leeway_" in one]


def kept(promised, now):
    """Whether a promised declaration still holds; structures and enumerations may have grown."""
    if promised in now:
        return True
    known = re.fullmatch(r"typedef (struct|enum) (\w+) \{ (.*?) \} \w+;", promised)
    for one in now if known else []:
        other = re.fullmatch(rf"typedef {known[1]} {known[2]} \{{ (.*?) \}} \w+;", one)
        if other is None:
            continue
        if known[1] == "struct":
            return other[1].startswith(known[3])
        return set(known[3].split(", ")) <= set(other[1].split(", "))
    return False


def main():
    compiler, header, symbol_map, promised_file = sys.argv[1:5]
    now = declarations(compiler, header)
    with open(promised_file, encoding="utf-8") as file:
        promised = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    broken = [one for one in promised if not kept(one, now)]
    with open(symbol_map, encoding="utf-8") as file:
        exported = set(re.findall(r"^\s+(leeway_\w+);", file.read(), re.M))
    functions = {m[1] for one in now if (m := re.fullmatch(r"[^{(]*\b(leeway_\w+)\s*\(.*\);", one))}
    for one in broken:
        print(f"c_abi: the header no longer has, as promised: {one}")
    for name in sorted(functions ^ exported):
        print(f"c_abi: {name} is in only one of {header} and {symbol_map}")
    new = [one for one in now if one not in promised]
    if "--write" in sys.argv:
        with open(promised_file, "a", encoding="utf-8") as file:
            file.writelines(one + "\n" for one in new)
    elif new and not broken:
        print(f"c_abi: {len(new)} declarations are not promised yet, e.g. '{new[0]}': run {sys.argv[0]} with --write")
    sys.exit(1 if broken or functions ^ exported or (new and "--write" not in sys.argv) else 0)


main()
