"""The worker: the connection of this process to a cluster."""

from __future__ import annotations

import atexit
import json
import math
import operator
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Literal, overload

from leeway import _arrays, _texts, errors
from leeway._c import ffi, lib
from leeway._settings import settings_of
from leeway.tables import DenseTable, RaggedTable, SparseTable, Table, _seconds, _taken
from leeway.ticket import OfOneProcess


def _say_main_thread() -> None:
    lib.leeway_set_main_thread(threading.main_thread().ident)


_say_main_thread()
os.register_at_fork(after_in_child=_say_main_thread)

_KINDS = {
    lib.LEEWAY_DENSE: DenseTable,
    lib.LEEWAY_SPARSE: SparseTable,
    lib.LEEWAY_RAGGED: RaggedTable,
}
# How long the end of a process waits until all its workers have left; the cluster does without their word
# after that.
_END_TIMEOUT_S = 2.0


def connect(**settings: Any) -> Worker:
    """Joins the cluster, and returns when it is complete.

    Settings are those of the environment (docs/operations.md), which keywords precede: scheduler=
    "10.0.0.1:9000" is LEEWAY_SCHEDULER, request_timeout_ms=5000 is LEEWAY_REQUEST_TIMEOUT_MS. With
    read_only=True the worker is a reader.

    Raises:
        InvalidArgument: a setting is wrong, or there is none of that name.
        DeadlineExceeded: after connect_timeout_ms; the text names the nodes that are missing.
    """
    return Worker(**settings)


class Worker(OfOneProcess):
    """A member of the cluster, which pushes and pulls. Any thread may use it.

    As a context manager it leaves the cluster at the end. A child of fork() cannot use its parent's worker
    (FailedPrecondition), and may connect one of its own. Not to be used in a finalizer (__del__).
    """

    _c: Any = ffi.NULL

    def __init__(self, **settings: Any):
        self._orphans: deque[tuple[Any, Any]] = deque()
        self._published: dict[str, Any] = {}  # handles of tables of models.publish, by name
        texts = settings_of(settings, role="worker")
        worker = ffi.new("leeway_worker **")
        try:
            error = lib.leeway_connect_with(
                ffi.new("leeway_setting[]", texts),
                len(texts),
                ffi.addressof(lib, "leeway_python_hooks"),
                worker,
            )
        finally:  # also where Ctrl-C comes when the call returns
            self._c = worker[0]
        if error:
            errors.throw(error)
        _open.add(self)

    # Finalizers of a cycle come in any order: what a later one finds is no handle, instead of a freed one.
    def __del__(self, lib: Any = lib, null: Any = ffi.NULL) -> None:
        handle, self._c = self._c, null
        lib.leeway_worker_free(handle)
        for ticket, _ in self._orphans:
            lib.leeway_ticket_free(ticket)

    # ---- the cluster ----

    @property
    def rank(self) -> int:
        return int(lib.leeway_rank(self._c))

    @property
    def num_workers(self) -> int:
        return int(lib.leeway_num_workers(self._c))

    @property
    def num_servers(self) -> int:
        return int(lib.leeway_num_servers(self._c))

    def __repr__(self) -> str:
        return f"<leeway.Worker {self.rank} of {self.num_workers}>"

    def clock(self) -> int:
        """Ends this worker's iteration; returns how many have ended. Never waits for others."""
        error = lib.leeway_clock(self._c)
        if error:
            errors.throw(error)
        return int(lib.leeway_clocks_ended(self._c))

    @property
    def clocks(self) -> int:
        """Iterations ended so far. A worker that joins late begins where the others are."""
        return int(lib.leeway_clocks_ended(self._c))

    def iterations(self, count: int) -> Iterator[int]:
        """Numbers of the iterations up to `count` from where this worker is; ends each by clock().

        >>> for step in w.iterations(3):
        ...     ticket = counts.push(np.ones(4, np.float32))
        """
        while (now := self.clocks) < count:
            yield now
            self.clock()

    def barrier(self, name: str = "", timeout: float | None = None, servers: bool = False) -> None:
        """Waits until every living worker (with `servers`: and server) has entered the barrier of that name.

        Raises:
            DeadlineExceeded: names those that are missing.
        """
        group = lib.LEEWAY_ALL if servers else lib.LEEWAY_WORKERS
        error = lib.leeway_barrier(self._c, group, _texts.encoded("name", name), _seconds(timeout))
        if error:
            errors.throw(error)

    def stats(self) -> dict[str, Any]:
        """The counters of this worker: staleness_histogram, bytes_pushed, and others (leeway/c.h)."""
        text = ffi.new("char **")
        error = lib.leeway_stats(self._c, text)
        if error:
            errors.throw(error)
        stats: dict[str, Any] = json.loads(_taken(text))
        stats["staleness_histogram"] = {
            int(clocks): replies for clocks, replies in stats["staleness_histogram"].items()
        }
        return stats

    def call(self, server: int, handler: str, request: Any = b"", timeout: float | None = None) -> bytes:
        """Calls a request handler of a server, and returns its answer or raises its error.

        `request`: bytes, or what lies in memory as they do (bytearray, memoryview, a NumPy array).
        """
        data = ffi.from_buffer(request)
        answer, size = ffi.new("char **"), ffi.new("size_t *")
        error = lib.leeway_call(
            self._c,
            server,
            _texts.encoded("handler", handler),
            data,
            len(data),
            _seconds(timeout),
            answer,
            size,
        )
        if error:
            errors.throw(error)
        try:
            return bytes(ffi.buffer(answer[0], size[0]))
        finally:
            lib.leeway_free(answer[0])

    # ---- tables ----

    @overload
    def table(self, name: str, *, shape: int | tuple[int, ...], **spec: Any) -> DenseTable: ...
    @overload
    def table(self, name: str, *, dim: int, **spec: Any) -> SparseTable: ...
    @overload
    def table(self, name: str, *, ragged: Literal[True], **spec: Any) -> RaggedTable: ...
    def table(  # type: ignore[misc]
        self,
        name: str,
        *,
        shape: int | tuple[int, ...] | None = None,
        dim: int | None = None,
        ragged: bool = False,
        dtype: Any = "float32",
        updater: Any = None,
        consistency: Any = None,
        initializer: str | None = None,
        aggregate: str | None = None,
        nonfinite: str | None = None,
        codec: str | None = None,
        codecs: str | tuple[str, ...] | None = None,
        error_feedback: str | None = None,
    ) -> Table:
        """Creates the table, or opens it if an equal one exists: all workers may call this.

        Args:
            shape: of a DenseTable. dim: elements of a row of a SparseTable. ragged: a RaggedTable. One of them.
            dtype: "float32", "float64", "float16", "bfloat16", "int32", "int64", or NumPy's or torch's.
            updater: leeway.Adagrad(lr=0.05), or a text: "adagrad:learning_rate=0.05". None: pushes add up.
            consistency: leeway.SSP(3), or a text: "ssp:3", "backup:14/16,drop". None: BSP.
            initializer: "zeros", "constant:0.5", "uniform:-0.1,0.1,seed=1", "normal:0,0.01,seed=7".
            aggregate: "sum" or "mean" of the workers' pushes of an iteration.
            codec: compresses pushes and pulls: "onebit", "topk:0.01", "auto", ... (docs/compression.md).

        Raises:
            InvalidArgument: the description is wrong. AlreadyExists: it differs from the one there is.
        """
        if (shape is not None) + (dim is not None) + ragged != 1:
            raise TypeError(
                f"table '{name}' needs one of shape=, dim= and ragged=True; Worker.open opens one that exists"
            )
        number = _arrays.dtype_number(dtype)
        label = _texts.encoded("name", name)
        if shape is not None:
            sizes = _sizes(shape)
            spec = lib.leeway_spec_dense(label, number, sizes, len(sizes))
        elif dim is not None:
            spec = lib.leeway_spec_sparse(label, number, _sizes((dim,))[0])
        else:
            spec = lib.leeway_spec_ragged(label, number)
        fields = {
            "updater": updater, "consistency": consistency, "initializer": initializer, "aggregate": aggregate,
            "nonfinite": nonfinite, "codec": codec, "error_feedback": error_feedback,
            "codecs": codecs if codecs is None or isinstance(codecs, str) else " ".join(codecs),
        }  # fmt: skip
        try:
            for field, value in fields.items():
                if value is not None:
                    error = lib.leeway_spec_set(spec, field.encode(), _texts.encoded(field, str(value)))
                    if error:
                        errors.throw(error)
            table = ffi.new("leeway_table **")
            error = lib.leeway_create_table(self._c, spec, table)
        finally:
            lib.leeway_spec_free(spec)
        if error:
            errors.throw(error)
        return self._opened(table[0])

    def open(self, name: str) -> Table:
        """Opens a table that exists.

        Raises:
            NotFound: lists the tables that exist.
        """
        table = ffi.new("leeway_table **")
        error = lib.leeway_open_table(self._c, _texts.encoded("name", name), table)
        if error:
            errors.throw(error)
        return self._opened(table[0])

    def _opened(self, handle: Any) -> Table:
        return _KINDS[lib.leeway_table_kind(handle)](self, handle)

    def allocate(self, shape: int | tuple[int, ...], dtype: Any = "float32") -> Any:
        """A zeroed NumPy array that servers of this machine read where it lies: pushes from it are not copied.

        Put a model's many tensors into few arrays: a process shares at most 256. For torch:
        torch.from_numpy of it; bfloat16 comes as a torch tensor.
        """
        sizes = _sizes(shape)
        number = _arrays.dtype_number(dtype)
        name = _arrays.NAMES[number]
        np = _arrays.numpy()
        element_bytes = 2 if name == "bfloat16" else np.dtype(name).itemsize
        elements = math.prod(sizes)
        if elements == 0:
            return _arrays.empty(tuple(sizes), number)
        array = ffi.new("leeway_array **")
        error = lib.leeway_allocate(self._c, elements * element_bytes, array)
        if error:
            errors.throw(error)
        handle = array[0]
        free = lib.leeway_array_free  # the module's own names may be gone at the end of a process
        data = ffi.gc(lib.leeway_array_data(handle), lambda _: free(handle))
        memory = ffi.buffer(data, elements * element_bytes)  # keeps `data`
        if name != "bfloat16":
            return np.frombuffer(memory, dtype=name).reshape(sizes)
        import torch

        return torch.frombuffer(memory, dtype=torch.bfloat16).reshape(sizes)

    # ---- checkpoints ----

    def checkpoint(self, directory: str | os.PathLike[str] = "", timeout: float | None = None) -> str:
        """Saves all tables as of one clock in a new folder under `directory`, and returns that folder.

        Files are safetensors. The path means the same to the scheduler and all servers; "": the scheduler's
        checkpoint_dir. Only the caller waits, training goes on.
        """
        folder = ffi.new("char **")
        error = lib.leeway_checkpoint(self._c, _texts.path(directory), _seconds(timeout), folder)
        if error:
            errors.throw(error)
        return _taken(folder)

    def save_residuals(self, directory: str | os.PathLike[str]) -> None:
        """Saves what lossy codecs have left out of this worker's pushes so far."""
        error = lib.leeway_save_residuals(self._c, _texts.path(directory))
        if error:
            errors.throw(error)

    def load_residuals(self, directory: str | os.PathLike[str], rank: int | None = None) -> None:
        """Takes over the residuals that a worker of that rank (None: this one's) has saved."""
        given = ffi.NULL if rank is None else ffi.new("uint32_t *", rank)
        error = lib.leeway_load_residuals(self._c, _texts.path(directory), given)
        if error:
            errors.throw(error)

    # ---- the end ----

    def close(self, timeout: float | None = None) -> None:
        """Leaves the cluster in order; the others no longer wait for this worker. May be called again.

        Pushes are answered first. Later calls raise FailedPrecondition.

        Raises:
            DeadlineExceeded: it has left, and a server's death may still lose its last pushes.
        """
        error = lib.leeway_leave(self._c, _seconds(timeout))
        if error:
            errors.throw(error)  # where Ctrl-C has ended it, the end of the process leaves, briefly
        _open.discard(self)

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            _leave(self, _END_TIMEOUT_S)
            errors.raise_interrupt()

    def _keep(self, ticket: Any, arrays: Any) -> None:
        """Keeps the arrays of an operation whose ticket was dropped until it has completed."""
        # Two are looked at for each that comes: as many go, and none costs more the more there are. Any thread
        # may be here, also within this one's call.
        for _ in range(2):
            try:
                one = self._orphans.popleft()
            except IndexError:
                break
            if lib.leeway_done(self._c, one[0]):
                lib.leeway_ticket_free(one[0])
            else:
                self._orphans.append(one)
        self._orphans.append((ticket, arrays))


_open: weakref.WeakSet[Worker] = weakref.WeakSet()


def _sizes(shape: Any) -> list[int]:
    """Sizes of dimensions: of one where `shape` is an integer."""
    try:
        sizes = [operator.index(shape)]
    except TypeError:
        sizes = [operator.index(size) for size in shape]
    if any(size < 0 for size in sizes):
        raise errors.InvalidArgument(f"the shape is {tuple(sizes)}: a size is below 0")
    return sizes


def _leave(worker: Worker, timeout: float) -> None:
    """Leaves briefly, whatever the outcome: there is another error to report, or the process ends."""
    error = lib.leeway_leave(worker._c, timeout)
    _open.discard(worker)
    if error:
        lib.leeway_error_free(error)


@atexit.register
def _leave_all() -> None:
    end = time.monotonic() + _END_TIMEOUT_S
    for worker in list(_open):
        _leave(worker, max(end - time.monotonic(), 0.01))
