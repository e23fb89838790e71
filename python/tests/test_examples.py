"""The examples of examples/python run, with few data, and learn something."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "python"


def run(name, *arguments):
    """What the example has printed."""
    done = subprocess.run(
        [sys.executable, FOLDER / name, *map(str, arguments)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def number(text, pattern):
    return float(re.search(pattern, text)[1])


def needs(*modules):
    for module in modules:
        pytest.importorskip(module)


def needs_fashion_mnist():
    if not Path("/usr/share/datasets/fashion-mnist").exists():
        pytest.skip("needs Debian's package dataset-fashion-mnist")


def test_dense():
    assert number(run("dense.py"), r"largest error (\S+)") < 0.01


def test_click_through():
    assert number(run("click_through.py", "--steps", 60), r"AUC (\S+);") > 0.75


def test_torch_mlp():
    needs("torch")
    needs_fashion_mnist()
    printed = run("torch_mlp.py", "--rows", 4000, "--epochs", 2)
    ours, alone = (float(one) for one in re.findall(r"accuracy (\S+) %", printed))
    assert alone > 50 and ours > alone - 8, printed


def test_torch_skip_gram():
    needs("torch")
    printed = run("torch_skip_gram.py", "--words", 10000, "--steps", 40, "--batch", 1024)
    assert number(printed, r"(\S+) at last") < number(printed, r"loss (\S+) at first")


def test_torch_diloco():
    needs("torch")
    printed = run("torch_diloco.py", "--workers", 3, "--steps", 20, "--rounds", 12)
    assert "is killed" in printed and "a worker has joined" in printed
    assert number(printed, r"loss (\S+)") < 0.3


def test_callbacks():
    needs("torch")
    needs_fashion_mnist()
    found = re.findall(r"accuracy (\S+) %", run("callbacks.py", "--rows", 4000))
    assert len(found) == 2 and all(float(one) > 50 for one in found)


def test_notebook(tmp_path):
    needs("cloudpickle")
    cells = json.loads((FOLDER / "first_steps.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    runner = "import sys, json\nfor cell in json.load(sys.stdin):\n    exec(compile(cell, '<cell>', 'exec'), globals())"
    done = subprocess.run(
        [sys.executable, "-c", runner], input=json.dumps(code), text=True, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
