"""Published models: what readers get, how they wait, and wrong use."""

import asyncio
import copy
import gc
import json
import signal
import struct
import subprocess
import threading
import weakref

import leeway
import numpy as np
import pytest
from leeway.launcher import command


def state_of(value):
    return {"w": np.full((3, 5), value, np.float32), "b": np.full(7, value, np.float64)}


def expect(arrays, value):
    assert arrays.keys() == {"w", "b"}
    for name, array in state_of(value).items():
        assert array.dtype == arrays[name].dtype and np.array_equal(array, arrays[name])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64"])
def test_arrays_of_every_dtype_come_as_they_were(w, dtype):
    values = np.arange(24).astype(dtype)
    state = {"plain": values.reshape(2, 3, 4), "turned": values.reshape(4, 6).T, "number": values[5]}
    assert leeway.publish(state, f"of {dtype}", worker=w) == 1
    policy = leeway.subscribe(f"of {dtype}", worker=w)
    arrays = policy.fetch()
    assert list(arrays) == ["plain", "turned", "number"]
    for name, array in arrays.items():
        assert array.dtype == dtype and np.array_equal(array, np.atleast_1d(state[name])), name
    assert arrays["number"].shape == (1,)
    assert policy.version == 1 and policy.clock == w.clocks
    size = values.nbytes * 2 + values.itemsize
    assert policy.stats() == {"versions_fetched": 1, "versions_skipped": 0, "bytes_received": size}


def test_a_state_may_be_changed_once_it_is_published(w):
    state = state_of(1)
    leeway.publish(state, "changed", worker=w)
    policy = leeway.subscribe("changed", worker=w)
    state["w"][:] = state["b"][:] = 2
    own = policy.fetch()
    expect(own, 1)
    own["w"][:] = 5
    expect(policy.arrays(), 1)
    assert leeway.publish(state, "changed", worker=w) == 2
    expect(policy.fetch(), 2)
    assert (own["w"] == 5).all()


def test_views_are_of_the_version_that_was_applied_last(w):
    leeway.publish(state_of(1), "viewed", worker=w)
    policy = leeway.subscribe("viewed", worker=w)
    other = leeway.subscribe("viewed", worker=w)
    other.fetch()
    view = policy.fetch(copy=False)["w"]
    with pytest.raises(ValueError):
        view[0] = 1
    assert policy.digest == other.digest != 0
    leeway.publish(state_of(2), "viewed", worker=w)
    assert policy.wait_newer() == 2
    assert policy.wait_newer(timeout=0) == 2  # it is there already
    assert policy.version == 1 and (view == 1).all()
    expect(policy.fetch(timeout=0), 2)
    assert (view == 2).all() and policy.digest != other.digest
    gone = weakref.ref(policy)
    del policy
    gc.collect()
    assert gone() is None and (view == 2).all()


def test_arrays_that_were_written_to_are_told_of_and_fetched_anew(w):
    leeway.publish(state_of(1), "damaged", worker=w)
    policy = leeway.subscribe("damaged", worker=w)
    view = policy.fetch(copy=False)["w"]
    view.flags.writeable = True
    view[0, 0] = 3
    with pytest.raises(leeway.DataLoss, match="damaged"):
        policy.fetch(timeout=0)
    assert policy.version == 0
    with pytest.raises(leeway.FailedPrecondition):
        policy.arrays()
    expect(policy.fetch(), 1)


@pytest.mark.parametrize("kept", [1, 4])
def test_a_reader_never_sees_a_mixture(cluster, kept):
    """With one version kept those that the reader has begun to fetch go: it goes on with the newest."""
    made = cluster(versions_kept=kept)
    versions = 60
    with made.connect() as trainer, made.connect(read_only=True) as reader:
        leeway.publish(state_of(1), "policy", worker=trainer)
        policy = leeway.subscribe("policy", worker=reader)

        def train():
            for version in range(2, versions + 1):
                assert leeway.publish(state_of(version), "policy", worker=trainer) == version

        training = threading.Thread(target=train)
        training.start()
        while policy.version < versions:
            expect(policy.fetch(), policy.version)
        training.join()
        stats = policy.stats()
        assert stats["versions_fetched"] + stats["versions_skipped"] == versions


def test_a_late_reader_begins_with_the_newest_version(cluster):
    made = cluster()
    with made.connect() as trainer:
        for version in (1, 2, 3):
            leeway.publish(state_of(version), "policy", worker=trainer)
        leeway.push_state(state_of(9), "policy", worker=trainer)
        with made.connect(read_only=True) as reader:
            policy = leeway.subscribe("policy", worker=reader)
            assert policy.version == 0
            expect(policy.fetch(), 3)
            assert policy.version == 3
            with pytest.raises(leeway.DeadlineExceeded, match="policy"):
                policy.fetch(timeout=0)
            with pytest.raises(leeway.FailedPrecondition, match="reader"):
                leeway.publish(state_of(1), "policy", worker=reader)


def test_several_workers_make_one_version_together(cluster):
    made = cluster(workers=2)
    arrays = {}

    def work():
        with made.connect() as w:
            mine = {str(w.rank): np.full(3, w.rank + 1, np.int64)}
            leeway.push_state(mine, "policy", worker=w)
            w.barrier("policy")
            if w.rank == 0:
                leeway.publish([w.open("policy/0"), w.open("policy/1")], "policy", worker=w)
                state = {"0": np.full(3, 7), "other": w.open("policy/1")}
                leeway.publish(state, "mixed", worker=w)
                for model in ("policy", "mixed"):
                    arrays[model] = leeway.subscribe(model, worker=w).fetch()
            w.barrier("end")

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: array.tolist() for name, array in arrays["policy"].items()} == {"0": [1] * 3, "1": [2] * 3}
    # Of a table of another model the whole name is kept.
    assert {name: array.tolist() for name, array in arrays["mixed"].items()} == {
        "policy/1": [2] * 3,
        "0": [7] * 3,
    }


def test_tables_of_a_training_are_published_as_they_are(w):
    table = w.table("trained", shape=4, updater=leeway.SGD(lr=1), consistency=leeway.SSP(2))
    table.push(np.ones(4, np.float32)).wait()
    assert leeway.publish([table], "training", worker=w) == 1
    assert leeway.subscribe("training", worker=w).fetch()["trained"].tolist() == [-1] * 4


def test_what_is_no_model_is_refused_by_name(w):
    dense = w.table("a dense one", shape=2, consistency="asp")
    sparse = w.table("a sparse one", dim=2, consistency="asp")
    with pytest.raises(leeway.NotFound, match="no such model"):
        leeway.subscribe("no such model", worker=w)
    for state, named in [
        ({"mask": np.ones(3, bool)}, "entry 'mask': dtype bool"),
        ({"small": np.ones(3, np.uint8)}, "entry 'small': dtype uint8"),
        ({"list": [1.0, 2.0]}, "entry 'list' is no array, but list"),
        ({"none": None}, "entry 'none'"),
        ({3: np.ones(3)}, "an entry's name is a str"),
        (3, "and not int"),
        ([np.ones(3)], "DenseTables, and not of ndarray"),
        ([sparse], "SparseTable"),
    ]:
        with pytest.raises(TypeError, match=named):
            leeway.publish(state, "wrong", worker=w)
    with pytest.raises(TypeError, match="model is a str"):
        leeway.publish(state_of(1), 3, worker=w)
    with pytest.raises(leeway.InvalidArgument, match="twice"):
        leeway.publish([dense, dense], "wrong", worker=w)
    for state in ({}, [], {"empty": np.ones((0, 3), np.float32)}):
        with pytest.raises(leeway.InvalidArgument):
            leeway.publish(state, "wrong", worker=w)
    leeway.push_state({"w": np.ones(3, np.float32)}, "wrong", worker=w)
    for value in (np.ones(4, np.float32), np.ones(3, np.float64)):
        with pytest.raises(leeway.AlreadyExists, match="wrong/w"):
            leeway.push_state({"w": value}, "wrong", worker=w)
    with pytest.raises(leeway.NotFound):
        leeway.subscribe("wrong", worker=w)


def test_a_subscription_has_no_arrays_before_its_first_version(w):
    leeway.publish(state_of(1), "unread", worker=w)
    policy = leeway.subscribe("unread", worker=w)
    with pytest.raises(leeway.FailedPrecondition, match="unread"):
        policy.arrays()
    with pytest.raises(TypeError, match="one process"):
        copy.copy(policy)
    assert "unread" in repr(policy) and policy.model == "unread"


def test_other_tables_are_subscribed_to_anew(w):
    leeway.publish(state_of(1), "regrown", worker=w)
    policy = leeway.subscribe("regrown", worker=w)
    policy.fetch()
    leeway.publish({**state_of(2), "more": np.ones(2)}, "regrown", worker=w)
    with pytest.raises(leeway.FailedPrecondition, match="subscribe anew"):
        policy.fetch()
    expect(policy.arrays(), 1)
    arrays = leeway.subscribe("regrown", worker=w).fetch()
    assert arrays.keys() == {"w", "b", "more"}


def test_the_end_of_a_worker_ends_a_wait_and_leaves_the_arrays(cluster):
    made = cluster()
    trainer = made.connect()
    leeway.publish(state_of(1), "policy", worker=trainer)
    reader = made.connect(read_only=True)
    policy = leeway.subscribe("policy", worker=reader)
    policy.fetch()
    ended = []

    def follow():
        try:
            policy.fetch(timeout=600)
        except leeway.Error as error:
            ended.append(type(error))

    waiting = threading.Thread(target=follow)
    waiting.start()
    reader.close()
    waiting.join(timeout=60)
    assert ended == [leeway.FailedPrecondition]
    with pytest.raises(leeway.FailedPrecondition, match="left"):
        policy.fetch()
    expect(policy.arrays(), 1)
    trainer.close()
    with pytest.raises(leeway.FailedPrecondition, match="left"):
        leeway.publish(state_of(2), "policy", worker=trainer)


def test_a_worker_that_is_dropped_leaves_though_it_has_published(cluster):
    worker = cluster().connect()
    leeway.publish(state_of(1), "policy", worker=worker)
    gone = weakref.ref(worker)
    del worker
    assert gone() is None


def test_a_signal_ends_a_wait_for_a_version(w):
    leeway.publish(state_of(1), "awaited", worker=w)
    policy = leeway.subscribe("awaited", worker=w)
    policy.fetch()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            policy.fetch(timeout=600)
    finally:
        signal.signal(signal.SIGALRM, before)
    expect(policy.arrays(), 1)
    leeway.publish(state_of(2), "awaited", worker=w)
    expect(policy.fetch(), 2)


def test_an_interrupt_when_the_call_returns_loses_no_version(w, monkeypatch):
    leeway.publish(state_of(1), "struck", worker=w)
    policy = leeway.subscribe("struck", worker=w)
    real = leeway.models.lib

    class Struck:
        def __getattr__(self, name):
            return getattr(real, name)

        def leeway_fetch(self, *arguments):
            assert not real.leeway_fetch(*arguments)
            raise KeyboardInterrupt

        def leeway_apply(self, *arguments):
            assert not real.leeway_apply(*arguments)
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(leeway.models, "lib", Struck())
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                policy.fetch(timeout=0)
    assert policy.version == 1
    expect(policy.arrays(), 1)
    with pytest.raises(leeway.DeadlineExceeded):
        policy.fetch(timeout=0)


def test_versions_are_iterated_over_with_await(w):
    leeway.publish(state_of(1), "iterated", worker=w)
    policy = leeway.subscribe("iterated", worker=w)
    seen = []

    async def follow():
        async for version in policy:
            expect(policy.arrays(), version)
            seen.append(version)
            if version == 3:
                return
            # A turn of the wait ends without one, meanwhile.
            training = threading.Thread(target=publish, args=(version + 1,))
            asyncio.get_running_loop().call_later(0.5, training.start)

    def publish(value):
        leeway.publish(state_of(value), "iterated", worker=w)

    asyncio.run(follow())
    assert seen == [1, 2, 3]

    async def give_up():
        async def forever():
            async for _ in policy:
                pass

        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(forever(), 0.1)

    asyncio.run(give_up())
    with pytest.raises(leeway.DeadlineExceeded):
        policy.fetch(timeout=0)


def run(made, *arguments):
    done = subprocess.run(
        [command(), *arguments, "--scheduler", made.settings["scheduler"]],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def lines_of(text):
    return [line.split() for line in text.splitlines()]


def test_commands_list_show_and_fetch_models(cluster, tmp_path):
    made = cluster(versions_kept=2)
    with made.connect() as w:
        assert run(made, "model", "list")[:2] == (0, "no model has been published\n")
        for version in (1, 2, 3):
            leeway.publish(state_of(version), "policy", worker=w)
            w.clock()
        leeway.publish([w.open("policy/b")], "part", worker=w)
        assert lines_of(run(made, "model", "list")[1]) == [
            ["model", "version", "clock", "kept", "tables"],
            ["part", "1", "3", "1", "1"],
            ["policy", "3", "2", "2", "2"],
        ]
        assert lines_of(run(made, "model", "show", "policy")[1]) == [
            ["version", "clock"], ["2", "1"], ["3", "2"], [], ["policy/w"], ["policy/b"],
        ]  # fmt: skip
        assert ["policy", "3", "2", "2", "2"] in lines_of(run(made, "status")[1])
        assert json.loads(run(made, "status", "--json")[1])["models"][1] == {
            "name": "policy", "tables": 2, "version": 3, "clock": 2, "versions_kept": 2,
        }  # fmt: skip
        code, said, wrong = run(made, "model", "fetch", "policy")
        assert (code, said) == (0, "version 3 of clock 2, 2 tables, 116 B\n"), wrong
        file = tmp_path / "policy.safetensors"
        file.write_text("an older one")
        code, said, wrong = run(made, "model", "fetch", "policy", "--out", str(file))
        assert (code, said.startswith(f"{file}: version 3 of clock 2, 2 tables, ")) == (0, True), said + wrong
        assert list(tmp_path.iterdir()) == [file]
        data = file.read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + size])
        assert header.pop("__metadata__") == {"model": "policy", "version": "3", "clock": "2"}
        expect(
            {
                name: np.frombuffer(
                    data[8 + size :][slice(*one["data_offsets"])], {"F32": "f4", "F64": "f8"}[one["dtype"]]
                ).reshape(one["shape"])
                for name, one in header.items()
            },
            3,
        )
        for arguments, named in [
            (["show", "none"], "part, policy"),
            (["fetch", "none"], "part, policy"),
            (["fetch", "policy", "--out", str(tmp_path / "no" / "file")], str(tmp_path / "no")),
        ]:
            code, said, wrong = run(made, "model", *arguments)
            complaints = [line for line in wrong.splitlines() if line.startswith("leeway: ")]
            assert (code, said, len(complaints)) == (1, "", 1) and named in complaints[0], wrong
