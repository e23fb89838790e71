"""The extension module: leeway/c.h by cffi."""

from typing import Any

ffi: Any
lib: Any
