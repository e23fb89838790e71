"""Training by many steps on each worker between two exchanges: local SGD and DiLoCo."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch

from leeway import errors
from leeway._c import ffi, lib
from leeway.ticket import OfOneProcess
from leeway.torch._values import Flat, Named, begin, check_frozen, label, trainable
from leeway.updaters import SGD, Updater
from leeway.worker import Worker


class DiLoCo(OfOneProcess):
    """Local training with any optimizer of torch, and every `steps` steps an outer step on the servers.

        diloco = leeway.torch.DiLoCo(model, worker=w, steps=100, codec="fp4")
        inner = torch.optim.AdamW(model.parameters())
        while diloco.rounds < 50:
            inner.zero_grad()
            loss(model(batch)).backward()
            inner.step()
            diloco.step()
        diloco.finish()

    Workers push what they have changed (Douillard et al., 2023); the servers take the mean and the updater's
    step by it. A worker that dies is not waited for any longer; one that joins takes the servers' values and
    goes on with the others. Its iterations are the exchanges: nothing else may call Worker.clock meanwhile.

    Args:
        model: its trainable parameters are exchanged, its buffers are not.
        steps: from one exchange of a fragment to the next.
        outer: the updater of the outer step.
        consistency: leeway.BSP(); with leeway.ASP(), and the updater "delayed_nesterov", nobody waits.
        codec, error_feedback: of what is pushed: "fp4", "qsgd:bits=4", ... (docs/compression.md).
        fragments: parts of the model that are exchanged one after the other, evenly spread over the steps
            (Streaming DiLoCo): their number, or for each its modules in a list.
        overlap_steps: training goes on for so many steps while a fragment is under way; then the result is
            mixed with what there is, of which `mixing`, 0 to 1, is kept.
        by_speed: slower workers take fewer steps between two exchanges; with leeway.ASP().
        name: the first part of the tables' names.
    """

    _c: Any = ffi.NULL

    def __init__(
        self,
        model: torch.nn.Module,
        *,
        worker: Worker,
        steps: int = 100,
        outer: Updater | str | None = None,
        consistency: Any = None,
        codec: str | None = None,
        error_feedback: str | None = None,
        fragments: int | Sequence[Sequence[torch.nn.Module]] = 1,
        overlap_steps: int = 0,
        mixing: float = 0.0,
        by_speed: bool = False,
        name: str = "model",
    ):
        for what, number in (("steps", steps), ("overlap_steps", overlap_steps)):
            if not 0 <= operator.index(number) < 2**63:
                raise errors.InvalidArgument(f"{what} is {number}, may be 0 to 2^63 - 1")
        if outer is None:
            outer = SGD(0.7, momentum=0.9, nesterov=True)
        self._worker = worker
        self._flats = [Flat(named, torch.float32) for named in _fragments_of(model, fragments)]
        self._frozen = [(name, one) for name, one in model.named_parameters() if not one.requires_grad]
        means = consistency is None or str(consistency).startswith(("bsp", "backup", "fedbuff", "softsync"))
        self._tables = [
            worker.table(
                label(name, flat.names), shape=flat.values.numel(), updater=outer, consistency=consistency,
                codec=codec, error_feedback=error_feedback, initializer="pushed",
                aggregate="mean" if means else None,
            )
            for flat in self._flats
        ]  # fmt: skip
        self._since = begin(
            worker,
            name,
            [(table, flat.values) for table, flat in zip(self._tables, self._flats, strict=True)],
        )
        # Of a worker that joins later, so that all exchange the same fragment in the same clock.
        turn = (worker.clocks - self._since) % len(self._flats)
        order = [(place - turn) % len(self._flats) for place in range(len(self._flats))]
        parts = [
            (
                self._tables[i]._c,
                ffi.cast("float *", self._flats[i].values.data_ptr()),
                self._flats[i].values.numel(),
            )
            for i in order
        ]
        options = ffi.new(
            "leeway_local_sgd_options *",
            {"struct_bytes": ffi.sizeof("leeway_local_sgd_options"), "steps": steps,
             "overlap_steps": overlap_steps, "mixing": mixing, "by_speed": by_speed},
        )  # fmt: skip
        handle = ffi.new("leeway_local_sgd **")
        self._check(
            lib.leeway_local_sgd_new(worker._c, ffi.new("leeway_part[]", parts), len(parts), options, handle)
        )
        self._c = handle[0]
        self._check(lib.leeway_local_sgd_begin(self._c))
        self._scatter()

    # It has to be freed before its worker, which may have been freed before, with a cycle of objects.
    def __del__(self, lib: Any = lib, null: Any = ffi.NULL) -> None:
        handle, self._c = self._c, null
        if handle != null and self._worker._c != null:
            lib.leeway_local_sgd_free(handle)

    def step(self) -> None:
        """After each step of the inner optimizer: exchanges the fragments that are due.

        Raises:
            Error: an exchange has failed. The step counts; the next call goes on with that exchange.
        """
        if not lib.leeway_local_sgd_due(self._c):
            self._check(lib.leeway_local_sgd_step(self._c))
            return
        check_frozen(self._frozen)
        for flat in self._flats:
            flat.gather()
        try:
            self._check(lib.leeway_local_sgd_step(self._c))
        finally:
            self._scatter()

    def finish(self) -> None:
        """After the last step: exchanges all fragments. Of all workers that finish the models are equal then."""
        for flat in self._flats:
            flat.gather()
        try:
            self._check(lib.leeway_local_sgd_finish(self._c))
        finally:
            self._scatter()

    @property
    def rounds(self) -> int:
        """Exchanges of the whole model since the training began, also those before this worker joined."""
        return (self._worker.clocks - self._since) // len(self._flats)

    @property
    def exchanges(self) -> int:
        """Exchanges of fragments that this worker has taken part in."""
        return int(lib.leeway_local_sgd_exchanges(self._c))

    @property
    def steps_between(self) -> int:
        """Steps between two exchanges of a fragment now."""
        return int(lib.leeway_local_sgd_steps_between(self._c))

    def _scatter(self) -> None:
        for flat in self._flats:
            flat.scatter()

    def _check(self, error: Any) -> None:
        if error:
            errors.throw(error)


class LocalSGD(DiLoCo):
    """DiLoCo whose outer step is the mean of the workers' models (Stich, 2019)."""

    def __init__(self, model: torch.nn.Module, *, worker: Worker, steps: int = 16, **options: Any):
        super().__init__(model, worker=worker, steps=steps, outer=SGD(1.0), **options)


def _fragments_of(model: torch.nn.Module, fragments: Any) -> list[Named]:
    named = list(trainable(model))
    if not isinstance(fragments, int):
        if isinstance(fragments, str) or not all(isinstance(modules, list | tuple) for modules in fragments):
            raise TypeError("fragments may be a number, or a list of lists of modules")
        parts = []
        for modules in fragments:
            own = {id(one) for module in modules for one in module.parameters()}
            parts.append([(name, one) for name, one in named if id(one) in own])
        if sorted(name for part in parts for name, _ in part) != sorted(name for name, _ in named):
            raise ValueError("fragments do not have each trainable parameter of the model once")
        if not all(parts):
            raise ValueError("a fragment has no trainable parameter")
        return list(parts)
    if not 1 <= fragments <= len(named):
        raise ValueError(f"fragments is {fragments}, may be 1 to {len(named)}, the number of parameters")
    # Consecutive parameters, in parts of about equal size, none empty.
    total = sum(one.numel() for _, one in named)
    split: list[list[tuple[str, torch.nn.Parameter]]] = [[]]
    seen = 0
    for place, (name, one) in enumerate(named):
        left = fragments - len(split)
        if split[-1] and left and (seen * fragments >= total * len(split) or len(named) - place <= left):
            split.append([])
        split[-1].append((name, one))
        seen += one.numel()
    return list(split)
