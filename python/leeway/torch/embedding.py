"""Embeddings whose rows are in a sparse table: only the rows of a batch travel."""

from __future__ import annotations

import operator
import threading
from collections import deque
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from leeway import _arrays
from leeway.tables import SparseTable
from leeway.ticket import Ticket
from leeway.torch._values import staleness_of
from leeway.updaters import Updater
from leeway.worker import Worker

_PUSHES_MAX = 8  # under way, of one module


class _Rows(NamedTuple):
    """The rows of a batch, which are on their way."""

    ids: torch.Tensor
    keys: torch.Tensor  # each of the ids once
    inverse: torch.Tensor  # places in `keys`, in the shape of the ids
    ticket: Ticket


class _Pulled(torch.autograd.Function):
    """The rows in the forward pass; in the backward pass their gradient is pushed."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, rows: torch.Tensor, module: _Embedding, keys: Any) -> Any:
        ctx.module, ctx.keys = module, keys
        return rows.view_as(rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        ctx.module._push(ctx.keys, gradients[0])
        return None, None, None, None


class _Embedding(torch.nn.Module):
    _of_padding: int | None

    def __init__(
        self,
        num_embeddings: int | None,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        worker: Worker,
        updater: Updater | str,
        name: str,
        initializer: str = "normal:0,1",
        consistency: Any = None,
        codec: str | None = None,
        error_feedback: str | None = None,
        average: bool = True,
        dtype: torch.dtype = torch.float32,
        priority: int = 0,
    ):
        super().__init__()
        if num_embeddings is not None:
            if operator.index(num_embeddings) < 0:
                raise ValueError(f"num_embeddings is {num_embeddings}, may be 0 or more, or None")
            if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(f"padding_idx is {padding_idx}, may be below {num_embeddings}")
            if padding_idx is not None and padding_idx < 0:
                padding_idx += num_embeddings
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.priority = priority
        self.lr: float | None = None  # of the pushes; None: the updater's
        self.pulled_again = 0  # prefetched rows that had become too stale
        text = "bsp" if consistency is None else str(consistency)
        adds_up = text.startswith(("bsp", "backup", "softsync", "fedbuff"))
        self._worker = worker
        self._scale = 1.0 if adds_up or not average else 1.0 / worker.num_workers
        self._lock = threading.Lock()  # of the two queues
        self._prefetched: deque[_Rows] = deque()
        self._pushes: deque[Ticket] = deque()
        self._anchor = torch.zeros((), dtype=dtype, requires_grad=True)  # has backward() come to the rows
        self.table: SparseTable = worker.table(
            name, dim=embedding_dim, dtype=dtype, updater=updater, consistency=consistency,
            initializer=initializer, codec=codec, error_feedback=error_feedback,
            aggregate="mean" if adds_up and average else None,
        )  # fmt: skip
        self._staleness = staleness_of(text)

    @torch.inference_mode(False)
    def prefetch(self, ids: torch.Tensor) -> None:
        """Begins to pull the rows of a later batch, for the forward pass with equal ids.

        Rows that are staler by then than the table's consistency allows are pulled again.
        """
        _check_ids(ids)
        rows = self._begin(ids.clone())
        with self._lock:
            self._prefetched.append(rows)

    def wait(self) -> None:
        """Waits until all pushes of gradients so far are done.

        Raises:
            Error: the first that failed. (The forward pass raises those of earlier iterations.)
        """
        self._end_pushes(most=0)

    def _end_pushes(self, most: int) -> None:
        """Waits for the oldest ones, until there are no more than that, and raises their errors."""
        while True:
            with self._lock:
                if not self._pushes or (len(self._pushes) <= most and not self._pushes[0].done()):
                    return
                push = self._pushes.popleft()
            push.wait()

    def extra_repr(self) -> str:
        rows = "" if self.num_embeddings is None else f"{self.num_embeddings}, "
        return f"{rows}{self.embedding_dim}, table={self.table.name!r}"

    def _begin(self, ids: torch.Tensor) -> _Rows:
        keys, inverse = torch.unique(ids, return_inverse=True)
        keys = keys.to("cpu", torch.int64)
        if self.num_embeddings is not None and keys.numel():
            low, high = int(keys[0]), int(keys[-1])
            if low < 0 or high >= self.num_embeddings:
                raise IndexError(
                    f"id {low if low < 0 else high} is out of range: there are {self.num_embeddings} embeddings"
                )
        out = torch.empty(keys.numel(), self.embedding_dim, dtype=self._anchor.dtype)
        ticket = self.table.pull_async(_unsigned(keys), out=out, priority=self.priority)
        return _Rows(ids, keys, inverse, ticket)

    def _rows_of(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, int]:
        """The rows, the place of each id's, and that of the padding's or -1."""
        _check_ids(ids)
        self._end_pushes(_PUSHES_MAX)
        with self._lock:
            found = next((one for one in self._prefetched if torch.equal(one.ids, ids)), None)
            while found is not None and self._prefetched.popleft() is not found:
                pass  # those before it are not used any more
        if found is not None:
            found.ticket.wait()
            if found.ticket.info.clock + self._staleness < self._worker.clocks:
                self.pulled_again += 1
                found = None
        if found is None:
            found = self._begin(ids)
        rows = found.ticket.wait().to(ids.device)
        padding = -1
        if self.padding_idx is not None:
            at = (found.keys == self.padding_idx).nonzero()
            if at.numel():
                padding = int(at[0])
                rows[padding] = 0
        pulled = _Pulled.apply(self._anchor, rows, self, found.keys)
        return pulled, found.inverse, padding

    def _push(self, keys: torch.Tensor, gradient: torch.Tensor) -> None:
        gradient = gradient.detach().to("cpu").contiguous()
        if self.padding_idx is not None:
            others = keys != self.padding_idx
            keys, gradient = keys[others], gradient[others]
        if self._scale != 1:
            gradient = gradient * self._scale
        push = self.table.push(_unsigned(keys), gradient, lr=self.lr, priority=self.priority)
        with self._lock:
            self._pushes.append(push)


class Embedding(_Embedding):
    """torch.nn.Embedding with its rows in a table: forward pulls those of the batch, backward pushes gradients.

    The module has no parameters. An iteration ends with Worker.clock, which DistributedOptimizer.step calls.

    Args:
        num_embeddings: ids are below it; None: any 64-bit number, also a negative one. It takes no memory.
        worker, updater, consistency, codec, error_feedback, initializer: as in Worker.table.
        name: the table's. average: as in DistributedOptimizer. priority: of pushes and pulls.

    `lr` is the rate of this worker's pushes, where it is not the updater's.
    """

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        rows, places, padding = self._rows_of(ids)
        return F.embedding(places, rows, padding_idx=padding if padding >= 0 else None)


class EmbeddingBag(_Embedding):
    """torch.nn.EmbeddingBag with its rows in a table, as Embedding; `mode` is "sum" or "mean"."""

    def __init__(
        self,
        num_embeddings: int | None,
        embedding_dim: int,
        mode: str = "mean",
        padding_idx: int | None = None,
        include_last_offset: bool = False,
        **options: Any,
    ):
        if mode not in ("sum", "mean"):
            raise ValueError(f"mode is {mode!r}, may be 'sum' or 'mean'")
        super().__init__(num_embeddings, embedding_dim, padding_idx, **options)
        self.mode = mode
        self.include_last_offset = include_last_offset

    def forward(
        self,
        ids: torch.Tensor,
        offsets: torch.Tensor | None = None,
        per_sample_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:
        rows, places, padding = self._rows_of(ids)
        return F.embedding_bag(
            places, rows, offsets, mode=self.mode, per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset, padding_idx=padding if padding >= 0 else None,
        )  # fmt: skip


def _check_ids(ids: Any) -> None:
    if not isinstance(ids, torch.Tensor):
        raise TypeError(f"ids are a {type(ids).__name__}, may be a tensor")
    if ids.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"ids are {ids.dtype}, may be int64 or int32")


def _unsigned(keys: torch.Tensor) -> Any:
    """Keys as servers count them: those below 0 are the highest ones."""
    return keys.numpy().view(_arrays.numpy().uint64)
