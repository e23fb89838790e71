"""leeway.launch and `python -m leeway`."""

import subprocess
import sys

import leeway
import numpy as np
import pytest
from leeway.launcher import LaunchError


def train(worker, steps):
    table = worker.table("w", shape=2, updater=leeway.SGD(lr=1), consistency=leeway.BSP())
    for _ in worker.iterations(steps):
        table.push(np.ones(2, np.float32)).wait()
    print("worker", worker.rank, "is done")
    return worker.rank, table.pull().tolist()


def fail(worker, rank):
    if worker.rank == rank:
        raise ZeroDivisionError("on purpose")
    worker.barrier(timeout=30)


def test_results_come_by_rank(capfd):
    assert leeway.launch(train, 3, servers=2, workers=2) == [(0, [-6, -6]), (1, [-6, -6])]
    output = capfd.readouterr().out
    assert "worker 0 is done" in output and "worker 1 is done" in output


def test_the_first_traceback_is_shown():
    with pytest.raises(LaunchError, match="(?s)worker 1 has failed.*in fail.*ZeroDivisionError: on purpose"):
        leeway.launch(fail, 1, workers=2, output=False)


def test_what_cannot_be_sent_is_said():
    with pytest.raises(TypeError, match="cannot be sent"):
        leeway.launch(train, open(__file__), output=False)


def test_a_script_launches_its_own_function(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import leeway\n"
        "def rank(worker): return worker.rank\n"
        "if __name__ == '__main__':\n"
        "    print(leeway.launch(rank, workers=2))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("[0, 1]\n"), done.stdout + done.stderr


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "leeway", "--version"], capture_output=True, text=True, timeout=60
    )
    assert leeway.__version__ in done.stdout
