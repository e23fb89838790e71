"""Updaters, codecs and handlers in Python, on servers in Python."""

import subprocess
import sys
from pathlib import Path

import leeway
import numpy as np
import pytest
from leeway.launcher import LaunchError


def extend():
    @leeway.updater("signs")
    class Signs:
        state = 1

        def __init__(self, step):
            if not step > 0:
                raise ValueError("step is positive")
            self.step = step

        def update(self, value, gradient, state, step, lr):
            state[0][:] += 1
            assert state[0][0] in (step, 1)  # 1 where it is tried
            value -= self.step * np.sign(gradient)

    @leeway.updater("broken")
    class Broken:
        def update(self, value, gradient, state, step, lr):
            value += no_such_name  # noqa: F821

    @leeway.updater("later")
    class Later:
        def update(self, value, gradient, state, step, lr):
            if step > 1:
                raise ZeroDivisionError("later")
            value += gradient

    @leeway.handler("greet")
    def greet(caller, request):
        if not request:
            raise leeway.OutOfRange("say your name")
        if request == b"divide":
            return 1 // 0
        return b"server %d: hello, " % caller.server_rank + request

    @leeway.codec("tenths")
    class Tenths:
        bytes_for_element = 1

        def __init__(self, value="10"):
            self.scale = float(value)

        def encode(self, values):
            return np.clip(np.round(values * self.scale), -127, 127).astype(np.int8).tobytes()

        def decode(self, data, shape):
            return np.frombuffer(data, np.int8).reshape(shape).astype(np.float32) / self.scale


def use(worker):
    table = worker.table("signs", shape=3, updater=leeway.Updater("signs", step=0.5), consistency="asp")
    for _ in range(3):
        table.push(np.float32([1, -2, 0])).wait()
    assert table.pull().tolist() == [-1.5, 1.5, 0]
    for parameters, text in (({"step": -1}, "step is positive"), ({"size": 1}, "size")):
        with pytest.raises(leeway.InvalidArgument, match=text):
            worker.table("wrong", shape=1, updater=leeway.Updater("signs", **parameters))
    with pytest.raises(leeway.InvalidArgument, match="no_such_name"):
        worker.table("broken", shape=1, updater="broken")

    for server in range(2):
        assert worker.call(server, "greet", b"you") == b"server %d: hello, you" % server
    with pytest.raises(leeway.OutOfRange, match="say your name"):
        worker.call(0, "greet")
    with pytest.raises(leeway.Internal, match="handler 'greet': ZeroDivisionError"):
        worker.call(0, "greet", b"divide")

    coded = worker.table("coded", shape=1000, codec="tenths", error_feedback="off", consistency="asp")
    coded.push(np.full(1000, 0.33, np.float32)).wait()
    assert np.allclose(coded.pull(), 0.3)
    fed = worker.table("fed", shape=1000, codec="tenths")
    for expected in (0.3, 0.7, 1.0):  # what a push leaves out comes with a later one
        ticket = fed.push_pull(np.full(1000, 0.33, np.float32))
        worker.clock()
        assert np.allclose(ticket.wait(), expected)
    rows = worker.table("rows", dim=4, codec="tenths:100", error_feedback="off", consistency="asp")
    rows.push([7, 8], np.full((2, 4), 0.25, np.float32)).wait()
    assert np.allclose(rows.pull([8]), 0.25)
    return True


def test_servers_have_updaters_codecs_and_handlers_in_python():
    assert leeway.launch(use, servers=2, setup=extend, output=False) == [True]


def push_twice(worker):
    table = worker.table("later", shape=1, updater="later", consistency="asp")
    table.push([1]).wait()
    table.push([1], timeout=10).wait()


def test_an_updater_that_fails_ends_its_server():
    with pytest.raises(LaunchError, match="(?s)in update.*ZeroDivisionError: later.*the server ends"):
        leeway.launch(push_twice, setup=extend, output=False)


def wrong_setup():
    raise RuntimeError("no setup")


def test_a_setup_that_fails_is_reported():
    with pytest.raises(LaunchError, match="(?s)has failed.*RuntimeError: no setup"):
        leeway.launch(use, setup=wrong_setup, output=False)


def test_names_are_taken_once():
    leeway.handler("taken")(lambda caller, request: None)
    with pytest.raises(leeway.AlreadyExists, match="taken"):
        leeway.handler("taken")(lambda caller, request: None)
    with pytest.raises(leeway.InvalidArgument):
        leeway.codec("not a name!")(object)
    with pytest.raises(leeway.InvalidArgument, match="LEEWAY_SCHEDULER"):
        leeway.serve(schedular="x")


def test_the_example_runs():
    example = Path(__file__).parents[2] / "examples" / "python" / "own_server.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and "of server 0: hello" in done.stdout, done.stdout + done.stderr


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Odd(leeway.Error):
    code = 0


def extend_badly():
    def fail(how):
        if how == b"exit":
            raise SystemExit(3)
        if how == b"surrogate":
            raise ValueError("\udcff")
        if how == b"unspeakable":
            raise Unspeakable
        if how == b"odd":
            raise Odd("odd")

    @leeway.handler("bad")
    def bad(caller, request):
        fail(request)
        return {b"text": "text", b"array": np.arange(3.0), b"view": memoryview(b"123456")[::2]}[request]

    @leeway.updater("bad")
    class Bad:
        def __init__(self, how):
            fail([b"exit", b"surrogate", b"unspeakable", b"odd"][int(how)])

    @leeway.codec("bad")
    class BadCodec:
        def __init__(self, value):
            fail(value.encode())
            self.value = value
            self.bytes_for_element = {"negative": -1, "huge": 1e30, "nan": float("nan"), "bits": 0.125}.get(
                value, 8
            )

        def encode(self, values):
            if self.value == "grows":
                self.bytes_for_element = 1 << 20
                return b"x" * (1 << 20)
            return {"number": 5, "none": None, "text": "x", "bits": np.packbits(values > 0)}[self.value]

        def decode(self, data, shape):
            return np.unpackbits(np.frombuffer(data, np.uint8))[: shape[0]].astype(np.float32)


def use_badly(worker):
    for how in (b"exit", b"surrogate", b"unspeakable", b"odd", b"text", b"view"):
        with pytest.raises(leeway.Internal, match="handler 'bad'"):
            worker.call(0, "bad", how)
    assert worker.call(0, "bad", memoryview(b"array")) == np.arange(3.0).tobytes()
    for how in range(4):
        with pytest.raises(leeway.InvalidArgument, match="updater 'bad'"):
            worker.table("bad", shape=1, updater=leeway.Updater("bad", how=how))
    for how in ("exit", "surrogate", "unspeakable", "odd", "negative", "huge", "nan"):
        with pytest.raises(leeway.InvalidArgument, match="codec 'bad'"):
            worker.table("bad " + how, shape=1, codec="bad:" + how, consistency="asp")
    for how in ("number", "none", "text", "grows"):
        table = worker.table(
            "bad " + how, shape=64, codec="bad:" + how, error_feedback="off", consistency="asp"
        )
        table.push(np.ones(64, np.float32)).wait()
        assert (table.pull() == 1).all()  # it went as it is
    table = worker.table("bits", shape=64, codec="bad:bits", error_feedback="off", consistency="asp")
    table.push(np.ones(64, np.float32)).wait()
    assert (table.pull() == 1).all()
    return True


def test_what_raises_oddly_or_returns_nonsense_is_an_error(capfd):
    assert leeway.launch(use_badly, setup=extend_badly) == [True]
    shown = capfd.readouterr().out
    assert "ValueError: encode gives 1048576 bytes" in shown and "TypeError: memoryview" in shown
