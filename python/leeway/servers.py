"""Servers in Python, with updaters, codecs and request handlers of your own: for prototypes.

A server calls them with the interpreter's lock held, one call at a time: what proves good is written in
C++ (leeway/server.h) or C, where servers run many at once.
"""

from __future__ import annotations

import math
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from leeway import _arrays, _texts, errors
from leeway._c import ffi, lib
from leeway._settings import settings_of

T = TypeVar("T")

_FLOATS = ("float32", "float64", "float16", "bfloat16")
# What callbacks get as their context, by its address; cffi keeps what a handle stands for.
_contexts: dict[int, Any] = {}


def _context_of(value: Any) -> Any:
    handle = ffi.new_handle(value)
    _contexts[int(ffi.cast("uintptr_t", handle))] = handle
    return handle


@ffi.def_extern("leeway_python_release")  # type: ignore[untyped-decorator]
def _release(context: Any) -> None:
    _contexts.pop(int(ffi.cast("uintptr_t", context)), None)


def _check(error: Any) -> None:
    if error:
        errors.throw(error)


def _error_of(what: str, raised: BaseException, code: int) -> Any:
    """An exception as an error for the caller: one of Leeway's keeps its kind."""
    try:
        text = str(raised)
    except BaseException:
        text = "its text cannot be had"
    if isinstance(raised, errors.Error) and raised.code in errors.KINDS:
        code = raised.code
    else:
        text = f"{what}: {type(raised).__name__}: {text}"
    return lib.leeway_error_new(code, text.encode(errors="backslashreplace"))


def _register(function: Callable[..., Any], name: str, *arguments: Any, kept: Any) -> None:
    """Calls a function of C that registers; what is kept for its callbacks goes where it fails."""
    context = _context_of((name, kept))
    error = function(_texts.encoded("name", name), *arguments, context)
    if error:
        _release(context)
        errors.throw(error)


def _vector(address: Any, dtype: int, size: int) -> Any:
    np = _arrays.numpy()
    item = np.dtype(_arrays.NAMES[dtype])
    return np.frombuffer(ffi.buffer(address, size * item.itemsize), dtype=item)


def _dtypes(names: Any) -> int:
    bits = 0
    for name in names:
        bits |= 1 << _arrays.dtype_number(name)
    return bits


def serve(**settings: Any) -> None:
    """Runs a server in this process until the cluster ends or a signal ends it.

    Settings as connect has them. SIGTERM drains the server first.

    Raises:
        InvalidArgument: a setting is wrong. Cancelled: a signal has ended the server with its shards.
    """
    texts = settings_of(settings, role="server")
    _check(lib.leeway_run_server(ffi.new("leeway_setting[]", texts), len(texts)))


# ---- updaters ----


def updater(name: str) -> Callable[[type[T]], type[T]]:
    """Registers a class as an updater of this process's servers, for `leeway.Updater(name, ...)`.

    An instance is made for each table, with the table's parameters as keywords. It has

        def update(self, value, gradient, state, step, lr)

    which changes `value` (and the arrays in `state`) in place, in runs of elements: NumPy arrays of one
    dimension, float32 for 16-bit tables. `step` counts the updates of the block or row from 1; `lr` is
    the push's learning rate, NaN without one. Attributes that it may have: `state`, how many values it
    keeps for each element, or `initial_state`, what they begin with; `dtypes`, names of those that it can
    update (those of floating point); `last_counts`, True if of several pushes the last one counts.

    It is tried on two elements when a table is created, so that a mistake is an error there. Later an
    exception ends the server: it cannot go on with values that are half updated.

    >>> @leeway.updater("signs")
    ... class Signs:
    ...     def __init__(self, step):
    ...         self.step = step
    ...     def update(self, value, gradient, state, step, lr):
    ...         value -= self.step * np.sign(gradient)
    """

    def register(kind: type[T]) -> type[T]:
        _register(lib.leeway_register_updater, name, lib.leeway_python_make_updater, kept=kind)
        return kind

    return register


class _Updater:
    """An updater of one table."""

    def __init__(self, made: Any):
        self.made = made
        initial = getattr(made, "initial_state", None)
        self.initial = [0.0] * int(getattr(made, "state", 0)) if initial is None else [*map(float, initial)]
        self.slots = ffi.new("double[]", self.initial)
        self.dtypes = _dtypes(getattr(made, "dtypes", _FLOATS))

    def try_out(self) -> None:
        """Runs it once on two elements for each type that it computes in."""
        np = _arrays.numpy()
        computed = {"float16": "float32", "bfloat16": "float32"}
        for name in {computed.get(n, n) for n, bit in _arrays.DTYPES.items() if self.dtypes >> bit & 1}:
            state = [np.full(2, first, dtype=name) for first in self.initial]
            self.made.update(np.ones(2, dtype=name), np.ones(2, dtype=name), state, 1, 0.5)


@ffi.def_extern("leeway_python_make_updater")  # type: ignore[untyped-decorator]
def _make_updater(context: Any, parameters: Any, count: int, described: Any) -> Any:
    name, kind = ffi.from_handle(context)
    try:
        given = {ffi.string(parameters[i].name).decode(): parameters[i].value for i in range(count)}
        made = _Updater(kind(**given))
        made.try_out()
        last_counts = bool(getattr(made.made, "last_counts", False))
    except BaseException as raised:
        return _error_of(f"updater '{name}'", raised, errors.InvalidArgument.code)
    described.dtypes = made.dtypes
    described.state_slots = len(made.initial)
    described.initial_state = made.slots
    described.last_counts = last_counts
    described.update = lib.leeway_python_update
    described.release = lib.leeway_python_release
    described.context = _context_of(made)
    return ffi.NULL


# Is told why an updater ends this process, if leeway.launch has started it.
report_end: Callable[[str], None] = lambda text: None


def _end_server(kind: Any, value: BaseException, trace: Any) -> None:
    text = "".join(traceback.format_exception(kind, value, trace))
    text += "leeway: an updater has raised an exception, and the server ends"
    print(text, file=sys.stderr, flush=True)
    report_end(text)
    os._exit(1)


@ffi.def_extern("leeway_python_update", onerror=_end_server)  # type: ignore[untyped-decorator]
def _update(context: Any, run: Any) -> None:
    value = _vector(run.value, run.dtype, run.size)
    gradient = _vector(run.gradient, run.dtype, run.size)
    gradient.flags.writeable = False
    state = [_vector(run.state[i], run.dtype, run.size) for i in range(run.state_slots)]
    ffi.from_handle(context).made.update(value, gradient, state, run.step, run.learning_rate)


# ---- handlers ----


class Caller(NamedTuple):
    """The worker that calls a handler, and the place where the handler runs."""

    worker_rank: int
    server_rank: int
    thread: int


Handler = Callable[[Caller, bytes], Any]


def handler(name: str) -> Callable[[Handler], Handler]:
    """Registers a function that answers Worker.call(server, name, request).

    It answers with bytes, or what lies in memory as they do, or None. It runs on a server's data thread, and
    must not block. An exception is the caller's: one of Leeway as
    it is, another as leeway.Internal.

    >>> @leeway.handler("greet")
    ... def greet(caller, request):
    ...     return b"hello, " + request
    """

    def register(function: Handler) -> Handler:
        _register(lib.leeway_register_handler, name, lib.leeway_python_handle, kept=function)
        return function

    return register


@ffi.def_extern("leeway_python_handle")  # type: ignore[untyped-decorator]
def _handle(context: Any, caller: Any, request: Any, size: int, answer: Any) -> Any:
    name, function = ffi.from_handle(context)
    try:
        said = function(
            Caller(caller.worker_rank, caller.server_rank, caller.thread), bytes(ffi.buffer(request, size))
        )
        data = ffi.from_buffer(b"" if said is None else said)
        return lib.leeway_answer_set(answer, data, len(data))
    except BaseException as raised:
        if not isinstance(raised, errors.Error):
            traceback.print_exc()
        return _error_of(f"handler '{name}'", raised, errors.Internal.code)


# ---- codecs ----


def codec(name: str, version: int = 1) -> Callable[[type[T]], type[T]]:
    """Registers a class as a codec, in workers and servers alike, before they connect.

    An instance is made for each table, with the options of the codec's text as keywords of strings: of
    "mine:0.1,exact=1" value="0.1", exact="1". It has

        def encode(self, values) -> bytes
        def decode(self, data, shape) -> array

    `values` are of one dimension, or for the rows of a sparse table [rows][columns]; each row then stands
    by itself. Where `encode` raises an exception they go as they are, and the first exception is shown.
    `decode` gets bytes that may be anything, and raises ValueError if they are not its own.

    Attributes that it may have: `bytes_for_element` (8, at most 1024) and `bytes_for_message` (64, at most
    a million), bounds of what encode returns; `lossless` (False); `contracts` (True): with error feedback,
    what is dropped is shorter than the input; `dtypes` (float32).
    """

    def register(kind: type[T]) -> type[T]:
        _register(lib.leeway_register_codec, name, version, lib.leeway_python_make_codec, kept=kind)
        return kind

    return register


class _Codec:
    """A codec of one table."""

    def __init__(self, name: str, made: Any):
        self.name = name
        self.made = made
        self.told = False  # that encode fails
        self.dtypes = _dtypes(getattr(made, "dtypes", ("float32",)))
        self.lossless = bool(getattr(made, "lossless", False))
        self.contracts = bool(getattr(made, "contracts", True))
        # Read once: the library has memory for what they said.
        self.for_element = float(getattr(made, "bytes_for_element", 8))
        self.for_message = int(getattr(made, "bytes_for_message", 64))
        if not 0 <= self.for_element <= 1024 or not 0 <= self.for_message <= 1_000_000:
            raise ValueError("bytes_for_element is from 0 to 1024, and bytes_for_message to a million")

    def bytes_max(self, elements: int) -> int:
        return math.ceil(self.for_element * elements) + self.for_message


@ffi.def_extern("leeway_python_make_codec")  # type: ignore[untyped-decorator]
def _make_codec(context: Any, options: Any, count: int, described: Any) -> Any:
    name, kind = ffi.from_handle(context)
    try:
        given = {
            ffi.string(options[i].name).decode() or "value": ffi.string(options[i].value).decode()
            for i in range(count)
        }
        made = _Codec(name, kind(**given))
    except BaseException as raised:
        return _error_of(f"codec '{name}'", raised, errors.InvalidArgument.code)
    described.dtypes = made.dtypes
    described.lossless = made.lossless
    described.contracts = made.contracts
    described.encoded_bytes_max = lib.leeway_python_encoded_bytes_max
    described.encode = lib.leeway_python_encode
    described.decode = lib.leeway_python_decode
    described.release = lib.leeway_python_release
    described.context = _context_of(made)
    return ffi.NULL


@ffi.def_extern("leeway_python_encoded_bytes_max")  # type: ignore[untyped-decorator]
def _encoded_bytes_max(context: Any, shape: Any) -> int:
    return int(ffi.from_handle(context).bytes_max(shape.elements))


def _shape_of(shape: Any) -> tuple[int, ...]:
    if shape.separate_rows and shape.columns:
        return (shape.elements // shape.columns, shape.columns)
    return (shape.elements,)


@ffi.def_extern("leeway_python_encode")  # type: ignore[untyped-decorator]
def _encode(context: Any, values: Any, shape: Any, seed: int, step: int, out: Any, written: Any) -> Any:
    codec = ffi.from_handle(context)
    try:
        array = _vector(values, shape.dtype, shape.elements).reshape(_shape_of(shape))
        array.flags.writeable = False
        encoded = memoryview(codec.made.encode(array)).tobytes()
        most = codec.bytes_max(shape.elements)
        if len(encoded) > most:
            raise ValueError(f"encode gives {len(encoded)} bytes, and bytes_for_element promises {most}")
        ffi.memmove(out, encoded, len(encoded))
        written[0] = len(encoded)
        return ffi.NULL
    except BaseException as raised:
        if not codec.told:
            codec.told = True
            traceback.print_exc()
        return _error_of(f"codec '{codec.name}'", raised, errors.InvalidArgument.code)


@ffi.def_extern("leeway_python_decode")  # type: ignore[untyped-decorator]
def _decode(context: Any, encoded: Any, size: int, shape: Any, values: Any) -> Any:
    codec = ffi.from_handle(context)
    try:
        np = _arrays.numpy()
        expected = _shape_of(shape)
        array = np.asarray(codec.made.decode(bytes(ffi.buffer(encoded, size)), expected))
        if array.shape != expected:
            raise ValueError(f"decode gives the shape {array.shape}, and {expected} is expected")
        _vector(values, shape.dtype, shape.elements)[:] = array.ravel()
        return ffi.NULL
    except BaseException as raised:
        return _error_of(f"codec '{codec.name}'", raised, errors.InvalidArgument.code)
