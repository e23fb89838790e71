"""The ratios that Leeway promises (or aims at), each as one number."""
from dataclasses import dataclass
from typing import Callable

from driver import work
from report.figures import (
    Figure,
    Rounds,
    best,
    cpu_s_per_gb,
    figure,
    gb_s,
    ops_s,
    p50_us,
    per_round,
    ratio,
    s_per_op,
)


@dataclass(frozen=True)
class Ratio:
    name: str
    target: float | None  # None: no promise
    of: Callable[[Rounds], Figure | None]
    at_most: bool = False  # lower is better
    means: str = ""

    def meets(self, found: Figure) -> bool | None:
        if self.target is None:
            return None
        return found.median <= self.target if self.at_most else found.median >= self.target


ZMQ_SIZES = [w.name for w in work.streams()]
TCP_SIZES = ZMQ_SIZES


def _raw(rounds: Rounds, subject: str, value=gb_s) -> list[float | None]:
    """A raw transport at the message size with its highest throughput."""
    return per_round(rounds, subject, best(rounds, subject, ZMQ_SIZES), value)


def _against_raw(transport: str, w: work.Work, subject: str):
    return lambda r: ratio(per_round(r, f"leeway.{transport}", w.name, gb_s), _raw(r, subject))


def _against(transport: str, w: work.Work, subject: str, theirs: work.Work, value=gb_s):
    return lambda r: ratio(
        per_round(r, f"leeway.{transport}", w.name, value), per_round(r, subject, theirs.name, value)
    )


def _rows(w: work.Work):
    def millions(sample: dict) -> float:
        return sample["bytes"] / work.SPARSE_ROW_BYTES / sample["seconds"] / 1e6

    return lambda r: figure(r, "leeway.tcp", w.name, millions)


def _sum(added: work.Work, copied: work.Work):
    """Bytes read and written, by both."""

    def of(rounds: Rounds) -> Figure | None:
        copies = per_round(rounds, "memory", copied.name, gb_s)
        return ratio(
            per_round(rounds, "leeway.tcp", added.name, gb_s),
            [None if gb is None else 2 * gb for gb in copies],
        )

    return of


def _codec(name: str, w: work.Work, against: work.Work):
    """Floats a second, against another operation of the same program with the same arrays."""
    return lambda r: ratio(
        per_round(r, f"codec.{name}", w.name, gb_s), per_round(r, f"codec.{name}", against.name, gb_s)
    )


def _steps(rounds: Rounds) -> Figure | None:
    with_priorities, without = (
        per_round(rounds, "leeway.shaped", w.name, s_per_op)
        for w in (work.STEP_PRIORITY, work.STEP_FIFO)
    )
    return ratio(with_priorities, without)


def _shaped(name: str):
    """Steps a second with a codec, against those without."""

    def of(rounds: Rounds) -> Figure | None:
        with_codec, without = (
            per_round(rounds, "leeway.shaped_100m", w.name, lambda sample: 1 / s_per_op(sample))
            for w in (work.TRAIN[name], work.TRAIN["none"])
        )
        return ratio(with_codec, without)

    return of


def _coded(transport: str, w: work.Work, plain: work.Work):
    """The time of an operation with a codec, against that without."""
    return lambda r: ratio(
        per_round(r, f"leeway.{transport}", w.name, s_per_op), per_round(r, f"leeway.{transport}", plain.name, s_per_op)
    )


def _checked(w: work.Work):
    return lambda r: ratio(
        per_round(r, "leeway.tcp_crc", w.name, s_per_op), per_round(r, "leeway.tcp", w.name, s_per_op)
    )


def _shaped_checked(w: work.Work):
    return lambda r: ratio(
        per_round(r, "leeway.shaped_10g", w.name, s_per_op), per_round(r, "leeway.shaped_10g_unchecked", w.name, s_per_op)
    )


def _cpu(w: work.Work):
    """CPU seconds a GB, against libzmq's at its best and one pass over memory."""

    def of(rounds: Rounds) -> Figure | None:
        own = per_round(rounds, "leeway.tcp", w.name, cpu_s_per_gb)
        zmq = _raw(rounds, "zmq.tcp", cpu_s_per_gb)
        memory = per_round(rounds, "memory", work.COPY.name, cpu_s_per_gb)
        allowed = [None if a is None or b is None else a + b for a, b in zip(zmq, memory)]
        return ratio(own, allowed)

    return of


def _ratios() -> list[Ratio]:
    found = []

    def add(name: str, target: float | None, of, means: str, at_most: bool = False) -> None:
        found.append(Ratio(name, target, of, at_most, means))

    for op, w, huge, raw_4m, raw_100m in (
        ("push", work.PUSH_4M, work.PUSH_100M, 0.85, 0.8),
        ("pull", work.PULL_4M, work.PULL_100M, 0.95, 0.9),
    ):
        add(f"dense_4m_{op}_tcp_vs_raw_zmq", raw_4m, _against_raw("tcp", w, "zmq.tcp"),
            "our own TCP, 4 MiB, 8 in flight; libzmq at its best message size")
        if op == "push":
            add("dense_4m_push_tcp_vs_raw_tcp_add", None, _against("tcp", w, "raw.tcp_reno", work.ADD_4M),
                "4 MiB, 8 in flight; a plain stream that one thread receives and adds up")
        add(f"dense_4m_{op}_zmq_vs_raw_zmq", None, _against_raw("zmq", w, "zmq.tcp"),
            "over ZeroMQ (LEEWAY_VAN=zmq), 4 MiB, 8 in flight; libzmq at its best message size")
        add(f"dense_4m_{op}_tcp_vs_pslite", 1.4, _against("tcp", w, "pslite", w),
            "4 MiB, 8 in flight")
        add(f"dense_4m_{op}_compat_vs_pslite", 1.3, _against("pslite", w, "pslite", w),
            "one program, with a handler of its own, built against both: 4 MiB, 8 in flight")
        add(f"dense_4m_{op}_ipc_vs_raw_zmq_ipc", None, _against_raw("ipc", w, "zmq.ipc"),
            "4 MiB, 8 in flight; libzmq over ipc at its best")
        add(f"dense_100m_{op}_tcp_vs_raw_tcp", raw_100m, _against_raw("tcp", huge, "raw.tcp"),
            "100 MB, 1 in flight; a TCP stream at its best, as the system makes them")
        add(f"dense_100m_{op}_tcp_vs_raw_tcp_reno", None, _against_raw("tcp", huge, "raw.tcp_reno"),
            "100 MB, 1 in flight; a TCP stream at its best, with the congestion control that we use")
        add(f"dense_100m_{op}_tcp_vs_torch_tcp", 2.5, _against("tcp", huge, "torch.tcp", huge),
            "100 MB, 1 in flight")
        add(f"dense_4m_{op}_shm_vs_memcpy", 0.6, _against("shm", w, "memory", work.COPY),
            "4 MiB, 8 in flight; as many buffers copied")
        add(f"dense_4m_{op}_shm_vs_torch_shm", 1.5, _against("shm", w, "torch.shm", w),
            "4 MiB, 8 in flight")
    lent = _against("shm_lent", work.PUSH_4M, "memory", work.COPY)
    add("dense_4m_push_shm_lent_vs_memcpy", None, lent,
        "4 MiB, 8 in flight, from Worker::Allocate; as many buffers copied")
    lent = _against("shm_lent", work.PUSH_4M, "leeway.shm", work.PUSH_4M)
    add("dense_4m_push_shm_lent_vs_shm", None, lent,
        "4 MiB, 8 in flight, from Worker::Allocate; from memory of the user's own")
    add("rtt_64b_tcp_vs_raw_zmq", 1.15, _against("tcp", work.RTT, "zmq.tcp", work.RTT, p50_us),
        "our own TCP: median round trip of pushes and pulls by turns", at_most=True)
    add("rtt_64b_zmq_vs_raw_zmq", None, _against("zmq", work.RTT, "zmq.tcp", work.RTT, p50_us),
        "over ZeroMQ (LEEWAY_VAN=zmq): median round trip of pushes and pulls by turns", at_most=True)
    add("rtt_64b_shm_vs_raw_zmq", 0.2, _against("shm", work.RTT, "zmq.tcp", work.RTT, p50_us),
        "median round trip of pushes and pulls by turns", at_most=True)
    add("rtt_64b_compat_vs_pslite", 0.33, _against("pslite", work.RTT, "pslite", work.RTT, p50_us),
        "one program built against both: median round trip of pushes and pulls by turns", at_most=True)
    add("small_push_ops_vs_redis_pipelined", 1.5,
        _against("tcp", work.SMALL_PUSH, "redis", work.SMALL_PUSH, ops_s),
        "64 B, 64 in flight, one client; redis-benchmark -P 64 -t set")
    add("small_push_ops_vs_raw_zmq_msgs", 0.5,
        _against("tcp", work.SMALL_PUSH, "zmq.tcp", work.MESSAGES, ops_s),
        "64 B, 64 in flight; libzmq's messages in one direction")
    for op, w in (("push", work.PUSH_4M), ("pull", work.PULL_4M)):
        add(f"crc_cost_4m_{op}_tcp", 1.03, _shaped_checked(w),
            "over a link of 10 Gbit/s: time with checksums, as between machines, against that without", at_most=True)
        add(f"crc_cost_4m_{op}_loopback", None, _checked(w),
            "within a machine, where checksums are off by default: time with them against that without", at_most=True)
    add("crc_cost_small_push_tcp", None, _checked(work.SMALL_PUSH),
        "64 B, 64 in flight: time with checksums against that without", at_most=True)
    for op, w, times in (("push", work.SPARSE_PUSH, 3), ("pull", work.SPARSE_PULL, 5)):
        add(f"sparse_{op}_rows_m_s", None, _rows(w), "million rows of 16 floats a second")
        add(f"sparse_{op}_bytes_vs_raw_zmq", 0.4, _against_raw("tcp", w, "zmq.tcp"),
            "keys and values; libzmq at its best message size")
        add(f"sparse_{op}_vs_pslite", times, _against("tcp", w, "pslite", w),
            "rows a second; its server keeps them in a std::unordered_map, as the handler that it comes with")
        add(f"sparse_{op}_vs_pslite_flat", None, _against("tcp", w, "pslite.flat", w),
            "the same, where its server keeps them in a table written for speed")
    add("n_way_sum_8_vs_memcpy_streams", 0.8, _sum(work.SUM, work.COPY),
        "bytes read and written, adding eight contributions to a block in one pass; 64 MiB in all, as what is copied")
    add("n_way_sum_8_vs_memcpy_streams_144m", None, _sum(work.SUM_FAR, work.COPY_FAR),
        "the same where both touch 144 MiB")
    for name, target in (("fp16", 0.5), ("bf16", 0.5), ("int8", 0.35), ("onebit", 0.5), ("qsgd", 0.1)):
        for op, w in (("encode", work.CODEC_ENCODE), ("decode", work.CODEC_DECODE)):
            add(f"codec_{name}_{op}_vs_memcpy", target, _codec(name, w, work.CODEC_COPY),
                "bytes of floats a second, one thread, 64 MiB in blocks of 512 KiB; the same floats copied")
    add("codec_topk_encode_vs_memcpy", 0.15, _codec("topk", work.CODEC_ENCODE, work.CODEC_COPY),
        "the same, of one element in a hundred")
    add("codec_topk_decode_add_vs_dense_add", 1.0, _codec("topk", work.CODEC_DECODE_ADD, work.CODEC_ADD),
        "one element in a hundred added; all of them added")
    for name, target in (("onebit", 12), ("topk_1pct", 15), ("qsgd", None), ("int8", None), ("fp16", None)):
        add(f"shaped_step_{name}_vs_none", target, _shaped(name),
            "training steps a second of a model of 10 MB over 100 Mbit/s; the same without a codec")
    for transport in ("shm", "tcp"):
        add(f"push_100m_{transport}_onebit_vs_none", 1.5 if transport == "shm" else None,
            _coded(transport, work.PUSH_100M_ONEBIT, work.PUSH_100M),
            "time of a push of 100 MB with error feedback; the same without a codec", at_most=True)
        add(f"exchange_100m_{transport}_onebit_vs_none", None,
            _coded(transport, work.EXCHANGE_100M_ONEBIT, work.EXCHANGE_100M),
            "time of a push and a pull of 100 MB, error feedback at both ends; the same without a codec", at_most=True)
    for op, w in (("push", work.PUSH_4M), ("pull", work.PULL_4M)):
        add(f"cpu_per_gb_{op}_tcp_vs_raw_zmq_plus_pass", 1.0, _cpu(w),
            "CPU seconds a GB; libzmq's and a memcpy's together", at_most=True)
    add("priority_step_vs_without", 0.9, _steps,
        "a training step of 50 layers, 4 connections over 1 Gbit/s; front layers first, or all equal",
        at_most=True)
    return found


RATIOS = _ratios()
