"""Leeway, a parameter server: tensors and embedding rows that many workers train together.

    import leeway

    with leeway.connect() as w:  # settings: the environment, or keywords
        emb = w.table("emb", dim=16, updater=leeway.Adagrad(lr=0.05), consistency=leeway.SSP(3))
        rows = emb.pull(keys)
        emb.push(keys, gradients).wait()
        w.clock()

leeway.launch runs such a function on a cluster of processes of this machine; `python -m leeway` is the
`leeway` command. leeway.publish makes versions of a model, which others follow by leeway.subscribe.
leeway.torch has an optimizer, embeddings and DiLoCo for PyTorch.
"""

from leeway._c import ffi as _ffi
from leeway._c import lib as _lib
from leeway.consistency import ASP, BSP, DSSP, PSP, SSP, Backup, Consistency, FedBuff, Softsync
from leeway.errors import (
    Aborted,
    AlreadyExists,
    Cancelled,
    DataLoss,
    DeadlineExceeded,
    Error,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    OutOfRange,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
    Unimplemented,
    Unknown,
)
from leeway.launcher import launch
from leeway.models import Subscription, publish, push_state, subscribe
from leeway.servers import Caller, codec, handler, serve, updater
from leeway.tables import DenseTable, RaggedTable, SparseTable, Table
from leeway.ticket import Info, Ticket, wait
from leeway.updaters import FTRL, SGD, Adagrad, Adam, AdamW, Add, Assign, RMSprop, Updater
from leeway.worker import Worker, connect

__version__: str = _ffi.string(_lib.leeway_version()).decode()

__all__ = [
    "ASP", "Aborted", "Adagrad", "Adam", "AdamW", "Add", "AlreadyExists", "Assign", "BSP", "Backup", "Caller", "Cancelled",
    "Consistency", "DSSP", "DataLoss", "DeadlineExceeded", "DenseTable", "Error", "FTRL", "FailedPrecondition",
    "FedBuff", "Info", "Internal", "InvalidArgument", "NotFound", "OutOfRange", "PSP", "PermissionDenied",
    "RMSprop", "RaggedTable", "ResourceExhausted", "SGD", "SSP", "Softsync", "SparseTable", "Subscription",
    "Table", "Ticket", "Unavailable", "Unimplemented", "Unknown", "Updater", "Worker", "codec", "connect", "handler",
    "launch", "publish", "push_state", "serve", "subscribe", "updater", "wait",
]  # fmt: skip
