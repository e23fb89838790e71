"""A model's state in a safetensors file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

import torch


def save(model: torch.nn.Module | Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Writes the model's state_dict() to a safetensors file, in one step: there is no half-written file.

    Tensors of several names (tied weights) are written once for each.
    """
    from safetensors.torch import save_file

    state = model.state_dict() if isinstance(model, torch.nn.Module) else model
    for name, value in state.items():
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{name} is a {type(value).__name__}, and safetensors files have tensors alone")
    tensors = {name: value.detach().cpu().clone().contiguous() for name, value in state.items()}
    partial = f"{os.fspath(path)}.{os.getpid()}"
    try:
        save_file(tensors, partial)
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise


def load(model: torch.nn.Module, path: str | os.PathLike[str], strict: bool = True) -> None:
    """Gives the model the state of such a file: before an optimizer of Leeway is made of its parameters.

    Raises:
        RuntimeError: names or shapes differ from the model's, as load_state_dict has it.
    """
    from safetensors.torch import load_file

    model.load_state_dict(load_file(os.fspath(path)), strict=strict)
