"""The works that are measured, and their names."""
from dataclasses import dataclass

KIB, MIB, MB = 1 << 10, 1 << 20, 10**6


def size_label(size: int) -> str:
    """1m for 1 MiB, 100mb for 100 million bytes."""
    if size and size % MB == 0:
        return f"{size // MB}mb"
    if size >= MIB and size % MIB == 0:
        return f"{size // MIB}m"
    if size >= KIB and size % KIB == 0:
        return f"{size // KIB}k"
    return str(size)


@dataclass(frozen=True)
class Work:
    """One work to measure: the operation, its bytes, and how many are in flight."""

    op: str
    size: int = 0
    in_flight: int = 1

    @property
    def name(self) -> str:
        name = self.op
        if self.size:
            name += f"_{size_label(self.size)}"
        if self.in_flight > 1:
            name += f"_x{self.in_flight}"
        return name


# The best size of a raw transport is one of these.
STREAM_SIZES = [256 * KIB, 512 * KIB, MIB, 2 * MIB, 4 * MIB]
# Dense work, eight tensors in flight, for the plots; 4 MiB is used in the ratios.
DENSE_SIZES = [4 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB]
HUGE = 100 * MB

# Copying and adding up touch as much memory: 64 MiB, which a large last cache holds, or 144.
COPY, COPY_FAR = Work("copy", 4 * MIB, 8), Work("copy", 4 * MIB, 18)
SUM, SUM_FAR = Work("sum", MIB, 8), Work("sum_far", MIB, 8)
PUSH_4M, PULL_4M = Work("push", 4 * MIB, 8), Work("pull", 4 * MIB, 8)
PUSH_100M, PULL_100M = Work("push", HUGE), Work("pull", HUGE)
# Work on a tensor with codec onebit; an exchange is a push and a pull in one operation.
PUSH_100M_ONEBIT = Work("push:onebit", HUGE)
EXCHANGE_100M, EXCHANGE_100M_ONEBIT = Work("exchange", HUGE), Work("exchange:onebit", HUGE)
ADD_4M = Work("add", 4 * MIB, 8)
MESSAGE_100M = Work("message", HUGE)
RTT = Work("rtt", 64)
MESSAGES = Work("stream", 64)
SMALL_PUSH, SMALL_PULL = Work("push", 64, 64), Work("pull", 64, 64)
SPARSE_PUSH, SPARSE_PULL = Work("sparse_push"), Work("sparse_pull")
# A codec over 64 MiB of floats in blocks of 512 KiB, and a copy and a sum of the same arrays.
CODEC_COPY, CODEC_ADD = Work("codec_copy"), Work("codec_add")
CODEC_ENCODE, CODEC_DECODE = Work("codec_encode"), Work("codec_decode")
CODEC_DECODE_ADD = Work("codec_decode_add")
REDUCE_4M, REDUCE_100M, REDUCE_64 = (
    Work("all_reduce", 4 * MIB, 8),
    Work("all_reduce", HUGE),
    Work("all_reduce", 64),
)
# Training steps of a layered model over a slow link, at least three each time.
STEP_FIFO, STEP_PRIORITY = Work("step_fifo", in_flight=3), Work("step_priority", in_flight=3)
# Training steps of a model of 10 MB over a slower link, by name, with their codec; at least two each time.
CODED_STEPS = {
    "none": "none",
    "onebit": "onebit",
    "topk_1pct": "topk:0.01",
    "qsgd": "qsgd:bits=4",
    "int8": "int8",
    "fp16": "fp16",
}
TRAIN = {name: Work(f"train:{codec}", in_flight=2) for name, codec in CODED_STEPS.items()}
SPARSE_ROW_BYTES = 8 + 16 * 4  # a key and 16 floats


def streams() -> list[Work]:
    return [Work("stream", size) for size in STREAM_SIZES]


def dense() -> list[Work]:
    return [Work(op, size, 8) for size in DENSE_SIZES for op in ("push", "pull")]


def latencies() -> list[Work]:
    return [Work("rtt", size) for size in (64, 4 * KIB, 64 * KIB, MIB)]


def all_works() -> list[Work]:
    """In the order of measurement: works that are compared are next to each other."""
    return [
        *latencies(),
        REDUCE_64,
        MESSAGES,
        SMALL_PUSH,
        SMALL_PULL,
        *streams(),
        COPY,
        SUM,
        COPY_FAR,
        SUM_FAR,
        ADD_4M,
        CODEC_COPY,
        CODEC_ENCODE,
        CODEC_DECODE,
        CODEC_ADD,
        CODEC_DECODE_ADD,
        *dense(),
        REDUCE_4M,
        MESSAGE_100M,
        PUSH_100M,
        PUSH_100M_ONEBIT,
        PULL_100M,
        EXCHANGE_100M,
        EXCHANGE_100M_ONEBIT,
        REDUCE_100M,
        SPARSE_PUSH,
        SPARSE_PULL,
        STEP_FIFO,
        STEP_PRIORITY,
        *TRAIN.values(),
    ]


def essential(work: Work) -> bool:
    """True if a ratio needs it; the rest is for the plots."""
    plots_only = (set(dense()) - {PUSH_4M, PULL_4M}) | set(latencies()) - {RTT}
    return work not in plots_only
