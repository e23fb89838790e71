"""Exceptions, one for each kind of error that the library has.

Their text is that of the library: it names the setting to change and the peer concerned.
"""

from __future__ import annotations

import threading
from typing import NoReturn

from leeway._c import ffi, lib


class Error(Exception):
    """The base of all errors of Leeway. `code`: the number of the kind, as in leeway/c.h."""

    code: int = 2


class Cancelled(Error):
    """The operation was given up; of a push-pull: its push was dropped as too late."""

    code = 1


class Unknown(Error):
    """A push may have been applied, all or a part of it: to push it again may double it."""

    code = 2


class InvalidArgument(Error, ValueError):
    """An argument is wrong: a length, a dtype, keys, a NaN that the table refuses."""

    code = 3


class DeadlineExceeded(Error, TimeoutError):
    """The operation took longer than its timeout; the text names the peers that did not answer."""

    code = 4


class NotFound(Error, LookupError):
    """There is no such table, handler or file; the text lists those that there are."""

    code = 5


class AlreadyExists(Error):
    """There is one of that name, and it differs; the text says where."""

    code = 6


class PermissionDenied(Error, PermissionError):
    """The peer or the system does not allow it."""

    code = 7


class ResourceExhausted(Error):
    """A limit, or too little memory; the text names the setting to change."""

    code = 8


class FailedPrecondition(Error):
    """The call cannot be made now: the worker is closed, is a reader, or is of the parent process."""

    code = 9


class Aborted(Error):
    """This worker was declared dead, or another change is under way."""

    code = 10


class OutOfRange(Error):
    """A value is outside its range; of a call: the answer is too large."""

    code = 11


class Unimplemented(Error):
    """The peer does not know the request."""

    code = 12


class Internal(Error):
    """An error in Leeway or in a handler."""

    code = 13


class Unavailable(Error, ConnectionError):
    """The last replica of a shard, the server or the scheduler is gone."""

    code = 14


class DataLoss(Error):
    """Data are damaged or lost."""

    code = 15


KINDS = {kind.code: kind for kind in Error.__subclasses__()}


def of(code: int, message: str) -> Error:
    """The exception of a code of leeway/c.h."""
    kind = KINDS.get(code)
    if kind is None:
        error = Error(message)
        error.code = code
        return error
    return kind(message)


# Exceptions of signals' handlers, above all KeyboardInterrupt, that ended a wait of the thread of that number.
_interrupts: dict[int, BaseException] = {}


def _keep_interrupt(kind: object, value: BaseException, traceback: object) -> None:
    _interrupts[threading.get_ident()] = value


@ffi.def_extern("leeway_python_interrupted", error=1, onerror=_keep_interrupt)  # type: ignore[untyped-decorator]
def _interrupted(context: object) -> int:
    # Python has run the handlers of signals on the way in. What an earlier wait has left was overtaken by
    # another exception.
    _interrupts.pop(threading.get_ident(), None)
    return 0


def raise_interrupt() -> None:
    """Raises what a signal's handler has raised while this thread waited."""
    raised = _interrupts.pop(threading.get_ident(), None)
    if raised is not None:
        raise raised


def throw(error: object) -> NoReturn:
    """Raises the exception of a leeway_error, which is freed."""
    code = lib.leeway_error_code(error)
    message = ffi.string(lib.leeway_error_message(error)).decode("utf-8", "replace")
    lib.leeway_error_free(error)
    raise_interrupt()
    raise of(code, message)
