"""Examples of the docstrings run, and everything public is described."""

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import leeway
import numpy as np
import pytest


@pytest.mark.parametrize(
    "module",
    ["servers", "worker", "tables", "ticket", "models", "updaters", "consistency", "launcher", "errors"],
)
def test_examples_run(w, module):
    counts = w.table("counts", shape=4, consistency="asp")
    known = {"leeway": leeway, "w": w, "np": np, "counts": counts}
    found = doctest.testmod(importlib.import_module("leeway." + module), extraglobs=known)
    assert found.failed == 0


def test_everything_public_is_described():
    for name in leeway.__all__:
        one = getattr(leeway, name)
        assert inspect.getdoc(one), name
        for member, function in inspect.getmembers(one, inspect.isfunction) if inspect.isclass(one) else []:
            if not member.startswith("_") and function.__module__.startswith("leeway"):
                assert inspect.getdoc(function) or member in (
                    "rank",
                    "num_workers",
                    "num_servers",
                ), f"{name}.{member}"


def test_the_import_brings_neither_numpy_nor_torch():
    code = (
        "import leeway, sys; print([name for name in ('numpy', 'torch', 'asyncio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_the_example_of_the_readme_runs(tmp_path):
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    script = tmp_path / "example.py"
    script.write_text(re.search(r"```python\n(.*?)```", readme, re.S)[1])
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    numbers = [float(number) for number in re.findall(r"[-\d.e]+", done.stdout)]
    assert numbers == pytest.approx(range(10), abs=0.1), done.stdout + done.stderr


def test_the_example_of_published_models_runs(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "publishing.md").read_text()
    script = tmp_path / "example.py"
    script.write_text(re.search(r"## Python\n\n```python\n(.*?)```", text, re.S)[1])
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert "acted by version 10" in done.stdout, done.stdout + done.stderr
