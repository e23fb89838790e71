"""What wrong arguments and wrong calls get: an exception with the library's text, never a crash."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap

import leeway
import numpy as np
import pytest


@pytest.fixture(scope="module")
def table(w):
    return w.table("misused", shape=(2, 3), consistency="asp")


@pytest.mark.parametrize(
    "values, kind, text",
    [
        (np.ones((2, 3)), leeway.InvalidArgument, "float64"),
        (np.ones((3, 2), np.float32), leeway.InvalidArgument, r"\(3, 2\)"),
        (np.ones(7, np.float32), leeway.InvalidArgument, "7"),
        (np.ones((3, 2), np.float32).T, ValueError, "contiguous"),
        (np.ones((2, 6), np.float32)[:, ::2], ValueError, "contiguous"),
        (np.ones((2, 3), ">f4"), TypeError, "byte order"),
        (np.ones((2, 3), complex), TypeError, "complex128"),
        (np.array([["a", "b", "c"]] * 2), TypeError, "dtype"),
        (np.array([[None] * 3] * 2), TypeError, "object"),
        ("text", TypeError, "no numbers"),
        (None, TypeError, "no numbers"),
        ([[1, 2], [3]], ValueError, ""),
        (object(), TypeError, "no numbers"),
    ],
    ids=str,
)
def test_values_that_are_no_push(table, values, kind, text):
    with pytest.raises(kind, match=text):
        table.push(values).wait()


def test_arrays_that_cannot_be_written(table):
    frozen = np.zeros((2, 3), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError):
        table.pull(out=frozen)
    for wrong in ([0] * 6, b"123456", "text", 3):
        with pytest.raises(TypeError):
            table.pull(out=wrong)
    with pytest.raises(leeway.InvalidArgument, match="float64"):
        table.pull(out=np.zeros((2, 3)))


@pytest.mark.parametrize(
    "keys, kind",
    [
        ([-1], ValueError),
        ([1.5], TypeError),
        (["a"], TypeError),
        ([2**64], (OverflowError, TypeError)),
        (None, TypeError),
    ],
)
def test_keys_that_are_none(w, keys, kind):
    rows = w.table("misused rows", dim=2, consistency="asp")
    with pytest.raises(kind):
        rows.pull(keys)
    with pytest.raises(leeway.InvalidArgument, match="shape"):
        rows.push([1, 2], np.zeros((1, 2), np.float32))
    with pytest.raises(leeway.InvalidArgument, match="shape"):
        rows.push([1, 2, 3], np.zeros((2, 3), np.float32))


def test_descriptions_that_are_wrong(w):
    with pytest.raises(TypeError, match="one of shape="):
        w.table("nothing")
    with pytest.raises(TypeError, match="one of shape="):
        w.table("both", shape=3, dim=4)
    with pytest.raises(TypeError, match="float8"):
        w.table("dtype", shape=3, dtype="float8")
    for wrong in ({"shape": -3}, {"shape": (0, 3)}, {"dim": 0}, {"shape": 3, "updater": "adam:lr=1"},
                  {"shape": 3, "consistency": "sometimes"}, {"shape": 3, "codec": "zip"}, {"shape": 2**62}):  # fmt: skip
        with pytest.raises((leeway.InvalidArgument, leeway.ResourceExhausted)):
            w.table("wrong", **wrong)
    w.table("twice", shape=3)
    with pytest.raises(leeway.AlreadyExists):
        w.table("twice", shape=4)
    with pytest.raises(leeway.NotFound, match="twice"):
        w.open("no such table")
    with pytest.raises(LookupError):
        w.open("no such table")
    assert isinstance(w.open("twice"), leeway.DenseTable)


def test_nan_is_refused_where_the_table_says_so(w):
    table = w.table("finite", shape=2, nonfinite="refuse", consistency="asp")
    with pytest.raises(leeway.InvalidArgument, match="finite"):
        table.push([1, float("nan")]).wait()


def test_calls_of_handlers_that_are_not_there(w):
    with pytest.raises(leeway.NotFound, match="nobody"):
        w.call(0, "nobody", b"request")
    with pytest.raises(leeway.Error):
        w.call(99, "nobody")


def test_settings_that_are_wrong():
    with pytest.raises(leeway.InvalidArgument, match="LEEWAY_SCHEDULER"):
        leeway.connect(schedular="127.0.0.1:1")
    with pytest.raises(leeway.InvalidArgument, match="LEEWAY_REQUEST_TIMEOUT_MS"):
        leeway.connect(scheduler="127.0.0.1:1", request_timeout_ms="soon")
    with pytest.raises(leeway.DeadlineExceeded):
        leeway.connect(scheduler="127.0.0.1:1", connect_timeout_ms=100)


def test_a_closed_worker_refuses_calls(cluster):
    made = cluster()
    worker = made.connect()
    table = worker.table("t", shape=2, consistency="asp")
    ticket = table.push([1, 2])
    worker.close()
    worker.close()
    for call in (table.pull, worker.clock, worker.barrier, lambda: worker.table("u", shape=1),
                 lambda: table.push([1, 2]).wait(), lambda: table.push_pull([1, 2]).wait()):  # fmt: skip
        with pytest.raises(leeway.FailedPrecondition, match="left"):
            call()
    assert ticket.done()
    assert "asp" in repr(table) and worker.rank == 0
    del worker, table
    gc.collect()
    ticket.wait()


def test_tables_and_tickets_outlive_their_worker(cluster):
    worker = cluster().connect()
    table = worker.table("t", shape=2, consistency="asp")
    del worker
    gc.collect()
    assert table.pull().tolist() == [0, 0]
    ticket = table.pull_async()
    del table
    gc.collect()
    assert ticket.wait().tolist() == [0, 0]


def test_arrays_live_until_their_operation_is_over(w):
    table = w.table("dropped", shape=1 << 20, consistency="asp")
    for _ in range(20):
        table.push(np.ones(1 << 20, np.float32))  # neither the ticket nor the array is kept here
        table.pull_async()
    gc.collect()
    out = table.pull()
    assert (out == 20).all()
    table.push([0] * (1 << 20)).wait()
    del table
    assert len(w._orphans) < 45


def test_workers_tables_and_tickets_do_not_travel_to_other_processes(w, table):
    for one in (w, table, table.pull_async()):
        with pytest.raises(TypeError):
            pickle.dumps(one)


def test_a_child_of_fork_is_refused(w, table):
    ticket = table.pull_async()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for call in (table.pull, ticket.wait, w.clock):
                try:
                    call()
                    os._exit(2)
                except leeway.FailedPrecondition as error:
                    assert "fork" in str(error)
            gc.collect()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    ticket.wait()


def run(code, **settings):
    """Runs a program of its own; returns (status, what it printed)."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **{"LEEWAY_" + key.upper(): str(value) for key, value in settings.items()}},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_ctrl_c_ends_a_wait(cluster):
    made = cluster(workers=2)
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent("""
            import leeway, sys
            try:
                print("begun", flush=True)
                leeway.connect()
            except KeyboardInterrupt:
                print("interrupted")
        """)],
        env={**os.environ, **{"LEEWAY_" + key.upper(): str(value) for key, value in made.settings.items()}},
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert program.stdout.readline() == "begun\n"
    program.send_signal(signal.SIGINT)
    assert program.communicate(timeout=20)[0] == "interrupted\n"


def test_handlers_of_signals_run_in_a_wait(w):
    seen = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(leeway.DeadlineExceeded):
            w.call(0, "leeway.no", b"", timeout=0)
        table = w.table("blocked", shape=1)
        ticket = table.push_pull([1])
        signal.pause() if not seen else None
        w.clock()
        ticket.wait()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert seen == [signal.SIGALRM]


def test_a_program_that_ends_without_closing_does_not_hang(cluster):
    made = cluster()
    status, text = run(
        """
        import leeway, threading, numpy as np
        w = leeway.connect(log="error")
        t = w.table("t", shape=1 << 20, consistency="ssp:0")
        t.push(np.ones(1 << 20, np.float32))
        ticket = t.push_pull(np.ones(1 << 20, np.float32))
        ticket.add_done_callback(lambda ticket: None)
        def wait():
            try:
                w.barrier("no one else", servers=True)
            except leeway.Error:
                pass
        threading.Thread(target=wait, daemon=True).start()
        print("ends")
        """,
        **{**made.settings, "van": "tcp"},
    )
    assert (status, text) == (0, "ends\n")
