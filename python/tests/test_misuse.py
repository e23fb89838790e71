"""What wrong arguments and wrong calls get: an exception with the library's text, never a crash."""

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import weakref

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
        ([[1, 2], [3]], ValueError, "inhomogeneous"),
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
    calls = [table.pull, worker.clock, worker.barrier, lambda: worker.table("u", shape=1),
             lambda: table.push([1, 2]).wait(), lambda: table.push_pull([1, 2]).wait()]  # fmt: skip
    while calls:
        with pytest.raises(leeway.FailedPrecondition, match="left"):
            calls.pop()()
    assert ticket.done()
    assert "asp" in repr(table) and worker.rank == 0
    worker = table = None
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


@pytest.mark.parametrize(
    "call, kind",
    [
        (lambda w, t: w.open("misused\0"), leeway.InvalidArgument),
        (lambda w, t: w.table("misused\0", shape=(2, 3)), leeway.InvalidArgument),
        (lambda w, t: w.table("zero byte", shape=1, updater="add\0"), leeway.InvalidArgument),
        (lambda w, t: t.set_codec("none\0"), leeway.InvalidArgument),
        (lambda w, t: t.change(**{"nonfinite": "count\0"}), leeway.InvalidArgument),
        (lambda w, t: w.call(0, "leeway\0"), leeway.InvalidArgument),
        (lambda w, t: w.barrier("all\0", timeout=1), leeway.InvalidArgument),
        (lambda w, t: w.checkpoint("/tmp\0"), leeway.InvalidArgument),
        (lambda w, t: leeway.connect(scheduler="127.0.0.1:1\0", connect_timeout_ms=1), leeway.InvalidArgument),
        (lambda w, t: leeway.handler("zero\0")(print), leeway.InvalidArgument),
        (lambda w, t: w.open("\ud800"), ValueError),
        (lambda w, t: w.open(b"misused"), TypeError),
        (lambda w, t: w.open(None), TypeError),
        (lambda w, t: w.call(0, "none", "text"), TypeError),
    ],
)  # fmt: skip
def test_texts_that_are_none(w, table, call, kind):
    with pytest.raises(kind):
        call(w, table)


def test_sizes_that_are_none(w):
    for wrong in ("34", (2.7,), 2.5, None, [None]):
        with pytest.raises(TypeError):
            w.table("sizes", shape=wrong)
        with pytest.raises(TypeError):
            w.allocate(wrong)
    for wrong in (-1, (-2, -3)):
        with pytest.raises(leeway.InvalidArgument, match="below 0"):
            w.allocate(wrong)
    with pytest.raises(leeway.InvalidArgument, match="below 0"):
        w.table("sizes", dim=-1)
    assert w.table("sizes", shape=np.int64(3)).shape == (3,) and w.allocate(np.int8(3)).shape == (3,)


def test_numbers_that_a_table_of_integers_cannot_hold(w):
    table = w.table("whole", shape=2, dtype="int32", consistency="asp")
    for wrong in ([2**31, 0], [0.5, 0], [float("nan"), 0], [2**70, 0]):
        with pytest.raises((ValueError, TypeError)):
            table.push(wrong)
    table.push([2.0, -1]).wait()
    assert table.pull().tolist() == [2, -1]


def test_masked_arrays_are_refused(w, table):
    masked = np.ma.array(np.ones((2, 3), np.float32), mask=True)
    rows = w.table("masked", dim=1, consistency="asp")
    for call in (lambda: table.push(masked), lambda: table.pull(out=masked),
                 lambda: rows.pull(np.ma.array([1, 2], mask=[0, 1]))):  # fmt: skip
        with pytest.raises(TypeError, match="mask"):
            call()


def test_a_key_below_0_among_large_ones_is_refused(w):
    rows = w.table("keys below 0", dim=1, consistency="asp")
    with pytest.raises(ValueError, match="key -1 is below 0"):
        rows.pull([2**63, -1])


def test_copies_are_refused(w, table):
    ticket = table.pull_async()
    for one in (w, table, ticket):
        for way in (copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="belongs to one process"):
                way(one)
    ticket.wait()


def test_callbacks_are_functions(table):
    with pytest.raises(TypeError, match="a callback is a function"):
        table.pull_async().add_done_callback(None)


def test_a_signal_between_submission_and_ticket_frees_no_array(w, monkeypatch):
    """Ctrl-C may come just as the call of C returns: the array is kept until the operation is over."""
    table = w.table("struck", shape=1 << 20, consistency="asp")
    real = leeway.tables.lib

    class Struck:
        def leeway_push(self, *arguments):
            assert not real.leeway_push(*arguments)
            raise KeyboardInterrupt

    values = np.ones(1 << 20, np.float32)
    freed = weakref.ref(values)
    with monkeypatch.context() as patch:
        patch.setattr(leeway.tables, "lib", Struck())
        patch.setattr(leeway.Ticket.__del__, "__defaults__", (Pending(), leeway.tables.ffi.NULL))
        with pytest.raises(KeyboardInterrupt):
            table.push(values)
    del values
    gc.collect()
    assert freed() is not None
    assert (table.pull() == 1).all()


class Pending:
    """The library while no operation is over."""

    def leeway_done(self, worker, ticket):
        return 0


def test_an_interrupt_is_raised_in_its_own_thread_and_only_once():
    errors = leeway.errors
    errors._keep_interrupt(None, KeyboardInterrupt(), None)
    raised = []
    other = threading.Thread(target=lambda: raised.append(errors.raise_interrupt()))
    other.start()
    other.join()
    assert raised == [None]
    with pytest.raises(KeyboardInterrupt):
        errors.raise_interrupt()
    errors._keep_interrupt(None, KeyboardInterrupt(), None)
    errors._interrupted(None)  # of a later wait
    errors.raise_interrupt()


def test_signals_end_a_wait_where_another_thread_has_imported_leeway():
    status, text = run(
        """
        import signal, threading, time
        def load():
            import leeway
        thread = threading.Thread(target=load)
        thread.start()
        thread.join()
        import leeway
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        begun = time.monotonic()
        try:
            leeway.connect(scheduler="127.0.0.1:1", connect_timeout_ms=30000)
        except KeyboardInterrupt:
            print(time.monotonic() - begun < 20)
        """
    )
    assert (status, text) == (0, "True\n")
