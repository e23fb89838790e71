"""Pushes and pulls of each kind of table, with arrays of each kind."""

import leeway
import numpy as np
import pytest


def test_dense_tables_are_pushed_and_pulled(w):
    table = w.table("dense", shape=(2, 3), consistency=leeway.ASP())
    assert isinstance(table, leeway.DenseTable) and table.shape == (2, 3) and table.dtype == "float32"
    ones = np.ones((2, 3), np.float32)
    assert table.push(ones).wait() is None
    table.push(2 * ones.ravel()).wait()
    assert (table.pull() == 3).all() and table.pull().shape == (2, 3)
    out = np.empty((2, 3), np.float32)
    assert table.pull(out=out) is out and (out == 3).all()
    assert (table.push_pull(ones).wait() == 4).all()
    assert "asp" in repr(table) and table.name == "dense" and table.worker is w


def test_sparse_tables_take_keys_of_any_shape_and_integer_type(w):
    table = w.table("sparse", dim=4, initializer="constant:0.5", consistency="asp")
    keys = np.array([[1, 2], [3, 1]])
    table.push(keys, np.ones((2, 2, 4), np.float32)).wait()
    rows = table.pull(keys)
    assert rows.shape == (2, 2, 4)
    assert (rows[0, 0] == 2.5).all() and (rows[0, 1] == 1.5).all() and (rows[0, 0] == rows[1, 1]).all()
    for other in ([2, 2**63], np.array([2, 9], np.int32), np.array([2, 9], np.uint64), range(2, 4)):
        assert (table.pull(other)[0] == 1.5).all()
    assert table.pull([]).shape == (0, 4)
    out = np.empty((1, 4), np.float32)
    assert table.pull([77], out=out) is out and (out == 0.5).all()
    assert (table.push_pull([77], np.ones((1, 4), np.float32)).wait() == 1.5).all()


def test_ragged_tables_have_rows_of_different_widths(w):
    table = w.table("ragged", ragged=True, updater=leeway.Assign(), consistency="asp")
    table.push([5, 9, 1], [np.arange(3, dtype=np.float32), np.float32([7]), np.empty(0, np.float32)]).wait()
    rows = table.pull([9, 5, 2])
    assert [row.tolist() for row in rows] == [[7], [0, 1, 2], []]
    assert table.pull([]) == []
    with pytest.raises(leeway.InvalidArgument, match="3 keys"):
        table.push([1, 2, 3], [np.float32([1])])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64"])
def test_dtypes_are_those_of_numpy(w, dtype):
    table = w.table("dtype " + dtype, shape=3, dtype=np.dtype(dtype), consistency="asp")
    table.push(np.array([1, 2, 3], dtype)).wait()
    pulled = table.pull()
    assert pulled.dtype == dtype and pulled.tolist() == [1, 2, 3]
    table.push([1, 1, 1]).wait()  # a list has the table's dtype
    assert table.pull().tolist() == [2, 3, 4]


def test_tensors_of_torch_are_used_where_they_lie(w):
    torch = pytest.importorskip("torch")
    table = w.table("torch", shape=(2, 2), dtype=torch.bfloat16, consistency="asp")
    values = torch.tensor([[1, 2], [3, 4]], dtype=torch.bfloat16)
    table.push(values).wait()
    pulled = table.pull()
    assert pulled.dtype == torch.bfloat16 and torch.equal(pulled, values)
    out = torch.empty(2, 2, dtype=torch.bfloat16)
    assert table.pull(out=out) is out and torch.equal(out, values)
    rows = w.table("torch rows", dim=2, consistency="asp")
    keys = torch.tensor([4, 5])
    rows.push(keys, torch.ones(2, 2, requires_grad=True)).wait()
    assert torch.equal(rows.pull(keys), torch.ones(2, 2))
    with pytest.raises(ValueError, match="contiguous"):
        table.push(values.t())
    with pytest.raises(TypeError, match="complex64"):
        table.push(torch.zeros(2, 2, dtype=torch.complex64))


def test_other_arrays_come_by_dlpack(w):
    class Other:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    table = w.table("dlpack", shape=2, consistency="asp")
    table.push(Other(np.float32([1, 2]))).wait()
    assert table.pull().tolist() == [1, 2]


def test_clocks_stats_and_barriers(w):
    before = w.clocks
    table = w.table("clocked", shape=1, consistency=leeway.SSP(2))
    for _ in w.iterations(before + 3):
        table.push([1]).wait()
        assert table.pull()[0] >= 1
    assert w.clocks == before + 3 and w.clock() == before + 4
    stats = w.stats()
    assert stats["staleness_violations"] == 0 and all(
        isinstance(key, int) for key in stats["staleness_histogram"]
    )
    w.barrier("all", timeout=10)
    w.barrier(servers=True)
    assert (w.rank, w.num_workers, w.num_servers) == (0, 1, 2) and repr(w) == "<leeway.Worker 0 of 1>"


def test_a_push_pull_of_a_bsp_table_is_answered_after_the_clock(w):
    table = w.table("bsp", shape=2, updater=leeway.SGD(lr=0.5))
    ticket = table.push_pull(np.ones(2, np.float32))
    w.clock()
    assert ticket.wait().tolist() == [-0.5, -0.5]
    assert ticket.info.clock == w.clocks and ticket.info.parts_dropped == 0


def test_options_of_operations(w):
    table = w.table("options", shape=1, updater=leeway.SGD(lr=1), consistency="asp")
    values = np.ones(1, np.float32)
    ticket = table.push(values, lr=0.25, priority=3, copy=True, timeout=20)
    values[:] = 1000
    ticket.wait()
    assert table.pull(priority=1).tolist() == [-0.25]
    for timeout in (0, -1, float("nan")):
        with pytest.raises(leeway.DeadlineExceeded):
            table.pull(timeout=timeout)
    with pytest.raises(TimeoutError):
        table.push(values, timeout=0).wait()


def test_tables_are_changed_in_use(w):
    table = w.table(
        "changed",
        shape=1,
        updater=leeway.SGD(lr=1),
        consistency="asp",
        codec="fp16",
        codecs="fp16 none",
    )
    for _ in w.iterations(table.change(learning_rate=0.5)):
        pass
    table.push([1]).wait()
    assert table.pull().tolist() == [-0.5]
    assert table.set_codec("none") >= 0
    with pytest.raises(leeway.InvalidArgument, match="momentum"):
        table.change(momentum=0.5)


def test_allocated_arrays_live_as_long_as_a_view(w):
    whole = w.allocate((4, 1024))
    view = whole[1]
    assert whole.shape == (4, 1024) and not whole.any() and view.flags.c_contiguous
    del whole
    view[:] = 3
    table = w.table("allocated", shape=1024, consistency="asp")
    table.push(view).wait()
    assert (table.pull() == 3).all()
    assert w.allocate(0).size == 0
    with pytest.raises(leeway.ResourceExhausted):
        w.allocate(2**50)


def test_updaters_and_consistencies_are_texts():
    assert str(leeway.Adagrad(lr=0.05)).startswith("adagrad:learning_rate=0.05,epsilon=1e-10")
    assert (
        str(leeway.SGD(0.1, momentum=0.9, nesterov=True))
        == "nesterov:learning_rate=0.1,momentum=0.9,weight_decay=0.0"
    )
    assert leeway.Backup(14, of=16, drop=True) == "backup:14/16,drop"
    assert leeway.ASP().compensated("adaptive:2/0.95") == "asp,dc=adaptive:2/0.95"


@pytest.mark.parametrize(
    "updater",
    [leeway.Add(), leeway.Assign(), leeway.SGD(), leeway.SGD(momentum=0.9), leeway.Adagrad(), leeway.RMSprop(),
     leeway.Adam(), leeway.AdamW(), leeway.FTRL()],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("number", range(1))
def test_servers_know_the_updaters(w, updater, number):
    table = w.table(f"updater {updater}"[:60], shape=2, updater=updater, consistency="asp")
    table.push([1, 1]).wait()
    assert table.pull()[0] != 0


@pytest.mark.parametrize(
    "consistency",
    [leeway.BSP(), leeway.SSP(3), leeway.ASP(), leeway.Backup(1, of=1), leeway.DSSP(1, 4), leeway.PSP(2, 1),
     leeway.Softsync(1), leeway.FedBuff(2), leeway.ASP().weighted("1/tau"), leeway.ASP().compensated(0.04)],
)  # fmt: skip
def test_servers_know_the_consistencies(w, consistency):
    table = w.table(f"as {consistency}", shape=2, updater=leeway.SGD(), consistency=consistency)
    assert f"{consistency}" in repr(table)


def test_checkpoints(cluster, tmp_path):
    w = cluster().connect()
    table = w.table("saved", shape=2, consistency="asp")
    table.push([1, 2]).wait()
    folder = w.checkpoint(tmp_path, timeout=60)
    assert folder.startswith(str(tmp_path))
    w.save_residuals(tmp_path)
    w.load_residuals(tmp_path, rank=0)
    with pytest.raises(leeway.NotFound):
        w.load_residuals(tmp_path, rank=7)


def test_ragged_rows_are_lists_or_tensors(w):
    table = w.table("ragged lists", ragged=True, updater="assign", consistency="asp")
    table.push([1, 2], [[1, 2], [3]]).wait()
    assert [row.tolist() for row in table.pull([1, 2])] == [[1, 2], [3]]
    torch = pytest.importorskip("torch")
    halves = w.table("ragged torch", ragged=True, dtype="bfloat16", updater="assign", consistency="asp")
    halves.push(
        [1, 2],
        [torch.ones(2, dtype=torch.bfloat16, requires_grad=True), torch.empty(0, dtype=torch.bfloat16)],
    ).wait()
    assert [row.tolist() for row in halves.pull([1, 2])] == [[1, 1], []]


def test_tensors_that_are_read_otherwise_than_they_lie_are_refused(w):
    torch = pytest.importorskip("torch")
    table = w.table("lazy", shape=2, consistency="asp")
    with pytest.raises(ValueError, match="resolve_neg"):
        table.push(torch._neg_view(torch.ones(2)))
    with pytest.raises(TypeError, match="to_dense"):
        table.push(torch.ones(2).to_sparse())


def test_a_tensor_that_gets_other_data_keeps_those_under_way(w):
    torch = pytest.importorskip("torch")
    table = w.table("replaced", shape=1 << 20, consistency="asp")
    tensor = torch.ones(1 << 20)
    address = tensor.data_ptr()
    ticket = table.push(tensor)
    tensor.data = torch.zeros(1 << 20)
    assert ticket._kept.owner.data_ptr() == address
    ticket.wait()
    assert (table.pull() == 1).all()


def test_nesterov_needs_a_momentum():
    with pytest.raises(ValueError, match="momentum"):
        leeway.SGD(nesterov=True)


def test_settings_of_none_are_not_set():
    with pytest.raises(leeway.InvalidArgument, match="LEEWAY_SCHEDULER is not set"):
        leeway.connect(scheduler=None)
