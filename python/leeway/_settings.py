"""Settings as keywords, for the C library: request_timeout_ms=5000 is LEEWAY_REQUEST_TIMEOUT_MS."""

from __future__ import annotations

import os
from typing import Any

from leeway import _texts
from leeway._c import ffi


def environment_of(settings: dict[str, Any]) -> dict[str, str]:
    """The variables of the environment that say the same. None: not set."""
    return {
        "LEEWAY_" + name.upper(): str(int(value) if isinstance(value, bool) else value)
        for name, value in settings.items()
        if value is not None
    }


def settings_of(settings: dict[str, Any], role: str) -> list[tuple[Any, Any]]:
    """The settings for an array of leeway_setting; it lives as long as this list. `role` is the default."""
    texts = environment_of(settings)
    if not any(os.environ.get(name) for name in ("LEEWAY_ROLE", "DMLC_ROLE")):
        texts.setdefault("LEEWAY_ROLE", role)
    return [
        (ffi.new("char[]", _texts.encoded("a setting", name)), ffi.new("char[]", _texts.encoded(name, text)))
        for name, text in texts.items()
    ]
