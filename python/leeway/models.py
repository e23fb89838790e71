"""Published models: versions of a named set of arrays, which workers make and many readers follow.

    leeway.publish({"w": weights, "b": biases}, "policy", worker=w)  # or a torch module

    policy = leeway.subscribe("policy", worker=reader)
    arrays = policy.fetch()  # waits for a version that is newer than policy.version

All arrays of a subscription are of one version, always. docs/publishing.md has the promises and limits.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from leeway import _arrays, _texts, errors
from leeway._c import ffi, lib
from leeway.tables import DenseTable, _seconds, _taken
from leeway.ticket import OfOneProcess, Ticket, wait

if TYPE_CHECKING:
    import torch

    from leeway.worker import Worker

# How long an `async for` waits in one call: its end, by a break or a cancellation, takes as long.
_TURN_S = 0.2
_MISFITS_NAMED = 5


def publish(state: Any, model: str, *, worker: Worker, timeout: float | None = None) -> int:
    """Makes a version of a model, which has what `state` holds, and returns its number: 1, 2, 3, ...

    Waits until all servers keep it. Any worker may publish, from any thread; a reader cannot.

    Args:
        state: one of
            - a dict from names to arrays (NumPy, torch on any device, DLPack) of any shape without a 0: a number,
              of shape (), becomes an array of shape (1,). Or a torch module: its state_dict(). They are pushed by
              push_state and may be changed once this returns. An entry may be a DenseTable, too.
            - DenseTables that exist, of any updater and consistency, each once: nothing is pushed.
        model: its name. Each version has the same arrays; with others readers have to subscribe anew.
        timeout: seconds, for each push and for the publication; None: the worker's request_timeout_ms. With
            tables of BSP it waits for slower workers.

    Several workers may make one version together: each pushes the entries that it has, and when all have, one
    publishes the tables, which are named `model`/`entry`:

        leeway.push_state(mine, "policy", worker=w)
        w.barrier("policy")
        if w.rank == 0:
            leeway.publish([w.open(f"policy/{name}") for name in names], "policy", worker=w)

    Raises:
        TypeError: an entry is no array, or of a dtype that tables do not have (bool, integers and floats of 8 bits).
        AlreadyExists: an entry had another shape or dtype in an earlier call, of any worker.
        DeadlineExceeded: it may be published all the same.
        FailedPrecondition: the worker is a reader, or closed.
        ResourceExhausted: there are too many models, or publications under way.
    """
    if isinstance(state, Iterable) and not isinstance(state, Mapping) and not hasattr(state, "state_dict"):
        tables = list(state)
        for table in tables:
            if not isinstance(table, DenseTable):
                raise TypeError(f"a model is of DenseTables, and not of {type(table).__name__}")
    else:
        tables = _pushed(state, model, worker, timeout)
    version = ffi.new("uint64_t *")
    error = lib.leeway_publish(
        worker._c,
        _texts.encoded("model", model),
        ffi.new("leeway_table *[]", [table._c for table in tables]),
        len(tables),
        _seconds(timeout),
        version,
    )
    if error:
        errors.throw(error)
    return int(version[0])


def push_state(state: Any, model: str, *, worker: Worker, timeout: float | None = None) -> None:
    """Pushes entries of a model to its tables, and waits until they are there; publishes nothing.

    The first call creates a table `model`/`entry` for each, of the updater "assign" and the consistency ASP.
    Arguments and errors are those of publish, where `state` is a dict or a torch module.
    """
    _pushed(state, model, worker, timeout)


def _pushed(state: Any, model: str, worker: Worker, timeout: float | None) -> list[DenseTable]:
    """Pushes the entries that are no tables, and returns the tables of all."""
    if not isinstance(model, str):
        raise TypeError(f"model is a str, and not {type(model).__name__}")
    if hasattr(state, "state_dict"):
        state = state.state_dict()
    if not isinstance(state, Mapping):
        raise TypeError(
            f"a state is a dict from names to arrays or a torch module, and not {type(state).__name__}"
        )
    # All is checked before anything is pushed.
    arrays = {
        name: value if isinstance(value, DenseTable) else _array(name, value) for name, value in state.items()
    }
    tables: list[DenseTable] = []
    tickets: list[Ticket] = []
    for name, value in arrays.items():
        if isinstance(value, DenseTable):
            tables.append(value)
        else:
            tables.append(_table(worker, f"{model}/{name}", value))
    for table, value in zip(tables, arrays.values(), strict=True):
        if not isinstance(value, DenseTable):
            tickets.append(table.push(value, timeout=timeout))
    wait(tickets)
    return tables


def _array(name: Any, value: Any) -> Any:
    """An entry as a push takes it: in this machine's memory, in one piece. TypeError: there is no such table."""
    if not isinstance(name, str):
        raise TypeError(f"an entry's name is a str, and not {type(name).__name__}")
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        raise TypeError(f"entry '{name}' is no array, but {type(value).__name__}")
    try:
        _arrays.dtype_number(value.dtype)
    except TypeError as wrong:
        raise TypeError(f"entry '{name}': {wrong}") from None
    if _arrays.is_torch(value):
        return value.detach().cpu().resolve_neg().contiguous()
    np = _arrays.numpy()
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value


class _Kept(DenseTable):
    """A table whose handle its worker keeps, and frees."""

    def __del__(self, lib: Any = lib, null: Any = ffi.NULL) -> None:
        pass


def _table(worker: Worker, name: str, value: Any) -> DenseTable:
    """The table of an entry, which is created at the first call of this worker."""
    number, shape = _arrays.dtype_number(value.dtype), tuple(value.shape) or (1,)
    handle = worker._published.get(name)
    if handle is not None:
        known = _Kept(worker, handle)
        if known._dtype == number and known.shape == shape:
            return known
    made = worker.table(name, shape=shape, dtype=_arrays.NAMES[number], updater="assign", consistency="asp")
    handle, made._c = made._c, ffi.NULL
    worker._published[name] = handle = ffi.gc(handle, lib.leeway_table_free)
    return _Kept(worker, handle)


class _Entry(NamedTuple):
    """One array of a subscription. `memory` changes when a version is applied."""

    dtype: int
    shape: tuple[int, ...]
    memory: Any

    def numpy(self) -> Any:
        np = _arrays.numpy()
        view = np.frombuffer(self.memory, dtype=_arrays.NAMES[self.dtype]).reshape(self.shape)
        view.flags.writeable = False
        return view

    def torch(self) -> Any:
        import torch

        return torch.frombuffer(self.memory, dtype=getattr(torch, _arrays.NAMES[self.dtype])).reshape(
            self.shape
        )


class Subscription(OfOneProcess):
    """A copy of a published model, which follows its versions. Made by subscribe.

        policy = leeway.subscribe("policy", worker=w)
        while True:
            arrays = policy.fetch(timeout=60)
            ...

    Any thread may use it: a call that fetches or applies waits until that of another thread has ended. What was
    applied can be read when the worker has closed.
    """

    _c: Any = ffi.NULL

    def __init__(self, model: str, *, worker: Worker):
        box = ffi.new("leeway_subscription **")
        try:
            error = lib.leeway_subscribe(worker._c, _texts.encoded("model", model), box)
        finally:  # also where Ctrl-C comes when the call returns
            self._c = ffi.gc(box[0], lib.leeway_subscription_free)
        if error:
            errors.throw(error)
        self._worker = worker
        self._model = model
        self._lock = threading.Lock()
        self._fetched = 0  # the version beside the arrays; 0: none
        self._entries = self._described()
        self._count()

    def _described(self) -> dict[str, _Entry]:
        entries: dict[str, _Entry] = {}
        count = lib.leeway_subscription_tables(self._c)
        for place in range(count):
            table = lib.leeway_subscription_table(self._c, place)
            name = ffi.string(lib.leeway_table_name(table)).decode()
            shape = tuple(
                int(lib.leeway_table_size(table, i)) for i in range(lib.leeway_table_dimensions(table))
            )
            size = ffi.new("uint64_t *")
            values = lib.leeway_subscription_values(self._c, place, size)
            # Views of the memory keep it, also when this object has gone.
            kept = ffi.gc(ffi.cast("void *", values), lambda _, subscription=self._c: None)
            entries[name] = _Entry(lib.leeway_table_dtype(table), shape, ffi.buffer(kept, size[0]))
        prefix = self._model + "/"
        short = {name.removeprefix(prefix): entry for name, entry in entries.items()}
        return short if len(short) == len(entries) else entries

    @property
    def model(self) -> str:
        return self._model

    @property
    def version(self) -> int:
        """The version of the arrays, which counts from 1; 0: no one was applied yet."""
        return int(lib.leeway_subscription_version(self._c))

    @property
    def clock(self) -> int:
        """The clock of the worker that published that version."""
        return int(lib.leeway_subscription_clock(self._c))

    @property
    def digest(self) -> int:
        """A digest of all arrays of that version, by which copies of it can be compared."""
        return int(lib.leeway_subscription_digest(self._c))

    def __repr__(self) -> str:
        return f"<leeway.Subscription {self._model}, version {self.version}>"

    def fetch(self, timeout: float | None = None, *, copy: bool = True) -> dict[str, Any]:
        """Waits for a newer version, applies it, and returns its arrays by name, in the shapes published.

        It is the newest there is; those between are skipped. What wait_newer has fetched is applied at once. Names
        are without the leading `model`/. Arrays are of NumPy, for bfloat16 of torch.

        Args:
            timeout: seconds until there is a newer version; None: the worker's request_timeout_ms; 0: does not
                wait.
            copy: True: the arrays are the caller's own. False: they are views without a copy, which the next
                version that is applied, by whatever thread, changes under way (NumPy's are read-only; a torch
                tensor must not be written to).

        Raises:
            DeadlineExceeded: there is no newer version; or the servers took longer than request_timeout_ms.
            NotFound: the version was fetched too slowly, and is not kept any more (LEEWAY_VERSIONS_KEPT).
            DataLoss: the arrays were not those of `version`, by its digest, as where views were written to:
                `version` is 0, and the next call fetches everything.
            FailedPrecondition: the worker is closed; or the model has other tables now: subscribe anew.
        """
        with self._lock:
            self._fetch_newer(timeout)
            self._apply_fetched()
            return self._arrays(copy)

    def wait_newer(self, timeout: float | None = None) -> int:
        """Waits for a newer version and fetches it beside the arrays, which stay as they are; returns its number.

        The next fetch or apply takes it. Arguments and errors are those of fetch.
        """
        with self._lock:
            return self._fetch_newer(timeout)

    def arrays(self, *, copy: bool = True) -> dict[str, Any]:
        """The arrays of `version` by name, as fetch returns them; does not wait.

        Raises:
            FailedPrecondition: no version was applied yet.
        """
        with self._lock:
            return self._arrays(copy)

    def apply(self, module: torch.nn.Module) -> int:
        """Copies the arrays into the parameters and buffers of that name of a torch module, in place, on any device.

        They are those that wait_newer has fetched, otherwise those of `version`, which is returned. Nothing else may
        use the module meanwhile. Where an exception of a signal's handler ends this midway, call it again.

        Raises:
            FailedPrecondition: no version was fetched yet; or the module does not fit: the text names what one of
                both lacks, or has in another shape or dtype. The module is as it was, then.
        """
        import torch

        with self._lock:
            if not (self._fetched or self.version):
                raise self._none_yet()
            targets = self._targets_in(module)
            self._apply_fetched()
            with torch.no_grad():
                for name, target in targets.items():
                    target.copy_(self._entries[name].torch().reshape(target.shape))
            return self.version

    def __aiter__(self) -> AsyncIterator[int]:
        """The numbers of newer versions, each once it was applied, without an end.

            async for version in policy:
                arrays = policy.arrays()

        Waits in threads of asyncio's. A fetch that takes too long is begun anew; other errors are raised.
        """
        return self._versions()

    async def _versions(self) -> AsyncIterator[int]:
        import asyncio

        while True:
            with contextlib.suppress(errors.DeadlineExceeded):
                await asyncio.to_thread(self.wait_newer, _TURN_S)
            with self._lock:
                newer = self._apply_fetched()
            if newer:
                yield newer

    def stats(self) -> dict[str, int]:
        """Counters: versions_fetched, versions_skipped, bytes_received (payload, of what was applied)."""
        return dict(self._stats)

    # ---- under the lock ----

    def _fetch_newer(self, timeout: float | None) -> int:
        if not self._fetched:
            version = ffi.new("uint64_t *")
            try:
                error = lib.leeway_fetch(self._c, _seconds(timeout), version)
            finally:  # also where Ctrl-C comes when the call returns
                self._fetched = int(version[0])
            if error:
                errors.throw(error)
            self._count()
        return self._fetched

    def _apply_fetched(self) -> int:
        """Applies what was fetched; returns its version, or 0 where there is none."""
        version = self._fetched
        if version:
            try:
                error = lib.leeway_apply(self._c)
            finally:
                self._fetched = 0
            if error:
                errors.throw(error)
            self._count()
        return version

    def _count(self) -> None:
        text = ffi.new("char **")
        error = lib.leeway_subscription_stats(self._c, text)
        if error:
            errors.throw(error)
        self._stats: dict[str, int] = json.loads(_taken(text))

    def _none_yet(self) -> errors.Error:
        return errors.FailedPrecondition(f"no version of model '{self._model}' is here yet: call fetch first")

    def _arrays(self, copy: bool) -> dict[str, Any]:
        if not self.version:
            raise self._none_yet()
        arrays = {}
        for name, entry in self._entries.items():
            if _arrays.NAMES[entry.dtype] == "bfloat16":
                arrays[name] = entry.torch().clone() if copy else entry.torch()
            else:
                arrays[name] = entry.numpy().copy() if copy else entry.numpy()
        return arrays

    def _targets_in(self, module: torch.nn.Module) -> dict[str, torch.Tensor]:
        """The tensors to copy to, by name. FailedPrecondition: one does not fit, or one of both has more."""
        found = {}
        for prefix, part in module.named_modules(remove_duplicate=False):
            own = [*part.named_parameters(recurse=False), *part.named_buffers(recurse=False)]
            found.update({f"{prefix}.{name}" if prefix else name: tensor for name, tensor in own})
        wrong = [f"the model has no '{name}'" for name in module.state_dict() if name not in self._entries]
        for name, entry in self._entries.items():
            misfit = f"the module has no '{name}'" if name not in found else _misfit(name, entry, found[name])
            if misfit:
                wrong.append(misfit)
        if wrong:
            more = f"; and {len(wrong) - _MISFITS_NAMED} more" if len(wrong) > _MISFITS_NAMED else ""
            raise errors.FailedPrecondition(
                f"model '{self._model}' does not fit {type(module).__name__}: "
                + "; ".join(wrong[:_MISFITS_NAMED])
                + more
            )
        return {name: found[name] for name in self._entries}


def _misfit(name: str, entry: _Entry, target: torch.Tensor) -> str:
    """Why the entry cannot be copied to a tensor; "" where it can."""
    import torch

    dtype, shape = _arrays.NAMES[entry.dtype], tuple(target.shape)
    if entry.shape != (shape or (1,)):
        return f"'{name}' has the shape {entry.shape}, and {shape} in the module"
    if str(target.dtype) != f"torch.{dtype}":
        return f"'{name}' is {dtype}, and {str(target.dtype).removeprefix('torch.')} in the module"
    if target.is_meta:
        return f"'{name}' has no memory in the module (it is on the device meta)"
    if target.is_inference() and not torch.is_inference_mode_enabled():
        return f"'{name}' was made in inference mode: apply the model in that mode, too"
    return ""


def subscribe(model: str, *, worker: Worker) -> Subscription:
    """Follows a published model; a reader (leeway.connect(read_only=True)) does so without taking part.

    Takes memory for the model; fetches nothing yet.

    Raises:
        NotFound: lists the models that were published.
        Unimplemented: a table of the model is not dense.
    """
    return Subscription(model, worker=worker)
