"""Texts as the C library takes them: UTF-8 that ends with a zero byte."""

from __future__ import annotations

import os
from typing import Any

from leeway import errors


def encoded(what: str, text: Any) -> bytes:
    """The text, which `what` names in errors. TypeError: it is none. InvalidArgument: a zero byte would cut it."""
    if not isinstance(text, str):
        raise TypeError(f"{what} is a str, and not {type(text).__name__}")
    return _whole(what, text.encode())


def path(directory: str | bytes | os.PathLike[str]) -> bytes:
    """The name of a folder as the system takes it."""
    return _whole("the directory", os.fsencode(directory))


def _whole(what: str, text: bytes) -> bytes:
    if b"\0" in text:
        raise errors.InvalidArgument(f"{what} has a zero byte: {text!r}")
    return text
