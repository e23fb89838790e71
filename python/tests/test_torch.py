"""leeway.torch beside plain torch: the same numbers, overlap, late workers, wrong use."""

import copy
import sys
import threading
import types
from pathlib import Path

import leeway
import pytest
from leeway.ticket import Ticket

torch = pytest.importorskip("torch")

import leeway.torch  # noqa: E402


def model_of(seed=0, width=3):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Tanh(), torch.nn.Linear(width, 2))


def batch_of(seed, rows=8):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, 4, generator=generator), torch.randn(rows, 2, generator=generator)


def train(model, optimizer, steps, rows=slice(None)):
    for step in range(steps):
        x, y = batch_of(step)
        optimizer.zero_grad()
        ((model(x[rows]) - y[rows]) ** 2).mean().backward()
        optimizer.step()


def equal(a, b):
    return all(torch.allclose(a[name], b[name], atol=1e-6) for name in b) and a.keys() == b.keys()


def in_threads(*bodies):
    """Runs them at once and raises what the first of them that failed has raised."""
    failed = []

    def run(body):
        try:
            body()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize(
    ("updater", "plain", "options"),
    [
        (leeway.SGD(0.1, momentum=0.9, weight_decay=0.01), torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
        (leeway.AdamW(0.01), torch.optim.AdamW, {"lr": 0.01}),
    ],
)  # fmt: skip
def test_a_step_is_that_of_torch(w, overlap, updater, plain, options):
    ours, theirs = model_of(), model_of()
    name = f"step {plain.__name__} {overlap}"
    optimizer = leeway.torch.DistributedOptimizer(ours, worker=w, updater=updater, overlap=overlap, name=name)
    train(ours, optimizer, 10)
    train(theirs, plain(theirs.parameters(), **options), 10)
    assert equal(ours.state_dict(), theirs.state_dict())
    # Two linear layers: one table, whose name says what it has.
    assert w.open(f"{name}/0.weight..2.bias").shape == (4 * 3 + 3 + 3 * 2 + 2,)


def test_overlap_pulls_within_backward_where_the_consistency_allows_it(w):
    for consistency, early in ((leeway.ASP(), True), (leeway.SSP(1), True), (leeway.BSP(), False)):
        ours, theirs = model_of(), model_of()
        optimizer = leeway.torch.DistributedOptimizer(
            ours, worker=w, updater=leeway.SGD(0.1), consistency=consistency, overlap=True,
            bucket_bytes=1, name=f"early {consistency}",
        )  # fmt: skip
        train(ours, optimizer, 5)
        train(theirs, torch.optim.SGD(theirs.parameters(), 0.1), 5)
        assert equal(ours.state_dict(), theirs.state_dict())
        backward(ours)
        assert all((bucket.pull is not None) == early for bucket in optimizer._buckets)


def test_workers_train_one_model_by_the_mean_of_their_gradients(cluster):
    members = cluster(workers=2)
    models = [model_of(seed=rank) for rank in range(2)]  # here, as torch has one seed for all threads
    states = {}

    def work(half):
        with members.connect() as w:
            model = models[w.rank]  # it begins with those of rank 0
            optimizer = leeway.torch.DistributedOptimizer(
                model, worker=w, updater=leeway.SGD(0.1), bucket_bytes=1, overlap=half == 0
            )
            train(model, optimizer, 5, slice(4 * half, 4 * half + 4))
            states[half] = model.state_dict()
            w.barrier()

    in_threads(lambda: work(0), lambda: work(1))
    alone = model_of()
    train(alone, torch.optim.SGD(alone.parameters(), 0.1), 5)
    assert equal(states[0], states[1]) and equal(states[0], alone.state_dict())


@pytest.mark.parametrize(
    "consistency",
    [leeway.SSP(2), leeway.ASP(), leeway.FedBuff(1), leeway.Softsync(1), leeway.Backup(1, of=1)],
)
def test_a_model_is_trained_by_any_consistency_and_codec(w, consistency):
    for codec in ("onebit", "topk:0.25", "none"):
        if codec != "none" and consistency.startswith(("fedbuff", "softsync", "backup")):
            continue
        model = model_of()
        before = {name: value.clone() for name, value in model.state_dict().items()}
        optimizer = leeway.torch.DistributedOptimizer(
            model, worker=w, updater=leeway.SGD(0.05), consistency=consistency, codec=codec,
            name=f"{consistency} {codec}",
        )  # fmt: skip
        assert equal(model.state_dict(), before), "values are not what a codec makes of them"
        train(model, optimizer, 30)
        x, y = batch_of(0)
        start = model_of()
        assert ((model(x) - y) ** 2).mean() < ((start(x) - y) ** 2).mean()


def train_until(clock, w, model, optimizer):
    while w.clocks < clock:
        train(model, optimizer, 1)


def test_a_worker_that_joins_late_takes_what_servers_have(cluster):
    members = cluster(workers=1)
    with members.connect() as first:
        model, other = model_of(), model_of(seed=1)
        optimizer = leeway.torch.DistributedOptimizer(model, worker=first, updater=leeway.SGD(0.1))
        train_until(4, first, model, optimizer)
        with members.connect(elastic=True) as second:

            def join():
                theirs = leeway.torch.DistributedOptimizer(other, worker=second, updater=leeway.SGD(0.1))
                train_until(9, second, other, theirs)

            in_threads(lambda: train_until(9, first, model, optimizer), join)
            assert equal(other.state_dict(), model.state_dict())
            with members.connect(read_only=True) as reader:
                seen = model_of(seed=2)
                leeway.torch.pull(seen, reader)
                assert equal(seen.state_dict(), model.state_dict())
                with pytest.raises(leeway.NotFound):
                    leeway.torch.pull(seen, reader, name="other")


def test_rates_of_groups_change_by_schedulers(w):
    ours, theirs = model_of(), model_of()
    optimizer = leeway.torch.DistributedOptimizer(
        [{"params": ours[0].parameters()}, {"params": ours[2].parameters(), "lr": 0.01}],
        worker=w, updater=leeway.SGD(0.1), name="groups",
    )  # fmt: skip
    plain = torch.optim.SGD(
        [{"params": theirs[0].parameters()}, {"params": theirs[2].parameters(), "lr": 0.01}], 0.1
    )
    for one, model in ((optimizer, ours), (plain, theirs)):
        scheduler = torch.optim.lr_scheduler.StepLR(one, 2, gamma=0.5)
        for _ in range(5):
            train(model, one, 1)
            scheduler.step()
    assert equal(ours.state_dict(), theirs.state_dict())
    saved = optimizer.state_dict()
    optimizer.param_groups[0]["lr"] = 7
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.025)
    train(ours, optimizer, 1)


def test_a_closure_and_gradients_that_are_added_up(w):
    ours, theirs = model_of(), model_of()
    optimizer = leeway.torch.DistributedOptimizer(
        ours, worker=w, updater=leeway.SGD(0.1), overlap=True, name="sums"
    )
    plain = torch.optim.SGD(theirs.parameters(), 0.1)
    (x, y), (a, b) = batch_of(1), batch_of(2)

    def loss_of(model):
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        return loss

    for _ in range(2):
        for one, model in ((optimizer, ours), (plain, theirs)):
            one.zero_grad()
            if model is ours:
                with one.accumulate():
                    ((model(a) - b) ** 2).mean().backward()
            else:
                ((model(a) - b) ** 2).mean().backward()
            loss = one.step(lambda model=model: loss_of(model))
            assert loss > 0
    assert equal(ours.state_dict(), theirs.state_dict())
    optimizer.detach()
    ours(x)


def test_states_are_files_of_safetensors(w, tmp_path):
    pytest.importorskip("safetensors")
    model, other = model_of(), model_of(seed=1)
    optimizer = leeway.torch.DistributedOptimizer(
        model, worker=w, updater=leeway.SGD(0.1), name="saved model"
    )
    train(model, optimizer, 2)
    leeway.torch.save(model, tmp_path / "model.safetensors")
    leeway.torch.load(other, tmp_path / "model.safetensors")
    assert equal(other.state_dict(), model.state_dict())
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_state_that_cannot_be_written_leaves_no_file(tmp_path, monkeypatch):
    def save_file(tensors, path):
        Path(path).write_bytes(b"half")
        raise OSError("the disk is full")

    monkeypatch.setitem(sys.modules, "safetensors", types.ModuleType("safetensors"))
    monkeypatch.setitem(sys.modules, "safetensors.torch", types.SimpleNamespace(save_file=save_file))
    with pytest.raises(OSError, match="disk is full"):
        leeway.torch.save(model_of(), tmp_path / "model.safetensors")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TypeError, match="step is a int, and safetensors files have tensors alone"):
        leeway.torch.save({"step": 1}, tmp_path / "model.safetensors")


def optimizer_of(w, name, model, **options):
    return leeway.torch.DistributedOptimizer(model, worker=w, updater=leeway.SGD(0.1), name=name, **options)


def backward(model):
    x, y = batch_of(0)
    ((model(x) - y) ** 2).mean().backward()


def test_wrong_use_says_what_is_wrong(w):
    model = model_of()
    optimizer = optimizer_of(w, "wrong", model)
    with pytest.raises(RuntimeError, match=r"no parameter has a gradient: call backward\(\)"):
        optimizer.step()
    with pytest.raises(leeway.FailedPrecondition, match="give all groups"):
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))]})
    with pytest.raises(leeway.AlreadyExists, match="shape"):
        optimizer_of(w, "wrong", model_of(width=4))
    backward(model)
    model[0].bias.grad[1] = float("nan")
    with pytest.raises(leeway.InvalidArgument, match=r"(?i)nan"):
        optimizer.step()
    optimizer.zero_grad()
    backward(model)
    model.load_state_dict(model_of(seed=1).state_dict())
    with pytest.raises(RuntimeError, match="0.weight was changed in this process"):
        optimizer.step()
    model.double()
    with pytest.raises(RuntimeError, match=r"0.weight .*(changed|moved)"):
        optimizer.step()
    with pytest.raises(ValueError, match="needs the module"):
        optimizer_of(w, "w1", model.parameters(), overlap=True)
    with pytest.raises(ValueError, match="no parameter"):
        optimizer_of(w, "w2", [])
    with pytest.raises(TypeError, match="int, and no tensor"):
        optimizer_of(w, "w3", [1])
    rows = torch.nn.Embedding(4, 2, sparse=True)
    optimizer = optimizer_of(w, "w4", rows)
    rows(torch.tensor([1])).sum().backward()
    with pytest.raises(TypeError, match="use leeway.torch.Embedding"):
        optimizer.step()


def test_wrong_use_of_overlap_says_what_is_wrong(w):
    model = model_of()
    optimizer = optimizer_of(w, "overlapped", model, overlap=True)
    backward(model)
    with pytest.raises(RuntimeError, match=r"within `with opt.accumulate\(\):`"):
        backward(model)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    with pytest.raises(RuntimeError, match="overlap=False to clip"):
        optimizer.step()


def test_a_closed_worker_is_an_error(cluster):
    w = cluster().connect()
    model = model_of()
    optimizer = optimizer_of(w, "closed", model)
    backward(model)
    w.close()
    with pytest.raises(leeway.FailedPrecondition):
        optimizer.step()


# ---- odd uses of the optimizer ----


def beside_torch(w, name, ours, theirs, steps, optimizer=None, **options):
    """Trains both models; `steps` is called with each model, its optimizer and the step's number."""
    optimizer = optimizer or optimizer_of(w, name, ours, **options)
    plain = torch.optim.SGD(theirs.parameters(), 0.1)
    for step in range(4):
        steps(ours, optimizer, step)
        steps(theirs, plain, step)
    optimizer.synchronize()
    assert equal(ours.state_dict(), theirs.state_dict())


def step_of(model, optimizer, step):
    x, y = batch_of(step)
    optimizer.zero_grad()
    ((model(x) - y) ** 2).mean().backward()
    optimizer.step()


class Odd(torch.nn.Module):
    """Parameters without elements, without dimensions, tied ones, and one that is frozen."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.none = torch.nn.Parameter(torch.zeros(0, 3))
        self.scale = torch.nn.Parameter(torch.tensor(2.0))
        self.inner, self.again = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.again.weight = self.inner.weight
        self.frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
        self.outer = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.outer(self.again(self.inner(x))) * self.scale * self.frozen + self.none.sum()


@pytest.mark.parametrize("overlap", [False, True])
def test_parameters_are_of_any_shape(w, overlap):
    beside_torch(w, f"odd {overlap}", Odd(), Odd(), step_of, overlap=overlap, bucket_bytes=1)
    ours = Odd()
    diloco = leeway.torch.DiLoCo(ours, worker=w, steps=2, outer=leeway.SGD(1.0), name=f"odd {overlap}")
    theirs = Odd()
    for model in (ours, theirs):
        inner = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(2):
            step_of(model, inner, step)
            if model is ours:
                diloco.step()
    assert equal(ours.state_dict(), theirs.state_dict())


class Failing(torch.autograd.Function):
    """Fails in the backward pass."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise ZeroDivisionError("on purpose")


def fail_in_backward(model):
    with pytest.raises(ZeroDivisionError):
        (model[2](model[1](Failing.apply(model[0](batch_of(0)[0])))) ** 2).mean().backward()


def test_training_goes_on_after_an_exception_within_backward(w):
    def step_with_failure(model, optimizer, step):
        optimizer.zero_grad()
        fail_in_backward(model)
        step_of(model, optimizer, step)

    beside_torch(w, "failing", model_of(), model_of(), step_with_failure, overlap=True)

    def step_after_failure(model, optimizer, step):
        optimizer.zero_grad()
        fail_in_backward(model)
        optimizer.step()

    beside_torch(w, "failing later", model_of(), model_of(), step_after_failure, overlap=True, bucket_bytes=1)


def test_gradients_of_a_backward_that_has_failed_are_pushed(w):
    model = model_of()
    optimizer = optimizer_of(w, "half", model, overlap=True, bucket_bytes=1)
    fail_in_backward(model)
    optimizer.zero_grad()
    with pytest.raises(RuntimeError, match=r"after an exception .*or step\(\)"):
        backward(model)
    with pytest.raises(RuntimeError, match="changed after it was pushed"):
        optimizer.step()
    optimizer.step()
    step_of(model, optimizer, 0)


def test_a_step_goes_on_after_gradients_were_changed(w):
    model = model_of()
    optimizer = optimizer_of(w, "clipped", model, overlap=True, bucket_bytes=1)
    for step in range(2):
        step_of(model, optimizer, step)
        backward(model)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        with pytest.raises(RuntimeError, match="overlap=False to clip"):
            optimizer.step()
        optimizer.step()


def test_with_overlap_the_next_step_says_what_the_servers_have_refused(w):
    refused = []

    def step_with_nan(model, optimizer, step):
        if step != 1:
            try:
                step_of(model, optimizer, step)
            except leeway.InvalidArgument:
                refused.append(step)
        elif model is ours:
            optimizer.zero_grad()
            (((model(batch_of(0)[0])) ** 2).mean() * float("nan")).backward()
            optimizer.step()

    ours = model_of()
    beside_torch(w, "nan", ours, model_of(), step_with_nan, overlap=True, bucket_bytes=1)
    assert refused == [2]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), leeway.DeadlineExceeded("made up")])
def test_a_wait_that_has_ended_early_is_taken_up_again(w, monkeypatch, error):
    model = model_of()
    optimizer = optimizer_of(w, f"early end {type(error).__name__}", model, overlap=True, bucket_bytes=1)
    step_of(model, optimizer, 0)
    wait, calls = Ticket.wait, []

    def fail_once(ticket):
        calls.append(ticket)
        if len(calls) == 3:
            raise error
        return wait(ticket)

    with monkeypatch.context() as patch:
        patch.setattr(Ticket, "wait", fail_once)
        with pytest.raises(type(error)):
            model(batch_of(0)[0])
        model(batch_of(0)[0])
    assert len(calls) == 4 + 1, "each of the four parameters is waited for"
    step_of(model, optimizer, 1)


def test_gradients_are_not_written_to_while_they_are_sent(w, monkeypatch):
    model = model_of()
    optimizer = optimizer_of(w, "sent", model)
    wait = Ticket.wait

    def interrupt_pushes(ticket):
        if ticket._finish is None and not ticket._over:
            raise KeyboardInterrupt
        return wait(ticket)

    backward(model)
    with monkeypatch.context() as patch:
        patch.setattr(Ticket, "wait", interrupt_pushes)
        with pytest.raises(KeyboardInterrupt):
            optimizer.step()
    assert all(bucket.push is not None for bucket in optimizer._buckets)
    optimizer.step()
    assert all(bucket.push is None for bucket in optimizer._buckets)


def test_a_step_that_is_refused_has_pushed_nothing(w):
    model = torch.nn.Sequential(torch.nn.Embedding(4, 2, sparse=True), torch.nn.Linear(2, 2))
    optimizer = optimizer_of(w, "refused", [*model[1].parameters(), *model[0].parameters()], bucket_bytes=1)
    model(torch.tensor([1])).sum().backward()
    clocks, values = w.clocks, optimizer._buckets[0].table.pull()
    with pytest.raises(TypeError, match="use leeway.torch.Embedding"):
        optimizer.step()
    w.clock()
    assert w.clocks == clocks + 1 and (optimizer._buckets[0].table.pull() == values).all()


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_an_optimizer_that_is_made_again_takes_the_place_of_the_older_one(w, first, second):
    ours, theirs = model_of(), model_of()
    name = f"again {first} {second}"
    old = optimizer_of(w, name, ours, overlap=first, bucket_bytes=1)
    step_of(ours, old, 9)
    step_of(theirs, torch.optim.SGD(theirs.parameters(), 0.1), 9)
    beside_torch(w, name, ours, theirs, step_of, overlap=second, bucket_bytes=1)


def test_optimizers_of_two_models_have_names_of_their_own(w):
    critic, twin = model_of(), model_of(seed=1)
    first = optimizer_of(w, "critic", critic)
    with pytest.raises(leeway.AlreadyExists, match="of another optimizer of this worker.* another name="):
        optimizer_of(w, "critic", twin)
    step_of(critic, first, 0)
    del first
    optimizer_of(w, "critic", twin)
    assert equal(twin.state_dict(), critic.state_dict())


def test_models_of_one_name_begin_each_for_itself(w):
    models = [model_of(), torch.nn.Linear(4, 2), model_of()]
    before = [copy.deepcopy(model.state_dict()) for model in models]
    optimizer_of(w, "one name", models[0])
    optimizer_of(w, "one name", models[1])
    leeway.torch.DiLoCo(models[2], worker=w, fragments=2, steps=2, name="one name")
    for model, values in zip(models, before, strict=True):
        assert equal(model.state_dict(), values)


@pytest.mark.parametrize("overlap", [False, True])
def test_of_several_optimizers_the_last_one_ends_the_iteration(w, overlap):
    ours, theirs = (
        torch.nn.ModuleList([model_of(), model_of(seed=1)]),
        torch.nn.ModuleList([model_of(), model_of(seed=1)]),
    )
    optimizers = [
        optimizer_of(w, f"part {i} {overlap}", ours[i], overlap=overlap, clock=i == 1) for i in range(2)
    ]
    plain = torch.optim.SGD(theirs.parameters(), 0.1)
    clocks = w.clocks
    for step in range(4):
        x, y = batch_of(step)
        for models, its in ((ours, optimizers), (theirs, [plain])):
            for one in its:
                one.zero_grad()
            sum(((model(x) - y) ** 2).mean() for model in models).backward()
            for one in its:
                one.step()
    for one in optimizers:
        one.synchronize()
    assert equal(ours.state_dict(), theirs.state_dict()) and w.clocks == clocks + 4


def test_the_program_may_end_the_iterations(w):
    def step_and_clock(model, optimizer, step):
        step_of(model, optimizer, step)
        if model is ours:
            w.clock()
            optimizer.synchronize()

    ours = model_of()
    beside_torch(w, "own clock", ours, model_of(), step_and_clock, clock=False)


def test_what_torch_would_do_otherwise_is_refused(w):
    model = model_of()
    with pytest.raises(ValueError, match="a group has weight_decay, and groups differ in `lr` alone"):
        optimizer_of(w, "r1", [{"params": model.parameters(), "weight_decay": 0.1}])
    with pytest.raises(TypeError, match="in a set"):
        optimizer_of(w, "r2", set(model.parameters()))
    with pytest.raises(TypeError, match="in a set"):
        optimizer_of(w, "r3", [{"params": set(model.parameters())}])
    with pytest.raises(TypeError, match="params is one tensor"):
        optimizer_of(w, "r4", model[0].weight)
    with pytest.raises(ValueError, match="parameter 4 is given twice"):
        optimizer_of(w, "r5", [*model.parameters(), *model.parameters()])
    with pytest.raises(leeway.InvalidArgument, match='consistency is "ssp:x", may be'):
        optimizer_of(w, "r6", model, consistency="ssp:x")
    with pytest.raises(TypeError, match="belongs to one process"):
        copy.deepcopy(optimizer_of(w, "r7", model))


def test_parameters_that_are_unfrozen_later_are_an_error(w):
    model = model_of()
    model[0].weight.requires_grad_(False)
    optimizer = optimizer_of(w, "unfrozen", model)
    diloco = leeway.torch.DiLoCo(model, worker=w, steps=1, name="unfrozen local")
    model[0].weight.requires_grad_(True)
    backward(model)
    for one in (optimizer, diloco):
        with pytest.raises(RuntimeError, match=r"0.weight has a gradient now|0.bias has been moved"):
            one.step()


def test_rates_are_those_of_a_loaded_state(w):
    ours, theirs = model_of(), model_of()
    optimizer = leeway.torch.DistributedOptimizer(ours, worker=w, updater=leeway.SGD(0.7), name="loaded")
    optimizer.load_state_dict(torch.optim.SGD(theirs.parameters(), 0.1).state_dict())
    beside_torch(w, "loaded", ours, theirs, step_of, optimizer)


# ---- embeddings ----


def test_an_embedding_is_that_of_torch(w):
    rows = leeway.torch.Embedding(
        50,
        3,
        padding_idx=-50,
        worker=w,
        updater=leeway.SGD(0.5),
        name="rows",
        initializer="normal:0,1,seed=2",
    )
    plain = torch.nn.Embedding(50, 3, padding_idx=0)
    with torch.no_grad():
        plain.weight.copy_(rows.table.pull(torch.arange(50)))
        plain.weight[0] = 0
    assert list(rows.parameters()) == [] and "table='rows'" in repr(rows)
    sgd = torch.optim.SGD(plain.parameters(), 0.5)
    for ids in (torch.tensor([[1, 7], [7, 0]]), torch.tensor([49, 1, 1], dtype=torch.int32)):
        ours, theirs = rows(ids), plain(ids)
        assert torch.allclose(ours, theirs)
        sgd.zero_grad()
        (theirs**2).sum().backward()
        (ours**2).sum().backward()
        sgd.step()
        w.clock()
    rows.wait()
    assert torch.allclose(rows.table.pull(torch.arange(1, 50)), plain.weight[1:].detach())
    with torch.no_grad():
        assert rows(torch.empty(0, 2, dtype=torch.int64)).shape == (0, 2, 3)
    with pytest.raises(IndexError, match="id 50 is out of range: there are 50"):
        rows(torch.tensor([50]))
    with pytest.raises(TypeError, match="float32, may be int64 or int32"):
        rows(torch.tensor([1.0]))
    with pytest.raises(ValueError, match="padding_idx is 50"):
        leeway.torch.Embedding(50, 3, padding_idx=50, worker=w, updater=leeway.SGD(), name="r2")


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_are_those_of_torch(w, mode):
    rows = leeway.torch.EmbeddingBag(
        20, 3, mode, padding_idx=4, worker=w, updater=leeway.SGD(1.0), name="bag " + mode, consistency="asp"
    )
    plain = torch.nn.EmbeddingBag(20, 3, mode=mode, padding_idx=4)
    with torch.no_grad():
        plain.weight.copy_(rows.table.pull(torch.arange(20)))
        plain.weight[4] = 0
    ids, offsets = torch.tensor([1, 2, 4, 2, 19, 3]), torch.tensor([0, 3])
    weights = torch.rand(6) if mode == "sum" else None
    ours, theirs = rows(ids, offsets, weights), plain(ids, offsets, weights)
    assert torch.allclose(ours, theirs)
    ours.square().sum().backward()
    theirs.square().sum().backward()
    rows.wait()
    after = rows.table.pull(torch.arange(20))
    expected = plain.weight.detach() - plain.weight.grad
    keep = torch.arange(20) != 4
    assert torch.allclose(after[keep], expected[keep], atol=1e-6)
    with pytest.raises(ValueError, match="may be 'sum' or 'mean'"):
        leeway.torch.EmbeddingBag(2, 2, "max", worker=w, updater="sgd", name="b")


def test_ids_are_any_64_bit_numbers(w):
    rows = leeway.torch.Embedding(None, 2, worker=w, updater=leeway.SGD(1.0), name="any", consistency="asp")
    ids = torch.tensor([-1, 2**63 - 1, -(2**63), 5])
    before = rows(ids)
    before.sum().backward()
    rows.wait()
    assert torch.allclose(rows(ids), before - 1)
    assert torch.allclose(rows.table.pull([2**64 - 1]) if False else rows(ids)[:1], before[:1] - 1)


def test_prefetched_rows_are_as_fresh_as_the_table_promises(w):
    ids = torch.tensor([3, 1])
    for consistency, again in ((leeway.BSP(), 1), (leeway.SSP(1), 0), (leeway.ASP(), 0)):
        rows = leeway.torch.Embedding(
            None, 2, worker=w, updater=leeway.SGD(1.0), name=f"pre {consistency}", consistency=consistency
        )
        rows.prefetch(torch.tensor([9]))  # never used
        rows.prefetch(ids)
        assert rows(ids).shape == (2, 2) and rows.pulled_again == 0
        rows.prefetch(ids)
        rows(ids).sum().backward() if False else None
        w.clock()
        rows(ids)
        assert rows.pulled_again == again, consistency


def test_threads_may_share_an_embedding(w):
    rows = leeway.torch.Embedding(10, 2, worker=w, updater=leeway.SGD(1.0), name="shared", consistency="asp")
    before = torch.from_numpy(rows.table.pull(range(10)))

    def use():
        for step in range(50):
            ids = torch.tensor([step % 10, 3])
            rows.prefetch(ids)
            rows(ids).sum().backward()

    in_threads(use, use, use)
    rows.wait()
    after = torch.from_numpy(rows.table.pull(range(10)))
    expected = torch.full((10,), 15.0)
    expected[3] += 150
    assert torch.allclose(before - after, expected[:, None].expand(10, 2), atol=1e-3)


def test_wrong_use_of_an_embedding_says_what_is_wrong(w):
    def made(rows=10, **options):
        return leeway.torch.Embedding(rows, 2, worker=w, updater="sgd", name="wrong rows", **options)

    for wrong in ([1], None):
        with pytest.raises(TypeError, match="ids are a .*, may be a tensor"):
            made()(wrong)
        with pytest.raises(TypeError, match="ids are a .*, may be a tensor"):
            made().prefetch(wrong)
    with pytest.raises(ValueError, match="padding_idx is -11, may be below 10"):
        made(padding_idx=-11)
    with pytest.raises(ValueError, match="num_embeddings is -1"):
        made(-1)
    with pytest.raises(TypeError, match="integer"):
        made("10")
    with pytest.raises(leeway.InvalidArgument, match='consistency is "ssp:", may be'):
        made(consistency="ssp:")


def test_rows_that_were_prefetched_without_gradients_have_them(w):
    rows = leeway.torch.Embedding(10, 2, worker=w, updater=leeway.SGD(1.0), name="inferred")
    with torch.inference_mode():
        rows.prefetch(torch.tensor([5]))
    rows(torch.tensor([5])).sum().backward()
    rows.wait()


# ---- local training ----


def steps_of(model, inner, diloco, count, seed=0):
    for step in range(count):
        x, y = batch_of(seed + step)
        inner.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        inner.step()
        diloco.step()


def test_diloco_is_as_its_formula_says(cluster):
    w = cluster().connect()
    model, plain = model_of(), model_of()
    diloco = leeway.torch.DiLoCo(model, worker=w, steps=4, outer=leeway.SGD(0.5))
    steps_of(model, torch.optim.SGD(model.parameters(), 0.1), diloco, 4)
    begin = {name: value.clone() for name, value in plain.state_dict().items()}
    train(plain, torch.optim.SGD(plain.parameters(), 0.1), 4)
    for name, value in plain.state_dict().items():
        expected = begin[name] - 0.5 * (begin[name] - value)
        assert torch.allclose(model.state_dict()[name], expected, atol=1e-6)
    assert (diloco.rounds, diloco.exchanges, diloco.steps_between) == (1, 1, 4)
    diloco.finish()
    assert diloco.rounds == 2
    with pytest.raises(TypeError, match="belongs to one process"):
        copy.copy(diloco)


def test_local_sgd_takes_the_mean_of_models(cluster):
    members = cluster(workers=2)
    models = [model_of(), model_of()]
    states, alone = {}, {}

    def work():
        with members.connect() as w:
            model = models[w.rank]
            local = leeway.torch.LocalSGD(model, worker=w, steps=3)
            steps_of(model, torch.optim.SGD(model.parameters(), 0.1), local, 3, seed=10 * w.rank)
            states[w.rank] = model.state_dict()
            w.barrier()

    in_threads(work, work)
    for rank in range(2):
        model = model_of()
        inner = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(3):
            x, y = batch_of(10 * rank + step)
            inner.zero_grad()
            ((model(x) - y) ** 2).mean().backward()
            inner.step()
        alone[rank] = model.state_dict()
    for name, value in states[0].items():
        assert torch.equal(value, states[1][name])
        assert torch.allclose(value, (alone[0][name] + alone[1][name]) / 2, atol=1e-6)


def test_a_worker_joins_streaming_diloco_at_the_turn_of_the_others(cluster):
    members = cluster(workers=1)
    models = [model_of(), model_of(seed=1)]
    options = {"steps": 8, "fragments": 4, "overlap_steps": 1, "codec": "fp4"}

    def work(w, model, diloco):
        inner = torch.optim.SGD(model.parameters(), 0.05)
        step = 0
        while diloco.rounds < 3:
            steps_of(model, inner, diloco, 1, seed=100 * w.rank + step)
            step += 1
        diloco.finish()

    with members.connect() as first:
        diloco = leeway.torch.DiLoCo(models[0], worker=first, **options)
        steps_of(models[0], torch.optim.SGD(models[0].parameters(), 0.05), diloco, 5)  # 2 of 4 fragments
        with members.connect(elastic=True) as second:
            joined = {}

            def join():
                joined["it"] = leeway.torch.DiLoCo(models[1], worker=second, **options)
                work(second, models[1], joined["it"])

            in_threads(lambda: work(first, models[0], diloco), join)
            assert joined["it"].rounds == diloco.rounds == 4
            assert joined["it"].exchanges < diloco.exchanges
            assert equal(models[0].state_dict(), models[1].state_dict())


def test_fragments_are_parts_of_the_model(w):
    model = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(4)])
    diloco = leeway.torch.DiLoCo(
        model, worker=w, steps=4, fragments=[[model[0], model[3]], [model[1], model[2]]], name="given"
    )
    assert [flat.names[0] for flat in diloco._flats] == ["0.weight", "1.weight"]
    split = leeway.torch.DiLoCo(model, worker=w, steps=4, fragments=8, name="eight")
    assert [flat.names for flat in split._flats] == [[name] for name, _ in model.named_parameters()]
    with pytest.raises(ValueError, match="may be 1 to 8"):
        leeway.torch.DiLoCo(model, worker=w, fragments=9, name="nine")
    with pytest.raises(ValueError, match="each trainable parameter of the model once"):
        leeway.torch.DiLoCo(model, worker=w, fragments=[[model[0]]], name="lacking")
    with pytest.raises(ValueError, match="a fragment has no trainable parameter"):
        leeway.torch.DiLoCo(model, worker=w, fragments=[[model], []], name="empty")
    for wrong in ([model[0]], 2.5, "2"):
        with pytest.raises(TypeError, match="fragments may be a number, or a list of lists|not iterable"):
            leeway.torch.DiLoCo(model, worker=w, fragments=wrong, name="flat")
    for steps in (0, -1, 2**70):
        with pytest.raises(leeway.InvalidArgument, match=f"steps is {steps}"):
            leeway.torch.DiLoCo(model, worker=w, steps=steps, name="none")


def test_tensors_are_copied_to_the_host():
    tensor = torch.ones(3, requires_grad=True)
    held = leeway.torch.to_host(tensor)
    assert torch.equal(held, tensor) and held.data_ptr() != tensor.data_ptr() and not held.requires_grad


def test_a_module_is_published_and_copied_into_another(w):
    trained, engine = model_of(0), model_of(1)
    trained.append(torch.nn.BatchNorm1d(2))
    engine.append(torch.nn.BatchNorm1d(2))
    trained(batch_of(0)[0])  # which changes the buffers
    leeway.publish(trained, "a module", worker=w)
    policy = leeway.subscribe("a module", worker=w)
    with pytest.raises(leeway.FailedPrecondition, match="no version of model 'a module'"):
        policy.apply(engine)
    assert policy.wait_newer() == 1
    weights = engine[0].weight
    assert policy.apply(engine) == 1
    assert weights is engine[0].weight and weights.requires_grad
    for (name, one), other in zip(trained.state_dict().items(), engine.state_dict().values(), strict=True):
        assert torch.equal(one, other), name
    with torch.no_grad():
        weights.zero_()
    policy.apply(engine)  # the same version again
    assert torch.equal(weights, trained[0].weight)


def test_tied_parameters_and_other_buffers_of_a_module_are_kept(w):
    class Tied(torch.nn.Module):
        def __init__(self, value):
            super().__init__()
            self.one = torch.nn.Linear(2, 2, bias=False)
            self.other = torch.nn.Linear(2, 2, bias=False)
            self.other.weight = self.one.weight
            self.register_buffer("scratch", torch.full((3,), value), persistent=False)
            torch.nn.init.constant_(self.one.weight, value)

    leeway.publish(Tied(1.0), "tied", worker=w)
    engine = Tied(2.0)
    policy = leeway.subscribe("tied", worker=w)
    policy.wait_newer()
    policy.apply(engine)
    assert engine.one.weight is engine.other.weight
    assert (engine.one.weight == 1).all() and (engine.scratch == 2).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int64])
def test_tensors_of_a_model_come_as_they_were(w, dtype):
    values = torch.arange(12).to(dtype)
    state = {"plain": values, "turned": values.reshape(3, 4).t()}
    leeway.publish(state, f"tensors of {dtype}", worker=w)
    arrays = leeway.subscribe(f"tensors of {dtype}", worker=w).fetch()
    for name, array in arrays.items():
        assert torch.equal(torch.as_tensor(array), state[name]) and torch.as_tensor(array).dtype == dtype
    assert isinstance(arrays["plain"], torch.Tensor) == (dtype == torch.bfloat16)


def test_a_tensor_of_a_dtype_that_no_table_has_is_refused_by_name(w):
    for dtype in [torch.bool, torch.uint8, getattr(torch, "float8_e4m3fn", torch.int8)]:
        with pytest.raises(TypeError, match="entry 'small': dtype torch"):
            leeway.publish({"small": torch.zeros(3, dtype=dtype)}, "small", worker=w)


def test_a_module_that_does_not_fit_is_named_and_left_alone(w):
    leeway.publish(model_of(0), "fitting", worker=w)
    policy = leeway.subscribe("fitting", worker=w)
    policy.wait_newer()
    other = model_of(1)
    other[2] = torch.nn.Linear(3, 3)
    longer = model_of(1).append(torch.nn.Linear(2, 2))
    for module, named in [
        (other, r"'2.weight' has the shape \(2, 3\), and \(3, 3\) in the module"),
        (model_of(1).double(), "'0.weight' is float32, and float64 in the module"),
        (model_of(1)[:1], "the module has no '2.weight'"),
        (longer, "the model has no '3.weight'; the model has no '3.bias'"),
        (model_of(1).to("meta"), "no memory"),
        (torch.nn.Sequential(*model_of(1), *model_of(2), *model_of(3)), "; and 3 more"),
    ]:
        before = copy.deepcopy(module).state_dict()
        with pytest.raises(leeway.FailedPrecondition, match=named):
            policy.apply(module)
        if "memory" not in named:
            assert all(torch.equal(one, before[name]) for name, one in module.state_dict().items())
    assert policy.version == 0  # nothing was applied at all
    with torch.inference_mode():
        engine = model_of(1)
    with pytest.raises(leeway.FailedPrecondition, match="inference mode"):
        policy.apply(engine)
    with torch.inference_mode():
        assert policy.apply(engine) == 1
