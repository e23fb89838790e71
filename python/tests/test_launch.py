"""leeway.launch and `python -m leeway`."""

import os
import select
import subprocess
import sys
import threading

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
        leeway.launch(train, threading.Lock(), output=False)


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


def run(tmp_path, text, *arguments):
    script = tmp_path / "script.py"
    script.write_text(text)
    return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, timeout=60)


# Without cloudpickle a child loads the script, for the functions in it.
PLAIN = "import sys; sys.modules['cloudpickle'] = None; import leeway\n"


def test_a_script_without_a_main_part_is_told_so(tmp_path):
    done = run(tmp_path, PLAIN + "def rank(worker): return worker.rank\nprint(leeway.launch(rank))\n")
    assert done.returncode == 1 and "if __name__ == '__main__':" in done.stderr, done.stderr


def test_a_launch_within_a_launch_works():
    assert leeway.launch(nested, output=False) == [[0]]


def nested(worker):
    return leeway.launch(rank_of, output=False)


def rank_of(worker):
    return worker.rank


def odd_text(worker):
    raise ValueError("\udcff\0")


def test_any_text_of_an_exception_is_shown():
    with pytest.raises(LaunchError, match=r"(?s)^worker 0 has failed.*in odd_text.*\\udcff"):
        leeway.launch(odd_text, output=False)


def test_arguments_of_the_script_are_those_of_its_workers(tmp_path):
    done = run(tmp_path, PLAIN + """
def argument(worker): return sys.argv[1]
if __name__ == '__main__': print(leeway.launch(argument, output=False))
""", "given")  # fmt: skip
    assert done.stdout == "['given']\n", done.stdout + done.stderr


def test_results_may_be_of_classes_of_the_script(tmp_path):
    done = run(tmp_path, PLAIN + """
import dataclasses, enum
@dataclasses.dataclass
class Result:
    rank: int
class Kind(enum.Enum):
    GOOD = 1
def work(worker, kind): return Result(worker.rank), kind, kind is Kind.GOOD
if __name__ == '__main__':
    print(leeway.launch(work, Kind.GOOD, output=False) == [(Result(0), Kind.GOOD, True)])
""")  # fmt: skip
    assert done.stdout == "True\n", done.stdout + done.stderr


def test_a_function_without_a_file_needs_cloudpickle():
    text = PLAIN + "def rank(worker): return worker.rank\nleeway.launch(rank)\n"
    done = subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True, timeout=60)
    assert (
        "TypeError: a function of a notebook" in done.stderr
        and "needs the package cloudpickle" in done.stderr
    )


def test_settings_are_checked():
    with pytest.raises(LaunchError, match="LEEWAY_REPLICATIONS"):
        leeway.launch(rank_of, output=False, replications=2)


@pytest.mark.parametrize("wrong", [{"workers": "2"}, {"servers": 1.5}, {"workers": None}])
def test_numbers_of_processes_are_integers(wrong):
    with pytest.raises(TypeError, match="integer"):
        leeway.launch(rank_of, **wrong)


def test_a_launcher_that_is_killed_leaves_no_process(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import leeway, os, time\n"
        "def sleep(worker):\n"
        "    print('process', os.getpid(), flush=True)\n"
        "    time.sleep(100)\n"
        "if __name__ == '__main__': leeway.launch(sleep)\n"
    )
    with subprocess.Popen(
        [sys.executable, script],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as launcher:
        worker = int(launcher.stdout.readline().split()[-1])
        ended = select.poll()
        ended.register(os.pidfd_open(worker), select.POLLIN)
        launcher.kill()
        assert ended.poll(30_000)
