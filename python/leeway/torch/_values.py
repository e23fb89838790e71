"""Values of a model: several parameters in one array, which is one table's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import torch

from leeway import errors
from leeway.tables import DenseTable
from leeway.ticket import wait
from leeway.worker import Worker

Named = Sequence[tuple[str, torch.nn.Parameter]]

_ROUNDS_MAX = 1000  # of `begin`


def to_host(tensor: torch.Tensor) -> torch.Tensor:
    """A copy in this machine's memory, pinned where there is a GPU: what a push or a pull takes."""
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=torch.cuda.is_available())
    return host.copy_(tensor.detach())


class Flat:
    """Parameters one after the other in one array, `values`.

    Of parameters on the CPU of that dtype the values are moved there: what is written to the array is the
    parameter's. Others are copied by `gather` and `scatter`.
    """

    def __init__(self, named: Named, dtype: torch.dtype):
        self.names = [name for name, _ in named]
        self.parameters = [parameter for _, parameter in named]
        elements = sum(parameter.numel() for parameter in self.parameters)
        self._aliased = all(
            parameter.device.type == "cpu" and parameter.dtype == dtype for parameter in self.parameters
        )
        pinned = not self._aliased and torch.cuda.is_available()
        self.values = torch.empty(elements, dtype=dtype, pin_memory=pinned)
        self._views = self.views_of(self.values)
        self._copy_out()
        if self._aliased:
            for parameter, view in zip(self.parameters, self._views, strict=True):
                parameter.data = view
        self._versions = [parameter._version for parameter in self.parameters]

    def views_of(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """The parts of such an array, in the shapes of the parameters."""
        sizes = [parameter.numel() for parameter in self.parameters]
        return [
            part.view(parameter.shape)
            for part, parameter in zip(flat.split(sizes), self.parameters, strict=True)
        ]

    def gather(self) -> None:
        """Has `values` hold what the parameters are."""
        for name, parameter, view in zip(self.names, self.parameters, self._views, strict=True):
            if self._aliased and parameter.data_ptr() != view.data_ptr():
                raise RuntimeError(
                    f"parameter {name} has been moved since it was given to Leeway: move the model (.to, .half, "
                    ".share_memory) before"
                )
        if not self._aliased:
            self._copy_out()

    def _copy_out(self) -> None:
        for parameter, view in zip(self.parameters, self._views, strict=True):
            view.copy_(parameter.detach())

    def scatter(self) -> None:
        """Has the parameters be what `values` holds."""
        if not self._aliased:
            with torch.no_grad():
                for parameter, view in zip(self.parameters, self._views, strict=True):
                    parameter.copy_(view, non_blocking=True)
            if torch.cuda.is_available():
                torch.cuda.current_stream().synchronize()  # the next pull writes to `values`
            self._versions = [parameter._version for parameter in self.parameters]

    def check_unchanged(self) -> None:
        """RuntimeError: a parameter was written to by other means than `values` and `scatter`."""
        for name, parameter, version in zip(self.names, self.parameters, self._versions, strict=True):
            if parameter._version != version:
                raise RuntimeError(
                    f"parameter {name} was changed in this process, but its values are the servers': load a state "
                    "before the optimizer is made, or start the cluster from a checkpoint (LEEWAY_RESTORE)"
                )
        self.gather()


def trainable(model: torch.nn.Module) -> Named:
    """The parameters that have gradients, in the order of the model's modules; none without elements."""
    found = [
        (name, parameter)
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and parameter.numel()
    ]
    if not found:
        raise ValueError(f"{type(model).__name__} has no parameter that requires a gradient")
    return found


def check_frozen(frozen: Named) -> None:
    """RuntimeError: a parameter that required no gradient when these were listed has one now."""
    for name, parameter in frozen:
        if parameter.requires_grad and parameter.grad is not None:
            raise RuntimeError(
                f"parameter {name} has a gradient now, and required none when it was given to Leeway: freeze it "
                "after that instead, by requires_grad_(False)"
            )


def label(prefix: str, names: Sequence[str]) -> str:
    """A table's name: of its parameter, or of the first and the last one."""
    text = names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}"
    return f"{prefix}/{text}"


def _key_of(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def begin(worker: Worker, name: str, tables: Iterable[tuple[DenseTable, torch.Tensor]]) -> int:
    """Fills the arrays with what the tables hold; new tables begin with the array of the worker of rank 0.

    The table `name`/begun has for each of the tables of that name the clock in which it began, plus one. All workers of a new cluster call it, and end one clock in it. A worker that joins later takes what there
    is. The tables have the initializer "pushed". Returns the clock in which all began.
    """
    tables = list(tables)
    keys = [_key_of(table.name) for table, _ in tables]
    begun = worker.table(f"{name}/begun", dim=1, dtype="int64", updater="assign")
    for _ in range(_ROUNDS_MAX):
        since = begun.pull(keys)
        if since.all():
            wait([table.pull_async(out=array) for table, array in tables])
            return int(since.max()) - 1
        if worker.rank == 0:
            new = [place for place in range(len(tables)) if not since[place]]
            wait([tables[place][0].push(tables[place][1]) for place in new])
            clock = [[1 + worker.clocks + 1]] * len(new)
            begun.push([keys[place] for place in new], clock).wait()
        worker.clock()
    raise errors.FailedPrecondition(
        f"the tables of '{name}' have no values: they begin with those of the worker of rank 0, which gives none"
    )


def buckets_of(named: Named, bytes_max: int) -> list[list[tuple[str, torch.nn.Parameter]]]:
    """Parameters that follow each other, in groups of one dtype and device that are no larger, if of several."""
    buckets: list[list[tuple[str, torch.nn.Parameter]]] = []
    held = 0
    for name, parameter in named:
        size = parameter.numel() * parameter.element_size()
        last = buckets[-1][-1][1] if buckets else None
        fits = last is not None and (last.dtype, last.device) == (parameter.dtype, parameter.device)
        if fits and held + size <= bytes_max:
            buckets[-1].append((name, parameter))
            held += size
        else:
            buckets.append([(name, parameter)])
            held = size
    return buckets


BUCKET_BYTES = 512 << 10  # a block of a table


def pull(
    model: torch.nn.Module, worker: Worker, name: str = "model", bucket_bytes: int = BUCKET_BYTES
) -> None:
    """Gives a model the values of the tables of a DistributedOptimizer of that name; also a reader may.

    `bucket_bytes` is as there. An evaluation beside a training:

        reader = leeway.connect(read_only=True)
        leeway.torch.pull(model, reader)

    Raises:
        NotFound: there are no such tables.
    """
    waiting = []
    for bucket in buckets_of(trainable(model), bucket_bytes):
        values = torch.empty(sum(parameter.numel() for _, parameter in bucket), dtype=bucket[0][1].dtype)
        table = worker.open(label(name, [one for one, _ in bucket]))
        if not isinstance(table, DenseTable):
            raise errors.InvalidArgument(f"table '{table.name}' is not of a DistributedOptimizer")
        waiting.append((bucket, values, table.pull_async(out=values)))
    with torch.no_grad():
        for bucket, values, ticket in waiting:
            ticket.wait()
            parts = values.split([parameter.numel() for _, parameter in bucket])
            for (_, parameter), part in zip(bucket, parts, strict=True):
                parameter.copy_(part.view(parameter.shape))


def staleness_of(text: str) -> float:
    """The bound on staleness, in clocks, of a consistency."""
    name, _, numbers = text.split(",")[0].partition(":")
    if name == "bsp" or name == "backup":
        return 0
    if name == "ssp":
        return int(numbers)
    if name == "dssp":
        return int(numbers.partition("-")[2])
    if name in ("asp", "psp", "softsync", "fedbuff"):
        return float("inf")
    raise errors.InvalidArgument(f"consistency is {text!r}, which is not known")
