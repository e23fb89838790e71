"""Tables: tensors and rows that the servers hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from leeway import _arrays, _texts, errors
from leeway._c import ffi, lib
from leeway.ticket import OfOneProcess, Ticket

if TYPE_CHECKING:
    from leeway.worker import Worker

_new = ffi.new


def _options(timeout: float | None, lr: float | None, priority: int, copy: bool) -> Any:
    if timeout is None and lr is None and not priority and not copy:
        return ffi.NULL
    rate = ffi.NULL if lr is None else _new("double *", lr)
    options = _new("leeway_options *")
    options.struct_bytes = ffi.sizeof("leeway_options")
    # 0 stands for the default in C; here it is no time at all.
    options.timeout_s = 0.0 if timeout is None else (timeout if timeout != 0 else -1.0)
    options.learning_rate = rate
    options.priority = priority
    options.copy = bool(copy)
    return options, rate


def _seconds(timeout: float | None) -> float:
    return 0.0 if timeout is None else (timeout if timeout != 0 else -1.0)


class Table(OfOneProcess):
    """A table of the cluster. Made by Worker.table and Worker.open; any thread may use it.

    Every operation takes these options:

    - `timeout`: seconds; None: the worker's request_timeout_ms.
    - `priority`: operations of a higher one go first; give a model's layers 0, -1, -2, ...
    - `lr`, of a push: a learning rate in place of the table's.
    - `copy`, of a push: the array may be changed at once; otherwise not before the ticket is done.

    A pull without `out` returns a new array: of NumPy, or of torch for bfloat16 or where keys are a tensor.
    """

    def __init__(self, worker: Worker, handle: Any):
        self._worker = worker
        self._c = handle
        self._dtype = lib.leeway_table_dtype(handle)

    def __del__(self, lib: Any = lib, null: Any = ffi.NULL) -> None:
        handle, self._c = self._c, null
        lib.leeway_table_free(handle)

    @property
    def name(self) -> str:
        return str(ffi.string(lib.leeway_table_name(self._c)).decode())

    @property
    def dtype(self) -> str:
        """ "float32", "bfloat16", ..."""
        return _arrays.NAMES[self._dtype]

    @property
    def worker(self) -> Worker:
        return self._worker

    def __repr__(self) -> str:
        text = _new("char **")
        error = lib.leeway_table_text(self._c, text)
        if error:
            errors.throw(error)
        return f"<leeway.{type(self).__name__} {_taken(text)}>"

    def set_codec(self, codec: str, timeout: float | None = None) -> int:
        """Gives the table another of its `codecs`; returns the clock from which on all push with it."""
        clock = _new("uint64_t *")
        error = lib.leeway_set_codec(
            self._worker._c,
            self.name.encode(),
            _texts.encoded("codec", codec),
            _seconds(timeout),
            clock,
        )
        if error:
            errors.throw(error)
        return int(clock[0])

    def change(self, timeout: float | None = None, **settings: Any) -> int:
        """Changes settings that do not shape the data, from the returned clock on, for all workers.

        Settings are the updater's parameters (learning_rate=0.01; None: its default), `consistency`
        (another bound) and `nonfinite` ("count" or "refuse").
        """
        texts = [
            (_texts.encoded("a setting", name), b"" if value is None else _texts.encoded(name, str(value)))
            for name, value in settings.items()
        ]
        kept = [(_new("char[]", name), _new("char[]", value)) for name, value in texts]
        clock = _new("uint64_t *")
        error = lib.leeway_change_table(
            self._worker._c,
            self.name.encode(),
            _new("leeway_setting[]", kept),
            len(kept),
            _seconds(timeout),
            clock,
        )
        if error:
            errors.throw(error)
        return int(clock[0])

    @staticmethod
    def _begun(error: Any, ticket: Ticket) -> Ticket:
        if error:
            errors.throw(error)
        return ticket

    def _check_shape(self, data: _arrays.Data, shape: tuple[int, ...], elements: int, what: str) -> None:
        if data.shape != shape and not (data.elements == elements and len(data.shape) <= 1):
            raise errors.InvalidArgument(
                f"{what} of table '{self.name}' has the shape {tuple(data.shape)}: {shape} is expected, "
                f"or {elements} elements in one dimension"
            )


def _taken(text: Any) -> str:
    """The text that a function of C has returned, which is freed."""
    try:
        return str(ffi.string(text[0]).decode("utf-8", "replace"))
    finally:
        lib.leeway_free(text[0])


class DenseTable(Table):
    """A tensor. Pushes and pulls are of all of it."""

    def __init__(self, worker: Worker, handle: Any):
        super().__init__(worker, handle)
        self.shape = tuple(
            lib.leeway_table_size(handle, i) for i in range(lib.leeway_table_dimensions(handle))
        )
        self._elements = int(lib.leeway_table_elements(handle))

    def push(
        self,
        values: Any,
        *,
        timeout: float | None = None,
        lr: float | None = None,
        priority: int = 0,
        copy: bool = False,
    ) -> Ticket:
        """Sends `values` (the table's shape and dtype), to which the updater is applied.

        Raises:
            TypeError: of another dtype. ValueError: of another shape, or not contiguous.
        """
        data = _arrays.data_of(values, self._dtype)
        if data.shape != self.shape:
            self._check_shape(data, self.shape, self._elements, "the push")
        options = _options(timeout, lr, priority, copy)
        ticket = Ticket(self._worker, data)
        error = lib.leeway_push(
            self._c, data.dtype, data.address, data.elements, options and options[0], ticket._box
        )
        return self._begun(error, ticket)

    def pull_async(self, out: Any = None, *, timeout: float | None = None, priority: int = 0) -> Ticket:
        """As pull, without waiting: the ticket's result is the array."""
        out = _arrays.empty(self.shape, self._dtype) if out is None else out
        data = _arrays.data_of(out, self._dtype, writable=True)
        if data.shape != self.shape:
            self._check_shape(data, self.shape, self._elements, "the pull")
        options = _options(timeout, None, priority, False)
        ticket = Ticket(self._worker, data, lambda _: out)
        error = lib.leeway_pull(
            self._c, data.dtype, data.address, data.elements, options and options[0], ticket._box
        )
        return self._begun(error, ticket)

    def pull(self, out: Any = None, *, timeout: float | None = None, priority: int = 0) -> Any:
        """Returns the values; with `out`, which is written in place, without a copy.

        Raises:
            Error: DeadlineExceeded, Unavailable and others: see Ticket.wait.
        """
        return self.pull_async(out, timeout=timeout, priority=priority).wait()

    def push_pull(
        self,
        values: Any,
        out: Any = None,
        *,
        timeout: float | None = None,
        lr: float | None = None,
        priority: int = 0,
        copy: bool = False,
    ) -> Ticket:
        """Pushes, then pulls the values after that push, into `out` or a new array: the ticket's result.

        With the consistency BSP() they come after this iteration: call Worker.clock before Ticket.wait.
        """
        out = _arrays.empty(self.shape, self._dtype, like=values) if out is None else out
        data = _arrays.data_of(values, self._dtype)
        result = _arrays.data_of(out, self._dtype, writable=True)
        self._check_shape(data, self.shape, self._elements, "the push")
        self._check_shape(result, self.shape, self._elements, "the pull")
        if data.dtype != result.dtype:
            raise TypeError(
                f"values are {_arrays.NAMES[data.dtype]}, and out is {_arrays.NAMES[result.dtype]}"
            )
        options = _options(timeout, lr, priority, copy)
        ticket = Ticket(self._worker, (data, result), lambda _: out)
        error = lib.leeway_push_pull(
            self._c,
            data.dtype,
            data.address,
            result.address,
            data.elements,
            options and options[0],
            ticket._box,
        )
        return self._begun(error, ticket)


class SparseTable(Table):
    """Rows of `dim` elements by key, an integer below 2^64. A row begins as the initializer says.

    Keys have any shape, and values that shape and one dimension more, of `dim` elements.
    """

    def __init__(self, worker: Worker, handle: Any):
        super().__init__(worker, handle)
        self.dim = int(lib.leeway_table_row_width(handle))

    def push(
        self,
        keys: Any,
        values: Any,
        *,
        timeout: float | None = None,
        lr: float | None = None,
        priority: int = 0,
        copy: bool = False,
    ) -> Ticket:
        """Sends a row for each key, to which the updater is applied. Rows of a repeated key are added up.

        Raises:
            TypeError: of another dtype, or keys that are no integers. ValueError: shapes, or a key below 0.
        """
        rows = _arrays.keys_of(keys)
        data = _arrays.data_of(values, self._dtype)
        self._check_shape(data, rows.shape + (self.dim,), rows.elements * self.dim, "the push")
        options = _options(timeout, lr, priority, copy)
        ticket = Ticket(self._worker, (rows, data))
        error = lib.leeway_push_rows(
            self._c, rows.address, rows.elements, data.dtype, data.address, data.elements,
            options and options[0], ticket._box,
        )  # fmt: skip
        return self._begun(error, ticket)

    def pull_async(
        self, keys: Any, out: Any = None, *, timeout: float | None = None, priority: int = 0
    ) -> Ticket:
        """As pull, without waiting: the ticket's result is the array."""
        rows = _arrays.keys_of(keys)
        shape = rows.shape + (self.dim,)
        out = _arrays.empty(shape, self._dtype, like=keys) if out is None else out
        data = _arrays.data_of(out, self._dtype, writable=True)
        self._check_shape(data, shape, rows.elements * self.dim, "the pull")
        options = _options(timeout, None, priority, False)
        ticket = Ticket(self._worker, (rows, data), lambda _: out)
        error = lib.leeway_pull_rows(
            self._c, rows.address, rows.elements, data.dtype, data.address, data.elements,
            options and options[0], ticket._box,
        )  # fmt: skip
        return self._begun(error, ticket)

    def pull(self, keys: Any, out: Any = None, *, timeout: float | None = None, priority: int = 0) -> Any:
        """Returns a row for each key; with `out`, which is written in place, without a copy.

        Raises:
            Error: DeadlineExceeded, Unavailable and others: see Ticket.wait.
        """
        return self.pull_async(keys, out, timeout=timeout, priority=priority).wait()

    def push_pull(
        self,
        keys: Any,
        values: Any,
        out: Any = None,
        *,
        timeout: float | None = None,
        lr: float | None = None,
        priority: int = 0,
        copy: bool = False,
    ) -> Ticket:
        """Pushes, then pulls the same rows after that push; as DenseTable.push_pull."""
        rows = _arrays.keys_of(keys)
        shape, elements = rows.shape + (self.dim,), rows.elements * self.dim
        out = _arrays.empty(shape, self._dtype, like=values) if out is None else out
        data = _arrays.data_of(values, self._dtype)
        result = _arrays.data_of(out, self._dtype, writable=True)
        self._check_shape(data, shape, elements, "the push")
        self._check_shape(result, shape, elements, "the pull")
        if data.dtype != result.dtype:
            raise TypeError(
                f"values are {_arrays.NAMES[data.dtype]}, and out is {_arrays.NAMES[result.dtype]}"
            )
        options = _options(timeout, lr, priority, copy)
        ticket = Ticket(self._worker, (rows, data, result), lambda _: out)
        error = lib.leeway_push_pull_rows(
            self._c, rows.address, rows.elements, data.dtype, data.address, result.address, data.elements,
            options and options[0], ticket._box,
        )  # fmt: skip
        return self._begun(error, ticket)


class RaggedTable(Table):
    """Rows of different widths by key. No key twice in one operation."""

    def push(
        self,
        keys: Any,
        rows: Sequence[Any],
        *,
        timeout: float | None = None,
        lr: float | None = None,
        priority: int = 0,
    ) -> Ticket:
        """Sends rows[i], an array of one dimension, for keys[i]. The rows are copied into one array.

        Raises:
            InvalidArgument: a row has another width than the table's (`assign` sets widths), in Ticket.wait.
        """
        np = _arrays.numpy()
        numbers = _arrays.keys_of(keys)
        if len(rows) != numbers.elements:
            raise errors.InvalidArgument(f"there are {numbers.elements} keys and {len(rows)} rows")
        joined, sizes = _arrays.joined(rows, self._dtype)
        widths = np.array(sizes, dtype=np.uint32)
        data = _arrays.data_of(joined, self._dtype)
        options = _options(timeout, lr, priority, False)
        ticket = Ticket(self._worker, (numbers, widths, data))
        error = lib.leeway_push_ragged(
            self._c, numbers.address, numbers.elements, ffi.from_buffer("uint32_t[]", widths),
            data.dtype, data.address, data.elements, options and options[0], ticket._box,
        )  # fmt: skip
        return self._begun(error, ticket)

    def pull_async(self, keys: Any, *, timeout: float | None = None, priority: int = 0) -> Ticket:
        """As pull, without waiting: the ticket's result is the list of arrays."""
        numbers = _arrays.keys_of(keys)
        options = _options(timeout, None, priority, False)
        ticket = Ticket(self._worker, numbers, partial(self._rows_of, numbers.elements))
        error = lib.leeway_pull_ragged(
            self._c, numbers.address, numbers.elements, self._dtype, options and options[0], ticket._box
        )
        return self._begun(error, ticket)

    def pull(self, keys: Any, *, timeout: float | None = None, priority: int = 0) -> list[Any]:
        """Returns an array for each key; of a key that was never pushed it has no elements."""
        return list(self.pull_async(keys, timeout=timeout, priority=priority).wait())

    def _rows_of(self, count: int, ticket: Ticket) -> list[Any]:
        np = _arrays.numpy()
        widths, values, elements = _new("uint32_t **"), _new("void **"), _new("uint64_t *")
        error = lib.leeway_pulled_rows(self._worker._c, ticket._c, widths, values, elements)
        if error:
            errors.throw(error)
        whole = _arrays.empty((int(elements[0]),), self._dtype)
        data = _arrays.data_of(whole, self._dtype, writable=True)
        element_bytes = whole.itemsize if not _arrays.is_torch(whole) else whole.element_size()
        ffi.memmove(
            ffi.cast("char *", data.address),
            ffi.cast("char *", values[0]),
            int(elements[0]) * element_bytes,
        )
        ends = (
            np.cumsum(np.frombuffer(ffi.buffer(widths[0], 4 * count), dtype=np.uint32), dtype=np.uint64)
            if count
            else []
        )
        return [
            whole[int(end - width) : int(end)] for end, width in zip(ends, widths[0][0:count], strict=True)
        ]
