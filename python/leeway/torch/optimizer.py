"""An optimizer whose parameters and state are on servers."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from leeway import _arrays, errors
from leeway.tables import DenseTable
from leeway.ticket import OfOneProcess, Ticket
from leeway.torch._values import (
    BUCKET_BYTES,
    Flat,
    Named,
    begin,
    buckets_of,
    check_frozen,
    label,
    staleness_of,
)
from leeway.updaters import Updater
from leeway.worker import Worker

_PAGE_BYTES = 4096


class _Bucket:
    """The parameters of one table, with memory for their gradients, in one array each."""

    def __init__(
        self,
        flat: Flat,
        table: DenseTable,
        gradients: torch.Tensor,
        group: dict[str, Any],
        rate: float | None,
        place: int,
        staleness: float,
    ):
        self.flat = flat
        self.table = table
        self.gradients = gradients
        self.views = flat.views_of(gradients)
        self.group = group
        self.rate = rate  # of the table
        self.priority = -place
        self.staleness = staleness  # that the table's consistency allows, in clocks
        self.taken: dict[int, tuple[torch.Tensor, int]] = {}  # by parameter: what was copied, and its version
        self.is_pushed = False  # in this step
        self.push: Ticket | None = None
        self.failed: errors.Error | None = None  # of a push, which step() raises
        self.pull: Ticket | None = None
        self.is_pulled_early = False  # before the iteration has ended
        self.due: int | None = None  # the iteration after which values are to be pulled

    def begin_pull(self, early: bool) -> None:
        self.due = None
        self.is_pulled_early = early
        self.pull = self.table.pull_async(out=self.flat.values, priority=self.priority)

    def take(self, index: int, scale: float) -> None:
        """Copies a parameter's gradient to where it is pushed from."""
        if not self.taken:
            self.end_push()
        gradient = self.flat.parameters[index].grad
        view = self.views[index]
        if gradient is None:
            view.zero_()
            return
        self.check_dense(index)
        view.copy_(gradient)
        if scale != 1:
            view.mul_(scale)
        self.taken[index] = (gradient, gradient._version)

    def check_dense(self, index: int) -> None:
        gradient = self.flat.parameters[index].grad
        if gradient is not None and gradient.layout != torch.strided:
            raise TypeError(
                f"the gradient of {self.flat.names[index]} is sparse: use leeway.torch.Embedding for it"
            )

    def check_taken(self) -> None:
        for index, (gradient, version) in self.taken.items():
            if self.flat.parameters[index].grad is not gradient or gradient._version != version:
                raise RuntimeError(
                    f"the gradient of {self.flat.names[index]} was changed after it was pushed within backward(): "
                    "make the optimizer with overlap=False to clip or change gradients"
                )

    def send(self) -> None:
        rate = self.group["lr"]
        self.push = self.table.push(
            self.gradients, priority=self.priority, lr=None if rate == self.rate else rate
        )
        self.is_pushed = True

    def end_push(self) -> None:
        """Waits until the gradients may be written to. Where Ctrl-C ends that, the next call waits on."""
        if self.push is not None:
            self.failed = self.push.exception() or self.failed
            self.push = None

    def end_pull(self) -> None:
        """Waits for the values; those that were pulled within backward() may have become too stale.

        A pull that has failed is begun again: the next call waits for that one.
        """
        if self.due is not None and self.due < self.table.worker.clocks:
            self.begin_pull(early=False)
        if self.pull is None:
            return
        try:
            self.pull.wait()
        except errors.Error:
            self.begin_pull(early=False)
            raise
        if self.is_pulled_early and self.pull.info.clock + self.staleness < self.table.worker.clocks:
            self.begin_pull(early=False)
            self.end_pull()
            return
        self.pull = None
        self.flat.scatter()


_made: weakref.WeakSet[DistributedOptimizer] = weakref.WeakSet()
_made_lock = threading.Lock()


class DistributedOptimizer(OfOneProcess, torch.optim.Optimizer):
    """Pushes gradients to servers, where the updater runs, and pulls the parameters.

    The workers' models are one: it begins with the values of rank 0's, and a worker that joins later takes
    what there is. A step is an iteration: it ends with Worker.clock.

    Args:
        params: a module, its parameters(), its named_parameters(), or groups of parameters as torch has
            them. Those of a bucket are one table, which is named after them.
        updater, consistency, codec, codecs, error_feedback: as in Worker.table.
        average: a step is one by the mean of the workers' gradients, as in DistributedDataParallel: with
            consistencies that apply each push by itself, each counts as 1 / num_workers. Otherwise they add up.
        overlap: gradients are pushed within backward() as they come, the last layer's first, and parameters
            are pulled at once where the consistency allows that, or else by step(); they are waited for
            where a module of `params`, which is a module then, is called next. Gradients cannot be changed
            after backward(). Parameters that are read by other means than the forward of their own module or
            state_dict() need synchronize() before; no module may use another's detached.
        bucket_bytes: parameters that follow each other are joined in tables up to that size.
        nonfinite: "refuse": step() raises InvalidArgument for a gradient with NaN, with `overlap` the next
            one does; "count": it is applied.
        clock: whether step() ends the worker's iteration; with several optimizers only the last one's does,
            and those of the others have their values with it. Where the program ends iterations itself,
            values of a table of BSP come with synchronize() after that.
        name: the first part of the tables' names; each optimizer of a worker has one of its own.

    The rate of a parameter group, which schedulers change, is that of this worker's pushes: have all workers
    use the same. state_dict() has the groups alone; values and the updater's state are in checkpoints of the
    cluster (Worker.checkpoint). Parameters without a gradient in a step count as zero if others of their
    bucket have one.

    An optimizer that is made again of the same parameters takes the older one's place.

    Raises:
        AlreadyExists: there are tables of that name with other shapes or settings, or of another optimizer.
    """

    def __init__(
        self,
        params: torch.nn.Module | Iterable[Any],
        *,
        worker: Worker,
        updater: Updater | str,
        consistency: Any = None,
        codec: str | None = None,
        codecs: str | tuple[str, ...] | None = None,
        error_feedback: str | None = None,
        average: bool = True,
        overlap: bool = False,
        bucket_bytes: int = BUCKET_BYTES,
        nonfinite: str = "refuse",
        clock: bool = True,
        name: str = "model",
    ):
        module = params if isinstance(params, torch.nn.Module) else None
        if overlap and module is None:
            raise ValueError("overlap=True needs the module in place of its parameters")
        groups, self._frozen = _groups_of(params)
        rate = _rate_of(updater)
        self._is_made = False
        super().__init__(
            [{**group, "params": [parameter for _, parameter in group["params"]]} for group in groups],
            {"lr": rate},
        )
        self._worker = worker
        self._ends_clock = clock
        means = _takes_means(consistency)
        self._scale = 1.0 if means or not average else 1.0 / worker.num_workers
        spec = {
            "updater": updater, "consistency": consistency, "codec": codec, "codecs": codecs,
            "error_feedback": error_feedback, "nonfinite": nonfinite, "initializer": "pushed",
            "aggregate": "mean" if means and average else None,
        }  # fmt: skip
        self._buckets: list[_Bucket] = []
        self._places: dict[torch.nn.Parameter, tuple[_Bucket, int]] = {}
        self._accumulates = False
        self._handles: list[Any] = []
        self._replace_older()
        self._make_buckets(groups, spec, bucket_bytes, name)
        self._check_names()
        begin(worker, name, [(bucket.table, bucket.flat.values) for bucket in self._buckets])
        for bucket in self._buckets:
            bucket.flat.scatter()
        if overlap and module is not None:
            self._hook(module)
        self._overlaps = overlap
        self._is_made = True
        with _made_lock:
            _made.add(self)

    def _others(self) -> list[DistributedOptimizer]:
        with _made_lock:
            return [other for other in _made if other is not self]

    def _replace_older(self) -> None:
        """Has an optimizer of the same parameters no longer push their gradients."""
        for older in self._others():
            if any(one in older._places for group in self.param_groups for one in group["params"]):
                older._unhook()
                with _made_lock:
                    _made.discard(older)

    def _check_names(self) -> None:
        names = {bucket.table.name for bucket in self._buckets}
        for other in self._others():
            for bucket in other._buckets:
                if other._worker is self._worker and bucket.table.name in names:
                    raise errors.AlreadyExists(
                        f"table '{bucket.table.name}' is of another optimizer of this worker, for another model: "
                        "give one of them another name="
                    )

    def _make_buckets(
        self, groups: list[dict[str, Any]], spec: dict[str, Any], bucket_bytes: int, name: str
    ) -> None:
        flats = []
        for group, registered in zip(groups, self.param_groups, strict=True):
            for named in buckets_of(group["params"], bucket_bytes):
                flats.append((Flat(named, named[0][1].dtype), registered))
        rate = _rate_of(spec["updater"])
        memory = _gradient_memory(self._worker, [flat for flat, _ in flats])
        for place, ((flat, group), gradients) in enumerate(zip(flats, memory, strict=True)):
            table = self._worker.table(
                label(name, flat.names), shape=flat.values.numel(), dtype=flat.values.dtype, **spec
            )
            staleness = staleness_of(str(spec["consistency"] or "bsp"))
            bucket = _Bucket(flat, table, gradients, group, rate, place, staleness)
            self._buckets.append(bucket)
            for index, parameter in enumerate(flat.parameters):
                self._places[parameter] = (bucket, index)

    # ---- overlap ----

    def _hook(self, module: torch.nn.Module) -> None:
        for parameter in self._places:
            self._handles.append(_when_accumulated(parameter, self._take_gradient))
        for part in module.modules():
            own = [self._places[one][0] for one in part.parameters(recurse=False) if one in self._places]
            if own:
                buckets = list(dict.fromkeys(own))

                def await_values(*_: Any, buckets: list[_Bucket] = buckets) -> None:
                    for bucket in buckets:
                        bucket.end_pull()

                self._handles.append(part.register_forward_pre_hook(await_values))
        # The state holds the arrays into which the pulls write.
        self._handles.append(module._register_state_dict_hook(lambda *_: self.synchronize()))

    def _take_gradient(self, parameter: torch.nn.Parameter) -> None:
        if self._accumulates:
            return
        bucket, index = self._places[parameter]
        if bucket.is_pushed or index in bucket.taken:
            raise RuntimeError(
                "backward() was called again before step(): have all but the last one within `with opt.accumulate():`; "
                "after an exception within backward() call zero_grad(), or step() for the gradients that it has pushed"
            )
        with torch.no_grad():
            bucket.take(index, self._scale)
        if len(bucket.taken) == len(bucket.flat.parameters):
            bucket.end_pull()  # the last step's, where the module was not called
            bucket.send()
            if bucket.staleness > 0:  # a parameter whose gradient is there is not read any more
                bucket.begin_pull(early=True)

    @contextlib.contextmanager
    def accumulate(self) -> Iterator[None]:
        """Within it backward() adds up gradients, which the next backward() outside, or step(), pushes."""
        self._accumulates = True
        try:
            yield
        finally:
            self._accumulates = False

    # ---- steps ----

    def zero_grad(self, *arguments: Any, **options: Any) -> None:
        """Forgets the gradients, but for those that are pushed already (overlap=True)."""
        super().zero_grad(*arguments, **options)
        for bucket in self._buckets:
            if not bucket.is_pushed:
                bucket.taken.clear()

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Pushes the gradients, ends the iteration and pulls the parameters.

        Raises:
            RuntimeError: no parameter has a gradient, or values or gradients were changed in between. TypeError: a
                gradient is sparse. Nothing is pushed then.
            Error: of a push or a pull; InvalidArgument: a gradient has NaN. The iteration has ended.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if not any(bucket.is_pushed or _has_gradient(bucket) for bucket in self._buckets):
            raise RuntimeError("no parameter has a gradient: call backward() before step()")
        self._check()
        # In the order of their priorities: the first layer's are needed first.
        for bucket in self._buckets:
            if not bucket.is_pushed and _has_gradient(bucket):
                for index in range(len(bucket.flat.parameters)):
                    if index not in bucket.taken:
                        bucket.take(index, self._scale)
                bucket.send()
        for bucket in self._buckets:
            bucket.taken.clear()
            bucket.is_pushed = False
            # What BSP has before the end of the iteration are the values of the last one.
            if bucket.pull is None and not self._ends_clock:
                if bucket.staleness == 0:
                    bucket.due = self._worker.clocks
                else:
                    bucket.begin_pull(early=False)
        if self._ends_clock:
            self._end_clock()
        if not self._overlaps:
            self.synchronize()
            self._end_pushes()
        self._raise_failed()
        return loss

    def _check(self) -> None:
        for bucket in self._buckets:
            if not bucket.is_pushed:
                bucket.end_pull()
            bucket.flat.check_unchanged()
            for index in range(len(bucket.flat.parameters)):
                bucket.check_dense(index)
        check_frozen(self._frozen)
        try:
            for bucket in self._buckets:
                bucket.check_taken()
        except RuntimeError:
            # What is pushed cannot be taken back: the next step() goes on with it.
            for bucket in self._buckets:
                bucket.taken.clear()
            raise

    def _end_clock(self) -> None:
        self._worker.clock()
        for bucket in self._buckets:
            if bucket.pull is None:
                bucket.begin_pull(early=False)
        others = [other for other in self._others() if other._worker is self._worker]
        for bucket in [bucket for other in others for bucket in other._buckets if bucket.due is not None]:
            bucket.begin_pull(early=False)
        for other in others:
            if not other._overlaps:
                other.synchronize()

    def synchronize(self) -> None:
        """Waits until the parameters are those that the last step() has pulled."""
        for bucket in self._buckets:
            bucket.end_pull()

    def _end_pushes(self) -> None:
        for bucket in self._buckets:
            bucket.end_push()

    def _raise_failed(self) -> None:
        failed = [bucket.failed for bucket in self._buckets if bucket.failed is not None]
        for bucket in self._buckets:
            bucket.failed = None
        if failed:
            raise failed[0]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if getattr(self, "_is_made", False):
            raise errors.FailedPrecondition("the tables are made: give all groups when the optimizer is made")
        super().add_param_group(param_group)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the rates of the groups; values are loaded as DistributedOptimizer says."""
        super().load_state_dict(state_dict)
        for bucket in self._buckets:  # the groups are other objects now
            first = bucket.flat.parameters[0]
            bucket.group = next(
                group for group in self.param_groups if any(one is first for one in group["params"])
            )

    def detach(self) -> None:
        """Ends what overlap=True has hung onto the model. The parameters keep their values."""
        self.synchronize()
        self._end_pushes()
        self._unhook()
        self._raise_failed()

    def _unhook(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []


def _has_gradient(bucket: _Bucket) -> bool:
    return any(parameter.grad is not None for parameter in bucket.flat.parameters)


_OF_GROUPS = {"params", "lr", "initial_lr", "name", "param_names"}


def _groups_of(params: Any) -> tuple[list[dict[str, Any]], Named]:
    """Groups of named parameters, those without a name have their number; and parameters without a gradient."""
    if isinstance(params, torch.Tensor):
        raise TypeError("params is one tensor, may be a module, a list of tensors, or groups of them")
    _check_order(params)
    given = list(params.named_parameters() if isinstance(params, torch.nn.Module) else params)
    groups = given if given and isinstance(given[0], dict) else [{"params": given}]
    number = 0
    result = []
    frozen: list[tuple[str, Any]] = []
    seen: set[int] = set()
    for group in groups:
        if others := group.keys() - _OF_GROUPS:
            raise ValueError(
                f"a group has {', '.join(sorted(others))}, and groups differ in `lr` alone: settings of the updater "
                "are those of an optimizer, so make one for each, with clock=False and another name"
            )
        named: list[tuple[Any, Any]] = []
        members = group["params"]
        _check_order(members)
        for one in [members] if isinstance(members, torch.Tensor) else list(members):
            name, parameter = one if isinstance(one, tuple) else (str(number), one)
            if not isinstance(parameter, torch.Tensor):
                raise TypeError(f"parameter {name} is a {type(parameter).__name__}, and no tensor")
            number += 1
            if id(parameter) in seen:
                raise ValueError(f"parameter {name} is given twice")
            seen.add(id(parameter))
            if parameter.numel():
                (named if parameter.requires_grad else frozen).append((name, parameter))
        result.append({**group, "params": named})
    if not any(group["params"] for group in result):
        raise ValueError("there is no parameter that requires a gradient")
    return result, frozen


def _check_order(params: Any) -> None:
    if isinstance(params, set | frozenset):
        raise TypeError("parameters are in a set, whose order each worker has for itself: pass a list")


def _rate_of(updater: Updater | str) -> float | None:
    """The updater's learning rate; None: its own default."""
    if isinstance(updater, Updater):
        return updater.parameters.get("learning_rate")
    for setting in str(updater).partition(":")[2].split(","):
        name, _, value = setting.partition("=")
        if name == "learning_rate":
            return float(value)
    return None


def _takes_means(consistency: Any) -> bool:
    """Whether servers add up pushes of several workers before they apply them."""
    text = "bsp" if consistency is None else str(consistency)
    return text.startswith(("bsp", "backup", "softsync", "fedbuff")) or text == "ssp:0"


def _when_accumulated(parameter: torch.nn.Parameter, hook: Callable[[torch.nn.Parameter], None]) -> Any:
    """Has `hook` called when the parameter's gradient of a backward() is complete."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):
        return parameter.register_post_accumulate_grad_hook(hook)
    node: Any = parameter.expand_as(parameter).grad_fn
    node = node.next_functions[0][0]  # before torch 2.1
    handle: Any = node.register_hook(lambda *_: hook(parameter))
    handle.node = node  # it lives as long as somebody holds it
    return handle


def _gradient_memory(worker: Worker, flats: list[Flat]) -> list[torch.Tensor]:
    """Arrays like the flats' values, in memory that servers of this machine read where it lies."""
    memory = {}
    for dtype in dict.fromkeys(flat.values.dtype for flat in flats):
        same = [flat for flat in flats if flat.values.dtype == dtype]
        page = _PAGE_BYTES // same[0].values.element_size()
        sizes = [-(-flat.values.numel() // page) * page for flat in same]
        array = worker.allocate(sum(sizes), dtype)
        whole = array if _arrays.is_torch(array) else torch.from_numpy(array)
        for flat, part in zip(same, whole.split(sizes), strict=True):
            memory[flat] = part[: flat.values.numel()]
    return [memory[flat] for flat in flats]
