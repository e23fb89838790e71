"""Operations that are under way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from leeway import errors
from leeway._c import ffi, lib

if TYPE_CHECKING:
    import asyncio

    from leeway.worker import Worker


class Info(NamedTuple):
    """The state of the table that an operation found; leeway/worker.h, PullInfo, has the rules."""

    clock: int
    version: int
    parts_dropped: int


class OfOneProcess:
    """Has handles of the library, which are neither copied nor sent to other processes."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} belongs to one process: it cannot be copied or pickled")


class Ticket(OfOneProcess):
    """A push or pull that is under way: a future. Any thread may use it.

    It keeps the arrays alive until the operation has completed, also where the ticket is dropped before.
    """

    __slots__ = ("_worker", "_box", "_kept", "_finish", "_result", "_over")

    def __init__(self, worker: Worker, kept: Any, finish: Callable[[Ticket], Any] | None = None):
        self._worker = worker
        # The library writes the handle here. So the arrays have a keeper already when the call that submits
        # the operation returns, which is where Python raises the exceptions of signals' handlers.
        self._box = ffi.new("leeway_ticket **")
        self._kept = kept
        self._finish = finish
        self._result: Any = None
        self._over = False

    @property
    def _c(self) -> Any:
        return self._box[0]

    def wait(self) -> Any:
        """Waits until the operation has completed, and returns the pulled array (None for a push).

        The deadline is the operation's, `timeout` at its submission. A signal, Ctrl-C above all, ends the
        wait; the operation goes on.

        Raises:
            Error: of the kind that says why the operation failed; Unknown: a push may have been applied.
        """
        if not self._over:
            error = lib.leeway_wait(self._worker._c, self._c)
            if error:
                errors.throw(error)
            finish = self._finish
            if finish is not None:
                self._result = finish(self)
                self._finish = None
            self._over = True
            self._kept = None
        return self._result

    result = wait

    def done(self) -> bool:
        """Whether it has completed, well or not; does not wait."""
        return self._over or bool(lib.leeway_done(self._worker._c, self._c))

    def exception(self) -> errors.Error | None:
        """Waits, and returns the error of a failed operation."""
        try:
            self.wait()
        except errors.Error as error:
            return error
        return None

    @property
    def info(self) -> Info:
        """Clock and version of what was pulled, and parts of a push that were dropped as too late.

        Raises:
            FailedPrecondition: the operation has not completed.
        """
        info = ffi.new("leeway_info *", {"struct_bytes": ffi.sizeof("leeway_info")})
        error = lib.leeway_get_info(self._worker._c, self._c, info)
        if error:
            errors.throw(error)
        return Info(info.clock, info.version, info.parts_dropped)

    def add_done_callback(self, callback: Callable[[Ticket], object]) -> None:
        """Has `callback(ticket)` called once when the operation completes: at once if it has.

        It is called on a thread of the library, possibly one that waits in another call. It must not wait.
        An exception that it raises is reported as one of a thread is (threading.excepthook).
        """
        if not callable(callback):
            raise TypeError(f"a callback is a function, and not {type(callback).__name__}")
        handle = ffi.new_handle(self)
        number = int(ffi.cast("uintptr_t", handle))
        _callbacks[number] = (handle, self, callback)
        error = lib.leeway_when_done(self._worker._c, self._c, lib.leeway_python_done, handle)
        if error:
            del _callbacks[number]
            errors.throw(error)

    def __await__(self) -> Generator[Any, None, Any]:
        if not self.done():
            import asyncio

            loop = asyncio.get_running_loop()
            over = loop.create_future()

            def wake(ticket: Ticket) -> None:
                with contextlib.suppress(RuntimeError):  # the event loop has ended
                    loop.call_soon_threadsafe(_set, over)

            self.add_done_callback(wake)
            yield from over
        return self.wait()

    # At the end of a process the module's own names may be gone.
    def __del__(self, lib: Any = lib, null: Any = ffi.NULL) -> None:
        handle, self._box[0] = self._box[0], null
        if self._kept is not None and not self._over and not lib.leeway_done(self._worker._c, handle):
            self._worker._keep(handle, self._kept)
        else:
            lib.leeway_ticket_free(handle)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


# Callbacks that are to come, by the address of their handle.
_callbacks: dict[int, tuple[Any, Ticket, Callable[[Ticket], object]]] = {}


def _report(kind: Any, value: Any, traceback: Any) -> None:
    import threading

    threading.excepthook(threading.ExceptHookArgs((kind, value, traceback, threading.current_thread())))


@ffi.def_extern("leeway_python_done", onerror=_report)  # type: ignore[untyped-decorator]
def _done(context: Any, code: int, message: Any) -> None:
    _, ticket, callback = _callbacks.pop(int(ffi.cast("uintptr_t", context)))
    callback(ticket)


def wait(tickets: Iterable[Ticket]) -> list[Any]:
    """Waits for all of them and returns their results in order.

    Raises:
        Error: the first of those that failed, once all have completed.
    """
    results, failed = [], None
    for ticket in tickets:
        try:
            results.append(ticket.wait())
        except errors.Error as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return results
